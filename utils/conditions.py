"""Conditions of a run's numbers: one record, made once a run and read by every writer.

A condition is a line that must accompany a number: INVALID with the reason, part of the data,
another judge than the paper's, left-out videos, delivered frames, versions. `runs/finish.py` writes
the record into the benchmark's section of the results file, under `conditions`. Screens, tables,
exports and pages print it; a writer that drops a condition fails tests/test_conditions.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from lmms_eval_tasks.utils.json_files import Json


class Kind(str, Enum):
    """Kinds of conditions, in the order in which they are printed: the gravest first."""

    INVALID = "INVALID"
    SAMPLE = "sample"
    PART = "part"
    UNKNOWN = "unknown"  # without a results file of ours the conditions are not known
    OTHER_JUDGE = "other judge"  # another judge than the paper's
    UNJUDGED = "unjudged"
    LEFT_OUT = "left out"
    DELIVERED = "fewer frames"  # fewer frames than the protocol's reached the model
    SOUND = "sound"  # sound in requests that did not reach the model
    PIXELS = "pixels"  # other pixels than in the compared run
    CUT = "cut replies"
    REQUESTS = "failed requests"
    # Positions of the text after a video that differ from the model's training.
    POSITIONS = "positions"
    OPTION = "option"  # a setting of the user's that differs from the protocol's default
    OTHER_ITEMS = "other items"  # other items than those of the compared run
    NOTE = "note"  # anything else that makes numbers not comparable
    READING = "reading"  # the rules by which replies were read
    FEW = "few videos"
    # Facts, which do not limit comparison by themselves.
    DATA = "data"
    JUDGE = "judge"
    CHECKED = "judge check"
    ARRIVED = "arrived"
    MENDED = "mended"  # a fault of lmms-eval or its libraries that was corrected in the run
    VERSIONS = "versions"


FACTS = frozenset({Kind.DATA, Kind.JUDGE, Kind.CHECKED, Kind.ARRIVED, Kind.MENDED, Kind.VERSIONS})
# Conditions that another judge replaces.
OF_JUDGE = frozenset({Kind.JUDGE, Kind.OTHER_JUDGE, Kind.CHECKED, Kind.UNJUDGED})

NO_JUDGE = "none"  # the provider for runs without a judge (judges/verdict.py)
SAMPLE_TEXT = "made with the packaged sample: not a benchmark result"
# The line of earlier versions for a part; their config has `--limit` and `--offset`.
OLD_PART_TEXT = "of a part of the docs (--limit, --offset): not a benchmark result"


class Condition(NamedTuple):
    """One condition of a benchmark's numbers in one run."""

    kind: Kind
    text: str  # one line for a reader, complete without its kind
    tasks: tuple[str, ...] = ()  # the tasks whose numbers it concerns; empty: all tasks of the run

    @property
    def is_limit(self) -> bool:
        """True if the condition makes numbers not comparable with those of a paper."""
        return self.kind not in FACTS

    @property
    def line(self) -> str:
        """The text as a page or a table prints it."""
        return f"INVALID: {self.text}" if self.kind == Kind.INVALID else self.text

    def concerns(self, tasks: Collection[str]) -> bool:
        """Return True if the condition concerns a number of these tasks."""
        return not self.tasks or not set(tasks).isdisjoint(self.tasks)


Record = tuple[Condition, ...]


def record(conditions: Iterable[Condition]) -> Record:
    """Return the conditions in the order of their kinds, each text once with all its tasks."""
    order = list(Kind)
    kinds: dict[str, Kind] = {}
    tasks: dict[str, list[tuple[str, ...]]] = {}
    for one in sorted(conditions, key=lambda one: order.index(one.kind)):
        kinds.setdefault(one.text, one.kind)
        tasks.setdefault(one.text, []).append(one.tasks)
    return tuple(
        Condition(
            kind, text, () if () in tasks[text] else tuple(dict.fromkeys(sum(tasks[text], ())))
        )
        for text, kind in kinds.items()
    )


def merged(records: Mapping[str, Iterable[Condition]]) -> Record:
    """Return one record from the records of several tasks: each condition with its tasks.

    A condition of all tasks names none, except INVALID, which always names its tasks.
    """
    found = record(
        Condition(one.kind, one.text, (task,)) for task, own in records.items() for one in own
    )
    return tuple(
        one._replace(tasks=())
        if len(one.tasks) == len(records) and one.kind != Kind.INVALID
        else one
        for one in found
    )


def concerning(conditions: Iterable[Condition], tasks: Collection[str]) -> Record:
    """Return the conditions that concern numbers of these tasks."""
    return tuple(one for one in conditions if one.concerns(tasks))


def limits(conditions: Iterable[Condition]) -> list[str]:
    """Return the lines of the conditions that make numbers not comparable."""
    return [one.line for one in conditions if one.is_limit]


def condition_lines(conditions: Iterable[Condition]) -> list[str]:
    """Return all lines, with those of facts."""
    return [one.line for one in conditions]


def is_valid(conditions: Iterable[Condition]) -> bool:
    """Return False if the numbers are INVALID."""
    return all(one.kind != Kind.INVALID for one in conditions)


