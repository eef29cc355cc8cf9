"""The judges of one run of lmms-eval: announced before, counted during, summed up after it."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks import context, registry
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.json_files import JsonObject

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig


class JudgeUsage(NamedTuple):
    """The work of a run's judges."""

    usage: tuple[JsonObject, ...] = ()  # rows for each task and judge (judges/run.py)
    # Judges that tasks ask, without the judges inside panels and debates.
    labels: frozenset[str] = frozenset()
    given_up: tuple[str, ...] = ()  # endpoints that failed too often in a row, with the reason
    prices: str = ""  # source and date of the prices
    departures: tuple[str, ...] = ()  # lines about parameters that endpoints ignored or refused


class JudgedTasks:
    """The judged tasks of one run of lmms-eval, in this process."""

    def __init__(self, tasks: Collection[str]) -> None:
        self.names = {name for name in tasks if registry.of(name).tasks[name].judgements}
        self._configs: list[JudgeConfig] = []
        self._expected: set[str] = set()
        self._lock = threading.Lock()

    def begin(self) -> int:
        """Announce the judges; return the most requests to language models at a time.

        Scoring needs this number of threads. 0 means that no language model judges.
        """
        from lmms_eval_tasks import judges
        from lmms_eval_tasks.judges import run

        for benchmark, _ in registry.benchmarks_of(self.names):
            self._configs.append(prepare.judge_config(benchmark))
            notify(judges.announcement(self._configs[-1], prepare.judge_prompt(benchmark)))
        asked = any(config.endpoints for config in self._configs)
        return run.current().concurrency if asked else 0

    def expect(self, task: str, items: int) -> None:
        """Announce a task's items to the progress bar, once.

        `items` is their number in this process.
        """
        from lmms_eval_tasks.judges import run

        with self._lock:
            if task not in self._expected:
                self._expected.add(task)
                run.current().progress.expect(items)

    def end(self) -> JudgeUsage:
        """Return the work of the judges of all processes, each of which has to call this."""
        from lmms_eval_tasks.judges import run
        from lmms_eval_tasks.judges.report import UsageCounter, departures

        if not self.names:
            return JudgeUsage()
        current = run.current()
        current.progress.close()
        whole = UsageCounter()
        # All processes get here, since lmms-eval's last barrier is passed.
        for rows in context.gathered(current.usage.as_dicts()):
            whole.merge(rows)
        departed = itertools.chain(*context.gathered(current.departed()))
        return JudgeUsage(
            tuple(whole.as_dicts()),
            frozenset(config.label for config in self._configs),
            tuple(current.stopped()),
            current.prices.origin,
            tuple(departures(departed)),
        )


@contextmanager
def scoring(task: str, items: int) -> Iterator[None]:
    """Surround lmms-eval's process_results of one item of a task; `items` is that of `expect`."""
    from lmms_eval_tasks.judges import report

    judging = context.current().get(JudgedTasks)
    if judging is None or task not in judging.names:
        yield
        return
    judging.expect(task, items)
    with report.task(task):
        yield
