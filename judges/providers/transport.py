"""HTTP to one endpoint: a deadline for a whole attempt, a limit on a reply's size, no redirects.

It uses httpcore, the client below httpx: all waiting goes through httpcore's network backend, with
the time that an attempt has left. httpx's timeouts are between two reads, so that a byte now and
then would keep an attempt alive.
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

MAX_BODY = 8 * 2**20  # bytes of an unpacked reply: 16 samples with log-probabilities are below 2 MB
_KEPT_ALIVE = 5.0  # seconds; uvicorn's default for closing idle connections
_PIECE = 64 * 1024  # bytes sent between two checks of the clock


class TransportError(Exception):
    """A request without a reply; `heals` is True if the same request may get one later."""

    def __init__(self, why: str, *, heals: bool = True) -> None:
        super().__init__(why)
        self.heals = heals


class DeadlineError(TransportError):
    """An attempt that exceeded its time."""


class StatusError(Exception):
    """An answer of the endpoint with an error status.

    Attributes:
        status: HTTP's, 300 to 599.
        headers: names in lower case.
        body: the error object of OpenAI's servers, else the whole answer (JSON or text).
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
    """A whole reply with a success status."""

    headers: Mapping[str, str]  # names in lower case
    text: str


class Transport:
    """The connections to one URL, as many as there are requests at a time; thread-safe.

    Each connection has its own httpcore pool: a pool searches all its connections at every request,
    which took 16 ms with 256 of them.
    """

    def __init__(self, url: str, headers: Mapping[str, str], *, proxies: bool) -> None:
        """Prepare the connections; none is opened yet.

        Args:
            url: the endpoint's URL.
            headers: headers of every request.
            proxies: True to use the environment's proxies (HTTPS_PROXY, NO_PROXY).
        """
        self._asked, self._url, self._network = url, httpcore.URL(url), _Network()
        parts = urlsplit(url)
        self._place = parts.netloc
        # The certificates of the system, of SSL_CERT_FILE and of certifi.
        self._tls = httpcore.default_ssl_context() if parts.scheme == "https" else None
        self._proxy = _proxy(parts.scheme, parts.netloc) if proxies else ""
        self._headers: list[tuple[bytes | str, bytes | str]] = [
            ("Host", parts.netloc),  # httpcore's header lacks the brackets of an IPv6 address
            ("Content-Type", "application/json"),
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            *headers.items(),
        ]
        self._idle: deque[httpcore.ConnectionPool] = deque()

    def post(self, body: JsonObject, seconds: float) -> Response:
        """Send JSON, and wait at most `seconds` for the whole reply.

        Raises:
            TransportError: there is no reply.
            StatusError: the reply is an error, or a redirect.
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
                if not response.extensions["network_stream"].has_data:
                    raise TransportError(f"{self._place} sent more than one reply to a request")
                pairs = ((k.decode("latin-1"), v.decode("latin-1")) for k, v in response.headers)
                headers = {name.lower(): value for name, value in pairs}
                payload = _unpacked(response.iter_stream(), headers.get("content-encoding", ""))
        except TransportError:
            raise
        except Exception as error:
            raise self._error(error, seconds) from error
        finally:
            self._idle.append(pool)
        text = payload.decode("utf-8-sig", "replace")
        if 200 <= response.status < 300:
            return Response(headers, text)
        if 300 <= response.status < 400:
            raise StatusError(response.status, headers, self._redirect(headers))
        error_body: object = text
        with suppress(ValueError, RecursionError):
            error_body = json.loads(text)
        raise StatusError(response.status, headers, error_body)

    def close(self) -> None:
        """End all requests in flight, and allow no further ones."""
        self._network.close()

    def _pool(self) -> httpcore.ConnectionPool:
        options: dict[str, Any] = {
            "ssl_context": self._tls,
            "max_connections": 1,
            "keepalive_expiry": _KEPT_ALIVE,
            "network_backend": self._network,
        }
        if not self._proxy:
            return httpcore.ConnectionPool(**options)
        parts = urlsplit(self._proxy)
        auth = unquote(parts.username or ""), unquote(parts.password or "")
        options |= {"proxy_auth": auth} if any(auth) else {}
        url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        kind = httpcore.SOCKSProxy if parts.scheme.startswith("socks") else httpcore.HTTPProxy
        return kind(proxy_url=url, **options)

    def _redirect(self, headers: Mapping[str, str]) -> str:
        """Return words on a redirect: its target, without anything that may be a key."""
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
        """Return an exception of the transport in plain words."""
        if isinstance(error, httpcore.ConnectTimeout):
            return DeadlineError(f"no connection to {self._place} within {seconds:g} s")
        if isinstance(error, httpcore.TimeoutException):
            return DeadlineError(f"no whole reply from {self._place} within {seconds:g} s")
        causes = list(_causes(error))
        why = ": ".join(dict.fromkeys(filter(None, map(_words, causes))))
        heals = not any(isinstance(one, ssl.SSLCertVerificationError) for one in causes)
        return TransportError(f"no reply from {self._place}: {why}", heals=heals)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes; httpcore raises them again `from None`."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _words(error: BaseException) -> str:
    """Return one exception of a chain in words; "" if the next one has the same text."""
    if str(error) in map(str, list(_causes(error))[1:2]):
        return ""
    if isinstance(error, ssl.SSLCertVerificationError):
        own = "put your own certificate into a file and set SSL_CERT_FILE to it"
        return f"certificate verify failed: {error.verify_message} ({own})"
    if isinstance(error, ssl.SSLError):
        # OpenSSL's error for plain text instead of a TLS record.
        plain = error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")
        hint = " (the server seems to use http, not https)" if plain else ""
        return f"TLS: {(error.reason or str(error)).lower().replace('_', ' ')}{hint}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if str(error).startswith(("illegal request line", "illegal status line")):  # h11's texts
        return "its answer is not HTTP (does it require https?)"
    return str(error) or type(error).__name__


def _proxy(scheme: str, place: str) -> str:
    """Return the URL of the proxy for a host from the environment (on a Mac, the system); or ""."""
    if urllib.request.proxy_bypass(place):
        return ""
    known = urllib.request.getproxies()
    found = known.get(scheme) or known.get("all") or ""
    return found if "://" in found or not found else f"http://{found}"


def _unpacked(chunks: Iterable[bytes], encoding: str) -> bytes:
    """Return a body without its encoding, which we did not request.

    Raises:
        TransportError: it has more than MAX_BODY bytes (a small packed body can hold gigabytes), or
            an unknown encoding.
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
            # No retry: the next reply would be as long, and be paid for.
            raise TransportError(f"a reply of more than {MAX_BODY / 2**20:g} MB", heals=False)
    return bytes(found)


