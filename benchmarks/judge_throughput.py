"""The speed and the memory of the judge layer, compared with their targets.

    python benchmarks/judge_throughput.py [--quick] [--check]

An endpoint with 200 ms latency runs in its own process, on the same cores. Three clients take turns
in several rounds: none, for the endpoint alone; one bare synchronous openai client with 64 threads,
which sends exactly our layer's requests (rendered before its clock starts); and our layer with its
cache, at limits 8, 64 and 256. Each measurement starts with a new client and without connections,
on both sides. Ratios are taken within a round, so that a busy machine slows down both, and their
median counts. Further measurements have their own processes: lmms-eval's llm_judge in the way of
its tasks, 100,000 verdicts of a provider in the process, and the import. The measured code is in
judge_work.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

import judge_work
import slow_endpoint
from judge_work import HEAVY, HOST_THREADS, THREADS, in_a_process
from slow_endpoint import LATENCY, Endpoint

VERDICTS = 100_000
HITS = 3000  # verdicts from the cache in one measurement
SHARE, TIMES, HIT, HELD = 0.9, 10, 1000, 200  # the targets: ratios, microseconds, MB
ALONE, BARE = "endpoint alone, 256 in flight", f"bare client, {THREADS} threads"
OURS = {limit: f"our layer, limit {limit}" for limit in (8, THREADS, 256)}


class Speed(NamedTuple):
    """The figures of one measurement."""

    rate: float  # replies a second
    cpu: float  # milliseconds of this process's processor time for each reply
    endpoint_cpu: float  # milliseconds of the endpoint's processor time for each reply
    late: float  # mean delay of the endpoint beyond LATENCY, in milliseconds


class Line(NamedTuple):
    """A line of the table; `met` is None without a target."""

    what: str
    figure: str
    target: str = ""
    met: bool | None = None


def measured(endpoint: Endpoint, number: int, run: Callable[[], object]) -> Speed:
    """Measure `run`, which has to send exactly `number` requests to the endpoint."""
    before, cpu, start = endpoint.told(), time.process_time(), time.perf_counter()
    run()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    spent = endpoint.told().since(before)
    assert spent.requests == number, f"{spent.requests} requests, expected {number}"
    each = 1000 / number
    return Speed(number / seconds, each * cpu, each * spent.cpu, each * spent.late)


def speeds(endpoint: Endpoint, rounds: int, seconds: float, folder: Path) -> dict[str, list[Speed]]:
    """Return the speeds by measurement; every other round runs in reverse order."""
    fresh = count(1)

    def items(number: int) -> range:
        first = next(fresh) * 1_000_000  # no item occurs twice
        return range(first, first + number)

    def of_endpoint() -> Speed:
        each = max(2, int(seconds / LATENCY / 2))
        return measured(endpoint, 256 * each, partial(slow_endpoint.ask, endpoint, 256, each))

    def of_client() -> Speed:
        bodies = judge_work.requests(endpoint, items(int(THREADS * seconds / LATENCY)))
        return measured(endpoint, len(bodies), partial(judge_work.bare, endpoint, bodies))

    def of_layer(limit: int) -> Speed:
        # At 256, the processor is the limit, so that few more than at 64 take as long.
        number = int(min(limit, 1.5 * THREADS) * seconds / LATENCY)
        cache = Path(tempfile.mkdtemp(dir=folder))
        run = partial(judge_work.layer, endpoint, limit, items(number), cache)
        return measured(endpoint, number, run)

    turns: dict[str, Callable[[], Speed]] = {
        ALONE: of_endpoint,
        OURS[8]: partial(of_layer, 8),
        BARE: of_client,
        OURS[THREADS]: partial(of_layer, THREADS),
        OURS[256]: partial(of_layer, 256),
    }
    judge_work.bare(endpoint, judge_work.requests(endpoint, items(8)))  # not counted: imports
    found: dict[str, list[Speed]] = {name: [] for name in turns}
    for number in range(rounds):
        for name in list(turns)[:: -1 if number % 2 else 1]:
            found[name].append(turns[name]())
            say(f"round {number + 1} of {rounds}: {name}, {found[name][-1].rate:.1f}/s")
    return found


def of_speeds(found: Mapping[str, Sequence[Speed]]) -> list[Line]:
    """Return the lines of the measurements, and of our layer's ratio to the bare client."""
    lines = []
    for name, each in found.items():
        middle = Speed(*map(statistics.median, zip(*each, strict=True)))
        rates = [speed.rate for speed in each]
        figure = (
            f"{middle.rate:6.1f}/s ({min(rates):.0f} to {max(rates):.0f}), processor "
            f"{middle.cpu:.2f} ms each; endpoint {middle.endpoint_cpu:.2f} ms each, "
            f"{middle.late:.1f} ms late"
        )
        lines.append(Line(name, figure))
    pairs = zip(found[OURS[THREADS]], found[BARE], strict=True)
    ratios = [ours.rate / its.rate for ours, its in pairs]
    ratio, shown = statistics.median(ratios), ", ".join(f"{100 * r:.0f}" for r in ratios)
    figure = f"{100 * ratio:6.1f} % of the bare client (by round: {shown})"
    return [*lines, Line(OURS[THREADS], figure, f"{SHARE:.0%} or more", ratio >= SHARE)]


