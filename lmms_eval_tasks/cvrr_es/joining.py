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

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


def fold(text: str) -> str:
    """A text as it is compared here: single spaces, none at the ends."""
    return " ".join(text.split())


def join(
    said: Sequence[tuple[str, str]], places: Sequence[str]
) -> tuple[dict[int, int], dict[str, int], dict[str, list[int]]]:
    """Join the answers to the places of the annotations; numbers of both count from 0.

    Args:
        said: (question, answer), folded, in the file's order.
        places: the annotations' questions, folded, in their order.

    Returns:
        Answer -> its place; how many answers were joined in each way; and what is left: answers
        whose question is `unknown`, asked once and answered by `several`, or repeated so that they
        stay `open`.
    """
    asked = _by_question(places)
    questions = [_alone(question, asked) for question, _ in said]
    answers = _by_question(questions)
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
        for text in (text for text, own in asked.items() if len(own) > 1 and text in answers):
            known = {a: where[here[a]] for a in answers[text] if here[a] in where}
            ways["neighbours"] += len(known)
            waiting = [answer for answer in answers[text] if answer not in known]
            free = [place for place in asked[text] if place not in known.values()]
            same = len({said[answer][1] for answer in waiting}) == 1
            if same and len(waiting) == len(free):
                known |= dict(zip(waiting, free, strict=True))
                ways["last"] += len(waiting)
            found |= known
    left: dict[str, list[int]] = {"unknown": [], "several": [], "open": []}
    for number, question in enumerate(questions):
        if number not in found:
            times = min(len(asked.get(question, ())), 2)
            left[("unknown", "several", "open")[times]].append(number)
    return found, {way: number for way, number in ways.items() if number}, left


def _alone(question: str, asked: Mapping[str, object]) -> str:
    """A question without the context that may stand in front of it."""
    if question in asked:
        return question
    return next((own for own in asked if question.endswith(f": {own}")), question)


def _by_question(texts: Iterable[str]) -> dict[str, list[int]]:
    """Numbers of the entries by their question; those without one are joined by order or not."""
    found: dict[str, list[int]] = {}
    for number, text in enumerate(texts):
        if text:
            found.setdefault(text, []).append(number)
    return found


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