def as_columns(conditions: Sequence[Condition]) -> dict[str, object]:
    """Return the conditions of one number as columns of a table for other programs.

    `valid` is a bool; `judge` is the judge's line; `limit` is the line on the part of the data that
    was run, "" for all data; `conditions` is the list of all lines.
    """

    def first(*kinds: Kind) -> str:
        return "; ".join(one.text for one in conditions if one.kind in kinds)

    return {
        "valid": is_valid(conditions),
        "judge": first(Kind.JUDGE, Kind.OTHER_JUDGE),
        "limit": first(Kind.SAMPLE, Kind.PART),
        "conditions": condition_lines(conditions),
    }


def from_dicts(stored: Iterable[Mapping[str, Json]]) -> Record:
    """Return a record from JSON; a kind that only a later version has becomes a note."""
    known = {kind.value: kind for kind in Kind}
    return record(
        Condition(known.get(one["kind"], Kind.NOTE), one["text"], tuple(one["tasks"]))
        for one in stored
    )


def as_dicts(conditions: Iterable[Condition]) -> list[dict[str, object]]:
    """Return a record as JSON."""
    return [
        {"kind": one.kind.value, "text": one.text, "tasks": list(one.tasks)} for one in conditions
    ]


def part(config: Mapping[str, Json]) -> str:
    """Return the line on the part of the data that was run, by lmms-eval's config; else ""."""
    given = {name: config.get(name) for name in ("limit", "offset")}
    # lmms-eval makes a float of 8; 0.5 is a share.
    told = " ".join(f"--{name} {value:g}" for name, value in given.items() if _is_number(value))
    return f"only part of the data was run ({told}): not a benchmark result" if told else ""


def part_of(number: int, total: int) -> str:
    """Return the line on the part of the data that was run, by the numbers of docs."""
    return f"only part of the data was run ({number:,} of {total:,} docs): not a benchmark result"


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and value not in (0, -1)


def of_results(results: Mapping[str, Json], benchmark: str, tasks: Collection[str]) -> Record:
    """Return the record in a results file; for an earlier version, the record that can be rebuilt.

    Args:
        results: the content of the file; empty without one.
        benchmark: the benchmark's name.
        tasks: the tasks of the benchmark that were run.

    Returns:
        The record; empty if the file has no section of the benchmark, so that nothing is known.
    """
    ours = results.get("lmms_eval_tasks") or {}
    section = ours.get(benchmark) or {}
    if not section:
        return ()
    stored = section.get("conditions")
    if stored is not None:
        return from_dicts(stored)
    return record(_rebuilt(results, ours, section, tasks))


def _rebuilt(
    results: Mapping[str, Json],
    ours: Mapping[str, Json],
    section: Mapping[str, Json],
    tasks: Collection[str],
) -> Iterable[Condition]:
    """Yield conditions from results of an earlier version, which had texts without kinds."""
    for task, why in (ours.get("invalid") or {}).items():
        if task in tasks:
            yield Condition(Kind.INVALID, why, (task,))
    judge = section.get("judge") or {}
    for line in section.get("warnings") or ():
        if line not in (OLD_PART_TEXT, judge.get("warning")):
            yield Condition(Kind.SAMPLE if line == SAMPLE_TEXT else Kind.NOTE, line)
    if line := part(results.get("config") or {}):
        yield Condition(Kind.PART, line)
    yield from of_judge(judge) if judge else ()
    yield from of_section(section)
    known = {"lmms-eval-tasks": ours.get("version"), "lmms-eval": results.get("lmms_eval_version")}
    yield from versions(known)


def of_judge(judge: Mapping[str, Json], tasks: Iterable[str] = ()) -> list[Condition]:
    """Return conditions on the judge of these tasks and its check, by its record in the results."""
    kind, text = Kind.JUDGE, f"judge {judge.get('model') or judge['provider']}, the paper's"
    if warning := judge.get("warning"):
        kind = Kind.UNJUDGED if judge["provider"] == NO_JUDGE else Kind.OTHER_JUDGE
        text = warning
    found = {kind: text, Kind.CHECKED: (judge.get("checked") or {}).get("line", "")}
    return [Condition(kind, text, tuple(tasks)) for kind, text in found.items() if text]


def departed(lines: Iterable[str], tasks: Iterable[str]) -> list[Condition]:
    """Return conditions on a judge whose endpoint departs from requests: it is another judge.

    Args:
        lines: such as "the judge X takes and ignores n" (judges.report.departures).
        tasks: the tasks that it judged.
    """
    return [Condition(Kind.OTHER_JUDGE, line, tuple(tasks)) for line in lines]


def of_section(section: Mapping[str, Json]) -> Iterable[Condition]:
    """Yield conditions on data and delivered media, by a benchmark's section of the results."""
    if digest := (section.get("data") or {}).get("hash"):
        yield Condition(Kind.DATA, f"data {digest}")
    if arrived := section.get("arrived"):
        yield Condition(Kind.ARRIVED, arrived)


def versions(by_name: Mapping[str, object]) -> list[Condition]:
    """Return a condition with the known versions of packages and tasks; empty without any."""
    told = ", ".join(f"{name} {one}" for name, one in by_name.items() if one)
    return [Condition(Kind.VERSIONS, f"versions: {told}")] if told else []
