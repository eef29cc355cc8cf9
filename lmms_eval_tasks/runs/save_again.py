"""A run that was judged later, written as the host writes one: all that reads runs reads it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.runs import after, scoring
from lmms_eval_tasks.runs.rescore import Again, Rescored
from lmms_eval_tasks.utils.json_files import write_json, write_lines
from lmms_eval_tasks.utils.saved_runs import CARRIER, Run


class Folder:
    """Where `DATE_samples_TASK.jsonl` and `..._results.json` go, of several folders below each.

    Files of the same names are replaced.
    """

    def __init__(self, folder: Path, runs: Sequence[Run]) -> None:
        """Nothing is written yet.

        Args:
            folder: made if it is not there.
            runs: all that will be saved.
        """
        several = len({run.file.parent for run in runs}) > 1
        self._places = {
            run.file: folder / run.file.parent.name if several else folder for run in runs
        }
        self._results: dict[Path, dict[str, Any]] = {}

    def add(self, benchmark: Benchmark, again: Again) -> None:
        """Write the samples of one run."""
        run, task = again.run, benchmark.tasks[again.run.task]
        place = self._places[run.file]
        place.mkdir(parents=True, exist_ok=True)
        own = {item["id"]: item for item in again.items}
        lines = (
            {**sample, **scoring.spread(task, benchmark.joins, own[sample[CARRIER]["id"]])}
            for sample in run.samples
        )
        write_lines(place / run.file.name, lines)

    def finish(
        self,
        benchmark: Benchmark,
        runs: Sequence[Run],
        done: Rescored,
        judge: Mapping[str, Any],
    ) -> None:
        """Write the results files of one benchmark's runs.

        Args:
            benchmark: whose tasks were run.
            runs: as they were saved.
            done: their numbers now.
            judge: who judged now (`before.describe_judge`); empty if nobody did.
        """
        for run in runs:
            if run.results:
                file = self._places[run.file] / run.results_file.name
                results = self._results.setdefault(file, copy.deepcopy(run.results))
                _renew(results, benchmark, run, done, judge)
        for file, results in self._results.items():
            write_json(file, results)


def _renew(
    results: dict[str, Any],
    benchmark: Benchmark,
    run: Run,
    done: Rescored,
    judge: Mapping[str, Any],
) -> None:
    """One task in a results file: its numbers, those of its groups, and what they rest on."""
    label = done.labels[run.file]
    ours = results.setdefault("lmms_eval_tasks", {})
    section = ours.setdefault(benchmark.name, {})
    section["warnings"] = run.conditions(benchmark.name, judged_anew=bool(judge))
    if judge:
        section["judge"] = judge
        ours.pop("judges", None)  # what the judge before did
        section["warnings"] += [judge["warning"]] if judge.get("warning") else []
    ours.setdefault("invalid", {}).pop(run.task, None)
    if label in done.problems:
        ours["invalid"][run.task] = done.problems[label]
    section.setdefault("details", {})[run.task] = done.sidecar[label]
    for shown in (label, *(group for group, own in done.groups.items() if label in own)):
        name = shown.split()[0]
        section.setdefault("numbers", {})[name] = dict(done.numbers[shown])
        for rows in (results.get("results", {}), results.get("groups", {})):
            _row(rows.get(name, {}), done.numbers[shown])
    after.mark(results)


def _row(row: dict[str, Any], numbers: Mapping[str, Any]) -> None:
    """A row of the host's table: its numbers as they are now; an error of another number goes."""
    for key in list(row):
        metric, comma, of = key.partition(",")
        if comma and metric in numbers and row[key] != numbers[metric]:
            row[key] = numbers[metric]
            for kind in ("_stderr", "_stderr_clt", "_stderr_clustered"):
                if f"{metric}{kind},{of}" in row:
                    row[f"{metric}{kind},{of}"] = "N/A"
