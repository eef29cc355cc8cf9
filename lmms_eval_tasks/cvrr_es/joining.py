"""Which answer of a predictions file is to which question of the release, in one dimension.

Questions repeat ("What is happening in the video?" is asked of many videos), files come in other
orders than the annotations, and an answer at the wrong question is never seen again. So an answer
is joined by what shows where it belongs, the surest first; what nothing shows is not joined:

1. order: all questions are the annotations', place by place.
2. text: the question is unique in the dimension, in the annotations and among the answers.
3. neighbours: up to the next unique question on either side all questions are the same.
4. last: as many answers as questions of this text are left, and it makes no difference which is
   whose: there is one of each, or all these answers are the same.

A question may stand behind the context that two-step prompting put in front of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks.cvrr_es.release import Asked

BY_ID = "id"  # the way in which saved samples are joined, beside those above
_SHOWN = 60  # characters of a question in a message


class Answer(NamedTuple):
    """One entry of a file.

    Attributes:
        entry: its number in the file, from 1 on.
        id: of the question, as our saved samples have it; "" in predictions.
        question: without image tokens; "" if the file does not say.
        text: what the candidate said, without "</s>"; None if the entry holds no text.
    """

    entry: int
    id: str
    question: str
    text: str | None


@dataclass(frozen=True)
class Answers:
    """A candidate's answers in one dimension.

    Attributes:
        file: where they are from.
        entries: in the file's order.
        tokens: questions that began with image tokens.
        ends: answers that ended in "</s>".
    """

    file: Path
    entries: tuple[Answer, ...]
    tokens: int = 0
    ends: int = 0


class Joined(NamedTuple):
    """Numbers of answers and places count from 0.

    Attributes:
        places: answer -> its place in the annotations.
        ways: how many answers were joined in each way; those of no use are left out.
        unknown: answers whose question is none of the annotations'.
        several: answers to one question that was asked once; none of them is joined.
        open: answers to repeated questions that nothing could tell apart.
        missing: places that no answer is left for; where open answers could fill some of them, the
            later ones.
    """

    places: Mapping[int, int]
    ways: Mapping[str, int]
    unknown: Sequence[int]
    several: Sequence[int]
    open: Sequence[int]
    missing: Sequence[int]


def fold(text: str) -> str:
    """A text as it is compared here: single spaces, none at the ends."""
    return " ".join(text.split())


def join(said: Sequence[tuple[str, str]], places: Sequence[str]) -> Joined:
    """Join the answers to the places of the annotations.

    Args:
        said: (question, answer), folded, in the file's order.
        places: the annotations' questions, folded, in their order.
    """
    questions = [_alone(question, places) for question, _ in said]
    answers, asked = _by_question(questions), _by_question(places)
    found: dict[int, int] = {}
    ways: Counter[str] = Counter()
    if questions == list(places):
        found = {number: number for number in range(len(places))}
        ways["order"] = len(found)
    else:
        unique = {
            text for text, own in asked.items() if len(own) == 1 == len(answers.get(text, ()))
        }
        found = {answers[text][0]: asked[text][0] for text in unique}
        ways["text"] = len(found)
        where = {around: place for place, around in enumerate(_surroundings(places, unique))}
        here = _surroundings(questions, unique)
        repeated = [text for text, own in asked.items() if len(own) > 1 and text in answers]
        for text in repeated:
            known = {a: where[here[a]] for a in answers[text] if here[a] in where}
            ways["neighbours"] += len(known)
            waiting = [answer for answer in answers[text] if answer not in known]
            free = [place for place in asked[text] if place not in known.values()]
            same = len({said[answer][1] for answer in waiting}) == 1
            if same and len(waiting) == len(free):
                known |= dict(zip(waiting, free, strict=True))
                ways["last"] += len(waiting)
            found |= known
    left = [number for number in range(len(said)) if number not in found]
    times = {number: len(asked.get(questions[number], ())) for number in left}
    missing: list[int] = []
    for text, own in asked.items():
        free = [place for place in own if place not in found.values()]
        missing += free[sum(answer in times for answer in answers.get(text, ())) :]
    return Joined(
        found,
        {way: number for way, number in ways.items() if number},
        unknown=[number for number in left if not times[number]],
        several=[number for number in left if times[number] == 1],
        open=[number for number in left if times[number] > 1],
        missing=sorted(missing),
    )


def _alone(question: str, places: Sequence[str]) -> str:
    """A question without the context that may stand in front of it."""
    if question in places:
        return question
    return next((own for own in places if question.endswith(f": {own}")), question)


def _by_question(texts: Iterable[str]) -> dict[str, list[int]]:
    """Numbers of the entries by their question; those without one are joined by order or not."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, text in enumerate(texts):
        if text:
            found[text].append(number)
    return dict(found)


