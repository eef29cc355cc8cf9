"""One file of a candidate's answers put to one dimension's questions, and what does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmms_eval_tasks.cvrr_es import candidate_files, joining
from lmms_eval_tasks.cvrr_es.candidate_files import Answer, Answers
from lmms_eval_tasks.cvrr_es.joining import Place, Said, fold
from lmms_eval_tasks.cvrr_es.schema import Asked

BY_ID = "id"  # the way in which saved samples are joined, beside joining.WAYS
_SHOWN = 60  # characters of a question in a message


@dataclass(frozen=True)
class Part:
    """A file's answers by the ids of their questions; problems and notes, a line each."""

    answers: Mapping[str, str]
    ways: Mapping[str, int]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


_Found = tuple[dict[str, Answer], Mapping[str, int], list[str], list[str]]


def joined(given: Answers, places: Sequence[Asked]) -> Part:
    """Put answers to the questions of their dimension: by ids if they have any, else by joining.

    Args:
        given: the file.
        places: what stands at each place of the annotations, in their order.
    """
    has_ids = any(one.id for one in given.entries)
    found, ways, problems, notes = (_by_id if has_ids else _by_question)(given, places)
    if bad := [one for one in given.entries if one.text is None]:
        problems.append(
            f"{given.file}: {_counted(bad)} whose `A` is no text, first {_entry(bad[0])}"
        )
    kept = {name: one.text for name, one in found.items() if one.text is not None}
    return Part(kept, ways, tuple(problems), tuple(notes))


def _by_question(given: Answers, places: Sequence[Asked]) -> _Found:
    """Entries of a predictions file by question id, ways, problems, notes."""
    result = joining.join(
        [Said(fold(one.question), fold(one.text or "")) for one in given.entries],
        [Place(fold(place.question), fold(place.reference)) for place in places],
        given.judged,
    )
    problems, notes = [], []
    if len(given.entries) != len(places):
        problems.append(
            f"{given.file}: {len(given.entries):,} answers to the release's {len(places):,} "
            "questions"
        )
    why = "" if given.judged else f" and there is no {candidate_files.JUDGEMENTS} beside"
    silent = [number for number in result.unknown if not given.entries[number].question]
    unknown = [number for number in result.unknown if given.entries[number].question]
    for numbers, told in (
        (silent, "whose `Q` is no text"),
        (unknown, "to a question that is not in the release"),
        (result.several, "to a question that is answered more than once"),
        (result.open, f"to a repeated question in another order than the release's{why}"),
    ):
        if numbers:
            first = given.entries[numbers[0]]
            problems.append(f"{given.file}: {_counted(numbers)} {told}, first {_entry(first)}")
    if result.missing:
        place = places[result.missing[0]]
        problems.append(_missing(given, len(result.missing), f"{place.id} ({_short(place)})"))
    if result.contradicted:
        notes.append(
            f"{given.file}: the questions are in the release's order, but its judgements say that "
            "answers are not: joined by the judgements"
        )
    if result.rejudged:
        first = given.entries[result.rejudged[0]]
        notes.append(
            f"{given.file}: {_counted(result.rejudged)} judged in {candidate_files.JUDGEMENTS} "
            f"against another reference than the release's, first {_entry(first)}"
        )
    found = {places[place].id: given.entries[number] for number, place in result.places.items()}
    return found, result.ways, problems, notes


def _by_id(given: Answers, places: Sequence[Asked]) -> _Found:
    """The same of saved samples, whose ids are the release's."""
    asked = {place.id: place.question for place in places}
    by_id: dict[str, list[Answer]] = {}
    unknown: list[Answer] = []
    other: list[Answer] = []
    for one in given.entries:
        if one.id not in asked:
            unknown.append(one)
        elif one.question and fold(one.question) != fold(asked[one.id]):
            other.append(one)
        else:
            by_id.setdefault(one.id, []).append(one)
    several = [one for own in by_id.values() if len(own) > 1 for one in own]
    found = {name: own[0] for name, own in by_id.items() if len(own) == 1}
    problems = [
        f"{given.file}: {_counted(entries)} {told}, first line {entries[0].entry} ({entries[0].id})"
        for entries, told in (
            (unknown, "to an id that is not in the release"),
            (other, "to another question than the release has under its id: another version?"),
            (several, "to a question that is answered more than once"),
        )
        if entries
    ]
    seen = {one.id for one in given.entries}
    if missing := [name for name in asked if name not in seen]:
        problems.append(_missing(given, len(missing), missing[0]))
    return found, {BY_ID: len(found)} if found else {}, problems, []


def _missing(given: Answers, count: int, first: str) -> str:
    return f"{given.file}: questions without an answer: {count:,}, first {first}"


def _counted(entries: Sequence[object]) -> str:
    return f"{len(entries):,} answer{'s' if len(entries) > 1 else ''}"


def _entry(entry: Answer) -> str:
    return f"entry {entry.entry}" + (f" ({_short(entry)})" if entry.question else "")


def _short(one: Answer | Asked) -> str:
    text = fold(one.question)
    return f"{text[: _SHOWN - 3]}..." if len(text) > _SHOWN else text