# --- the network ----------------------------------------------------------------------------------


class _Deadline(float):
    """The end of an attempt, passed to httpcore as a timeout, and checked at each wait."""

    def __new__(cls, seconds: float) -> _Deadline:
        return super().__new__(cls, time.monotonic() + seconds)

    def seconds_left(self) -> float:
        """Return the seconds left, above 0; raise httpcore's timeout if there are none."""
        if (left := self - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout
        return left


class _Network(httpcore.NetworkBackend):
    """A network backend whose connections end with their attempt, or all at an interrupt."""

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
        """Return a connection to the first address of a host that accepts one.

        Raises:
            httpcore.ConnectError, httpcore.ConnectTimeout: no address does.
        """
        until = timeout if isinstance(timeout, _Deadline) else _Deadline(timeout or math.inf)
        problem: Exception = httpcore.ConnectError("the server's name has no address")
        left = _addresses(host, port, until)
        while left:
            seconds = until.seconds_left() / len(left)  # a dead address must not take all the time
            try:
                stream = self._sockets.connect_tcp(
                    left.pop(0), port, seconds, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                problem = error
            else:
                return self.wrap_stream(stream, until)
        raise problem

    def wrap_stream(self, stream: httpcore.NetworkStream, until: _Deadline) -> _Stream:
        """Return the stream as one that ends with its attempt."""
        made = _Stream(stream, self, until)
        with self._lock:
            self._streams.add(made)
            closed = self._closed
        if closed:
            made.close()
            raise httpcore.ConnectError("the run was interrupted")
        return made

    def close(self) -> None:
        """Shut down all connections: to close a socket would not wake threads that wait."""
        with self._lock:
            self._closed, streams = True, list(self._streams)
        for stream in streams:
            with suppress(OSError):
                socket.socket.shutdown(stream.get_extra_info("socket"), socket.SHUT_RDWR)


class _Stream(httpcore.NetworkStream):
    """A connection whose waits take only the time that its attempt has left.

    `has_data` is True if bytes came since the last bytes were sent. A reply without that belongs to
    the request before, but httpcore would take it for the next one's.
    """

    def __init__(self, stream: httpcore.NetworkStream, network: _Network, until: _Deadline) -> None:
        self._stream, self._network, self._until = stream, network, until
        self.has_data = False

    def _left(self, until: float | None) -> float:
        if isinstance(until, _Deadline):  # httpcore talks to a SOCKS proxy without a timeout
            self._until = until
        return self._until.seconds_left()

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        found = self._stream.read(max_bytes, self._left(timeout))
        self.has_data = True
        return found

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.has_data = False
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
        return self._network.wrap_stream(secured, self._until)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _addresses(host: str, port: int, until: _Deadline) -> list[str]:
    """Return the addresses of a host, looked up in a thread: the look-up has no timeout."""
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            results.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            results.put(error)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        answer = results.get(timeout=until.seconds_left())
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(answer, Exception):
        why = getattr(answer, "strerror", None) or answer
        raise httpcore.ConnectError(f"the server's name {host} cannot be resolved ({why})")
    return list(dict.fromkeys(str(address[0]) for *_, address in answer))
