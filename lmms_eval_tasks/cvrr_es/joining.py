"""Which answer of a predictions file is to which question of the release, in one dimension.

Questions repeat ("What is happening in the video?" is asked of many videos), files come in other
orders than the annotations, and an answer at the wrong question is never seen again. So an answer
is joined by what shows where it belongs, the surest first; what nothing shows is not joined:

1. order: all questions are the annotations', place by place.
2. text: the question is unique in the dimension, in the annotations and among the answers.
3. judgement: published judgements of these very answers name the reference that belongs to each.
4. neighbours: up to the next unique question on either side all questions are the same.
5. last: as many answers as questions of this text are left, and it makes no difference which is
   whose: there is one of each, or all these answers are the same.

Where judgements contradict the order (1), neither it nor neighbours (4) are trusted in that file.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks.cvrr_es.release import Asked

WAYS = ("order", "text", "judgement", "neighbours", "last")

# Folded (question, answer) -> folded references, one for each answer with this text.
Judgements = Mapping[tuple[str, str], Sequence[str]]


class Said(NamedTuple):
    """A candidate's answer; both texts folded, only to be compared."""

    question: str
    answer: str


class Place(NamedTuple):
    """What stands at a place of the annotations; both texts folded."""

    question: str
    reference: str


@dataclass(frozen=True)
class Joined:
    """Numbers of answers and places count from 0.

    Attributes:
        places: answer -> its place in the annotations.
        ways: how many answers were joined in each of WAYS; those of no use are left out.
        unknown: answers whose question is none of the annotations'.
        several: answers to one question that was asked once; none of them is joined.
        open: answers to repeated questions that nothing could tell apart.
        missing: places that no answer is left for.
        contradicted: whether judgements say that the order is wrong though the questions fit.
        rejudged: joined answers that were judged against another reference than the release's.
    """

    places: Mapping[int, int]
    ways: Mapping[str, int]
    unknown: tuple[int, ...]
    several: tuple[int, ...]
    open: tuple[int, ...]
    missing: tuple[int, ...]
    contradicted: bool
    rejudged: tuple[int, ...]


def fold(text: str) -> str:
    """A text as it is compared here: single spaces, none at the ends."""
    return " ".join(text.split())


def join(said: Sequence[Said], places: Sequence[Place], judged: Judgements) -> Joined:
    """Join the answers to the places of the annotations.

    Args:
        said: in the file's order.
        places: in the annotations' order.
        judged: the published judgements of these answers; empty if there are none.
    """
    same = [one.question for one in said] == [place.question for place in places]
    contradicted = same and _contradicts(said, places, judged)
    if same and not contradicted:
        numbers = range(len(places))
        found = dict(zip(numbers, numbers, strict=True))
        return _result(said, places, judged, found, Counter(order=len(found)))
    work = _Work(said, places)
    work.by_text()
    work.by_judgement(judged)
    if not contradicted:
        work.by_neighbours()
    work.the_last()
    result = _result(said, places, judged, work.found, work.ways)
    return replace(result, contradicted=contradicted)


class _Work:
    """The answers and the places that are not joined yet, by the question's text."""

    def __init__(self, said: Sequence[Said], places: Sequence[Place]) -> None:
        self.said, self.places = said, places
        self.answers, self.asked = _by_question(said), _by_question(places)
        self.found: dict[int, int] = {}
        self.ways: Counter[str] = Counter()

    def by_text(self) -> None:
        for text, (place, *more) in self.asked.items():
            if not more and len(self.answers.get(text, ())) == 1:
                self._join(self.answers[text][0], place, "text")

    def by_judgement(self, judged: Judgements) -> None:
        references = _handed_out(self.said, judged)
        for text in self._repeated():
            for reference in {self.places[place].reference for place in self.asked[text]}:
                places = [p for p in self._free(text) if self.places[p].reference == reference]
                own = [a for a in self._waiting(text) if references.get(a) == reference]
                if self._is_same_either_way(own, places):
                    self._join_all(own, places, "judgement")

    def by_neighbours(self) -> None:
        unique = {
            text
            for text, own in self.asked.items()
            if len(own) == 1 and len(self.answers.get(text, ())) == 1
        }
        around = _surroundings([place.question for place in self.places], unique)
        where = {surrounding: place for place, surrounding in enumerate(around)}
        here = _surroundings([one.question for one in self.said], unique)
        taken = set(self.found.values())
        for text in self._repeated():
            for answer in self._waiting(text):
                place = where.get(here[answer])
                if place is not None and place not in taken:
                    self._join(answer, place, "neighbours")

    def the_last(self) -> None:
        for text in self._repeated():
            own, places = self._waiting(text), self._free(text)
            if self._is_same_either_way(own, places):
                self._join_all(own, places, "last")

    def _repeated(self) -> list[str]:
        """Questions that the annotations have more than once, and that were answered."""
        return [text for text, own in self.asked.items() if len(own) > 1 and self.answers.get(text)]

    def _waiting(self, text: str) -> list[int]:
        return [answer for answer in self.answers[text] if answer not in self.found]

    def _free(self, text: str) -> list[int]:
        taken = set(self.found.values())
        return [place for place in self.asked[text] if place not in taken]

    def _is_same_either_way(self, answers: Sequence[int], places: Sequence[int]) -> bool:
        texts = {self.said[answer].answer for answer in answers}
        return len(answers) == len(places) and len(texts) == 1

    def _join_all(self, answers: Sequence[int], places: Sequence[int], way: str) -> None:
        for answer, place in zip(answers, places, strict=True):
            self._join(answer, place, way)

    def _join(self, answer: int, place: int, way: str) -> None:
        self.found[answer] = place
        self.ways[way] += 1


