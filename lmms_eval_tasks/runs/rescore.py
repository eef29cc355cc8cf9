"""Saved runs (`--log_samples`) read back, to compute every metric again without a model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.benchmarks import of_task_name
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges.verdict import Verdict

_SAMPLES = re.compile(r"^(?P<run>.+)_samples_(?P<task>.+)\.jsonl$")


@dataclass(frozen=True)
class Run:
    """The saved samples of one task in one run of the host."""

    task: str
    file: Path
    samples: list[dict[str, Any]]
    model: str | None  # as `name (arguments)`; None without the run's results file
    saved: dict[str, Any]  # the metrics of the run's results file, by name without the filter
    saved_groups: dict[str, dict[str, Any]] = field(default_factory=dict)


class Pair(NamedTuple):
    """One judged item: the verdict that was saved and the one that holds now."""

    id: str
    before: Verdict | None
    after: Verdict | None


@dataclass
class Rescored:
    """What came out: numbers by task or group and metric, and what the user should know."""

    verdicts: dict[str, list[Pair]] = field(default_factory=dict)  # by task; judged tasks only
    numbers: dict[str, dict[str, Any]] = field(default_factory=dict)
    sidecar: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def find(paths: Iterable[Path]) -> list[Path]:
    """Sample files among `paths` and in the folders among them, sorted.

    Raises:
        DataError: a path does not exist, or nothing was found.
    """
    files: list[Path] = []
    given = list(paths)
    for path in given:
        if path.is_dir():
            files += [p for p in path.rglob("*.jsonl") if _SAMPLES.match(p.name)]
        elif path.is_file():
            files.append(path)
        else:
            raise DataError(f"{path}: no such file or folder")
    if not files:
        raise DataError(
            f"{', '.join(map(str, given))}: no *_samples_*.jsonl; run the host with "
            "--log_samples --output_path DIR"
        )
    return sorted(set(files))


def read(file: Path) -> Run:
    """Read one sample file and, beside it, the results file of the same run.

    Raises:
        DataError: the name or a line is not of the host's form; the message names the line.
    """
    match = _SAMPLES.match(file.name)
    if match is None:
        raise DataError(f"{file}: expected a name like DATE_samples_TASK.jsonl")
    samples = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                sample = json.loads(line)
            except json.JSONDecodeError as error:
                raise DataError(f"{file}, line {number}: not JSON ({error.msg})") from None
            if not isinstance(sample, dict):
                raise DataError(f"{file}, line {number}: expected an object")
            samples.append(sample)
    if not samples:
        raise DataError(f"{file}: no samples")
    task = match["task"]
    results_file = file.with_name(f"{match['run']}_results.json")
    if not results_file.is_file():
        return Run(task, file, samples, model=None, saved={})
    try:
        results = json.loads(results_file.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise DataError(f"{results_file}: not JSON ({error.msg})") from None
    config = results.get("config", {})
    return Run(
        task,
        file,
        samples,
        model=f"{config.get('model')} ({config.get('model_args')})",
        saved=plain_names(results.get("results", {}).get(task, {})),
        saved_groups={
            name: plain_names(values)
            for name, values in results.get("groups", {}).items()
            if task in results.get("group_subtasks", {}).get(name, [])
        },
    )


def refuse_twice(runs: Sequence[Run]) -> None:
    """One of two runs of the same task and model would silently take the other's place.

    Raises:
        DataError: naming both files.
    """
    seen: dict[tuple[str, str | None], Run] = {}
    for run in runs:
        other = seen.setdefault((run.task, run.model), run)
        if other is not run:
            raise DataError(
                f"{run.file}: a second {run.task} run of {run.model or 'an unknown model'}, beside "
                f"{other.file}; name one of them"
            )


def saved_items(run: Run, first: str) -> list[dict[str, Any]]:
    """A run's items in the order of their ids, from under the metric that has them whole.

    Raises:
        DataError: a sample lacks that metric's item, or two samples share an id; names the line.
    """
    seen: dict[str, dict[str, Any]] = {}
    for number, sample in enumerate(run.samples, 1):
        item = sample.get(first)
        if not isinstance(item, dict) or "reply" not in item:
            raise DataError(f"{run.file}, line {number}: no `{first}` item of this suite")
        if item["id"] in seen:
            raise DataError(f"{run.file}, line {number}: {item['id']} occurs twice")
        seen[item["id"]] = item
    return [seen[name] for name in sorted(seen)]


def saved_verdict(item: Mapping[str, Any]) -> Verdict | None:
    """The verdict in a saved item, None if nobody was asked.

    Raises:
        DataError: it is none.
    """
    saved = item.get("verdict")
    try:
        return None if saved is None else Verdict.from_dict(saved)
    except (TypeError, ValueError) as error:
        raise DataError(f"{item.get('id')}: the saved verdict is none ({error})") from None


def kept_verdict(
    item: Mapping[str, Any], setup: str | None, *, missing_only: bool
) -> Verdict | None:
    """The saved verdict that stands, None if the judge is to be asked.

    Args:
        item: a saved item.
        setup: the judge that is at hand with its prompt (`judges.setup`); None keeps every saved
            verdict.
        missing_only: keep what that same judge has decided already, with the same settings.
    """
    verdict = saved_verdict(item)
    if setup is None or verdict is None:
        return verdict
    same = verdict.setup == setup and verdict.score is not None
    return verdict if missing_only and same else None


def plain_names(values: dict[str, Any]) -> dict[str, Any]:
    """The host's `metric,filter` keys as metric names, without errors and aliases."""
    return {
        key.partition(",")[0]: value
        for key, value in values.items()
        if "," in key and "_stderr" not in key
    }


