"""How fast the judge layer is and how much memory it holds, against its targets.

    python benchmarks/judge_throughput.py [--quick] [--check]

An endpoint with 200 ms latency runs in a process of its own, on the same cores. In turn, in several
rounds: one bare synchronous openai client under 64 threads, which sends the very requests that our
layer sends (rendered before its clock starts), and our layer with its cache at limits 8, 64 and
256. Clients are new in each measurement, on both sides. Ratios are taken within a round, so that a
busy machine slows down both, and their median counts. In processes of their own: the host's
llm_judge as its tasks use it, 100,000 verdicts of an endpoint in process, and the import.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import slow_endpoint
from slow_endpoint import LATENCY, Endpoint

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig
    from lmms_eval_tasks.judges.exchange import Reply, Request

THREADS = 64  # of the bare client, and of our layer beside it
LIMITS = (8, THREADS, 256)
HOST_THREADS = 4  # --process_docs_parallel, the host's default
MODEL = "gpt-4o"
HEAVY = ("torch", "openai", "transformers", "numpy", "PIL", "httpx", "lmms_eval")


def fields(number: int) -> dict[str, Any]:
    """A made-up item of MAIA's form, another one for each number."""
    colour = ("rossa", "verde", "grigia", "nera", "bianca")[number % 5]
    seen = f"L'automobile che passa per prima davanti alla casa numero {number} è {colour}"
    return {
        "question": f"Di che colore è l'automobile che passa davanti alla casa numero {number}?",
        "references": [f"{seen}, come dice la persona {person}." for person in range(1, 9)],
        "candidate": f"Nel video l'automobile che si vede davanti alla casa è {colour}.",
    }


# --- against the endpoint ----------------------------------------------------------------------


class Speed(NamedTuple):
    """One measurement."""

    rate: float  # replies a second
    cpu: float  # milliseconds of this process's processor time for each
    endpoint_cpu: float  # the same of the endpoint's process
    late: float  # milliseconds that the endpoint was later than LATENCY, mean


def measured(endpoint: Endpoint, number: int, run: Callable[[], object]) -> Speed:
    """`run`, which must ask the endpoint exactly `number` times."""
    before, cpu, start = endpoint.told(), time.process_time(), time.perf_counter()
    run()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    spent = endpoint.told().since(before)
    assert spent.requests == number, f"{spent.requests} requests, expected {number}"
    each = 1000 / number
    return Speed(number / seconds, each * cpu, each * spent.cpu, each * spent.late)


def under_threads(threads: int, work: Callable[[int], str], items: Iterable[int]) -> None:
    """`work` on all items, each of which must come out as `ok`."""
    with ThreadPoolExecutor(threads) as pool:
        outcomes = Counter(pool.map(work, items))
    assert list(outcomes) == ["ok"], outcomes


def config(endpoint: Endpoint) -> JudgeConfig:
    """The judge at the endpoint, as a user names it."""
    from lmms_eval_tasks import judges

    return judges.resolve(f"{MODEL}@{endpoint.url}", {}, default_model=MODEL)


def requests(endpoint: Endpoint, items: Iterable[int]) -> list[dict[str, Any]]:
    """The JSON that our layer sends for these items."""
    from lmms_eval_tasks.judges.engine import schema_of
    from lmms_eval_tasks.judges.exchange import Request
    from lmms_eval_tasks.judges.openai_provider import OpenAIProvider
    from lmms_eval_tasks.judges.prompts import render
    from lmms_eval_tasks.maia.judge import criterion

    made, asked = config(endpoint), criterion()
    provider, schema = OpenAIProvider(made), schema_of(asked.schema)
    return [
        provider.body(Request(render(asked, fields(n)), made.sampling, asked.name, schema))
        for n in items
    ]


def bare(endpoint: Endpoint, bodies: Sequence[Mapping[str, Any]]) -> None:
    """One synchronous client, shared by the threads."""
    import openai

    def work(number: int) -> str:
        reply = client.chat.completions.create(**bodies[number])
        return "ok" if reply.choices[0].message.content else "no content"

    with openai.OpenAI(api_key="unused", base_url=endpoint.url) as client:
        under_threads(THREADS, work, range(len(bodies)))


def layer(endpoint: Endpoint, limit: int, items: Iterable[int], cache: Path) -> None:
    """Our layer with a limit and as many threads; replies go into the folder `cache`."""
    from lmms_eval_tasks.judges.run import Run
    from lmms_eval_tasks.maia.judge import criterion
    from lmms_eval_tasks.settings import JudgeLimits

    run = Run(JudgeLimits(concurrency=limit), cache=cache)
    judge, asked = run.outermost(config(endpoint)), criterion()
    under_threads(limit, lambda n: judge.verdict(asked, fields(n)).status, items)
    run.close()


