"""HTTP to a judge's endpoint: servers that trickle, flood, redirect, hang or speak otherwise."""

import dataclasses
import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

import pytest

from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.judges.limits import Breaker
from lmms_eval_tasks.judges.providers import transport
from lmms_eval_tasks.judges.providers.endpoint import call_with_retries
from lmms_eval_tasks.judges.providers.exchange import ProviderError, Request
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.judges.verdict import Sampling, Status
from tests.checks import table
from tests.local_endpoint import ONE_OF_EACH, Fault, LocalEndpoint, choice, completion

SECONDS = 0.6  # of an attempt
KEY = "sk-secret-1234567"
RIGHT = completion([choice("4")], ONE_OF_EACH).body or b""
Serve = Callable[[socket.socket], None]


@contextmanager
def listening(serve: Serve) -> Iterator[int]:
    """A port at which each connection is served by `serve` in a thread."""
    ended = threading.Event()

    def one(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            serve(connection)
            ended.wait(5)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)


def asked(url: str, seconds: float = SECONDS) -> tuple[str, bool, float]:
    """What one attempt failed with, whether it is worth another, and how long it took."""
    config = resolve(f"m@{url}", {"OPENAI_API_KEY": KEY}, default_model="gpt-4o")
    provider = OpenAIProvider(dataclasses.replace(config, timeout=seconds))
    start = time.monotonic()
    with pytest.raises(ProviderError) as caught:
        provider.complete(Request([{"role": "user", "content": "x"}], Sampling()), [0])
    assert caught.value.status is Status.API_ERROR
    assert KEY not in str(caught.value)
    return str(caught.value), caught.value.retry, time.monotonic() - start


def sent(*pieces: bytes, again: bytes = b"", pause: float = 0.05) -> Serve:
    """A server that reads a request, sends these pieces, and then one again and again."""

    def serve(connection: socket.socket) -> None:
        connection.recv(65536)
        for piece in pieces:
            connection.sendall(piece)
        while again:
            connection.sendall(again)
            time.sleep(pause)

    return serve


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
NEVER = {
    "accepts, and never reads": lambda connection: None,
    "never answers": sent(),
    "a byte of a header at a time": sent(HEAD + b"X-Slow: ", again=b"a"),
    "white space for ever": sent(CHUNKED, again=b"1\r\n \r\n"),
    "a stream of events": sent(CHUNKED, again=b"e\r\n: processing\n\n\r\n"),
    "a body that stays away": sent(HEAD + b"Content-Length: 100\r\n\r\n", b"{"),
}


@table("name, scheme", [*((name, "http") for name in NEVER), ("never answers", "https")])
def test_one_deadline_holds_for_all_of_an_attempt(name, scheme):
    """Over https a handshake that never comes."""
    with listening(NEVER[name]) as port:
        why, again, took = asked(f"{scheme}://127.0.0.1:{port}/v1")
    assert f"127.0.0.1:{port} within 0.6 s" in why
    assert SECONDS <= took < SECONDS + 1.5
    assert again


def test_a_name_that_is_never_looked_up_takes_no_longer(monkeypatch):
    """The system's look-up cannot be told a time."""
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **more: release.wait(5))
    why, again, took = asked("http://judge:8000/v1")
    release.set()
    assert (why, again) == ("no connection to judge:8000 within 0.6 s", True)
    assert took < SECONDS + 1.5


def test_each_address_of_a_name_is_tried_within_the_deadline(monkeypatch):
    known = socket.getaddrinfo

    def two(host, port, *args, **more):
        return [*known("127.0.0.2", port, *args, **more), *known("127.0.0.1", port, *args, **more)]

    with LocalEndpoint(lambda request: "4") as endpoint:
        port = int(endpoint.url.split(":")[2].removesuffix("/v1"))
        monkeypatch.setattr(socket, "getaddrinfo", two)
        judge = transport.Transport(f"http://judge:{port}/v1/chat/completions", {}, proxies=False)
        assert '"4"' in judge.post({"messages": [], "model": "m"}, SECONDS).text


LONG = transport.MAX_BODY + 1


