"""CVRR-ES's packaged sample in the form of the original release, with answers and ratings.

    cvrr_es/DIMENSION/annotations_DIMENSION.json  two or three questions in each of the eleven
    cvrr_es/DIMENSION/CLIP.mp4                    their two clips: 192 x 144, 4 s, no sound
    cvrr_es/predictions/MODEL/DIMENSION.json      three invented candidates in the released form;
                                                  one with image tokens, "</s>" and an empty answer
    cvrr_es/ratings/first.jsonl                   three invented judges' ratings of these answers
    cvrr_es/ratings/reference.jsonl               the true worth of the answers
    cvrr_es/replay.jsonl                          the right replies of the benchmark's judge, for
                                                  `--judge replay:FILE`

sample_questions_yaml has clips and questions. The three invented candidates take turns in known
kinds of answers. The three invented judges, two of which are also candidates, rate by rules: one is
nearly always right, one is too high by one, one gives every answer the same rating. The sample
shows that numbers follow from files, and nothing about any model.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from lmms_eval_tasks.benchmark import Doc
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, HIGHEST_SCORE, RATINGS
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.models.fake_replies import UNREADABLE, Chance, KnownReplies, Played
from lmms_eval_tasks.sample import scenes
from lmms_eval_tasks.sample.render import Clip

FIRST, REFERENCE = "ratings/first.jsonl", "ratings/reference.jsonl"  # below the folder
PREDICTIONS = "predictions"
SIZE, FPS, SECONDS = (192, 144), 10, 4

_TASKS = tuple(f"{ANSWERS}{one}" for one in DIMENSIONS)
_BEST = float(HIGHEST_SCORE)
PLAYED = Played(
    tasks=("cvrr_es",),
    expected={
        **{one: {"acc": 1.0, "acc_valid": 1.0, "score_valid": _BEST} for one in _TASKS},
        "cvrr_es": {"mean_acc_skip_empty": 1.0, "mean_score_skip_empty": _BEST},
    },
    chances=(Chance("answers", _TASKS, lambda item: item["right"], lambda _: 0.5),),
    headline=("cvrr_es", "mean_acc_skip_empty"),
)


class SampleQuestion(NamedTuple):
    """A question about a clip, the right answer, and a plausible wrong answer."""

    video: str
    question: str
    reference: str
    lure: str


class _ClipSpec(TypedDict):
    ground: str
    actors: Sequence[Mapping[str, Any]]  # fields of scenes.Actor


class _Told(TypedDict):
    clips: Mapping[str, _ClipSpec]
    questions: Mapping[
        str, Sequence[tuple[str, str, str, str]]
    ]  # by dimension: fields of SampleQuestion


@functools.cache
def _told() -> _Told:
    content: _Told = scenes.load_scenes(__file__, "sample_questions_yaml")
    return content


@functools.cache
def questions() -> dict[str, list[SampleQuestion]]:
    """The questions about the clips, by dimension."""
    return {
        name: [SampleQuestion(*one) for one in own] for name, own in _told()["questions"].items()
    }


def sample_videos() -> dict[str, Clip]:
    """The clips of every dimension, by file."""
    made = {
        name: scenes.clip(
            list(map(scenes.actor, clip["actors"])),
            *(SIZE, scenes.colour(clip["ground"]), FPS, SECONDS),
        )
        for name, clip in _told()["clips"].items()
    }
    return {
        f"{dimension}/{one.video}": made[one.video]
        for dimension, own in questions().items()
        for one in own
    }


def sample_files() -> dict[str, object]:
    """The contents of all other files, by file."""
    files: dict[str, object] = {
        f"{name}/annotations_{name}.json": [
            {"Q": row.question, "A": row.reference, "VideoID": row.video} for row in rows
        ]
        for name, rows in questions().items()
    }
    for candidate in MODELS:
        tables: dict[str, list[dict[str, str]]] = {}
        for answer in answered(candidate):
            marked = ("{} {} {} {}\n", "</s>") if candidate == HASTY else ("", "")
            prompt = marked[0].replace("{}", "<image>") + answer.question.question
            entry = {"Q": prompt, "A": f"{answer.text}{marked[1]}"}
            tables.setdefault(answer.dimension, []).append(entry)
        files |= {f"{PREDICTIONS}/{candidate}/{name}.json": rows for name, rows in tables.items()}
    files[FIRST] = (row.as_dict() for row in first_ratings())
    files[REFERENCE] = (
        _row(answer, DEBATED, "reference", WORTH[answer.kind]).as_dict()
        for candidate in MODELS
        for answer in answered(candidate)
    )
    return {**files, "replay.jsonl": recordings()}


# --- answers and ratings --------------------------------------------------------------------------

CAREFUL, HASTY, VAGUE = "invented-careful", "invented-hasty", "invented-vague"
FLAT, DEBATED = "invented-flat", "invented-debate"

# The kinds of answers that a candidate gives, in turn over all questions; keys of `said`. HASTY
# writes as in Video-LLaVA's released answers: image tokens before the question, the end token after
# the answer.
MODELS: dict[str, tuple[str, ...]] = {
    CAREFUL: ("right", "right", "padded", "right", "hedged", "right", "wrong"),
    HASTY: ("wrong", "idle", "right", "wrong", "hedged"),
    VAGUE: ("idle", "padded", "hedged", "right", "idle", "wrong"),
}
EMPTY = (HASTY, 7)  # candidate, and index of the question with an empty answer
# Candidate, and index of the answer to which the careful judge's rating is unreadable.
UNREAD = (VAGUE, 11)
# The worth of each kind: the reference rating, 1 to 5, and the benchmark's score, 0 to 5.
WORTH = {"right": 5, "padded": 4, "hedged": 3, "idle": 2, "wrong": 1, "empty": 1}
_SCORES = {"right": 5, "padded": 4, "hedged": 2, "idle": 1, "wrong": 0}
_CONSTANT = 4
_SLIP = 6  # the careful judge rates every sixth answer too low by one


class SampleAnswer(NamedTuple):
    """A candidate's answer to a question, and its kind."""

    candidate: str
    id: str
    dimension: str
    question: SampleQuestion
    kind: str
    text: str


