"""Small studies from lists of ratings."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

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