def rounds_of(
    endpoint: Endpoint, rounds: int, seconds: float, folder: Path
) -> dict[str, list[Speed]]:
    """Speeds by what was measured; every other round in reverse order."""
    fresh = count()

    def items(number: int) -> range:
        first = next(fresh) * 1_000_000  # no item comes twice
        return range(first, first + number)

    def of_layer(limit: int) -> Speed:
        # At 256 the processor is the limit: as many as at 64 take long enough.
        number = max(2 * limit, int(min(limit, THREADS) * seconds / LATENCY))
        cache = Path(tempfile.mkdtemp(dir=folder))
        run = partial(layer, endpoint, limit, items(number), cache)
        return measured(endpoint, number, run)

    def of_client() -> Speed:
        bodies = requests(endpoint, items(int(THREADS * seconds / LATENCY)))
        return measured(endpoint, len(bodies), partial(bare, endpoint, bodies))

    def of_endpoint() -> Speed:
        each = max(2, int(seconds / LATENCY / 2))
        run = partial(slow_endpoint.ask, endpoint, 256, each)
        return measured(endpoint, 256 * each, run)

    measurements: dict[str, Callable[[], Speed]] = {
        "endpoint, 256 in flight": of_endpoint,
        "our layer, limit 8": partial(of_layer, 8),
        "bare client, 64 threads": of_client,
        "our layer, limit 64": partial(of_layer, 64),
        "our layer, limit 256": partial(of_layer, 256),
    }
    found: dict[str, list[Speed]] = {name: [] for name in measurements}
    for number in range(rounds):
        for name in list(measurements)[:: -1 if number % 2 else 1]:
            speed = measurements[name]()
            found[name].append(speed)
            say(f"round {number + 1} of {rounds}: {name} {speed.rate:.1f}/s")
    return found


def hits(endpoint: Endpoint, rounds: int, number: int, folder: Path) -> dict[int, float]:
    """Microseconds for each verdict whose reply is in the cache, by number of threads."""
    layer(endpoint, 256, range(-number, 0), folder)
    found: dict[int, list[float]] = {1: [], THREADS: []}
    for _ in range(rounds):
        for threads, times in found.items():
            speed = measured_hits(endpoint, threads, number, folder)
            times.append(speed)
    return {threads: statistics.median(times) for threads, times in found.items()}


def measured_hits(endpoint: Endpoint, threads: int, number: int, folder: Path) -> float:
    """One measurement of `hits`: wall time over the number of verdicts."""
    before, start = endpoint.told(), time.perf_counter()
    layer(endpoint, threads, range(-number, 0), folder)
    seconds = time.perf_counter() - start
    assert endpoint.told().requests == before.requests, "the endpoint was asked"
    return 1e6 * seconds / number


# --- in processes of their own -----------------------------------------------------------------


def host(rounds: int, number: int) -> list[float]:
    """Verdicts a second of the host's llm_judge, asked as its tasks ask (k12)."""
    from lmms_eval.evaluator import _thread_map_ordered
    from lmms_eval.llm_judge import ServerConfig, get_server

    server = get_server("openai", ServerConfig(model_name=MODEL))

    def process_results(number: int) -> bool:
        item = fields(number)
        answer = "\n".join(item["references"])
        return bool(
            server.evaluate_binary(item["question"], answer, item["candidate"], "0/1")["success"]
        )

    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        done = _thread_map_ordered(process_results, range(number), max_workers=HOST_THREADS)
        rates.append(number / (time.perf_counter() - start))
        assert done == [True] * number
    return rates


class InProcess:
    """A provider that answers at once, each time with another text."""

    identity: Mapping[str, Any] = {"provider": "benchmark"}

    def __init__(self) -> None:
        self._numbers = count()

    def complete(self, request: Request, samples: Sequence[int]) -> list[Reply]:  # noqa: ARG002
        """A reply for one sample."""
        from lmms_eval_tasks.judges.exchange import Reply

        text = slow_endpoint.CONTENT.replace(".", f" ({next(self._numbers)}).")
        name = "-".join(slow_endpoint.MODEL.split("-"))  # a new string, as JSON gives one
        return [Reply(text, model=name, prompt_tokens=600, completion_tokens=24)]


def memory(number: int) -> dict[str, float]:
    """Growth in MB over `number` verdicts kept as the host keeps items, and ms for each."""
    from lmms_eval_tasks import judges
    from lmms_eval_tasks.judges.engine import LanguageJudge
    from lmms_eval_tasks.judges.run import Run
    from lmms_eval_tasks.maia.judge import criterion
    from lmms_eval_tasks.settings import JudgeLimits

    asked, kept = criterion(), []
    resident, start = _resident("VmRSS"), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(THREADS) as pool:
        run = Run(JudgeLimits(concurrency=THREADS), cache=Path(folder))
        judge = LanguageJudge(judges.JudgeConfig("openai", MODEL), InProcess(), run)
        for first in range(0, number, 1000):  # the pool's queue is not what is measured
            chunk = range(first, min(first + 1000, number))
            kept += pool.map(lambda n: judge.verdict(asked, fields(n)).as_dict(), chunk)
        grown, peak = _resident("VmRSS") - resident, _resident("VmHWM") - resident
        seconds = time.perf_counter() - start
        assert len(kept) == run.ledger.total().by_status["ok"] == number
        run.close()
    return {"grown": grown, "peak": peak, "each": 1000 * seconds / number}


