"""Saved runs (`--log_samples`), read from their files."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import conditions, json_files, results_file
from lmms_eval_tasks.utils.conditions import Condition, Kind
from lmms_eval_tasks.utils.json_files import Json, JsonObject

# The metric of every task that carries the whole item: the count of failed items.
CARRIER = "failed"

MEND = "delete its line, or run the task again"
_RESULTS = "_results.json"  # the end of a results file's name
_SAMPLES = re.compile(r"^(?P<run>.+)_samples_(?P<task>.+)\.jsonl$")


@dataclass(frozen=True)
class Lines:
    """The samples of a file, read again in each iteration: runs may be larger than memory."""

    file: Path

    def __iter__(self) -> Iterator[JsonObject]:
        """Yield one sample after another.

        Raises:
            DataError: a line is not of lmms-eval's form; names it.
        """
        for number, line in json_files.numbered_lines(self.file):
            try:
                sample = json_files.parsed(line)
            except ValueError as error:
                where = f"{self.file}, line {number}"
                raise DataError(f"{where}: not JSON ({error}); {MEND}") from None
            if not isinstance(sample, dict):
                raise DataError(f"{self.file}, line {number}: expected an object")
            yield sample


@dataclass(frozen=True)
class Chained:
    """The samples of several files, one file after the other."""

    parts: Sequence[Iterable[JsonObject]]

    def __iter__(self) -> Iterator[JsonObject]:
        return itertools.chain.from_iterable(self.parts)


@dataclass(frozen=True)
class SavedRun:
    """The saved samples of one task in one run of lmms-eval."""

    task: str
    file: Path
    samples: Iterable[JsonObject]
    model: str | None  # `name (arguments)`; None without the run's results file
    saved: JsonObject  # the metrics in the results file, by name without the filter
    saved_groups: dict[str, JsonObject] = field(default_factory=dict)
    # The content of the results file; empty without one.
    results: JsonObject = field(default_factory=dict)

    @property
    def results_file(self) -> Path:
        """The path of lmms-eval's results file of the run."""
        return self.file.with_name(_SAMPLES.sub(rf"\g<run>{_RESULTS}", self.file.name))

    def section(self, benchmark: str) -> Mapping[str, Json]:
        """Return a benchmark's section in the results file; empty if there is none."""
        content: Mapping[str, Json] = self.results.get("lmms_eval_tasks", {}).get(benchmark) or {}
        return content

    def conditions(self, benchmark: str, may_fail: float) -> conditions.Record:
        """Return the conditions of the task's numbers, with those that only the sample file shows.

        Args:
            benchmark: the task's benchmark.
            may_fail: the share of the samples that may be missing in a valid run (`--max-failed`).
        """
        known = conditions.of_results(self.results, benchmark, [self.task])
        found = [one for one in known if one.concerns([self.task])]
        if not known:
            why = (
                "lmms-eval-tasks was not active in the run"
                if self.results
                else "its results file is missing"
            )
            told = f"{self.file.name}: the conditions of its numbers are unknown: {why}"
            found.append(Condition(Kind.UNKNOWN, told))
            if line := conditions.part(self.results.get("config") or {}):
                found.append(Condition(Kind.PART, line))
        if broken := self.broken(may_fail):
            found.append(Condition(Kind.INVALID, broken, (self.task,)))
        elif self.cut_off:
            found.append(Condition(Kind.NOTE, self.cut_off))
        return conditions.record(found)

    @functools.cached_property
    def sample_counts(self) -> tuple[int, int]:
        """The numbers of samples in the file and in the run; 0 and 0 if the run's is not known."""
        counts = self.results.get("n-samples", {}).get(self.task, {})
        if not isinstance(counts.get("effective"), int):
            return 0, 0
        offset = self.results.get("config", {}).get("offset") or 0
        expected = min(counts["effective"], counts.get("original", counts["effective"]) - offset)
        return min(sum(1 for _ in self.samples), expected), expected

    @property
    def cut_off(self) -> str:
        """A line if samples are missing, as after a kill during saving; else ""."""
        saved, total = self.sample_counts
        text = f"{self.file.name} has {saved:,} of the run's {total:,} samples: run the task again"
        return text if saved < total else ""

    def broken(self, share: float) -> str:
        """Return `cut_off` if more than this share of the samples is missing; else ""."""
        saved, total = self.sample_counts
        return self.cut_off if total - saved > share * total else ""