def sample_answers(question: SampleQuestion) -> dict[str, str]:
    """The answers to a question, by kind."""
    return {
        "right": question.reference,
        "padded": f"{question.reference} Somebody far away hums a tune.",
        "hedged": f"{question.reference} Or it is the other way round.",
        "idle": "There are shapes in the video.",
        "wrong": question.lure,
        "empty": "",
    }


def _numbered() -> list[tuple[str, str, SampleQuestion]]:
    """The dimension, id and question of every question, in the order of the annotations."""
    return [
        (name, f"{name}/{place:03d}", one)
        for name, own in questions().items()
        for place, one in enumerate(own, 1)
    ]


def answered(candidate: str) -> Iterator[SampleAnswer]:
    """Yield a candidate's answers in the order of the annotations."""
    kinds = MODELS[candidate]
    for number, (dimension, name, asked) in enumerate(_numbered()):
        kind = "empty" if (candidate, number) == EMPTY else kinds[number % len(kinds)]
        yield SampleAnswer(candidate, name, dimension, asked, kind, sample_answers(asked)[kind])


def first_ratings() -> Iterator[RatingRow]:
    """Yield the three judges' ratings of every answer, made without the reference answer."""
    for candidate in MODELS:
        for number, one in enumerate(answered(candidate)):
            worth = WORTH[one.kind]
            slipped = max(worth - (number % _SLIP == _SLIP - 1), min(RATINGS))
            is_unread, is_empty = (candidate, number) == UNREAD, one.kind == "empty"
            careful = (None, "parse_failure") if is_unread else (slipped, "ok")
            yield _row(one, CAREFUL, "first", *careful)
            yield _row(one, HASTY, "first", min(worth + 1, max(RATINGS)))
            flat = (None, "empty_answer") if is_empty else (_CONSTANT, "ok")
            yield _row(one, FLAT, "first", *flat)


def _row(
    answer: SampleAnswer, judge: str, name: str, rating: int | None, status: str = "ok"
) -> RatingRow:
    return RatingRow(
        dimension=answer.dimension,
        question=answer.id,
        video=f"{answer.dimension}/{answer.question.video}",
        candidate=answer.candidate,
        judge=judge,
        round=name,
        rating=None if rating is None else float(rating),
        reason="known by construction" if rating is not None else "",
        status=status,
        empty=answer.kind == "empty",
    )


def recordings() -> Iterator[dict[str, object]]:
    """Yield lines for the judge `replay` on every answer but the empty one, which no judge gets.

    They include the answer to the next question, a doc's `lure` (data.py).
    """
    every = _numbered()
    for (_, name, asked), (*_, other) in zip(every, (*every[1:], *every[:1]), strict=True):
        worth = {sample_answers(asked)[kind]: score for kind, score in _SCORES.items()}
        for candidate, score in ({other.reference: 0} | worth).items():
            fields = {"question": asked.question, "reference": asked.reference}
            pred = "correct" if score >= _SCORES["padded"] else "incorrect"
            reply = {"pred": pred, "score": score, "reason": "known by construction"}
            yield {
                "criterion": "cvrr_es",
                "fields": {"id": name, **fields, "candidate": candidate},
                "reply": json.dumps(reply),
            }


# --- replies of a fake judge ----------------------------------------------------------------------


def known_replies(doc: Doc) -> KnownReplies | None:
    """Replies to a doc of the judge study; None for a doc that is answered, not rated.

    The right reply has the reference rating, or 3 without a reference.

    The wrong reply is off by one or two. It is too high if other judges' ratings are shown, so that
    the three rounds differ. The same answer is drawn anew in every round.
    """
    if "round" not in doc:
        return None
    name, truth = f"{doc['round']}/{doc['id']}", doc["reference_rating"]
    low, high = min(RATINGS), max(RATINGS)
    right = 3 if truth is None else round(truth)
    step = 1 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big") % 2
    up = bool(doc["others"]) or right < high - 1
    off = min(high, max(low, right + (step if up else -step)))
    wrong = off if off != right else right - 1
    said = (_rated(right, "right"), _rated(wrong, "wrong"))
    return KnownReplies(
        name, *said, UNREADABLE, random_replies=[_rated(one, "drawn") for one in RATINGS]
    )


def _rated(rating: int, worth: str) -> str:
    return json.dumps({"rating": rating, "reason": f"played: {worth}"})
