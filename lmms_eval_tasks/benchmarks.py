"""The list of benchmarks: the one place to name a new one (docs/adding_a_benchmark.md)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from lmms_eval_tasks import benchmark
from lmms_eval_tasks.benchmark import DataStatus

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig
    from lmms_eval_tasks.runs.estimate import Workload
    from lmms_eval_tasks.runs.rescore import Rescored, Run
    from lmms_eval_tasks.utils.transcribers import Transcriber

# Folder name under lmms_eval_tasks/, which is also the folder name under the data root.
NAMES: tuple[str, ...] = ("maia", "maverix", "movierecapsqa", "haven", "cvrr_es")
# Beginnings of task names that are not the benchmark's own.
_ALSO = {"cvrr_judge": "cvrr_es"}
_MOVED = {"maia", "cvrr_es"}  # those on the protocol of benchmark.py


class Benchmark(Protocol):
    """What each `lmms_eval_tasks.<name>.benchmark` module offers to the shared code."""

    def check(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Raise a TasksError if data, prompts or judge of `tasks` (their YAML) are unusable."""

    def make_media(self, tasks: Sequence[Mapping[str, Any]], limit: float | None = None) -> None:
        """Make what `tasks` (their YAML) hand over, after `check` and before the model is built.

        Only what is left by `limit`, the host's. TasksError if it cannot be made. A benchmark whose
        media are made one by one, when a model asks for them, does nothing here.
        """

    def annotate(self, results: dict[str, Any], tasks: Sequence[Mapping[str, Any]]) -> None:
        """Add provenance to the host's `results` (data, prompts, judge) and drop placeholders."""

    def judge_config(
        self, spec: str | None = None, env: Mapping[str, str] | None = None
    ) -> JudgeConfig:
        """The judge of `spec`, or of the user's setting, or else the paper's; TasksError if none.

        Called for benchmarks that have judged tasks only. Without `env` the judge is resolved once
        for the process's run, with the keys of os.environ; with it, now, with the keys of `env`.
        """

    def judge_prompt(self) -> str:
        """The judge's prompts in use: files and hashes, for the line before a run."""

    def status(self, root: Path) -> DataStatus:
        """Look at the data under `root` (the data root) without raising."""

    def prepare(self, source: Path, root: Path, link: bool) -> str:
        """Validate `source` and put it under `root`; returns what to tell the user."""

    def rescore_saved(
        self, runs: Sequence[Run], judge: str | None, *, missing_only: bool = False
    ) -> Rescored:
        """Compute every metric again from saved samples (rescore.py).

        Args:
            runs: saved runs of this benchmark's tasks.
            judge: judge the answers with this judge; None keeps the saved verdicts.
            missing_only: keep the verdicts that this very judge has given already.
        """

    def workload(self, task: Mapping[str, Any]) -> Workload:
        """What a run of `task` (its YAML) would generate and ask a judge (estimate.py)."""

    def submission(self, runs: Sequence[Run]) -> Mapping[str, Any] | None:
        """`model`, `answers` and what else a file for withheld data holds; None if all is public.

        DataError if the runs cannot be submitted together.
        """

    def make_subtitles(self, root: Path, transcriber: Transcriber) -> int:
        """Subtitles for the videos that lack them, and how many failed; DataError if unused."""

    def tables(self, results: Mapping[str, Any]) -> Sequence[Any]:
        """The paper's tables (rich renderables or lines) for the host's results."""

    def numbers_tables(self, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Sequence[Any]:
        """The paper's tables for labelled numbers of one or more runs."""


def load(name: str) -> Benchmark:
    """The benchmark module of `name`, imported on demand."""
    if name in _MOVED:
        from lmms_eval_tasks.runs.adapter import Adapter

        return cast(Benchmark, Adapter(get(name)))
    return cast(Benchmark, importlib.import_module(f"lmms_eval_tasks.{name}.benchmark"))


def get(name: str) -> benchmark.Benchmark:
    """The benchmark of that name, imported on demand."""
    module = importlib.import_module(f"lmms_eval_tasks.{name}.tasks")
    return cast(benchmark.Benchmark, module.BENCHMARK)


def of_new_task(task: str) -> benchmark.Benchmark:
    """The benchmark of a task."""
    name = of_task_name(task)
    if name is None:
        raise KeyError(task)
    return get(name)


def of_group(group: str) -> benchmark.Benchmark:
    """The benchmark of a group of the host."""
    return of_new_task(group)


def of_task_name(task: str) -> str | None:
    """The benchmark whose name a task's name starts with, or None."""
    beginnings = {**{name: name for name in NAMES}, **_ALSO}
    return next(
        (own for start, own in beginnings.items() if task == start or task.startswith(f"{start}_")),
        None,
    )


def of_task(config: Mapping[str, Any]) -> str:
    """The benchmark a task belongs to, from its YAML's `metadata.benchmark`."""
    return str(config["metadata"]["benchmark"])