def of_host(endpoint: Endpoint, rounds: int, seconds: float, ours: float) -> list[Line]:
    """Return the lines of lmms-eval's judge; `ours` is our layer's rate at 64."""
    number = int(HOST_THREADS * seconds / LATENCY)
    variables = {"OPENAI_API_KEY": "unused", "OPENAI_API_URL": endpoint.url}
    rate = statistics.median(in_a_process("host", rounds, number, **variables))
    ratio = ours / rate
    return [
        Line(f"host's llm_judge, {HOST_THREADS} threads", f"{rate:6.1f}/s"),
        Line(OURS[THREADS], f"{ratio:6.1f} times the host's", f"{TIMES} or more", ratio >= TIMES),
    ]


def of_hits(endpoint: Endpoint, rounds: int, folder: Path) -> list[Line]:
    """Return the lines of verdicts from the cache: wall time for each."""
    items = range(HITS)
    judge_work.layer(endpoint, 256, items, folder)
    before = endpoint.told()
    times: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(rounds):
        for threads, seconds in times.items():
            seconds.append(judge_work.layer(endpoint, threads, items, folder))
    assert endpoint.told().requests == before.requests, "the endpoint was asked"
    lines = []
    for threads, seconds in times.items():
        each = 1e6 * statistics.median(seconds) / HITS
        name = f"cache hit, {threads} thread{'s' * (threads > 1)}"
        lines.append(Line(name, f"{each:6.0f} µs a verdict", f"under {HIT} µs", each < HIT))
    return lines


def of_memory(number: int) -> Line:
    """Return the line of the memory that verdicts take."""
    held = in_a_process("memory", number)
    name, figure = f"{number:,} verdicts held", f"{held['grown']:6.0f} MB (peak {held['peak']:.0f})"
    figure += f"; {held['each']:.2f} ms a verdict"
    if number < VERDICTS:
        return Line(name, figure)
    return Line(name, figure, f"{HELD} MB or less", held["peak"] <= HELD)


def of_import(rounds: int) -> Line:
    """Return the line of the modules and the time that the import of judges needs."""
    loaded = [in_a_process("imported") for _ in range(rounds)]
    brought = loaded[0]["heavy"]
    figure = f"{statistics.median(each['each'] for each in loaded):6.0f} ms, brings "
    figure += ", ".join(brought) or f"none of {', '.join(HEAVY)}"
    clean = not {"torch", "openai"} & set(brought)
    return Line("import of judges", figure, "neither torch nor openai", clean)


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def measure(rounds: int, seconds: float, verdicts: int) -> list[Line]:
    """Run all measurements, and return the lines of the table."""
    with slow_endpoint.started() as endpoint, tempfile.TemporaryDirectory() as folder:
        found = speeds(endpoint, rounds, seconds, Path(folder))
        lines = of_speeds(found)
        say("the host's llm_judge")
        ours = statistics.median(speed.rate for speed in found[OURS[THREADS]])
        lines += of_host(endpoint, min(3, rounds), seconds, ours)
        say("cache hits")
        lines += of_hits(endpoint, rounds, Path(folder) / "hits")
    say(f"{verdicts:,} verdicts in one process, and imports")
    return [*lines, of_memory(verdicts), of_import(2 * rounds + 1)]


def main() -> None:
    """Measure and print the table; with --check, the exit code is 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement, about")
    parser.add_argument("--verdicts", type=int, default=VERDICTS, help="held at once")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 2 s, 20,000 verdicts")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    options = parser.parse_args()
    before = os.getloadavg()[0]
    chosen = (
        (2, 2.0, 20_000) if options.quick else (options.rounds, options.seconds, options.verdicts)
    )
    lines = measure(*chosen)
    print(f"{os.cpu_count()} cores, load {before:.1f} before and {os.getloadavg()[0]:.1f} after")
    for line in lines:
        told = {None: "", True: f"  [target met: {line.target}]"}
        missed = f"  [TARGET MISSED: {line.target}]"
        print(f"{line.what:<30}{line.figure}{told.get(line.met, missed)}")
    if options.check and any(line.met is False for line in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
