"""Before the model is built: can the tasks run? After the run: where do its numbers come from?"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import __version__, benchmarks, settings
from lmms_eval_tasks.console import say

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig

INVALID = 3  # exit code of a run with too many failed verdicts

# What the last run of this process returned, for the tables our script prints after the host's.
last_results: dict[str, Any] | None = None


def check(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Check the data, the prompts and (where a task is judged) the judge of `tasks`.

    Args:
        tasks: YAML of the selected leaf tasks of ours; none is fine.

    Raises:
        TasksError: with one message that says what is missing and what to do.
    """
    if not tasks:
        return
    settings.check()
    for name, own in _by_benchmark(tasks):
        benchmarks.load(name).check(own)


def make_media(tasks: Sequence[Mapping[str, Any]], limit: float | None = None) -> None:
    """Make what the tasks hand over before the model is loaded: a damaged file must not end a run.

    Args:
        tasks: YAML of the selected leaf tasks of ours, which `check` has passed.
        limit: as the host's `--limit`.

    Raises:
        TasksError: it cannot be made, and the user did not allow to leave it out.
    """
    for name, own in _by_benchmark(tasks):
        benchmarks.load(name).make_media(own, limit)


# --- judged tasks, during the run -------------------------------------------------------------


class Judging:
    """The judged tasks of one run of the host, in this process."""

    def __init__(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        self._tasks = [task for task in tasks if task["metadata"]["judged"]]
        self.names = {str(task["task"]) for task in self._tasks}
        self._configs: list[JudgeConfig] = []
        self._expected: set[str] = set()
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Announce the judges; True if a language model is among them."""
        from lmms_eval_tasks import judges

        for name, _ in _by_benchmark(self._tasks):
            benchmark = benchmarks.load(name)
            self._configs.append(benchmark.judge_config())
            say(judges.announcement(self._configs[-1], benchmark.judge_prompt()))
        return any(config.endpoints for config in self._configs)

    def threads(self, asked: int, default: int) -> int:
        """Scoring threads: as many as requests may be in flight, unless the user chose a number."""
        from lmms_eval_tasks.judges import run

        wanted = run.current().concurrency
        if asked == default:
            return max(asked, wanted)
        if asked < wanted and settings.judge_limits().concurrency is not None:
            say(
                f"{settings.JUDGE_CONCURRENCY} is ignored: --process_docs_parallel {asked} leaves "
                f"the judge at most {asked} requests in flight"
            )
        return asked

    def scoring(self, task: str, items: int) -> AbstractContextManager[None]:
        """While one item of `task` is scored, of which this process has `items`."""
        from lmms_eval_tasks.judges import ledger, run

        if task not in self.names:
            return nullcontext()
        with self._lock:
            if task not in self._expected:
                self._expected.add(task)
                run.current().progress.expect(items)
        return ledger.task(task)

    def end(self) -> Work:
        """What the judges did, over all processes; on other ranks than 0 only this one's part."""
        from lmms_eval_tasks.judges import run
        from lmms_eval_tasks.judges.ledger import Ledger

        if not self.names:
            return Work()
        current = run.current()
        current.progress.close()
        whole = Ledger()
        for rows in _gathered(current.ledger.as_dicts()):
            whole.merge(rows)
        labels = frozenset(config.label for config in self._configs)
        return Work(
            tuple(whole.as_dicts()), labels, tuple(current.stopped()), current.prices.origin
        )


class Work(NamedTuple):
    """What the judges of a run did."""

    usage: tuple[dict[str, Any], ...] = ()  # a row for each task and judge (judges/ledger.py)
    labels: frozenset[str] = frozenset()  # judges that were asked by tasks, not by other judges
    given_up: tuple[str, ...] = ()  # endpoints that failed too often in a row, and why
    prices: str = ""  # where they are from, and of when


def _gathered(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """`rows` of every process on rank 0. The host has left its last barrier, so all get here."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return [rows]
    distributed = torch.distributed
    if not distributed.is_initialized() or distributed.get_world_size() == 1:
        return [rows]
    first = distributed.get_rank() == 0
    found: list[Any] | None = [None] * distributed.get_world_size() if first else None
    distributed.gather_object(rows, found, dst=0)
    return found or [rows]


_judging: Judging | None = None


@contextmanager
def judging(tasks: Sequence[Mapping[str, Any]]) -> Iterator[Judging]:
    """Around one run of the host: its judges start with fresh counts and budgets."""
    global _judging  # noqa: PLW0603 - the host calls process_results without anything of ours
    from lmms_eval_tasks.judges import run

    run.forget()
    _judging = Judging(tasks)
    try:
        yield _judging
    finally:
        _judging = None


def scoring(task: str, items: int) -> AbstractContextManager[None]:
    """Around the host's process_results of one item (plugin.py)."""
    return nullcontext() if _judging is None else _judging.scoring(task, items)


# --- after the run ----------------------------------------------------------------------------


def annotate(
    results: dict[str, Any],
    tasks: Sequence[Mapping[str, Any]],
    judged: Work | None = None,
) -> None:
    """Write provenance into the host's results under `lmms_eval_tasks`; remembers the results.

    Args:
        results: the host's.
        tasks: YAML of the leaf tasks of ours.
        judged: what the judges did (`Judging.end`); None if no task was judged.
    """
    judged = judged or Work()
    global last_results  # noqa: PLW0603  # read once by host_script after the host has printed
    section: dict[str, Any] = {"version": __version__, "data_root": str(settings.data_root())}
    results["lmms_eval_tasks"] = section
    if judged.usage:
        section["judges"] = {
            "usage": list(judged.usage),
            "given_up": list(judged.given_up),
            "prices": judged.prices,
        }
    section["invalid"] = problems = invalid(judged)
    for name, own in _by_benchmark(tasks):
        try:
            benchmarks.load(name).annotate(results, own)
        except Exception:  # the answers are paid for: a mistake of ours must not lose them
            say(f"{name}: what is known about this run could not be added to its results")
            traceback.print_exc()
    _mark(results)
    for line in judged.given_up:
        say(
            f"gave up on the judge {line}; everything is kept: judge what is missing with "
            "lmms-eval-tasks judge LOGS (needs --log_samples), or run again"
        )
    for line in problems.values():
        say(f"INVALID: {line}")
    last_results = results


def invalid(judged: Work) -> dict[str, str]:
    """Tasks whose share of verdicts that failed through the judge passes the user's limit."""
    from lmms_eval_tasks.judges.config import NONE
    from lmms_eval_tasks.judges.verdict import is_judges_failure

    limit, found = settings.max_failed(), {}
    for row in judged.usage:
        counts = row["by_status"]
        failed = {status: n for status, n in counts.items() if is_judges_failure(status)}
        if row["judge"] == NONE or row["judge"] not in judged.labels or not row["verdicts"]:
            continue
        share = sum(failed.values()) / row["verdicts"]
        if share > limit:
            shown = ", ".join(f"{n} {status}" for status, n in sorted(failed.items()))
            found[row["task"]] = (
                f"{row['task']}: {sum(failed.values())} of {row['verdicts']} verdicts failed "
                f"({shown}), more than the {limit:.0%} allowed by {settings.MAX_FAILED}"
            )
    return found


def _mark(results: dict[str, Any]) -> None:
    """Show it in the host's own table too: its first column is the alias."""
    from lmms_eval_tasks.runs.rescore import invalid_names

    names = invalid_names(results)
    for table in (results["results"], results.get("groups", {})):
        for name, values in table.items():
            if name in names:
                values["alias"] = f"{values.get('alias', name)} [INVALID]"


def print_tables(results: Mapping[str, Any]) -> None:
    """Print each paper's own table from the host's results, and what the judges did."""
    from lmms_eval_tasks.console import wide_console

    console = wide_console()
    for name in benchmarks.NAMES:
        if name in results.get("lmms_eval_tasks", {}):
            for table in benchmarks.load(name).tables(results):
                console.print(table)
    for line in judge_lines(results):
        console.print(line, highlight=False, soft_wrap=True)


def judge_lines(results: Mapping[str, Any]) -> list[str]:
    """What the judges of a run did and cost, one line for each task and judge."""
    work = results.get("lmms_eval_tasks", {}).get("judges")
    if not work:
        return []
    from lmms_eval_tasks.judges.ledger import Ledger, lines

    ledger = Ledger()
    ledger.merge(work["usage"])
    return lines(ledger.rows(), work["prices"])


def _by_benchmark(
    tasks: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    for name in benchmarks.NAMES:
        own = [task for task in tasks if benchmarks.of_task(task) == name]
        if own:
            yield name, own
