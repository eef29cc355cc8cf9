"""Somebody else's results: what a record lacks to stand in leaderboards/results/.

A record is checked by itself, without its run: against the schema, against what is known of the
benchmark's released data (leaderboards/releases.json), and against the package's own prompts.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, Json, NonNegativeInt, StringConstraints, ValidationError

from lmms_eval_tasks import __version__, prompts, registry, settings
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges.verdict import NONE, REPLAY, Status
from lmms_eval_tasks.leaderboards import figures
from lmms_eval_tasks.report.exchange.records import OURS, UNKNOWN, Record, schema
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.conditions import OF_JUDGE, Kind, from_dicts
from lmms_eval_tasks.utils.conditions import Record as Conditions
from lmms_eval_tasks.utils.released_files import read_json
from lmms_eval_tasks.utils.replies import refusals
from lmms_eval_tasks.utils.results_file import StoredCondition
from lmms_eval_tasks.utils.validation import quoted, told

ERROR, NOTE = "error", "note"  # cannot stand; stands with a mark
# Statuses of items that failed without an answer's fault; one that cannot be read is its own. Of
# the judge's some are called as those of answers: these are counted as answers'.
_LOST = {refusals.LOST, "error"}
_UNJUDGED = {one.value for one in Status} - {"ok", "refused", "truncated"}
_AGAIN = "run the benchmark again as the paper has it"
_ERRORS = {
    Kind.INVALID: f"judge what is missing, or {_AGAIN}",
    Kind.PART: "run without --limit and --offset",
    Kind.SAMPLE: "run on the released data",
}
_SHOWN = 3  # schema errors of a record


class Problem(NamedTuple):
    """What is wrong with a record, and what to do, in one line."""

    kind: str
    line: str


class Facts(BaseModel):
    """What a number rests on, as records.py puts it beside the number."""

    hash: str
    videos: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9} of [0-9]{1,9}$")]
    items: Json[dict[str, NonNegativeInt]]
    status: Json[dict[str, NonNegativeInt]]
    prompts: Json[dict[str, str]]
    conditions: Json[list[StoredCondition]]

    @property
    def record(self) -> Conditions:
        """The conditions of the number."""
        return from_dicts(one.model_dump() for one in self.conditions)


def problems(file: Path) -> list[Problem]:
    """What a record lacks, errors first; none if it can stand as it is.

    Raises:
        TasksError: the packages that check a schema are not installed.
    """
    extras.require("report", "leaderboard check")
    try:
        record = read_json(file)
    except DataError as error:
        return [Problem(ERROR, plain(str(error)))]
    if isinstance(record, dict) and {"results", "configs"} <= record.keys():
        how = "lmms-eval-tasks leaderboard BENCHMARK FOLDER --format eee"
        return [
            Problem(ERROR, f"{file}: results of the host: make a record of the run, with {how}")
        ]
    if wrong := list(_against_schema(record)):
        return [Problem(ERROR, plain(f"{file}: {one}")) for one in wrong]
    by_line: dict[tuple[str, str], list[str]] = {}
    for kind, name, what in _of_record(record):
        by_line.setdefault((kind, what), []).append(name)
    total = len(record["evaluation_results"])
    lines = [
        Problem(kind, plain(f"{file}: {_named(names, total)}{what}"))
        for (kind, what), names in by_line.items()
    ]
    return sorted(lines, key=lambda one: one.kind)


def plain(line: str) -> str:
    """A line with a stranger's text in it, as one line that a terminal can show."""
    return "".join(one if one.isprintable() else " " for one in line)


def _named(names: Sequence[str], total: int) -> str:
    """The numbers that a line is about; "" of the record as a whole."""
    shown = [one for one in dict.fromkeys(names) if one]
    if not shown or len(shown) == total > 1:
        return ""
    return f"{shown[0]}{f' and {len(shown) - 1} more' if len(shown) > 1 else ''}: "


def _against_schema(record: Any) -> Iterator[str]:
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import best_match

    found = sorted(Draft7Validator(schema()).iter_errors(record), key=lambda one: one.json_path)
    for error in found[:_SHOWN]:
        deepest = best_match([error]) or error
        said = deepest.message if len(deepest.message) < 200 else f"{deepest.message[:200]}..."
        yield f"not a record of Every Eval Ever: {deepest.json_path}: {said}"
    if not found and record["schema_version"] != schema()["version"]:
        version = quoted(record["schema_version"])
        yield f"of version {version} of the schema; write it again as {schema()['version']}"


