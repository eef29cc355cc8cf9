"""Conditions of a run's numbers: one record, made once a run and read by every writer.

A condition is a line that has to travel with a number: INVALID and why, part of the data, another
judge than the paper's, left-out videos, frames that arrived, versions. `runs/finish.py` writes the
record into the results file, section of the benchmark, `conditions`. Screens, tables, exports and
pages print it; a condition that a writer drops fails tests/test_conditions.py.
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
    UNKNOWN = "unknown"  # no results file of ours says what the numbers rest on
    OTHER_JUDGE = "other judge"  # than the paper's
    UNJUDGED = "unjudged"
    LEFT_OUT = "left out"
    DELIVERED = "fewer frames"  # fewer frames than the protocol's reached the model
    SOUND = "sound"  # sound that was handed over and did not reach the model
    PIXELS = "pixels"  # other ones than in the run it is compared with
    CUT = "cut replies"
    REQUESTS = "failed requests"
    POSITIONS = "positions"  # of the text behind a video, other than the model was trained with
    OPTION = "option"  # a setting of the user's that is not the protocol's default
    OTHER_ITEMS = "other items"  # than those of the run it is compared with
    NOTE = "note"  # anything else that makes numbers not comparable
    READING = "reading"  # how replies were read
    FEW = "few videos"
    # Facts, which limit nothing by themselves.
    DATA = "data"
    JUDGE = "judge"
    CHECKED = "judge check"
    ARRIVED = "arrived"
    MENDED = "mended"  # a fault of lmms-eval or its libraries that was put right in the run
    VERSIONS = "versions"


FACTS = frozenset({Kind.DATA, Kind.JUDGE, Kind.CHECKED, Kind.ARRIVED, Kind.MENDED, Kind.VERSIONS})
# Conditions that are replaced where another judge judges.
OF_JUDGE = frozenset({Kind.JUDGE, Kind.OTHER_JUDGE, Kind.CHECKED, Kind.UNJUDGED})

NO_JUDGE = "none"  # the provider of verdicts that nobody gave (judges/verdict.py)
SAMPLE_TEXT = "made with the packaged sample: not a benchmark result"
# What results of earlier versions say of a part; `--limit` and `--offset` stand in their config.
OLD_PART_TEXT = "of a part of the docs (--limit, --offset): not a benchmark result"


class Condition(NamedTuple):
    """One condition of a benchmark's numbers in one run."""

    kind: Kind
    text: str  # one line for a reader, complete without its kind
    tasks: tuple[str, ...] = ()  # the tasks whose numbers it concerns; empty: all of the run's

    @property
    def is_limit(self) -> bool:
        """Return True if it makes numbers not comparable with those of a paper."""
        return self.kind not in FACTS

    @property
    def line(self) -> str:
        """The text as a page or a table prints it."""
        return f"INVALID: {self.text}" if self.kind == Kind.INVALID else self.text

    def concerns(self, tasks: Collection[str]) -> bool:
        """Return True if it is a condition of a number of these tasks."""
        return not self.tasks or not set(tasks).isdisjoint(self.tasks)


Record = tuple[Condition, ...]


def record(conditions: Iterable[Condition]) -> Record:
    """Conditions in the order of their kinds; each text once, with the tasks of all of them."""
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
    """One record of several tasks' records, by task: each condition with those that have it.

    A condition of all of them names none, but INVALID, which is a task's.
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
    """The conditions of numbers of these tasks."""
    return tuple(one for one in conditions if one.concerns(tasks))


def limits(conditions: Iterable[Condition]) -> list[str]:
    """The lines that make numbers not comparable."""
    return [one.line for one in conditions if one.is_limit]


def condition_lines(conditions: Iterable[Condition]) -> list[str]:
    """All lines, facts too."""
    return [one.line for one in conditions]


def is_valid(conditions: Iterable[Condition]) -> bool:
    """Return False if the numbers are INVALID."""
    return all(one.kind != Kind.INVALID for one in conditions)


def as_columns(conditions: Sequence[Condition]) -> dict[str, object]:
    """The conditions of one number as columns of a table that other programs read.

    `valid` is a bool; `judge` names it; `limit` says which part of the data was run, "" for all;
    `conditions` is the list of all lines.
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
    """A record from JSON; a kind that only a later version has is a note."""
    known = {kind.value: kind for kind in Kind}
    return record(
        Condition(known.get(one["kind"], Kind.NOTE), one["text"], tuple(one["tasks"]))
        for one in stored
    )


def as_dicts(conditions: Iterable[Condition]) -> list[dict[str, object]]:
    """A record as JSON."""
    return [
        {"kind": one.kind.value, "text": one.text, "tasks": list(one.tasks)} for one in conditions
    ]


def part(config: Mapping[str, Json]) -> str:
    """The line that says which part of the data was run, by lmms-eval's config; "" for all."""
    given = {name: config.get(name) for name in ("limit", "offset")}
    # lmms-eval makes a float of 8; a share such as 0.5 is one.
    told = " ".join(f"--{name} {value:g}" for name, value in given.items() if _is_number(value))
    return f"only part of the data was run ({told}): not a benchmark result" if told else ""


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and value not in (0, -1)


def of_results(results: Mapping[str, Json], benchmark: str, tasks: Collection[str]) -> Record:
    """The record in a results file; of an earlier version's the one that can be rebuilt.

    It is empty if the file has no section of the benchmark: nothing is known.

    Args:
        results: the content of the file; empty without one.
        benchmark: whose section.
        tasks: those of the benchmark that were run.
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
    """Conditions of results of an earlier version, which had texts and no kinds."""
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
    """The judge of these tasks, and whether it was checked, by its record in the results."""
    kind, text = Kind.JUDGE, f"judge {judge.get('model') or judge['provider']}, the paper's"
    if warning := judge.get("warning"):
        kind = Kind.UNJUDGED if judge["provider"] == NO_JUDGE else Kind.OTHER_JUDGE
        text = warning
    found = {kind: text, Kind.CHECKED: (judge.get("checked") or {}).get("line", "")}
    return [Condition(kind, text, tuple(tasks)) for kind, text in found.items() if text]


def departed(lines: Iterable[str], tasks: Iterable[str]) -> list[Condition]:
    """What a judge's endpoint made of what was asked of it: it is another judge than it is named.

    Args:
        lines: such as "the judge X takes and ignores n" (judges.report.departures).
        tasks: those that it judged.
    """
    return [Condition(Kind.OTHER_JUDGE, line, tuple(tasks)) for line in lines]


def of_section(section: Mapping[str, Json]) -> Iterable[Condition]:
    """Data and media that arrived, by a benchmark's section of the results."""
    if digest := (section.get("data") or {}).get("hash"):
        yield Condition(Kind.DATA, f"data {digest}")
    if arrived := section.get("arrived"):
        yield Condition(Kind.ARRIVED, arrived)


def versions(by_name: Mapping[str, object]) -> list[Condition]:
    """The versions of packages and tasks, by name; those that are not known are left out."""
    told = ", ".join(f"{name} {one}" for name, one in by_name.items() if one)
    return [Condition(Kind.VERSIONS, f"versions: {told}")] if told else []
