"""Means of ratings: whose failure is a zero, whose is left out, and what a variance is."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from lmms_eval_tasks.benchmark import rating_metrics
from lmms_eval_tasks.utils.metrics import rating_means

OWN = ("empty", "refused", "truncated", "no_claims")
OTHERS = ("judge_api_error", "judge_parse_failure", "judge_skipped", "model_error", "error")


def item(score: float | None = None, status: str = "ok", video: str = "v") -> dict[str, Any]:
    rated = {"d": {"score": score, "status": status}}
    return {"id": f"{video} {score}", "status": status, "video": video, "dimensions": rated}


def numbers(items: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Mean, variance, how many failed, and the share that was rated."""
    rated = partial(rating_means.ratings, "d")
    mean, failed, coverage = (one.compute(items) for one in rating_metrics("d", rated))
    return mean, rating_means.variance(rating_means.values(rated(items))), failed, coverage


def value(item: dict[str, Any]) -> float | None:
    return rating_means.value(rating_means.rating("d", item))


def test_whose_failure_is_a_zero() -> None:
    for status in OWN:
        assert value(item(None, status)) == 0
        assert numbers([item(4), item(None, status)]) == (2, 4, 0, 1)
    for status in OTHERS:
        failed = item(0, status)  # a score beside it does not count
        assert value(failed) is None
        assert numbers([item(4), failed, item(1)]) == (2.5, 2.25, 1, 2 / 3)
    assert value(item(None)) is None  # an ok without a score is no zero
    assert numbers([item(0, "empty"), item(0, "refused")]) == (0, 0, 0, 1)
    for status, worth in (("error", None), ("empty", 0)):  # an item without the rating
        assert value({"status": status, "dimensions": {}}) == worth
    assert rating_means.variance([0, 5]) == 6.25  # the population's: n - 1 would give 12.5
    with pytest.raises(KeyError):  # bad items are not passed over
        numbers([{"id": "x"}])


def test_a_run_that_waits_for_its_judge_has_no_number() -> None:
    """Zeros for empty answers alone would be none; what is left out is all of it."""
    items = [item(None, "unjudged"), item(0, "empty"), item(None, "unjudged")]
    assert rating_means.units("d", items) == {}
    assert numbers(items) == (None, None, 3, 0)
    judged = [item(None, "unjudged"), item(0, "empty"), item(3)]  # one judged answer is enough
    assert numbers(judged) == (1.5, 2.25, 1, 2 / 3)
    assert numbers([]) == (None, None, 0, None)
    assert rating_means.units("d", []) == {}


def test_it_is_a_mean_of_rated_items_with_their_videos() -> None:
    items = [item(5, video="a"), item(2, video="b"), item(0, "judge_refused")]
    assert [*rating_means.units("d", items).values()] == [("a", 5), ("b", 2)]
