"""A study small enough to compute by hand: two judges, two candidates, four questions, two videos.

Reference A: 1 2 3 4, B: 1 1 5 5. Judge J is one too high on A and right on B; K always says 4.
Quadratic kappa from sums: (E - n D) / E with E = n (sum a^2 + b^2) - 2 (sum a) (sum b), D the sum
of (a - b)^2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from tests.cvrr_es.study.study_rows import Given, rows

REFERENCE: Mapping[str, Given] = {"A": [1, 2, 3, 4], "B": [1, 1, 5, 5]}
LENIENT: Mapping[str, Given] = {"A": [2, 3, 4, 5], "B": [1, 1, 5, 5]}
FOURS: Mapping[str, Given] = {"A": [4, 4, 4, 4], "B": [4, 4, 4, 4]}

# J: on A D = 4, E = 4 x 84 - 2 x 14 x 10 = 56; on B 1.
KAPPA_A = 40 / 56
KAPPA = (KAPPA_A + 1) / 2
# D = 4, E = 8 x (106 + 82) - 2 x 26 x 22 = 360.
POOLED = 328 / 360
# Mean of J and K, halves down: A 3 3 4 4 (E = 40, D = 6), B 2 2 4 4 (E = 80, D = 4).
MEAN_PANEL = (0.4 + 0.8) / 2


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