# --- what a record says ---------------------------------------------------------------------------

Found = tuple[str, str, str]  # kind, the number, what is wrong


def _of_record(record: Record) -> Iterator[Found]:
    if record["source_metadata"]["source_type"] != "evaluation_run":
        yield ERROR, "", "documentation, not a run: what papers print is in leaderboards/ already"
        return
    results = record["evaluation_results"]
    names = [one["evaluation_name"].partition(".")[0] for one in results]
    if len(set(names)) != 1 or names[0] not in registry.NAMES:
        known = ", ".join(registry.NAMES)
        yield ERROR, "", f"of {quoted(sorted(set(names)))}: a record is of one of {known}"
        return
    if record["source_metadata"]["source_organization_name"] == UNKNOWN:
        yield NOTE, "", "nobody's: say in source_organization_name who sends it"
    version = record["eval_library"].get("additional_details", {}).get(OURS)
    if version != __version__:
        yield NOTE, "", f"made with lmms-eval-tasks {quoted(version)}, this is {__version__}"
    benchmark, seen = registry.load(names[0]), set()
    for result in results:
        row = result["evaluation_name"].partition(".")[2]
        metric = result["metric_config"].get("metric_name", "")
        name = f"{row} {metric}"
        if metric not in _metrics(benchmark, row):
            yield ERROR, "", f"no number of {benchmark.title}'s tasks is called {quoted(name)}"
            continue
        if name in seen:
            yield ERROR, name, "stands there twice; leave one out"
        seen.add(name)
        for kind, what in of_result(benchmark, row, metric, result):
            yield kind, name, what


def _metrics(benchmark: Benchmark, row: str) -> set[str]:
    """The numbers that a row of the host's table has."""
    if row in benchmark.tasks:
        return {one.name for one in benchmark.tasks[row].metrics if one.shown is not None}
    return {name for one in benchmark.joins if one.group == row for name in one.shown}


Line = tuple[str, str]  # kind, what is wrong


def of_result(benchmark: Benchmark, row: str, metric: str, result: Record) -> Iterator[Line]:
    """What is wrong with one number of a record whose form is right."""
    config = result["metric_config"]
    yield from _number(metric, result["score_details"])
    given = (result["source_data"], config)
    texts = {k: v for one in given for k, v in one.get("additional_details", {}).items()}
    try:
        facts = Facts.model_validate(texts)
    except ValidationError as error:
        how = "write the record with --format eee, of a run with this package's hook"
        yield ERROR, f"does not tell what it rests on ({told(error)}); {how}"
        return
    tasks = benchmark.tasks_of(row)
    yield from _data(benchmark, tasks, facts)
    is_judged = figures.scales()[metric].judged and any(benchmark.tasks[t].asks for t in tasks)
    yield from _run(facts, _LOST | _UNJUDGED if is_judged else _LOST)
    if not facts.prompts:
        yield ERROR, "does not tell with which prompts; write the record anew (--format eee)"
    for one in sorted(set(facts.prompts.values()) - _prompts(benchmark.name)):
        yield ERROR, f"prompt {quoted(one)} is none of this package's; {_AGAIN}"
    if is_judged:
        yield from _judge(benchmark, config.get("llm_scoring"))


def _number(metric: str, given: Mapping[str, Any]) -> Iterator[Line]:
    """A value on its scale, and an interval that holds it."""
    value, scale = given["score"], figures.scales()[metric]
    if not math.isfinite(value) or not scale.low <= value <= scale.high:
        yield ERROR, f"{value} is not in {scale.low} to {scale.high}, the metric's range"
    uncertainty = given.get("uncertainty", {})
    ends = uncertainty.get("confidence_interval")
    if uncertainty.get("num_samples", 0) < 1:
        yield ERROR, "does not tell of how many items it is (num_samples)"
    if ends is None:
        yield NOTE, "has no interval"
    elif not ends["lower"] - 1e-9 <= value <= ends["upper"] + 1e-9:
        yield ERROR, f"{value} is not in its interval, {ends['lower']} to {ends['upper']}"
    elif ends.get("confidence_level", 0.95) != 0.95:
        yield ERROR, f"its interval is of {ends['confidence_level']}, not of 0.95"