def _by_question(entries: Iterable[Said | Place]) -> dict[str, list[int]]:
    """Numbers of the entries by their question; those without one are joined by order or not."""
    found: dict[str, list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        if entry.question:
            found[entry.question].append(number)
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


def _handed_out(said: Sequence[Said], judged: Judgements) -> dict[int, str]:
    """The reference of each judged answer; equal answers to one question are interchangeable."""
    own: dict[Said, list[int]] = defaultdict(list)
    for number, one in enumerate(said):
        own[one].append(number)
    found: dict[int, str] = {}
    for one, numbers in own.items():
        references = judged.get((one.question, one.answer), ())
        if len(references) == len(numbers):
            found |= dict(zip(numbers, references, strict=True))
    return found


def _contradicts(said: Sequence[Said], places: Sequence[Place], judged: Judgements) -> bool:
    """Whether an answer was judged against the reference of another place with its question."""
    others: dict[str, set[str]] = defaultdict(set)
    for place in places:
        others[place.question].add(place.reference)
    for one, place in zip(said, places, strict=True):
        references = set(judged.get((one.question, one.answer), ()))
        if place.reference not in references and references & others[place.question]:
            return True
    return False


def _result(
    said: Sequence[Said],
    places: Sequence[Place],
    judged: Judgements,
    found: Mapping[int, int],
    ways: Counter[str],
) -> Joined:
    answers, asked = _by_question(said), _by_question(places)
    left = [number for number in range(len(said)) if number not in found]
    rejudged = [
        number
        for number, place in found.items()
        if (own := judged.get((said[number].question, said[number].answer)))
        and places[place].reference not in own
    ]
    return Joined(
        places=dict(found),
        ways={way: ways[way] for way in WAYS if ways[way]},
        unknown=tuple(n for n in left if said[n].question not in asked),
        several=tuple(n for n in left if len(asked.get(said[n].question, ())) == 1),
        open=tuple(n for n in left if len(asked.get(said[n].question, ())) > 1),
        missing=_missing(asked, answers, found),
        contradicted=False,
        rejudged=tuple(sorted(rejudged)),
    )


def _missing(
    asked: Mapping[str, Sequence[int]],
    answers: Mapping[str, Sequence[int]],
    found: Mapping[int, int],
) -> tuple[int, ...]:
    """Places without an answer; where open answers could fill some of them, the later ones."""
    taken = set(found.values())
    missing: list[int] = []
    for text, own in asked.items():
        free = [place for place in own if place not in taken]
        waiting = sum(answer not in found for answer in answers.get(text, ()))
        missing += free[waiting:]
    return tuple(sorted(missing))


# --- files and questions --------------------------------------------------------------------------

JUDGEMENTS = "judge_results"  # the folder of published judgements, beside that of the models
BY_ID = "id"  # the way in which saved samples are joined, beside WAYS
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
        judged: the published judgements of these answers; empty without.
    """

    file: Path
    entries: tuple[Answer, ...]
    tokens: int
    ends: int
    judged: Judgements


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
    found, ways, problems, notes = (_by_id if has_ids else _put)(given, places)
    if bad := [one for one in given.entries if one.text is None]:
        problems.append(
            f"{given.file}: {_counted(bad)} whose `A` is no text, first {_entry(bad[0])}"
        )
    kept = {name: one.text for name, one in found.items() if one.text is not None}
    return Part(kept, ways, tuple(problems), tuple(notes))


def _put(given: Answers, places: Sequence[Asked]) -> _Found:
    """Entries of a predictions file by question id, ways, problems, notes."""
    result = join(
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
    why = "" if given.judged else f" and there is no {JUDGEMENTS} beside"
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
        problems.append(_unanswered(given, len(result.missing), f"{place.id} ({_short(place)})"))
    if result.contradicted:
        notes.append(
            f"{given.file}: the questions are in the release's order, but its judgements say that "
            "answers are not: joined by the judgements"
        )
    if result.rejudged:
        first = given.entries[result.rejudged[0]]
        notes.append(
            f"{given.file}: {_counted(result.rejudged)} judged in {JUDGEMENTS} "
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
        problems.append(_unanswered(given, len(missing), missing[0]))
    return found, {BY_ID: len(found)} if found else {}, problems, []


def _unanswered(given: Answers, count: int, first: str) -> str:
    return f"{given.file}: questions without an answer: {count:,}, first {first}"


def _counted(entries: Sequence[object]) -> str:
    return f"{len(entries):,} answer{'s' if len(entries) > 1 else ''}"


def _entry(entry: Answer) -> str:
    return f"entry {entry.entry}" + (f" ({_short(entry)})" if entry.question else "")


def _short(one: Answer | Asked) -> str:
    text = fold(one.question)
    return f"{text[: _SHOWN - 3]}..." if len(text) > _SHOWN else text
