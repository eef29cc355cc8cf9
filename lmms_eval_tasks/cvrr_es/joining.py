"""Which answer of a predictions file is to which question of the release, in one dimension.

Questions repeat ("What is happening in the video?" is asked of many videos), files come in other
orders than the annotations, and an answer at the wrong question is never seen again. So an answer
is joined by what shows where it belongs, the surest first; what nothing shows is not joined:

1. order: all questions are the annotations', place by place.
2. text: the question is unique in the dimension, in the annotations and among the answers.
3. neighbours: up to the next unique question on either side all questions are the same.
4. last: one answer and one question of this text are left.

A question may stand behind the context that two-step prompting put in front of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence


def fold(text: str) -> str:
    """A text as it is compared here: single spaces, none at the ends."""
    return " ".join(text.split())


def join(said: Sequence[str], places: Sequence[str]) -> dict[int, int]:
    """Join the answers to the places of the annotations: answer -> its place, both from 0.

    Args:
        said: the answers' questions, folded, in the file's order; "" where it does not say.
        places: the annotations' questions, folded, in their order.
    """
    asked = Counter(filter(None, places))
    questions = [_alone(question, asked) for question in said]
    if questions == list(places):
        return {number: number for number in range(len(places))}
    answered = Counter(questions)
    unique = {text for text, often in asked.items() if often == answered[text] == 1}
    where = {around: place for place, around in enumerate(_surroundings(places, unique))}
    # A unique question is known by itself, a repeated one by all that is around it.
    first = {text: place for place, text in enumerate(places)}
    found = {}
    for number, around in enumerate(_surroundings(questions, unique)):
        text = questions[number]
        if text in unique:
            found[number] = first[text]
        elif asked[text] > 1 and around in where:
            found[number] = where[around]
    taken = set(found.values())
    for text in asked:
        waiting = [n for n, one in enumerate(questions) if one == text and n not in found]
        free = [n for n, one in enumerate(places) if one == text and n not in taken]
        if asked[text] > 1 and len(waiting) == len(free) == 1:
            found[waiting[0]] = free[0]
    return found


def _alone(question: str, asked: Mapping[str, object]) -> str:
    """A question without the context that may stand in front of it."""
    if question in asked:
        return question
    return next((own for own in asked if question.endswith(f": {own}")), question)


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