def _resident(name: str) -> float:
    """A figure of /proc/self/status in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def imported() -> dict[str, Any]:
    """What `import lmms_eval_tasks.judges` brings along, and its milliseconds."""
    start = time.perf_counter()
    import lmms_eval_tasks.judges  # noqa: F401

    seconds = time.perf_counter() - start
    return {"each": 1000 * seconds, "heavy": [name for name in HEAVY if name in sys.modules]}


PARTS: dict[str, Callable[..., Any]] = {"host": host, "memory": memory, "imported": imported}


def in_a_process(part: str, *numbers: int, **env: str) -> Any:
    """The result of one of PARTS in a fresh process."""
    command = [sys.executable, __file__, "--part", part, *map(str, numbers)]
    done = subprocess.run(command, env=os.environ | env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# --- the table ---------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line of the table; `met` is None where there is no target."""

    what: str
    figure: str
    target: str = ""
    met: bool | None = None


def say(text: str) -> None:
    """Progress, on stderr."""
    print(text, file=sys.stderr, flush=True)


def of_speeds(found: Mapping[str, Sequence[Speed]]) -> list[Line]:
    """The measurements against the endpoint, and our layer against the bare client."""
    lines = []
    for name, speeds in found.items():
        middle = Speed(*map(statistics.median, zip(*speeds, strict=True)))
        rates = [speed.rate for speed in speeds]
        figure = f"{middle.rate:7.1f}/s ({min(rates):.0f} to {max(rates):.0f})"
        figure += f", {middle.cpu:.2f} ms of processor time each; endpoint"
        figure += f" {middle.endpoint_cpu:.2f} ms, late by {middle.late:.1f} ms"
        lines.append(Line(name, figure))
    pairs = zip(found["our layer, limit 64"], found["bare client, 64 threads"], strict=True)
    ratios = [ours.rate / its.rate for ours, its in pairs]
    ratio, each = statistics.median(ratios), ", ".join(f"{100 * r:.0f}" for r in ratios)
    figure = f"{100 * ratio:.1f} % (by round: {each})"
    return [*lines, Line("our layer at 64 to bare client", figure, "90 % or more", ratio >= 0.9)]


def measure(options: argparse.Namespace) -> list[Line]:
    """Everything, as lines of the table."""
    rounds, seconds = options.rounds, options.seconds
    with slow_endpoint.started() as endpoint, tempfile.TemporaryDirectory() as folder:
        found = rounds_of(endpoint, rounds, seconds, Path(folder))
        lines = of_speeds(found)
        say("the host's llm_judge")
        of_host = statistics.median(
            in_a_process(
                "host",
                min(rounds, 3),
                int(HOST_THREADS * seconds / LATENCY),
                OPENAI_API_KEY="unused",
                OPENAI_API_URL=endpoint.url,
            )
        )
        lines.append(Line("the host's llm_judge, 4 threads", f"{of_host:7.1f}/s"))
        ratio = statistics.median(s.rate for s in found["our layer, limit 64"]) / of_host
        lines.append(
            Line("our layer at 64 to the host's", f"{ratio:.1f}", "10 or more", ratio >= 10)
        )
        say("cache hits")
        for threads, each in hits(endpoint, rounds, 1000, Path(folder) / "hits").items():
            name = f"cache hit, {threads} thread{'s' * (threads > 1)}"
            lines.append(Line(name, f"{each:.0f} µs a verdict", "under 1 ms", each < 1000))
    say(f"{options.verdicts} verdicts in one process")
    held = in_a_process("memory", options.verdicts)
    figure = f"{held['grown']:.0f} MB (peak {held['peak']:.0f}), {held['each']:.2f} ms each"
    name = f"{options.verdicts:,} verdicts held"
    lines.append(Line(name, figure, "200 MB or less", held["peak"] <= 200))
    loaded = [in_a_process("imported") for _ in range(2 * rounds + 1)]
    brought = loaded[0]["heavy"]
    figure = f"{statistics.median(each['each'] for each in loaded):.0f} ms, brings"
    figure += f" {', '.join(brought) or 'none of ' + ', '.join(HEAVY)}"
    clean = not {"torch", "openai"} & set(brought)
    return [*lines, Line("import of judges", figure, "no torch, no openai", clean)]


def main() -> None:
    """Measure, print the table; with --check the exit code is 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement, about")
    parser.add_argument("--verdicts", type=int, default=100_000, help="held at once")
    parser.add_argument("--quick", action="store_true", help="2 rounds of 2 s, 20,000 verdicts")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("numbers", type=int, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part](*options.numbers)))
        return
    if options.quick:
        options.rounds, options.seconds, options.verdicts = 2, 2.0, 20_000
    lines = measure(options)
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for line in lines:
        verdict = {None: "", True: "target met: ", False: "target MISSED: "}[line.met]
        print(f"{line.what:<32} {line.figure}" + (f"  [{verdict}{line.target}]" if verdict else ""))
    if options.check and any(line.met is False for line in lines):
        sys.exit(1)


if __name__ == "__main__":
    main()
