"""Small studies from lists of ratings."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.study import Rater, Ratings, Study

PARTIAL, TIME = "partial_actions", "time_order_understanding"
Given = Sequence[object]  # numbers, None for a failure, "absent" for no row


def row(number: int, rating: object = 3, **changes: object) -> RatingRow:
    """Judge J's rating of candidate A's answer to question `number`, two questions a video."""
    dimension = str(changes.pop("dimension", PARTIAL))
    values: dict[str, object] = {
        "dimension": dimension,
        "question": f"{dimension}/{number:03d}",
        "video": f"v{number // 2}.mp4",
        "candidate": "A",
        "judge": "J",
        "round": "first",
        "rating": rating,
        "status": "ok" if rating is not None else "parse_failure",
        **changes,
    }
    return RatingRow(**values)  # type: ignore[arg-type]


def rows(ratings: Given, **changes: object) -> list[RatingRow]:
    """Rows of questions 0, 1, 2 ..., without those that are "absent"."""
    return [
        row(number, rating, **changes)
        for number, rating in enumerate(ratings)
        if rating != "absent"
    ]


def study(
    judges: Mapping[str, Mapping[str, Given]], reference: Mapping[str, Given], **changes: object
) -> Study:
    """Judge -> candidate -> ratings, and the reference's by candidate."""
    given = [
        one
        for judge, own in judges.items()
        for candidate, ratings in own.items()
        for one in rows(ratings, judge=judge, candidate=candidate, **changes)
    ]
    compared = [
        one
        for candidate, ratings in reference.items()
        for one in rows(ratings, judge="debate", round="reference", candidate=candidate, **changes)
    ]
    return Study.of(given, compared)


def of(made: Study, judge: str = "J") -> Ratings:
    """What a judge gave in the first round."""
    return made.raters[Rater(judge, "first")]


def drawn(seed: int, dimensions: int = 3, videos: int = 6, candidates: int = 3) -> Study:
    """Judge J right half of the time; some failures, gaps and halves, also of the reference.

    Videos are of several sizes, and the first dimension lacks the last candidate.
    """
    rng = random.Random(seed)
    judged, compared = [], []
    for place_of, dimension in enumerate(list(DIMENSIONS)[:dimensions]):
        number = 0
        for video in range(videos):
            for _ in range(rng.randint(1, 4)):
                number += 1
                for candidate in range(candidates - (not place_of)):
                    truth = rng.randint(1, 5) if rng.random() < 0.9 else 2.5
                    place = {
                        "dimension": dimension,
                        "video": f"{dimension[:4]}{video}.mp4",
                        "candidate": f"c{candidate}",
                    }
                    compared.append(row(number, truth, judge="debate", round="reference", **place))
                    rating = truth if rng.random() < 0.5 else rng.choice([1, 2, 3, 4, 5, 4.5, None])
                    if rng.random() < 0.95:
                        judged.append(row(number, rating, **place))
    return Study.of(judged, compared)


# --- a study to compute by hand: two judges, two candidates, four questions, two videos -----------

# Judge J is one too high on A and right on B; K always says 4. Quadratic kappa from sums:
# (E - n D) / E with E = n (sum a^2 + b^2) - 2 (sum a) (sum b), D the sum of (a - b)^2.
REFERENCE: Mapping[str, Given] = {"A": [1, 2, 3, 4], "B": [1, 1, 5, 5]}
LENIENT: Mapping[str, Given] = {"A": [2, 3, 4, 5], "B": [1, 1, 5, 5]}
FOURS: Mapping[str, Given] = {"A": [4, 4, 4, 4], "B": [4, 4, 4, 4]}

# J: on A D = 4, E = 4 x 84 - 2 x 14 x 10 = 56; on B 1.
KAPPA_A = 40 / 56
KAPPA = (KAPPA_A + 1) / 2


def given(judge: str, by: Mapping[str, Given], **changes: object) -> list[RatingRow]:
    """A judge's rows."""
    return [
        row
        for candidate, ratings in by.items()
        for row in rows(ratings, judge=judge, candidate=candidate, **changes)
    ]


def judged() -> list[RatingRow]:
    """J and K, alone."""
    return [*given("J", LENIENT), *given("K", FOURS)]


def referred() -> list[RatingRow]:
    """The debate's."""
    return given("debate", REFERENCE, round="reference")


def rater(found: dict[str, Any], name: str) -> dict[str, Any]:
    """A rater's part of a report."""
    return next(part for part in found["raters"] if part["name"] == name)


def panel(found: dict[str, Any], name: str) -> dict[str, Any]:
    """A panel's part of a report."""
    return next(part for part in found["panels"]["panels"] if part["name"] == name)