def find_sample_files(paths: Iterable[Path]) -> list[Path]:
    """Return the sample files among `paths`, in folders, and of results files, sorted.

    Raises:
        DataError: a path does not exist, or there are no sample files.
    """
    files: list[Path] = []
    given = list(paths)
    for path in given:
        if path.is_dir():
            files += [p for p in path.rglob("*.jsonl") if _SAMPLES.match(p.name)]
        elif path.is_file() and path.name.endswith(_RESULTS):
            files += path.parent.glob(f"{path.name.removesuffix(_RESULTS)}_samples_*.jsonl")
        elif path.is_file():
            files.append(path)
        else:
            raise DataError(f"{path}: no such file or folder")
    if not files:
        raise DataError(
            f"{', '.join(map(str, given))}: no *_samples_*.jsonl; run lmms_eval "
            "with --log_samples --output_path DIR"
        )
    return sorted(set(files))


def read_saved_run(file: Path) -> SavedRun:
    """Read a sample file, and the results file of the same run if it is in the same folder.

    Raises:
        DataError: the name or a line is not of lmms-eval's form; names the line.
    """
    match = _SAMPLES.match(file.name)
    if match is None:
        raise DataError(f"{file}: expected a name like DATE_samples_TASK.jsonl")
    samples, task = Lines(file), match["task"]
    if not sum(1 for _ in samples):  # reads every line, so that errors show before any result
        raise DataError(f"{file}: no samples")
    run = SavedRun(task, file, samples, model=None, saved={})
    if not run.results_file.is_file():
        return run
    try:
        results = results_file.read_results(run.results_file)
    except DataError as error:
        raise DataError(
            f"{error}; move the file away: the samples can be read without it"
        ) from None
    config, known = results.get("config", {}), numbers({"results": {}, **results})
    return replace(
        run,
        model=f"{config.get('model')} ({config.get('model_args')})",
        saved=known.get(task, {}),
        saved_groups={
            name: known.get(name) or _plain_names(values)
            for name, values in results.get("groups", {}).items()
            if task in results.get("group_subtasks", {}).get(name, [])
        },
        results=results,
    )


def join_parts(runs: Sequence[SavedRun], may_fail: float) -> list[SavedRun]:
    """Return the runs, with the parts of a task and model joined into one.

    The parts (`--offset`, `--limit`) of a job array are one run; it counts as a part of the data
    only if docs are missing. Docs in two parts raise an error later, when the items are read.

    Args:
        runs: saved runs, in any order.
        may_fail: see SavedRun.conditions.

    Raises:
        DataError: data, options, prompts or judges of two parts differ; names both files.
    """
    by_model: dict[tuple[str, str | None], list[SavedRun]] = {}
    for run in runs:
        by_model.setdefault((run.task, run.model), []).append(run)
    joined_runs: list[SavedRun] = []
    for same_runs in by_model.values():
        parts = len(same_runs) > 1 and all(map(_is_part, same_runs))
        joined_runs += [_joined(sorted(same_runs, key=_offset), may_fail)] if parts else same_runs
    return joined_runs


def _offset(run: SavedRun) -> int:
    return int(run.results.get("config", {}).get("offset") or 0)


def _is_part(run: SavedRun) -> bool:
    return bool(_offset(run)) or run.results.get("config", {}).get("limit") not in (None, 0, -1)


def _rests_on(run: SavedRun) -> JsonObject:
    """Return the fields that are the same in all parts of one run."""
    sections = run.results.get("lmms_eval_tasks", {}).items()
    told = {name: one for name, one in sections if _is_benchmark(one)}
    alike = ("data", "options", "prompts", "judge")
    found = {f"{name} {key}": one.get(key) for name, one in told.items() for key in alike}
    return {"gen_kwargs": run.results["config"].get("gen_kwargs"), **found}


def _is_benchmark(section: object) -> bool:
    """Return True if a section is a benchmark's; earlier versions have `warnings` in it."""
    return isinstance(section, dict) and not {"conditions", "warnings"}.isdisjoint(section)


def _joined(parts: Sequence[SavedRun], may_fail: float) -> SavedRun:
    first, *others = parts
    for other in others:
        if differing := difference(_rests_on(first), _rests_on(other)):
            what = f"differ in {', '.join(differing)}"
            raise DataError(f"{other.file}: not from the same run as {first.file}: they {what}")
    samples = Chained([one.samples for one in parts])
    total = first.results.get("n-samples", {}).get(first.task, {}).get("original")
    whole = total == sum(1 for _ in samples)
    config = {**first.results["config"], **({"limit": None, "offset": 0} if whole else {})}
    ours = dict(first.results.get("lmms_eval_tasks", {}))
    for name, section in ours.items():
        if _is_benchmark(section):
            told = (one.conditions(name, may_fail) for one in parts)
            # Counts of one part do not hold for all; the numbers are computed again.
            gone = {Kind.ARRIVED, *((Kind.PART,) if whole else ())}
            left = [one for one in itertools.chain(*told) if one.kind not in gone]
            kept = {k: v for k, v in section.items() if k not in ("videos", "arrived", "warnings")}
            ours[name] = {**kept, "conditions": conditions.as_dicts(conditions.record(left))}
    results = {**first.results, "config": config, "lmms_eval_tasks": ours}
    return replace(first, samples=samples, saved={}, saved_groups={}, results=results)


