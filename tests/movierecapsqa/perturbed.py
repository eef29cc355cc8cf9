"""Published scores of the real sample, changed by a fixed rule: what a replayed judge answers.

The numbers that must come out are in tests/cases/movierecapsqa_agreement.json. They were computed
once, before the command was run on them, from the released file and without this suite's code:
kappa by scikit-learn, both correlations by SciPy.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.conftest import SHARED

RELEASE = SHARED / "data" / "movierecapsqa" / "segments.json"
CASES = Path(__file__).parents[1] / "cases" / "movierecapsqa_agreement.json"
DIMENSIONS = ("factuality", "relevance")
PEOPLE = "people"


class Given(NamedTuple):
    """One scored answer of the release."""

    segment: str
    question: str  # SEGMENT/QID
    by: str  # the model as the release spells it
    text: str
    published: dict[str, int]


def scored_answers() -> Iterator[Given]:
    """Every answer with scores, read without this suite's reader."""
    for segment in json.loads(RELEASE.read_text(encoding="utf-8")):
        for question in segment["questions"]:
            people = {**question["humanAnswer"], "model": PEOPLE}
            for answer in [*question["modelAnswers"], people]:
                if answer.get("scores"):
                    name = f"{segment['id']}/{question['qid']}"
                    scores = {dimension: answer["scores"][dimension] for dimension in DIMENSIONS}
                    yield Given(segment["id"], name, answer["model"], answer["answer"], scores)


def _bytes(given: Given, what: str) -> bytes:
    return hashlib.sha256(f"{given.by}|{given.question}|{what}".encode()).digest()


def finds_nothing(given: Given) -> bool:
    """Whether the judge finds no claim in the answer (about one in 64)."""
    return _bytes(given, "claims")[0] < 4


def says(given: Given, dimension: str) -> int | None:
    """The judge's score: a fifth is one lower, a fifth one higher, within 0 to 5.

    None: it says nothing that can be read (about one in 43).
    """
    drawn = _bytes(given, dimension)
    if drawn[1] < 6:
        return None
    change = {0: -1, 1: 1}.get(drawn[0] % 5, 0)
    return min(5, max(0, given.published[dimension] + change))


def contradicts_itself(given: Given, dimension: str, score: int) -> bool:
    """Whether its labels do not allow its score (one in 16); they always allow relevance 0."""
    return _bytes(given, dimension)[2] < 16 and (dimension == "factuality" or score > 0)
