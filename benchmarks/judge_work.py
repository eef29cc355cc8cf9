"""The measured parts of benchmarks/judge_throughput.py: bare client, our layer, lmms-eval's judge.

`python benchmarks/judge_work.py PART N...` runs one of PARTS in this process and prints its result
as JSON. `work` is the processor time of each verdict, and the bare client's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from argparse import RawTextHelpFormatter
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import slow_endpoint
from slow_endpoint import Endpoint

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig
    from lmms_eval_tasks.judges.providers.exchange import JudgeReply, Request

THREADS = 64  # threads of the bare client, and of our layer compared with it
HOST_THREADS = 4  # lmms-eval's default of --process_docs_parallel
MODEL = "gpt-4o"
HEAVY = ("torch", "openai", "transformers", "numpy", "PIL", "httpx", "httpx2", "lmms_eval")


def fields(number: int) -> dict[str, Any]:
    """Return a made-up item in MAIA's form, a different one for each number."""
    colour = ("rossa", "verde", "grigia", "nera", "bianca")[number % 5]
    seen = f"L'automobile che passa per prima davanti alla casa numero {number} è {colour}"
    return {
        "question": f"Di che colore è l'automobile che passa davanti alla casa numero {number}?",
        "references": [f"{seen}, come dice la persona {person}." for person in range(1, 9)],
        "candidate": f"Nel video l'automobile che si vede davanti alla casa è {colour}.",
    }


def under_threads(threads: int, work: Callable[[int], str], items: Iterable[int]) -> float:
    """Return the seconds of `work` on all items, each of which must return `ok`."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        outcomes = Counter(pool.map(work, items))
    assert list(outcomes) == ["ok"], outcomes
    return time.perf_counter() - start


# --- against the endpoint ----------------------------------------------------------------------


def config(endpoint: Endpoint) -> JudgeConfig:
    """Return the judge at the endpoint, from the name that a user would give."""
    from lmms_eval_tasks import judges

    return judges.resolve(f"{MODEL}@{endpoint.url}", {}, default_model=MODEL)


def requests(endpoint: Endpoint, items: Iterable[int]) -> list[dict[str, Any]]:
    """Return the JSON bodies that our layer sends for these items."""
    from lmms_eval_tasks.judges.engine import render, schema_of
    from lmms_eval_tasks.judges.providers.exchange import Request
    from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
    from lmms_eval_tasks.maia.judge import agreement_criterion

    made, asked = config(endpoint), agreement_criterion()
    provider, schema = OpenAIProvider(made), schema_of(asked.schema)
    return [
        provider.body(Request(render(asked, fields(n)), made.sampling, asked.name, schema))
        for n in items
    ]


def bare(endpoint: Endpoint, bodies: Sequence[Mapping[str, Any]]) -> None:
    """Send all bodies with one synchronous client that the threads share."""
    import openai

    def work(number: int) -> str:
        reply = client.chat.completions.create(**bodies[number])
        return "ok" if reply.choices[0].message.content else "no content"

    with openai.OpenAI(api_key="unused", base_url=endpoint.url) as client:
        under_threads(THREADS, work, range(len(bodies)))


def layer(endpoint: Endpoint, limit: int, items: Iterable[int], cache: Path) -> float:
    """Run our layer with a limit and as many threads; replies go into the folder `cache`.

    Returns:
        Seconds, without those for making the session and its cache.
    """
    from lmms_eval_tasks.judges.run import JudgeSession
    from lmms_eval_tasks.maia.judge import agreement_criterion
    from lmms_eval_tasks.settings import JudgeLimits

    run = JudgeSession(JudgeLimits(concurrency=limit), cache=cache)
    judge, asked = run.judge(config(endpoint), outermost=True), agreement_criterion()
    seconds = under_threads(limit, lambda n: judge.verdict(asked, fields(n)).status, items)
    run.close()
    return seconds


def judged(endpoint: Endpoint, items: Iterable[int], timeout: float) -> tuple[float, Counter[str]]:
    """Run our layer in the way of users; return seconds, and verdicts by status.

    `timeout` is the time of each attempt in seconds.
    """
    from dataclasses import replace

    from lmms_eval_tasks.judges.run import JudgeSession
    from lmms_eval_tasks.maia.judge import agreement_criterion
    from lmms_eval_tasks.settings import JudgeLimits

    run, asked, all_items = (
        JudgeSession(JudgeLimits(), progress=True),
        agreement_criterion(),
        list(items),
    )
    run.progress.expect(len(all_items))
    judge = run.judge(replace(config(endpoint), timeout=timeout), outermost=True)
    start = time.perf_counter()
    with ThreadPoolExecutor(run.concurrency) as pool:
        found = Counter(pool.map(lambda n: judge.verdict(asked, fields(n)).status, all_items))
    seconds = time.perf_counter() - start
    print(*run.report_lines(), sep="\n")
    run.close()
    return seconds, found


# --- in processes of their own -----------------------------------------------------------------


def host(rounds: int, number: int) -> list[float]:
    """Return the verdicts a second of lmms-eval's llm_judge, used in the way of its tasks (k12).

    Its endpoint comes from OPENAI_API_URL.
    """
    from lmms_eval.evaluator import _thread_map_ordered
    from lmms_eval.llm_judge import ServerConfig, get_server

    server = get_server("openai", ServerConfig(model_name=MODEL))

    def process_results(number: int) -> bool:
        item = fields(number)
        asked = item["question"], "\n".join(item["references"]), item["candidate"]
        return bool(server.evaluate_binary(*asked, output_format="0/1")["success"])

    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        done = _thread_map_ordered(process_results, range(number), max_workers=HOST_THREADS)
        rates.append(number / (time.perf_counter() - start))
        assert done == [True] * number
    return rates


class InProcess:
    """A provider that replies at once, each time with a different text."""

    identity: Mapping[str, Any] = {"provider": "benchmark"}

    def __init__(self) -> None:
        self._numbers = count()

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:  # noqa: ARG002
        """Return a reply for one sample."""
        from lmms_eval_tasks.judges.providers.exchange import JudgeReply

        text = slow_endpoint.CONTENT.replace(".", f" ({next(self._numbers)}).")
        name = "-".join(slow_endpoint.MODEL.split("-"))  # a new string, like one from JSON
        return [JudgeReply(text, model=name, prompt_tokens=600, completion_tokens=24)]


def memory(number: int) -> dict[str, float]:
    """Return this process's growth in MB over `number` verdicts, kept as lmms-eval keeps items.

    `grown` is the growth at their end and `peak` the largest one, both since before the session was
    made; `each` is milliseconds for a verdict.
    """
    from lmms_eval_tasks import judges
    from lmms_eval_tasks.judges.engine import LanguageJudge
    from lmms_eval_tasks.judges.run import JudgeSession
    from lmms_eval_tasks.maia.judge import agreement_criterion
    from lmms_eval_tasks.settings import JudgeLimits

    asked = agreement_criterion()
    kept: list[dict[str, Any]] = []
    before, start = _resident("VmRSS"), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(THREADS) as pool:
        run = JudgeSession(JudgeLimits(concurrency=THREADS), cache=Path(folder))
        judge = LanguageJudge(judges.JudgeConfig("openai", MODEL), InProcess(), run)
        for first in range(0, number, 1000):  # the pool's queue must not be measured
            chunk = range(first, min(first + 1000, number))
            kept += pool.map(lambda n: judge.verdict(asked, fields(n)).as_dict(), chunk)
        seconds = time.perf_counter() - start
        grown, peak = _resident("VmRSS") - before, _resident("VmHWM") - before
        assert len(kept) == run.usage.total().paid_calls == number
        assert {verdict["status"] for verdict in kept} == {"ok"}
        run.close()
    return {"grown": grown, "peak": peak, "each": 1000 * seconds / number}


def _resident(name: str) -> float:
    """Return a figure of /proc/self/status in MB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def imported() -> dict[str, Any]:
    """Return the heavy modules that `import lmms_eval_tasks.judges` loads, and its milliseconds."""
    start = time.perf_counter()
    import lmms_eval_tasks.judges  # noqa: F401

    seconds = time.perf_counter() - start
    return {"each": 1000 * seconds, "heavy": [name for name in HEAVY if name in sys.modules]}