@table(
    "status, size, encoding",
    [
        (200, LONG, ""),
        (200, LONG, "gzip"),
        (500, LONG, ""),
        (200, 10, "br"),
        (200, 10, "gzip, gzip"),
    ],
)
def test_a_reply_that_is_too_long_or_packed_otherwise_is_asked_for_once(status, size, encoding):
    body = b" " * size
    body = gzip.compress(body) if encoding == "gzip" else body
    headers = {"Content-Encoding": encoding} if encoding else {}
    with LocalEndpoint(lambda request: Fault(status, headers=headers, body=body)) as endpoint:
        why, again, _ = asked(endpoint.url, 20)
    assert why == (
        "a reply of more than 8 MB" if size > 10 else f"a reply packed with {encoding!r}, unasked"
    )
    assert not again


def test_a_packed_reply_is_read_though_none_was_asked_for():
    packed = Fault(body=gzip.compress(RIGHT), headers={"Content-Encoding": "gzip"})
    with LocalEndpoint(lambda request: packed) as endpoint:
        judge = transport.Transport(f"{endpoint.url}/chat/completions", {}, proxies=False)
        assert judge.post({"messages": [], "model": "m"}, SECONDS).text.encode() == RIGHT
    (request,) = endpoint.chats
    assert request.headers["accept-encoding"] == "identity"


