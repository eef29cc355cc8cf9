"""Two raters' kappas on the same answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons
from lmms_eval_tasks.cvrr_es.study.study import Rater, Study
from tests.cvrr_es.study.hand_made import KAPPA, KAPPA_A, judged, referred
from tests.cvrr_es.study.study_rows import TIME, rows


def made_study() -> Study:
    return Study.of(judged(), referred())


def test_only_shared_answers_count() -> None:
    made = made_study()
    one, other = made.raters[Rater("J", "first")], made.raters[Rater("K", "first")]
    part = {item: rating for item, rating in one.items() if item.candidate == "A"}
    found = comparisons.difference(made, part, other, resamples=0)
    assert (found.value, found.n) == (pytest.approx(KAPPA_A), 4)
    assert found.no_interval == "no interval was asked for"
    assert len(comparisons.shared(made, part, other).items) == 4
    turned = comparisons.difference(made, other, part, resamples=0)
    assert (turned.value, turned.n) == (pytest.approx(-KAPPA_A), 4)


def test_interval_is_paired() -> None:
    """The same ratings differ by exactly 0 in every resample."""
    made = made_study()
    own = made.raters[Rater("J", "first")]
    found = comparisons.difference(made, own, dict(own))
    assert found.value == 0
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (0, 0)


def test_no_interval_without_videos() -> None:
    made = Study.of([replace(row, video="") for row in judged()],
                    [replace(row, video="") for row in referred()])  # fmt: skip
    one, other = made.raters.values()
    found = comparisons.difference(made, one, other)
    assert found.interval is None
    assert found.no_interval == "the video of 8 of 8 items is not known"


def test_nothing_to_compare() -> None:
    made = Study.of(judged(), [])
    one, other = made.raters.values()
    found = comparisons.difference(made, one, other)
    assert found.value is None
    assert found.reason == "no item has a reference rating: there is none yet"
    nobody = comparisons.difference(made_study(), {}, other)
    assert nobody.reason == "no item both rated"


def test_dimensions_count_alike() -> None:
    """(KAPPA_A + 1) / 2 in one dimension, 1 in the other, whatever their sizes."""
    more = [*judged(), *rows([1, 5, 1], judge="J", dimension=TIME)]
    more += rows([3, 3, 3], judge="K", dimension=TIME)
    truth = [
        *referred(),
        *rows([1, 5, 1], judge="debate", round="reference", dimension=TIME),
    ]
    made = Study.of(more, truth)
    one, other = made.raters[Rater("J", "first")], made.raters[Rater("K", "first")]
    assert comparisons.difference(made, one, other).value == pytest.approx((KAPPA + 1) / 2)
