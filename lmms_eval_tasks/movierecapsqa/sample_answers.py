"""Answers to the packaged questions whose worth is known: what people and two invented models say.

An answer is a list of claims, one sentence each, and every claim has its labels because it was
built with them: from the right answer, from the false one, from something that nobody can check.
`recordings` writes down what a judge that sees just that would reply. It is a stand-in for tests
and the demo (judge `replay`): it shows that scores follow from labels, and nothing about a judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lmms_eval_tasks.movierecapsqa import bounds
from lmms_eval_tasks.movierecapsqa.answer_judging import Context, asked
from lmms_eval_tasks.movierecapsqa.judge import CLAIMS, LABELS
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.sample_texts import Asked

# Answers without a claim; the judge is asked about the last one alone, and finds nothing in it.
NO_CLAIMS = {
    "empty": "",
    "refused": "I'm sorry, but I can't assist with that.",
    "idle": "What a question!",
}
HUM = "Somebody far away hums a tune."  # in no scene
DREAM = "It all feels like a dream."

# What the two models say, in turn over all questions; kinds of `replies` or of NO_CLAIMS.
MODELS = {
    "invented_careful.response": ("right", "padded", "right", "twice", "partly", "dreamy"),
    "invented_hasty.response": (
        "wrong",
        "torn",
        "empty",
        "lure",
        "right",
        "refused",
        "wrong",
        "idle",
    ),
}
PEOPLE = (("partly", "right"), ("right",), ("padded",), ("right", "torn"), ())  # in turn, too
_PUBLISHED = ("factuality", "relevance")
_PUBLISHED_OFF = 3  # every third published score is one off from what the labels are worth

# A label's part in a score, 0 to 5, before the published rules are kept (bounds.py). Ours.
_WORTH = {
    **dict.fromkeys(("supported", "relevant", "consistent"), 5),
    **dict.fromkeys(("partially_supported", "partially_relevant", "redundant"), 3),
    **dict.fromkeys(("unsupported", "contradictory", "not_checkable", "irrelevant"), 0),
}


class Claim(NamedTuple):
    """A sentence of an answer with its label in each of labels.DIMENSIONS."""

    text: str
    factuality: str
    relevance: str
    coherence: str = "consistent"


def replies(one: Asked, lure: str) -> dict[str, tuple[Claim, ...]]:
    """Answers to a question by their kind; `partly` is as `right` where there is no such text.

    Args:
        one: the question.
        lure: an answer to a question of another segment.
    """
    right = tuple(Claim(sentence, "supported", "relevant") for sentence in one.answer)
    again = right[0]._replace(coherence="redundant")
    wrong = Claim(one.wrong, "contradictory", "relevant")
    partly = (Claim(one.partly, "partially_supported", "relevant"),) if one.partly else right
    return {
        "right": right,
        "wrong": (wrong,),
        "partly": partly,
        "twice": (*right, again),
        "torn": (*right, wrong._replace(coherence="contradictory")),
        "padded": (*right, Claim(HUM, "unsupported", "irrelevant")),
        "dreamy": (*right, Claim(DREAM, "not_checkable", "irrelevant")),
        "lure": (Claim(lure, "unsupported", "irrelevant"),),
    }


def text(claims: Sequence[Claim]) -> str:
    """The answer."""
    return " ".join(claim.text for claim in claims)


def labels(dimension: str, claims: Sequence[Claim]) -> list[str]:
    """The claims' labels in one of labels.DIMENSIONS."""
    return [getattr(claim, dimension) for claim in claims]


def score(dimension: str, claims: Sequence[Claim]) -> int:
    """The score, 0 to 5, of the recorded judge: what the labels are worth, inside the bounds."""
    found = labels(dimension, claims)
    low, high = bounds.interval(dimension, found)
    worth = [_WORTH[one] for one in found]
    mean = (2 * sum(worth) + len(worth)) // (2 * len(worth))  # halves up
    return min(max(mean, low), high)


def said(number: int, one: Asked, lure: str) -> dict[str, Any]:
    """The answers of people and models to question `number` (from 0 on), in the released form."""
    known = replies(one, lure)
    people = [_answer(known, kind, number) for kind in PEOPLE[number % len(PEOPLE)]]
    models = [
        {"model": model, **_answer(known, kinds[number % len(kinds)], number + place)}
        for place, (model, kinds) in enumerate(MODELS.items())
    ]
    several = len(people) > 1
    one_or_none = people[0] if people and not several else None
    humans = {"humanAnswers": people} if several else {"humanAnswer": one_or_none}
    return {**humans, "modelAnswers": models}


def _answer(known: dict[str, tuple[Claim, ...]], kind: str, number: int) -> dict[str, Any]:
    """An answer with its published scores; as in the release an empty one has none."""
    if kind == "empty":
        return {"answer": ""}
    if kind in NO_CLAIMS:
        return {"answer": NO_CLAIMS[kind], "scores": {"factuality": 0, "relevance": 0}}
    scores = {name: score(name, known[kind]) for name in _PUBLISHED}
    for place, name in enumerate(_PUBLISHED):
        if number % _PUBLISHED_OFF == place:
            scores[name] += -1 if scores[name] > 2 else 1
    return {"answer": text(known[kind]), "scores": scores}


def recordings(context: Context, one: Asked, lure: str) -> Iterator[dict[str, Any]]:
    """Lines for the judge `replay` about every answer that was built to a question."""
    idle = {"question": one.question, "candidate": NO_CLAIMS["idle"]}
    yield {"criterion": CLAIMS, "fields": idle, "reply": json.dumps({"claims": []})}
    for claims in dict.fromkeys(replies(one, lure).values()):
        found = [claim.text for claim in claims]
        fields = {"question": one.question, "candidate": text(claims)}
        yield {"criterion": CLAIMS, "fields": fields, "reply": json.dumps({"claims": found})}
        for name in DIMENSIONS:
            reply = {
                "labels": [
                    {"id": number, "label": label}
                    for number, label in enumerate(labels(name, claims), 1)
                ],
                "reason": "known by construction",
                "score": score(name, claims),
            }
            yield {
                "criterion": LABELS,
                "fields": asked(context, name, one.question, found),
                "reply": json.dumps(reply),
            }
