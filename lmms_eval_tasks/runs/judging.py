"""The judges of one run of the host: announced before it, counted during it, summed up after it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.console import say
from lmms_eval_tasks.runs import before

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig


class Judging:
    """The judged tasks of one run of the host, in this process."""

    def __init__(self, tasks: Collection[str]) -> None:
        self.names = {name for name in tasks if benchmarks.of(name).tasks[name].asks}
        self._configs: list[JudgeConfig] = []
        self._expected: set[str] = set()
        self._lock = threading.Lock()

    def begin(self) -> bool:
        """Announce the judges; True if a language model is among them."""
        from lmms_eval_tasks import judges

        for benchmark, _ in benchmarks.chosen(self.names):
            self._configs.append(before.judge_config(benchmark))
            say(judges.announcement(self._configs[-1], before.judge_prompt(benchmark)))
        return any(config.endpoints for config in self._configs)

    def threads(self, asked: int, default: int) -> int:
        """Scoring threads: as many as requests may be in flight, unless the user chose a number."""
        from lmms_eval_tasks.judges import run

        wanted = run.current().concurrency
        return max(asked, wanted) if asked == default else asked

    def scoring(self, task: str, items: int) -> AbstractContextManager[None]:
        """While one item of `task` is scored, of which this process has `items`."""
        from lmms_eval_tasks.judges import report, run

        if task not in self.names:
            return nullcontext()
        with self._lock:
            if task not in self._expected:
                self._expected.add(task)
                run.current().progress.expect(items)
        return report.task(task)

    def end(self) -> Work:
        """What the judges did, over all processes; on other ranks than 0 only this one's part."""
        from lmms_eval_tasks.judges import run
        from lmms_eval_tasks.judges.report import Ledger

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

    usage: tuple[dict[str, Any], ...] = ()  # a row for each task and judge (judges/run.py)
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
    found: list[Any] = [None] * distributed.get_world_size()
    first = distributed.get_rank() == 0
    distributed.gather_object(rows, found if first else None, dst=0)
    return found if first else [rows]


_judging: Judging | None = None


@contextmanager
def judging(tasks: Collection[str]) -> Iterator[Judging]:
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
