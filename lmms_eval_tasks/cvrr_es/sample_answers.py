"""Answers and ratings of known worth: those of the packaged sample, and what is played to tasks.

Three invented candidates answer in turns of known kinds. Three invented judges, two of them the
candidates themselves, rate the answers by rules: one is nearly always right, one lenient by one,
one gives everything the same. The reference is what each kind is worth. `recordings` is what a
judge of the benchmark's own would reply that sees just that. All of it shows that numbers follow
from files, and nothing about any model.

`item` and `reply` play a judge for `--model tasks_scripted`: `right` is the reference rating, or 3
without one; `wrong` is off by one or two, and more lenient where the other judges' ratings are
shown, so that the three rounds differ; `unreadable` is no rating. For tests of metrics and of one
process against two.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.sample.players import UNREADABLE

CAREFUL, HASTY, VAGUE = "invented-careful", "invented-hasty", "invented-vague"
FLAT, REFERENCE = "invented-flat", "invented-debate"

# What a candidate says, in turn over all questions; kinds of `said`.
MODELS: dict[str, tuple[str, ...]] = {
    CAREFUL: ("right", "right", "padded", "right", "hedged", "right", "wrong"),
    HASTY: ("wrong", "idle", "right", "wrong", "hedged"),
    VAGUE: ("idle", "padded", "hedged", "right", "idle", "wrong"),
}
# As Video-LLaVA's released answers: image tokens before the question, the end token behind.
TOKENS, END = "<image> <image> <image> <image>\n", "</s>"
EMPTY = (HASTY, 7)  # the candidate whose answer to the question of this number is empty
UNREAD = (CAREFUL, VAGUE, 11)  # the judge whose rating of this one's answer could not be read

# What each kind is worth: the reference's rating, 1 to 5, and the benchmark's score, 0 to 5.
WORTH = {"right": 5, "padded": 4, "hedged": 3, "idle": 2, "wrong": 1, "empty": 1}
_SCORES = {"right": 5, "padded": 4, "hedged": 2, "idle": 1, "wrong": 0}
_CORRECT = ("right", "padded")
_CONSTANT = 4
_SLIP = 6  # of so many answers the careful judge rates one too low by one

CRITERION = "cvrr_es"  # what the benchmark's recordings answer (judge.py)


class Asked(NamedTuple):
    """A question on a clip, the right answer, and a wrong one that looks right."""

    video: str
    question: str
    reference: str
    lure: str


@functools.cache
def questions() -> dict[str, tuple[Asked, ...]]:
    """What is asked about the packaged clips, by dimension (sample_questions_yaml)."""
    import yaml

    text = Path(__file__).with_name("sample_questions_yaml").read_text(encoding="utf-8")
    return {name: tuple(Asked(*one) for one in own) for name, own in yaml.safe_load(text).items()}


class Answered(NamedTuple):
    """A candidate's answer to a question, and how it was built."""

    candidate: str
    id: str
    dimension: str
    asked: Asked
    kind: str
    text: str


def said(asked: Asked) -> dict[str, str]:
    """Answers to a question by their kind."""
    return {
        "right": asked.reference,
        "padded": f"{asked.reference} Somebody far away hums a tune.",
        "hedged": f"{asked.reference} Or it is the other way round.",
        "idle": "There are shapes in the video.",
        "wrong": asked.lure,
        "empty": "",
    }


def answered(candidate: str) -> Iterator[Answered]:
    """A candidate's answers in the order of the annotations."""
    kinds = MODELS[candidate]
    number = 0
    for dimension, own in questions().items():
        for place, asked in enumerate(own, 1):
            kind = "empty" if (candidate, number) == EMPTY else kinds[number % len(kinds)]
            name = f"{dimension}/{place:03d}"
            yield Answered(candidate, name, dimension, asked, kind, said(asked)[kind])
            number += 1


def predictions(candidate: str) -> dict[str, list[dict[str, str]]]:
    """A candidate's answers by dimension in the released form."""
    marked = candidate == HASTY
    found: dict[str, list[dict[str, str]]] = {}
    for one in answered(candidate):
        question = f"{TOKENS}{one.asked.question}" if marked else one.asked.question
        text = f"{one.text}{END}" if marked else one.text
        found.setdefault(one.dimension, []).append({"Q": question, "A": text})
    return found


def first_ratings() -> Iterator[RatingRow]:
    """What the three judges give every answer; the reference answer is not shown to them."""
    for candidate in MODELS:
        for number, one in enumerate(answered(candidate)):
            worth = WORTH[one.kind]
            slipped = worth - 1 if number % _SLIP == _SLIP - 1 else worth
            if (CAREFUL, candidate, number) == UNREAD:
                yield _row(one, CAREFUL, "first", None, "parse_failure")
            else:
                yield _row(one, CAREFUL, "first", max(slipped, min(RATINGS)))
            yield _row(one, HASTY, "first", min(worth + 1, max(RATINGS)))
            if one.kind == "empty":
                yield _row(one, FLAT, "first", None, "empty_answer")
            else:
                yield _row(one, FLAT, "first", _CONSTANT)


def reference_ratings() -> Iterator[RatingRow]:
    """What every answer is worth."""
    for candidate in MODELS:
        for one in answered(candidate):
            yield _row(one, REFERENCE, "reference", WORTH[one.kind])


def _row(one: Answered, judge: str, name: str, rating: int | None, status: str = "ok") -> RatingRow:
    return RatingRow(
        dimension=one.dimension,
        question=one.id,
        video=f"{one.dimension}/{one.asked.video}",
        candidate=one.candidate,
        judge=judge,
        round=name,
        rating=None if rating is None else float(rating),
        reason="known by construction" if rating is not None else "",
        status=status,
        empty=one.kind == "empty",
    )


def recordings() -> Iterator[dict[str, Any]]:
    """Lines for the judge `replay` about every answer that was built, in the criterion's fields."""
    for dimension, own in questions().items():
        for place, asked in enumerate(own, 1):
            texts = said(asked)
            del texts["empty"]  # which nobody is asked about
            for kind, text in texts.items():
                fields = {
                    "id": f"{dimension}/{place:03d}",
                    "question": asked.question,
                    "reference": asked.reference,
                    "candidate": text,
                }
                reply = {
                    "pred": "correct" if kind in _CORRECT else "incorrect",
                    "score": _SCORES[kind],
                    "reason": "known by construction",
                }
                yield {"criterion": CRITERION, "fields": fields, "reply": json.dumps(reply)}


# --- a judge's ratings, played ------------------------------------------------------------------

Doc = Mapping[str, Any]
_LOW, _HIGH = min(RATINGS), max(RATINGS)


def item(doc: Doc) -> str:
    """What a reply's worth is drawn by: the same answer is drawn anew in every round."""
    return f"{doc['round']}/{doc['id']}"


def reply(doc: Doc, worth: str) -> str:
    """A rating in JSON, or a text that holds none."""
    if worth == "unreadable":
        return UNREADABLE
    known = doc["reference_rating"]
    right = 3 if known is None else round(known)
    rating = right if worth == "right" else _off(right, item(doc), bool(doc["others"]))
    return json.dumps({"rating": rating, "reason": f"played: {worth}"})


def _off(right: int, name: str, shown: bool) -> int:
    """Another rating than the right one."""
    drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big") % 2
    step = 1 + drawn if shown or right < _HIGH - 1 else -1 - drawn
    moved = min(_HIGH, max(_LOW, right + step))
    return moved if moved != right else right - 1