def _surroundings(texts: Sequence[str], unique: set[str]) -> list[tuple[tuple[str, ...], int]]:
    """For each text the stretch between unique ones that it stands in, and its place in there.

    A stretch begins with its unique text, but the file's first one, and includes the next one's;
    the file's end is "", which no question is. So no two places of a file have the same.
    """
    ends = [number for number, text in enumerate(texts) if text in unique]
    found: list[tuple[tuple[str, ...], int]] = []
    for start, end in zip([-1, *ends], [*ends, len(texts)], strict=True):
        last = ("",) if end == len(texts) else (texts[end],)
        stretch = (*texts[max(start, 0) : end], *last)
        found += [(stretch, number - start) for number in range(max(start, 0), end)]
    return found


# --- files and questions --------------------------------------------------------------------------


# Answers by the ids of their questions, how many were joined in each way, and what is wrong.
Found = tuple[dict[str, Answer], Mapping[str, int], list[str]]


def joined(given: Answers, places: Sequence[Asked]) -> Found:
    """Put answers to the questions of their dimension: by ids if they have any, else by joining."""
    has_ids = any(one.id for one in given.entries)
    found, ways, problems = (_by_id if has_ids else _by_text)(given, places)
    if bad := [one for one in given.entries if one.text is None]:
        problems.append(f"{_counted(bad)} whose `A` is no text, first {_entry(bad[0])}")
    kept = {name: one for name, one in found.items() if one.text is not None}
    return kept, ways, [f"{given.file}: {problem}" for problem in problems]


def _by_text(given: Answers, places: Sequence[Asked]) -> Found:
    """Entries of a predictions file by question id, ways, problems."""
    entries = given.entries
    result = join(
        [(fold(one.question), fold(one.text or "")) for one in entries],
        [fold(place.question) for place in places],
    )
    problems = []
    if len(entries) != len(places):
        problems.append(f"{len(entries):,} answers to the release's {len(places):,} questions")
    for numbers, told in (
        ([n for n in result.unknown if not entries[n].question], "whose `Q` is no text"),
        (
            [n for n in result.unknown if entries[n].question],
            "to a question that is not in the release",
        ),
        (result.several, "to a question that is answered more than once"),
        (result.open, "to a repeated question in another order than the release's"),
    ):
        if numbers:
            problems.append(f"{_counted(numbers)} {told}, first {_entry(entries[numbers[0]])}")
    if result.missing:
        place = places[result.missing[0]]
        problems.append(_unanswered(len(result.missing), f"{place.id} ({_short(place)})"))
    found = {places[place].id: entries[number] for number, place in result.places.items()}
    return found, result.ways, problems


def _by_id(given: Answers, places: Sequence[Asked]) -> Found:
    """The same of saved samples, whose ids are the release's."""
    asked = {place.id: place.question for place in places}
    said = {one.id: one for one in given.entries}
    unknown = [name for name in said if name not in asked]
    other = [
        name
        for name, one in said.items()
        if one.question and name in asked and fold(one.question) != fold(asked[name])
    ]
    problems = [
        f"{_counted(names)} {told}, first {names[0]}"
        for names, told in (
            (unknown, "to an id that is not in the release"),
            (other, "to another question than the release has under its id: another version?"),
        )
        if names
    ]
    if missing := [name for name in asked if name not in said]:
        problems.append(_unanswered(len(missing), missing[0]))
    found = {name: one for name, one in said.items() if name not in {*unknown, *other}}
    return found, {BY_ID: len(found)} if found else {}, problems


def _unanswered(count: int, first: str) -> str:
    return f"questions without an answer: {count:,}, first {first}"


def _counted(entries: Sequence[object]) -> str:
    return f"{len(entries):,} answer{'s' if len(entries) > 1 else ''}"


def _entry(entry: Answer) -> str:
    return f"entry {entry.entry}" + (f" ({_short(entry)})" if entry.question else "")


def _short(one: Answer | Asked) -> str:
    text = fold(one.question)
    return f"{text[: _SHOWN - 3]}..." if len(text) > _SHOWN else text
