"""Small studies from lists of ratings."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.study import Rater, RatingPairs, Study
from lmms_eval_tasks.cvrr_es.study.study import study as study_of
from tests.cvrr_es import scored

Given = Sequence[Any]  # numbers, None for a failure, "absent" for no row
ByCandidate = Mapping[str, Given]


def row(number: int, rating: float | None = 3, **changes: Any) -> RatingRow:
    """Judge J's rating of candidate A's answer to question `number`, two questions a video."""
    given = {"judge": "J", "candidate": "A", "dimension": scored.PART, **changes}
    given["video"] = f"{given['dimension']}/{changes.get('video', f'v{number // 2}.mp4')}"
    return scored.row(number, rating, **given)


def rows(ratings: Given, **changes: Any) -> list[RatingRow]:
    """Rows of questions 0, 1, 2 ..., without those that are "absent"."""
    return [row(n, one, **changes) for n, one in enumerate(ratings) if one != "absent"]


def given(judge: str, by: ByCandidate, **changes: Any) -> list[RatingRow]:
    """A judge's rows."""
    return [
        one
        for candidate, ratings in by.items()
        for one in rows(ratings, judge=judge, candidate=candidate, **changes)
    ]


def study(judges: Mapping[str, ByCandidate], reference: ByCandidate, **changes: Any) -> Study:
    """Judge -> candidate -> ratings, and the reference's by candidate."""
    ours = [one for judge, own in judges.items() for one in given(judge, own, **changes)]
    return study_of(ours, given("debate", reference, round="reference", **changes))


def of(made: Study, judge: str = "J") -> RatingPairs:
    """What a judge gave in the first round."""
    return made.raters[Rater(judge, "first")]


def drawn(seed: int) -> Study:
    """Judge J right half of the time; some failures, gaps and halves, also of the reference."""
    rng = random.Random(seed)
    judged, compared = [], []
    for dimension, number, name in itertools.product(list(DIMENSIONS)[:3], range(15), "abc"):
        place = {"dimension": dimension, "video": f"v{number % 6}.mp4", "candidate": name}
        truth = rng.choice([1, 2, 3, 4, 5, 2.5])
        rating = truth if rng.random() < 0.5 else rng.choice([1, 2, 3, 4, 5, 4.5, None])
        if rng.random() < 0.9:
            compared.append(row(number, truth, judge="debate", round="reference", **place))
        if rng.random() < 0.9:
            judged.append(row(number, rating, **place))
    return study_of(judged, compared)


# --- a study to compute by hand: two judges, two candidates, four questions, two videos -----------

# Judge J is one too high on A and right on B; K always says 4. Quadratic kappa from sums:
# (E - n D) / E with E = n (sum a^2 + b^2) - 2 (sum a) (sum b), D the sum of (a - b)^2.
REFERENCE: ByCandidate = {"A": [1, 2, 3, 4], "B": [1, 1, 5, 5]}
LENIENT: ByCandidate = {"A": [2, 3, 4, 5], "B": [1, 1, 5, 5]}
FOURS: ByCandidate = {"A": [4, 4, 4, 4], "B": [4, 4, 4, 4]}

# J: on A D = 4, E = 4 x 84 - 2 x 14 x 10 = 56; on B 1.
KAPPA_A = 40 / 56
KAPPA = (KAPPA_A + 1) / 2


def judged() -> list[RatingRow]:
    """J and K, alone."""
    return [*given("J", LENIENT), *given("K", FOURS)]


def referred() -> list[RatingRow]:
    """The debate's."""
    return given("debate", REFERENCE, round="reference")