@table("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status):
    """It is told where it leads, without what may be a key."""
    with LocalEndpoint(lambda request: "4") as other:
        target = f"{other.url}/chat/completions"
        there = Fault(status, headers={"Location": f"{target}?key={KEY}"}, body=b"")
        with LocalEndpoint(lambda request: there) as endpoint:
            why, again, _ = asked(endpoint.url)
    assert other.chats == []
    assert (why, again) == (
        f"HTTP {status}: a redirect to {target}, which is not followed; if the "
        f"target is yours, use {other.url}",
        False,
    )


def test_a_second_reply_to_a_request_is_not_the_next_ones():
    """Such a connection is not used again: all replies behind it would be those of others."""
    whole = HEAD + b"Content-Length: 1\r\n\r\n"

    with listening(sent(whole + b"1" + whole + b"2")) as port:
        judge = transport.Transport(f"http://127.0.0.1:{port}/v1", {}, proxies=False)
        assert judge.post({}, SECONDS).text == "1"
        with pytest.raises(transport.TransportError, match="more than one reply to a request"):
            judge.post({}, SECONDS)
        assert judge.post({}, SECONDS).text == "1"


@table(
    "location, told",
    [
        ("/v1/chat/completions/", "to http://PLACE/v1/chat/completions/, which is not followed"),
        ("http://[::1", "to something that is not a URL, which is not followed"),
    ],
)
def test_a_redirect_that_no_other_name_mends_names_none(location, told):
    there = Fault(307, headers={"Location": location}, body=b"")
    with LocalEndpoint(lambda request: there) as endpoint:
        why, _, _ = asked(endpoint.url)
        place = endpoint.url.split("/")[2]
    assert why == f"HTTP 307: a redirect {told}".replace("PLACE", place)


def test_an_ipv6_address_has_its_brackets_in_the_host(monkeypatch):
    heads: list[bytes] = []
    known = socket.getaddrinfo
    local = lambda host, *args, **more: known("127.0.0.1", *args, **more)  # noqa: E731
    monkeypatch.setattr(socket, "getaddrinfo", local)
    with listening(lambda connection: heads.append(connection.recv(65536))) as port:
        asked(f"http://[::1]:{port}/v1")
    assert f"\r\nHost: [::1]:{port}\r\n".encode() in heads[0]


# --- why there is no connection -------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that only itself vouches for, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl program here makes a certificate")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    command += " -subj /CN=judge -addext subjectAltName=IP:127.0.0.1"
    files = ["-keyout", str(key), "-out", str(made)]
    subprocess.run([*command.split(), *files], check=True, capture_output=True)
    return made, key


@pytest.fixture
def secure(certificate: tuple[Path, Path]) -> Iterator[int]:
    """The port of an endpoint with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    answer = sent(HEAD + b"Content-Length: %d\r\n\r\n" % len(RIGHT) + RIGHT)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            answer(wrapped)

    with listening(serve) as port:
        yield port


def test_a_certificate_of_ones_own_counts_for_local_judges_too(certificate, secure, monkeypatch):
    url = f"https://127.0.0.1:{secure}/v1"
    why, again, _ = asked(url)
    assert "certificate verify failed: self-signed certificate" in why
    assert "SSL_CERT_FILE" in why
    assert not again  # the next one would fail as well
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")  # a local judge has none
    config = resolve(f"m@{url}", {}, default_model="gpt-4o")
    request = Request([{"role": "user", "content": "x"}], Sampling())
    made = OpenAIProvider(config)
    # Its server may still be at the handshake that failed.
    (reply,) = call_with_retries(
        lambda: made.complete(request, [0]), retries=5, breaker=Breaker(0), base=0.1
    )
    assert reply.text == "4"


def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


REFUSING = sent(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


@table(
    "serve, scheme, words",
    [
        (None, "http", "no reply from 127.0.0.1:PORT: Connection refused"),
        (REFUSING, "https", "no reply from 127.0.0.1:PORT: TLS: wrong version number"),
        (
            sent(b"\x15\x03\x03\x00\x02\x02\x46"),
            "http",
            "no reply from 127.0.0.1:PORT: its answer is not HTTP (does it require https?)",
        ),
    ],
)
def test_why_there_is_no_reply_is_told(serve, scheme, words):
    port = unused_port()
    with listening(serve) if serve else nullcontext() as own:
        port = own or port
        why, again, _ = asked(f"{scheme}://127.0.0.1:{port}/v1")
    assert why.startswith(words.replace("PORT", str(port)))
    assert again


def test_a_name_that_nobody_knows_is_told():
    why, again, _ = asked("http://no-such-host.invalid/v1", 20)
    assert "the server's name no-such-host.invalid cannot be resolved" in why
    assert again


# --- proxies, and the end -------------------------------------------------------------------------


@table("no_proxy, asked_proxy", [("", True), ("judge.example", False)])
def test_the_environments_proxy_is_asked_for_an_endpoint_that_is_not_local(
    no_proxy, asked_proxy, monkeypatch
):
    lines: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        lines.append(connection.recv(65536))
        connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(RIGHT) + RIGHT)

    monkeypatch.setattr(socket, "getaddrinfo", _only_numbers)
    with listening(serve) as port:
        monkeypatch.setenv("HTTP_PROXY", f"http://user:p%40ss@127.0.0.1:{port}")
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", no_proxy)
        judge = transport.Transport("http://judge.example/v1/chat/completions", {}, proxies=True)
        if not asked_proxy:
            with pytest.raises(
                transport.TransportError, match=r"judge\.example cannot be resolved"
            ):
                judge.post({}, SECONDS)
            return
        assert judge.post({}, SECONDS).text.encode() == RIGHT
    assert lines[0].startswith(b"POST http://judge.example/v1/chat/completions HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dXNlcjpwQHNz" in lines[0]


@table("host, told", [("api.openai.com", True), ("judge.example", False)])
def test_who_pays_is_told_to_openai_alone(host, told, monkeypatch):
    heads: list[bytes] = []
    with listening(lambda connection: heads.append(connection.recv(65536))) as port:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
        monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
        monkeypatch.setenv("OPENAI_PROJECT_ID", "")
        asked(f"http://{host}/v1")
    assert f"POST http://{host}/v1/".encode() in heads[0]
    assert (b"OpenAI-Organization: org-1\r\n" in heads[0]) is told
    assert b"OpenAI-Project" not in heads[0]


_look_up = socket.getaddrinfo


def _only_numbers(host, *args, **more):
    if host != "127.0.0.1":
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return _look_up(host, *args, **more)


def test_to_close_ends_what_is_under_way():
    """From another thread, at once, and for good."""
    with listening(sent()) as port:
        judge = transport.Transport(f"http://127.0.0.1:{port}/v1", {}, proxies=False)
        threading.Timer(0.3, judge.close).start()
        start = time.monotonic()
        for _ in range(2):
            with pytest.raises(transport.TransportError):
                judge.post({}, 30)
        assert time.monotonic() - start < 3
