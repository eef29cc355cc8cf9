"""What benchmarks/judge_throughput.py measures: the bare client, our layer, the host's judge.

`python benchmarks/judge_work.py PART N...` runs one of PARTS in this process and prints its result
as JSON; `work` is the processor time of each verdict beside the bare client's.
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

THREADS = 64  # of the bare client, and of our layer beside it
HOST_THREADS = 4  # --process_docs_parallel, the host's default
MODEL = "gpt-4o"
HEAVY = ("torch", "openai", "transformers", "numpy", "PIL", "httpx", "httpx2", "lmms_eval")


def fields(number: int) -> dict[str, Any]:
    """A made-up item of MAIA's form, another one for each number."""
    colour = ("rossa", "verde", "grigia", "nera", "bianca")[number % 5]
    seen = f"L'automobile che passa per prima davanti alla casa numero {number} è {colour}"
    return {
        "question": f"Di che colore è l'automobile che passa davanti alla casa numero {number}?",
        "references": [f"{seen}, come dice la persona {person}." for person in range(1, 9)],
        "candidate": f"Nel video l'automobile che si vede davanti alla casa è {colour}.",
    }


def under_threads(threads: int, work: Callable[[int], str], items: Iterable[int]) -> float:
    """Seconds for `work` on all items, each of which must come out as `ok`."""
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        outcomes = Counter(pool.map(work, items))
    assert list(outcomes) == ["ok"], outcomes
    return time.perf_counter() - start


# --- against the endpoint ----------------------------------------------------------------------


def config(endpoint: Endpoint) -> JudgeConfig:
    """The judge at the endpoint, as a user names it."""
    from lmms_eval_tasks import judges

    return judges.resolve(f"{MODEL}@{endpoint.url}", {}, default_model=MODEL)


def requests(endpoint: Endpoint, items: Iterable[int]) -> list[dict[str, Any]]:
    """The JSON that our layer sends for these items."""
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
    """One synchronous client, shared by the threads."""
    import openai

    def work(number: int) -> str:
        reply = client.chat.completions.create(**bodies[number])
        return "ok" if reply.choices[0].message.content else "no content"

    with openai.OpenAI(api_key="unused", base_url=endpoint.url) as client:
        under_threads(THREADS, work, range(len(bodies)))


def layer(endpoint: Endpoint, limit: int, items: Iterable[int], cache: Path) -> float:
    """Our layer with a limit and as many threads; replies go into the folder `cache`.

    Returns seconds, those for making the run and its cache left out.
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
    """Our layer as users run it: seconds, and verdicts by status; `timeout` for each attempt."""
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
    """Verdicts a second of the host's llm_judge, asked as its tasks ask (k12).

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
    """A provider that answers at once, each time with another text."""

    identity: Mapping[str, Any] = {"provider": "benchmark"}

    def __init__(self) -> None:
        self._numbers = count()

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:  # noqa: ARG002
        """A reply for one sample."""
        from lmms_eval_tasks.judges.providers.exchange import JudgeReply

        text = slow_endpoint.CONTENT.replace(".", f" ({next(self._numbers)}).")
        name = "-".join(slow_endpoint.MODEL.split("-"))  # a new string, as JSON gives one
        return [JudgeReply(text, model=name, prompt_tokens=600, completion_tokens=24)]


def memory(number: int) -> dict[str, float]:
    """Growth of this process in MB over `number` verdicts, which are kept as the host keeps items.

    `grown` at their end and `peak`, over the time before the run was made; `each` is milliseconds.
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
        for first in range(0, number, 1000):  # the pool's queue is not what is measured
            chunk = range(first, min(first + 1000, number))
            kept += pool.map(lambda n: judge.verdict(asked, fields(n)).as_dict(), chunk)
        seconds = time.perf_counter() - start
        grown, peak = _resident("VmRSS") - before, _resident("VmHWM") - before
        assert len(kept) == run.ledger.total().paid_calls == number
        assert {verdict["status"] for verdict in kept} == {"ok"}
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


def work(number: int) -> dict[str, float]:
    """Milliseconds of this process's processor time for each of `number` verdicts, best of three:
    of the bare client, of our layer, and of our layer with all replies in its cache.
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
    """The result of one of PARTS in a fresh process."""
    command = [sys.executable, __file__, part, *map(str, numbers)]
    done = subprocess.run(command, env=os.environ | env, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RawTextHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("numbers", type=int, nargs="*", metavar="N", help="of verdicts, of rounds")
    chosen = parser.parse_args()
    print(json.dumps(PARTS[chosen.part](*chosen.numbers)))