def numbers(results: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Metrics by task and group of the host's results; a group's own row counts for a group."""
    groups = results.get("groups", {})
    return {
        name: plain_names(groups.get(name) or values) for name, values in results["results"].items()
    }


def shown_numbers(results: Mapping[str, Any], benchmark: str) -> dict[str, dict[str, Any]]:
    """`numbers` of a benchmark's tasks and groups by name, invalid ones marked so."""
    marked = invalid_names(results)
    return {
        f"{name} INVALID" if name in marked else name: values
        for name, values in sorted(numbers(results).items())
        if of_task_name(name) == benchmark
    }


def details(
    results: Mapping[str, Any],
    tasks: Iterable[Mapping[str, Any]],
    of_task: Callable[[str, Sequence[Mapping[str, Any]]], dict[str, Any]],
) -> dict[str, dict[str, Any]]:
    """What `of_task` makes of each task's name and samples, where the host's results have some."""
    samples = results.get("samples") or {}
    return {
        task["task"]: of_task(task["task"], samples[task["task"]])
        for task in tasks
        if samples.get(task["task"])
    }


def drop_placeholders(results: Mapping[str, Any]) -> None:
    """Remove the nan that carries scores to a group (utils/aggregate.Carrier) and its errors."""
    from lmms_eval_tasks.utils.aggregate import Carrier

    for table in (results["results"], results.get("groups", {})):
        for values in table.values():
            for key in [key for key, value in values.items() if isinstance(value, Carrier)]:
                metric, _, name = key.partition(",")
                for suffix in ("", "_stderr", "_stderr_clt", "_stderr_clustered"):
                    values.pop(f"{metric}{suffix},{name}", None)


def invalid_names(results: Mapping[str, Any]) -> set[str]:
    """Tasks with too many failed verdicts, and the groups they are part of."""
    tasks = results.get("lmms_eval_tasks", {}).get("invalid", {}).keys()
    groups = results.get("group_subtasks", {}).items()
    return {*tasks, *(name for name, members in groups if tasks & set(members))}


def difference(saved: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    """Names of metrics whose value differs from the saved one in any digit."""
    return sorted(name for name in saved.keys() & again.keys() if saved[name] != again[name])