def refuse_twice(runs: Sequence[SavedRun]) -> None:
    """Refuse two runs of the same task and model: one would silently replace the other.

    Raises:
        DataError: there are two; names both files.
    """
    first_runs: dict[tuple[str, str | None], SavedRun] = {}
    for run in runs:
        other = first_runs.setdefault((run.task, run.model), run)
        if other is not run:
            second = f"a second {run.task} run of {run.model or 'an unknown model'}"
            raise DataError(f"{run.file}: {second}, besides {other.file}; name only one of them")


# Fields that several readers of items share, and their types; the same in every task.
_FIELDS = {
    **dict.fromkeys(("id", "reply", "status"), "text"),
    **dict.fromkeys(("video", "candidate", "category"), "text"),
    **dict.fromkeys(("right", "points", "fell_back"), "number"),
    **dict.fromkeys(("dimensions", "verdicts", "violations", "scores", "geval"), "object"),
}
_ALWAYS = ("id", "reply", "status")
_KINDS = {"text": str, "number": int | float | None, "object": dict | None}


def _misshapen(item: Mapping[str, Json]) -> str | None:
    """Return the first field of an item whose type is wrong; None if all are right."""
    for name, kind in _FIELDS.items():
        if (name in item or name in _ALWAYS) and not isinstance(item.get(name), _KINDS[kind]):
            return name
    return None


def _not_finite(value: Json, name: str) -> str:
    """Return the name of the first number in a value that is NaN or infinite; "" if none is."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else name
    parts = dict(enumerate(value)) if isinstance(value, list) else value
    inside = parts.items() if isinstance(parts, dict) else ()
    return next(filter(None, (_not_finite(one, f"{name}.{key}") for key, one in inside)), "")


def _located(run: SavedRun) -> Iterator[tuple[str, JsonObject]]:
    """Yield the samples of a run, each with its file and line."""
    parts = run.samples.parts if isinstance(run.samples, Chained) else (run.samples,)
    for part in parts:
        file = part.file if isinstance(part, Lines) else run.file
        for number, sample in enumerate(part, 1):
            yield f"{file}, line {number}", sample


def saved_items(run: SavedRun) -> list[JsonObject]:
    """Return a run's whole items in the order of their ids.

    Raises:
        DataError: a sample has no item, or two have the same id; names the line.
    """
    items: dict[str, JsonObject] = {}
    places: dict[str, str] = {}
    for where, sample in _located(run):
        item = sample.get(CARRIER)
        if not isinstance(item, dict) or "reply" not in item:
            why = (
                "run again without --predict_only; a log of version 0.1 can only "
                "be rescored with version 0.1"
            )
            raise DataError(f"{where}: no `{CARRIER}` item of lmms-eval-tasks: {why}")
        if (name := _misshapen(item)) is not None:
            raise DataError(f"{where}: the item has no {_FIELDS[name]} `{name}`; {MEND}")
        if bad := _not_finite(item, "")[1:]:
            raise DataError(
                f"{where}: {run.task}, doc {item['id']}: `{bad}` is NaN or infinite, which is no "
                f"score; {MEND}"
            )
        if item["id"] in items:
            first = places[item["id"]]
            raise DataError(
                f"{where}: {item['id']} occurs twice, first in {first}: delete "
                "one of the lines; if parts of the data (--offset, --limit) "
                "overlap, name only one of them"
            )
        places[item["id"]] = where
        if item["status"] != "not_run":  # from an older version: a task without requests
            items[item["id"]] = item
    return [items[name] for name in sorted(items)]


def numbers(results: Mapping[str, Json]) -> dict[str, JsonObject]:
    """Return the metrics by task and group.

    A group's own row replaces its results; the numbers in this package's sections replace both.
    """
    groups, found = results.get("groups", {}), {}
    for name, values in results["results"].items():
        found[name] = _plain_names(groups.get(name) or values)
    for section in results.get("lmms_eval_tasks", {}).values():
        if isinstance(section, dict):
            found |= section.get("numbers", {})
    return found


def _plain_names(values: JsonObject) -> JsonObject:
    """Return lmms-eval's `metric,filter` keys as metric names, without errors and aliases."""
    return {
        key.partition(",")[0]: value
        for key, value in values.items()
        if "," in key and "_stderr" not in key
    }


def difference(saved: Mapping[str, Json], again: Mapping[str, Json]) -> list[str]:
    """Return the names of metrics whose values differ from the saved ones in any digit."""
    return sorted(name for name in saved.keys() & again.keys() if saved[name] != again[name])