def _data(benchmark: Benchmark, tasks: Sequence[str], facts: Facts) -> Iterator[Line]:
    """The whole released data, every video and item of it."""
    known, digest = figures.releases()[benchmark.name], facts.hash
    if digest in known["part"]:
        yield ERROR, f"data {digest}: {known['part'][digest]}; run on the whole release"
    elif ", " in digest:
        yield ERROR, f"data {quoted(digest)}: its tasks were run on different data; {_AGAIN}"
    elif known["whole"] and digest not in known["whole"]:
        yield ERROR, f"data {quoted(digest)}: not the release ({', '.join(known['whole'])})"
    elif not known["whole"]:
        why = f"no hash of the whole release of {benchmark.title} is known here"
        yield NOTE, f"data {quoted(digest)}: whether they are the release cannot be told, {why}"
    asked, of = map(int, facts.videos.split(" of "))
    yield from _share(of - asked, of, f"asked about {asked} of {of} videos")
    if len(facts.items) < len(tasks):
        yield NOTE, f"of {len(facts.items)} of the {len(tasks)} tasks that it joins"
    if not facts.items or not facts.items.keys() <= set(tasks):
        yield (
            ERROR,
            f"items of {quoted(sorted(facts.items))}: not its tasks'; write the record anew",
        )
    for task, number in facts.items.items():
        whole = next((n for one, n in known["items"].items() if fnmatch(task, one)), number)
        yield from _share(whole - number, whole, f"{number:,} of {whole:,} items of {task}")
        if number > whole:
            yield ERROR, f"{number:,} items of {task}, which has {whole:,}"
    if sum(facts.items.values()) != sum(facts.status.values()):
        yield ERROR, "its items by status are not as many as its items"


def _share(missing: int, of: int, what: str) -> Iterator[Line]:
    """As a run's failures: some are told, more than the share that makes one invalid stop it."""
    most = settings.MAX_FAILED.default
    if missing > most * of:
        yield ERROR, f"{what}: more than {most:.0%} lack; run the rest"
    elif missing > 0:
        yield NOTE, what


def _run(facts: Facts, failed: set[str]) -> Iterator[Line]:
    """A run of all there is, which is valid."""
    lost = sum(number for status, number in facts.status.items() if status in failed)
    total = sum(facts.status.values())
    yield from _share(lost, total, f"{lost:,} of {total:,} items failed")
    for one in facts.record:
        if one.kind in _ERRORS:
            yield ERROR, f"{one.line}; {_ERRORS[one.kind]}"
        elif one.is_limit and one.kind not in OF_JUDGE:  # told by `_judge`
            yield NOTE, one.line


def _judge(benchmark: Benchmark, given: Mapping[str, Any] | None) -> Iterator[Line]:
    if given is None:
        yield ERROR, "does not tell who judged; write the record with --format eee"
        return
    details = given.get("additional_details", {})
    provider, prompt = details.get("provider", ""), details.get("prompt", "")
    names = " and ".join(one["model_info"]["id"] for one in given["judges"])
    if NONE in provider.split(", "):
        yield ERROR, "not judged; judge the saved samples with lmms-eval-tasks judge"
    elif REPLAY in provider.split(", "):
        yield ERROR, f"judged by recorded replies; judge with {benchmark.paper_judge}"
    elif details.get("comparable") != "True":
        yield NOTE, details.get("warning") or f"judged by {names}, not by the paper's judge"
    elif not re.fullmatch(re.escape(benchmark.paper_judge) + r"(-\d{4}-\d\d-\d\d)?", names):
        yield ERROR, f"judged by {quoted(names)}, but told as the paper's {benchmark.paper_judge}"
    if prompt not in _prompts(benchmark.name):
        yield NOTE, f"judged with the prompt {quoted(prompt)}, which is none of this package's"


@functools.cache
def _prompts(name: str) -> set[str]:
    """The hashes of a benchmark's prompts as packaged (prompts.Prompt.hash)."""
    folder = files(f"lmms_eval_tasks.{name}") / "prompts"
    return {
        prompts.digest(one.read_bytes()) for one in folder.iterdir() if one.name.endswith(".yml")
    }
