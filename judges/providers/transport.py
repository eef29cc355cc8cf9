"""HTTP to one endpoint: a deadline over all of an attempt, a limit on a reply, no redirects.

On httpcore, the client below httpx: all waiting goes through its network backend, and takes what an
attempt has left. httpx's own timeouts are between two reads, which a byte now and then keeps alive.
"""

from __future__ import annotations

import json
import math
import queue
import socket
import ssl
import threading
import time
import urllib.request
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit
from weakref import WeakSet

import httpcore

from lmms_eval_tasks.utils.json_files import JsonObject

MAX_BODY = 8 * 2**20  # bytes of a reply, unpacked: 16 samples with log-probabilities are below 2 MB
_KEPT_ALIVE = 5.0  # seconds; servers close idle connections after as many (uvicorn's default)
_PIECE = 64 * 1024  # bytes sent between two looks at the clock


class TransportError(Exception):
    """There is no reply, and why in words; `heals`: whether the same request may get one later."""

    def __init__(self, why: str, *, heals: bool = True) -> None:
        super().__init__(why)
        self.heals = heals


class DeadlineError(TransportError):
    """An attempt took longer than it may."""


class StatusError(Exception):
    """The endpoint answered, but not with success.

    Attributes:
        status: of HTTP, 300 to 599.
        headers: names in lower case.
        body: the error's object as OpenAI's servers send it, else all that was sent (JSON or text).
    """

    def __init__(self, status: int, headers: Mapping[str, str], body: object) -> None:
        if isinstance(body, dict):
            body = body.get("error") or body
        self.status, self.headers, self.body = status, headers, body
        values = body if isinstance(body, dict) else {}
        self.param, self.code = values.get("param"), values.get("code")
        message = values.get("message")
        super().__init__(message if isinstance(message, str) and message else str(body))


class Response(NamedTuple):
    """A whole reply with a status of success."""

    headers: Mapping[str, str]  # names in lower case
    text: str


