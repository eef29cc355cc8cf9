# ruff: noqa: D102 - the protocol has the docstrings
"""A benchmark of the new protocol (benchmark.py) as the shared commands still call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.benchmark import Benchmark, DataStatus, SavedRun
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.runs import after, before, estimate, rescoring
from lmms_eval_tasks.runs.rescore import Rescored, Run
from lmms_eval_tasks.utils.transcribers import Transcriber

Tasks = Sequence[Mapping[str, Any]]


def _names(tasks: Tasks) -> list[str]:
    return [str(task["task"]) for task in tasks]


class Adapter:
    """The methods of `benchmarks.Benchmark`, each one call."""

    def __init__(self, benchmark: Benchmark) -> None:
        self.benchmark = benchmark

    def check(self, tasks: Tasks) -> None:
        before.check(self.benchmark, _names(tasks))

    def make_media(self, tasks: Tasks, limit: float | None = None) -> None:
        before.make_media(self.benchmark, _names(tasks), limit)

    def annotate(self, results: dict[str, Any], tasks: Tasks) -> None:
        after.annotate(self.benchmark, results, _names(tasks))

    def judge_config(
        self, spec: str | None = None, env: Mapping[str, str] | None = None
    ) -> JudgeConfig:
        if spec is None and env is None:
            return before.run_judge(self.benchmark)
        return before.judge_config(self.benchmark, spec, env)

    def judge_prompt(self) -> str:
        return before.judge_prompt(self.benchmark)

    def status(self, root: Path) -> DataStatus:
        return self.benchmark.status(root)

    def prepare(self, source: Path, root: Path, link: bool) -> str:
        return self.benchmark.prepare(source, root, link)

    def rescore_saved(
        self, runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
    ) -> Rescored:
        return rescoring.rescore_saved(self.benchmark, runs, judge, missing_only=missing_only)

    def workload(self, task: Mapping[str, Any]) -> estimate.Workload:
        return estimate.workload(self.benchmark, task)

    def submission(self, runs: Sequence[Run]) -> Mapping[str, Any] | None:
        return self.benchmark.submission(
            [SavedRun(run.task, run.model, rescoring.saved_items(run)) for run in runs]
        )

    def make_subtitles(self, root: Path, transcriber: Transcriber) -> int:
        return self.benchmark.make_subtitles(root, transcriber)

    def tables(self, results: Mapping[str, Any]) -> Sequence[Any]:
        return after.tables(self.benchmark, results)

    def numbers_tables(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Sequence[Any]:
        return self.benchmark.tables(rows)
