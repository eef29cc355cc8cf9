"""An OpenAI-compatible endpoint of fixed latency that takes almost no processor time itself.

    with slow_endpoint.started() as endpoint: endpoint.url
    python benchmarks/slow_endpoint.py                (prints its port and serves until it is ended)
    python benchmarks/slow_endpoint.py --slots 1 --measure 120     (our layer against one slot)

It is one asyncio protocol with one ready-made reply, and does not parse the requests' JSON. It
counts its processor time and the delay of its replies, so that a benchmark can show that it did not
measure the endpoint. With `--slots`, it works on so many requests at a time, as llama.cpp, Ollama
and `transformers serve` do, and counts the replies whose clients no longer waited.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

LATENCY = 0.2  # seconds from a request's last byte to its reply
MODEL = "gpt-4o-2024-08-06"
CONTENT = '{"reason": "It names the same colour as the second reference.", "correct": true}'


class Told(NamedTuple):
    """The endpoint's counts so far."""

    requests: int
    late: float  # sum of the replies' delays in seconds
    cpu: float  # seconds of processor time
    thrown_away: int = 0  # requests whose clients disconnected before the reply

    def since(self, before: Told) -> Told:
        """Return the counts since `before`."""
        return Told(*(now - then for now, then in zip(self, before, strict=True)))


class Endpoint(NamedTuple):
    """The endpoint's process, for its clients."""

    port: int

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://127.0.0.1:{self.port}/v1"

    def told(self) -> Told:
        """Return the endpoint's counts."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/")
        told = Told(*json.loads(connection.getresponse().read()))
        connection.close()
        return told


@contextmanager
def started(*options: object) -> Iterator[Endpoint]:
    """Run an endpoint in its own process while the context lasts; `options` as for the command."""
    command = [sys.executable, __file__, *map(str, options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Endpoint(int(process.stdout.readline()))
        finally:
            process.terminate()


def completion() -> bytes:
    """Return the HTTP response to every request: a chat completion in OpenAI's form."""
    message = {"role": "assistant", "content": CONTENT, "refusal": None, "annotations": []}
    details = {"prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0}}
    usage = {"prompt_tokens": 600, "completion_tokens": 24, "total_tokens": 624, **details}
    return _response(
        {
            "id": "chatcmpl-0123456789",
            "object": "chat.completion",
            "created": 1790000000,
            "model": MODEL,
            "choices": [
                {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
            ],
            "usage": usage,
            "service_tier": "default",
            "system_fingerprint": "fp_0123456789",
        }
    )


def _response(value: Any) -> bytes:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


async def serve(latency: float = LATENCY, slots: int = 0, *, cancels: bool = False) -> None:
    """Answer every POST after `latency` seconds and every GET with the counts.

    Args:
        latency: seconds from a request's last byte to its reply.
        slots: number of requests at a time, while others wait in their order; 0: all.
        cancels: True to drop a request whose client disconnected (vLLM, llama.cpp), False to finish
            it.
    """
    loop, reply = asyncio.get_running_loop(), completion()
    requests, late, thrown_away = 0, 0.0, 0
    waiting: deque[Connection] = deque()
    working: dict[Connection, asyncio.TimerHandle] = {}

    def work() -> None:
        while waiting and (not slots or len(working) < slots):
            due, one = loop.time() + latency, waiting.popleft()
            working[one] = loop.call_at(due, one.answer, due)

    class Connection(asyncio.Protocol):
        def connection_made(self, transport: Any) -> None:
            self.transport, self.received = transport, bytearray()

        def connection_lost(self, _: Exception | None) -> None:
            nonlocal thrown_away
            if cancels and (self in working or self in waiting):
                thrown_away += 1
                if self in working:
                    working.pop(self).cancel()
                else:
                    waiting.remove(self)
                work()

        def data_received(self, data: bytes) -> None:
            self.received += data
            while (end := self.received.find(b"\r\n\r\n")) >= 0:
                head = bytes(self.received[:end]).lower()
                length = head.partition(b"content-length:")[2].partition(b"\r\n")[0]
                end += 4 + int(length or 0)
                if len(self.received) < end:
                    return
                del self.received[:end]
                if head.startswith(b"get"):
                    told = Told(requests, late, time.process_time(), thrown_away)
                    self.transport.write(_response(told))
                else:
                    waiting.append(self)
                    work()

        def answer(self, due: float) -> None:
            nonlocal requests, late, thrown_away
            del working[self]
            requests, late = requests + 1, late + loop.time() - due
            thrown_away += self.transport.is_closing()
            self.transport.write(reply)
            work()

    server = await loop.create_server(Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _ask(port: int, connections: int, each: int) -> None:
    request = b"POST / HTTP/1.1\r\nContent-Length: 4096\r\n\r\n" + b" " * 4096
    size = len(completion())

    async def connection() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(each):
            writer.write(request)
            await reader.readexactly(size)
        writer.close()

    await asyncio.gather(*(connection() for _ in range(connections)))


def ask(endpoint: Endpoint, connections: int, each: int) -> None:
    """Send requests without a client's own work, to measure the endpoint itself."""
    asyncio.run(_ask(endpoint.port, connections, each))


def measure(number: int, timeout: float, *options: object) -> None:
    """Request `number` verdicts with our layer's defaults; print the outcome of its requests."""
    import judge_work

    with started(*options) as endpoint:
        seconds, statuses = judge_work.judged(endpoint, range(number), timeout)
        told = endpoint.told()
    print(
        f"{number} verdicts ({statuses}) in {seconds:.0f} s: {told.requests} replies, "
        f"{told.thrown_away} requests thrown away"
    )


def main() -> None:
    """Run the commands in the module's docstring."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=LATENCY)
    parser.add_argument("--slots", type=int, default=0)
    parser.add_argument("--cancels", action="store_true")
    parser.add_argument("--measure", type=int, metavar="VERDICTS")
    parser.add_argument("--timeout", type=float, default=12 * LATENCY, help="of --measure")
    given = parser.parse_args()
    if not given.measure:
        asyncio.run(serve(given.latency, given.slots, cancels=given.cancels))
        return
    options = ["--latency", given.latency, "--slots", given.slots]
    measure(given.measure, given.timeout, *options, *["--cancels"] * given.cancels)


if __name__ == "__main__":
    main()
