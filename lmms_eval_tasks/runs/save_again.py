"""A run that was judged later, written as the host writes one: all that reads runs reads it."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.runs import invalid, scoring
from lmms_eval_tasks.runs.rescore import Rescored
from lmms_eval_tasks.utils.json_files import write_json, write_lines
from lmms_eval_tasks.utils.saved_runs import CARRIER, Run


class Part(NamedTuple):
    """One benchmark's part of the runs.

    Attributes:
        benchmark: whose tasks were run.
        runs: as they were saved.
        done: their items and numbers now.
        judge: who judged now (`before.describe_judge`); None if nobody did.
        problems: invalid tasks, with the reason.
    """

    benchmark: Benchmark
    runs: Sequence[Run]
    done: Rescored
    judge: Mapping[str, Any] | None
    problems: Mapping[str, str]


def save(folder: Path, parts: Sequence[Part]) -> None:
    """Write `folder/DATE_samples_TASK.jsonl` and `..._results.json`, of several folders below each.

    Files of the same names are replaced.
    """
    several = len({run.file.parent for part in parts for run in part.runs}) > 1
    written: dict[Path, dict[str, Any]] = {}
    for part in parts:
        for run, label, items in zip(part.runs, part.done.labels, part.done.items, strict=True):
            place = folder / run.file.parent.name if several else folder
            place.mkdir(parents=True, exist_ok=True)
            task, joins = part.benchmark.tasks[run.task], part.benchmark.joins
            own = {item["id"]: scoring.spread(task, joins, item) for item in items}
            lines = ({**sample, **own[sample[CARRIER]["id"]]} for sample in run.samples)
            write_lines(place / run.file.name, lines)
            if run.results:
                file = place / run.results_file.name
                results = written.setdefault(file, copy.deepcopy(run.results))
                _renew(results, part, run, label)
    for file, results in written.items():
        write_json(file, results)


def _renew(results: dict[str, Any], part: Part, run: Run, label: str) -> None:
    """One task in a results file: its numbers, those of its groups, and what they rest on."""
    ours = results.setdefault("lmms_eval_tasks", {})
    section = ours.setdefault(part.benchmark.name, {})
    section["warnings"] = run.conditions(part.benchmark.name, judged_anew=part.judge is not None)
    if part.judge is not None:
        section["judge"] = part.judge
        section["warnings"] += [part.judge["warning"]] if part.judge.get("warning") else []
    ours.setdefault("invalid", {}).pop(run.task, None)
    if found := {*invalid.of_label(part.problems, label)}:
        ours["invalid"][run.task] = "; ".join(sorted(found))
    section.setdefault("details", {})[run.task] = part.done.sidecar[label]
    groups = [join.group for join in part.benchmark.joins if run.task in join.tasks]
    for name, shown in ((run.task, label), *((group, group) for group in groups)):
        if shown in part.done.numbers:
            section.setdefault("numbers", {})[name] = dict(part.done.numbers[shown])
            for rows in (results.get("results", {}), results.get("groups", {})):
                _row(rows.get(name, {}), part.done.numbers[shown])


def _row(row: dict[str, Any], numbers: Mapping[str, Any]) -> None:
    """A row of the host's table: its numbers as they are now; an error of another number goes."""
    for key in list(row):
        metric, comma, of = key.partition(",")
        if comma and metric in numbers and row[key] != numbers[metric]:
            row[key] = numbers[metric]
            for kind in ("_stderr", "_stderr_clt", "_stderr_clustered"):
                if f"{metric}{kind},{of}" in row:
                    row[f"{metric}{kind},{of}"] = "N/A"