class Transport:
    """The connections to one URL, as many as there are requests at a time; thread-safe.

    Each has a pool of its own of httpcore's, which looks through all of its connections at every
    request: at 256 of them that took 16 ms.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, proxies: bool) -> None:
        """
        Args:
            proxies: whether those of the environment are asked (HTTPS_PROXY, NO_PROXY).
        """
        self._asked, self._url, self._network = url, httpcore.URL(url), _Network()
        parts = urlsplit(url)
        self._place = parts.netloc
        # The system's certificates, SSL_CERT_FILE's and certifi's.
        self._tls = httpcore.default_ssl_context() if parts.scheme == "https" else None
        self._proxy = _proxy(parts.scheme, parts.netloc) if proxies else ""
        self._headers: list[tuple[bytes | str, bytes | str]] = [
            ("Host", parts.netloc),  # httpcore's own lacks the brackets of an IPv6 address
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            *headers.items(),
        ]
        self._idle: deque[httpcore.ConnectionPool] = deque()

    def post(self, body: JsonObject, seconds: float) -> Response:
        """Send JSON, and wait for the whole reply for so many seconds at most.

        Raises:
            TransportError: there is none.
            StatusError: it is an error, or a redirect.
        """
        until = _Deadline(seconds)
        timeout = dict.fromkeys(("connect", "read", "write"), until)
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            pool = self._idle.pop()
        except IndexError:
            pool = self._pool()
        try:
            with pool.stream(
                "POST",
                self._url,
                headers=self._headers,
                content=content,
                extensions={"timeout": timeout},
            ) as response:
                if not response.extensions["network_stream"].heard:
                    raise TransportError(f"{self._place} sent more than one reply to a request")
                pairs = ((k.decode("latin-1"), v.decode("latin-1")) for k, v in response.headers)
                headers = {name.lower(): value for name, value in pairs}
                sent = _unpacked(response.iter_stream(), headers.get("content-encoding", ""))
        except TransportError:
            raise
        except Exception as error:
            raise self._error(error, seconds) from error
        finally:
            self._idle.append(pool)
        text = sent.decode("utf-8-sig", "replace")
        if 200 <= response.status < 300:
            return Response(headers, text)
        if 300 <= response.status < 400:
            raise StatusError(response.status, headers, self._redirect(headers))
        told: object = text
        with suppress(ValueError, RecursionError):
            told = json.loads(text)
        raise StatusError(response.status, headers, told)

    def close(self) -> None:
        """End all requests that are under way, and let none begin."""
        self._network.close()

    def _pool(self) -> httpcore.ConnectionPool:
        given: dict[str, Any] = {
            "ssl_context": self._tls,
            "max_connections": 1,
            "keepalive_expiry": _KEPT_ALIVE,
            "network_backend": self._network,
        }
        if not self._proxy:
            return httpcore.ConnectionPool(**given)
        parts = urlsplit(self._proxy)
        auth = unquote(parts.username or ""), unquote(parts.password or "")
        given |= {"proxy_auth": auth} if any(auth) else {}
        url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        kind = httpcore.SOCKSProxy if parts.scheme.startswith("socks") else httpcore.HTTPProxy
        return kind(proxy_url=url, **given)

    def _redirect(self, headers: Mapping[str, str]) -> str:
        """Words on a redirect: where it leads, without what may be a key."""
        try:
            parts = urlsplit(urljoin(self._asked, headers.get("location", "")))
        except ValueError:
            return "a redirect to something that is not a URL, which is not followed"
        target = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        told = f"a redirect to {target}, which is not followed"
        named = target.rstrip("/").removesuffix("/chat/completions")
        return (
            told
            if self._asked.startswith(named)
            else f"{told}; if the target is yours, use {named}"
        )

    def _error(self, error: Exception, seconds: float) -> TransportError:
        """The cause of an exception of the transport in plain words."""
        if isinstance(error, httpcore.ConnectTimeout):
            return DeadlineError(f"no connection to {self._place} within {seconds:g} s")
        if isinstance(error, httpcore.TimeoutException):
            return DeadlineError(f"no whole reply from {self._place} within {seconds:g} s")
        causes = list(_causes(error))
        why = ": ".join(dict.fromkeys(filter(None, map(_words, causes))))
        heals = not any(isinstance(one, ssl.SSLCertVerificationError) for one in causes)
        return TransportError(f"no reply from {self._place}: {why}", heals=heals)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it came from; httpcore raises them again `from None`."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _words(error: BaseException) -> str:
    """One exception of a chain in words; empty if the next one says the same."""
    if str(error) in map(str, list(_causes(error))[1:2]):
        return ""
    if isinstance(error, ssl.SSLCertVerificationError):
        own = "put your own certificate into a file and set SSL_CERT_FILE to it"
        return f"certificate verify failed: {error.verify_message} ({own})"
    if isinstance(error, ssl.SSLError):
        # OpenSSL's words for text in place of a record.
        plain = error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
        hint = " (the server seems to use http, not https)" if plain else ""
        return f"TLS: {(error.reason or str(error)).lower().replace('_', ' ')}{hint}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if str(error).startswith(("illegal request line", "illegal status line")):  # h11's words
        return "its answer is not HTTP (does it require https?)"
    return str(error) or type(error).__name__


def _proxy(scheme: str, place: str) -> str:
    """URL of the proxy that the environment (on a Mac, the system) has for a host; or ""."""
    if urllib.request.proxy_bypass(place):
        return ""
    known = urllib.request.getproxies()
    found = known.get(scheme) or known.get("all") or ""
    return found if "://" in found or not found else f"http://{found}"


def _unpacked(chunks: Iterable[bytes], encoding: str) -> bytes:
    """A body without its encoding; a TransportError beyond MAX_BODY bytes.

    None is asked for: a small one can hold gigabytes.
    """
    encoding = encoding.strip().lower()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise TransportError(f"a reply packed with {encoding[:20]!r}, unasked", heals=False)
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32) if encoding not in ("", "identity") else None
    found = bytearray()
    for chunk in chunks:
        room = MAX_BODY + 1 - len(found)
        found += unpacker.decompress(chunk, room) if unpacker else chunk[:room]
        if len(found) > MAX_BODY:
            # The next one would be as long, and be paid for.
            raise TransportError(f"a reply of more than {MAX_BODY / 2**20:g} MB", heals=False)
    return bytes(found)


# --- the network ----------------------------------------------------------------------------------


class _Deadline(float):
    """The end of an attempt: goes where httpcore takes a timeout, and is asked at each wait."""

    def __new__(cls, seconds: float) -> _Deadline:
        return super().__new__(cls, time.monotonic() + seconds)

    def left(self) -> float:
        """Seconds, above 0; a timeout of httpcore's if there are none."""
        if (left := self - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout
        return left


class _Network(httpcore.NetworkBackend):
    """Connections that end when an attempt does, and all at once when the run is interrupted."""

    def __init__(self) -> None:
        self._sockets, self._lock, self._closed = httpcore.SyncBackend(), threading.Lock(), False
        self._streams: WeakSet[_Stream] = WeakSet()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> _Stream:
        """A connection to the first of a host's addresses that takes one."""
        until = timeout if isinstance(timeout, _Deadline) else _Deadline(timeout or math.inf)
        problem: Exception = httpcore.ConnectError("the server's name has no address")
        left = _addresses(host, port, until)
        while left:
            seconds = until.left() / len(left)  # a dead address must not take them all
            try:
                stream = self._sockets.connect_tcp(
                    left.pop(0), port, seconds, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                return self.known(stream, until)
        raise problem

    def known(self, stream: httpcore.NetworkStream, until: _Deadline) -> _Stream:
        """The stream, as one that ends in time."""
        made = _Stream(stream, self, until)
        with self._lock:
            self._streams.add(made)
            closed = self._closed
        if closed:
            made.close()
            raise httpcore.ConnectError("the run was interrupted")
        return made

    def close(self) -> None:
        """Wake all who wait for a byte: to close a socket does not."""
        with self._lock:
            self._closed, streams = True, list(self._streams)
        for stream in streams:
            with suppress(OSError):
                socket.socket.shutdown(stream.get_extra_info("socket"), socket.SHUT_RDWR)


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait takes what its attempt has left.

    `heard`: whether anything came since the last bytes were sent. A reply without that was sent for
    the request before, which httpcore would take for the next one's.
    """

    def __init__(self, stream: httpcore.NetworkStream, network: _Network, until: _Deadline) -> None:
        self._stream, self._network, self._until = stream, network, until
        self.heard = False

    def _left(self, until: float | None) -> float:
        if isinstance(until, _Deadline):  # to a SOCKS proxy httpcore talks without a timeout
            self._until = until
        return self._until.left()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found = self._stream.read(max_bytes, self._left(timeout))
        self.heard = True
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.heard = False
        for start in range(0, len(buffer), _PIECE):
            self._stream.write(buffer[start : start + _PIECE], self._left(timeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> _Stream:
        secured = self._stream.start_tls(ssl_context, server_hostname, self._left(timeout))
        return self._network.known(secured, self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _addresses(host: str, port: int, until: _Deadline) -> list[str]:
    """The addresses of a host; looked up in a thread, since the system's look-up takes its time."""
    found: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            found.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        answer = found.get(timeout=until.left())
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(answer, Exception):
        why = getattr(answer, "strerror", None) or answer
        raise httpcore.ConnectError(f"the server's name {host} cannot be resolved ({why})")
    return list(dict.fromkeys(str(address[0]) for *_, address in answer))