def work(number: int) -> dict[str, float]:
    """Return milliseconds of processor time for each of `number` verdicts, best of three.

    They are for the bare client, for our layer, and for our layer with all replies in its cache.
    """
    found: dict[str, list[float]] = {"bare": [], "layer": [], "hits": []}

    def timed(name: str, call: Callable[[], object]) -> None:
        start = time.process_time()
        call()
        found[name].append(1000 * (time.process_time() - start) / number)

    with slow_endpoint.started() as endpoint:
        bodies = requests(endpoint, range(number))
        for _ in range(3):
            with tempfile.TemporaryDirectory() as folder:
                cache = Path(folder)
                timed("bare", lambda: bare(endpoint, bodies))
                timed("layer", lambda cache=cache: layer(endpoint, THREADS, range(number), cache))
                timed("hits", lambda cache=cache: layer(endpoint, THREADS, range(number), cache))
    return {name: round(min(times), 3) for name, times in found.items()}


PARTS: dict[str, Callable[..., Any]] = {
    "host": host,
    "memory": memory,
    "imported": imported,
    "work": work,
}


def in_a_process(part: str, *numbers: int, **env: str) -> Any:
    """Return the result of one of PARTS in a fresh process."""
    command = [sys.executable, __file__, part, *map(str, numbers)]
    done = subprocess.run(command, env=os.environ | env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("numbers", type=int, nargs="*", metavar="N", help="of verdicts, of rounds")
    chosen = parser.parse_args()
    print(json.dumps(PARTS[chosen.part](*chosen.numbers)))
