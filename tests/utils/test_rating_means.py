"""Means of ratings: whose failure is a zero, whose is left out, and what a variance is."""

from __future__ import annotations

import itertools
import json
import statistics
from typing import Any

import pytest

from lmms_eval_tasks.utils import rating_means

OWN = ("empty", "refused", "truncated", "no_claims")
OTHERS = ("judge_api_error", "judge_parse_failure", "judge_skipped", "model_error", "error")


def item(score: float | None = None, status: str = "ok", video: str = "v") -> dict[str, Any]:
    return {
        "status": status,
        "video": video,
        "dimensions": {"d": {"score": score, "status": status}},
    }


@pytest.mark.parametrize("status", OWN)
def test_the_candidates_failures_are_zero(status: str) -> None:
    items = [item(4), item(None, status)]
    assert rating_means.value("d", items[1]) == 0
    assert rating_means.mean_valid("d", items) == 2
    assert rating_means.variance_valid("d", items) == 4
    assert rating_means.count_failed("d", items) == 0
    assert rating_means.coverage("d", items) == 1


@pytest.mark.parametrize("status", OTHERS)
def test_others_failures_are_left_out_and_counted(status: str) -> None:
    items = [item(4), item(0, status), item(1)]  # a score beside it does not count
    assert rating_means.value("d", items[1]) is None
    assert rating_means.mean_valid("d", items) == 2.5
    assert rating_means.variance_valid("d", items) == 2.25
    assert rating_means.count_failed("d", items) == 1
    assert rating_means.coverage("d", items) == 2 / 3


def test_an_ok_without_a_score_is_no_zero() -> None:
    assert rating_means.value("d", item(None)) is None


@pytest.mark.parametrize("dimensions", [{}, None, {"other": {"score": 5, "status": "ok"}}])
@pytest.mark.parametrize(("status", "value"), [("error", None), ("empty", 0.0), ("unjudged", None)])
def test_an_item_without_the_rating_has_its_own_status(
    dimensions: Any, status: str, value: float | None
) -> None:
    one = {"status": status, "dimensions": dimensions}
    assert rating_means.rating("d", one) == {"score": None, "status": status}
    assert rating_means.value("d", one) == value


def test_a_run_that_waits_for_its_judge_has_no_number() -> None:
    """Zeros for empty answers alone would be none; what is left out is all of it."""
    items = [item(None, "unjudged"), item(0, "empty"), item(None, "unjudged")]
    assert rating_means.is_unjudged("d", items)
    assert rating_means.values("d", items) == []
    assert rating_means.mean_valid("d", items) is None
    assert rating_means.variance_valid("d", items) is None
    assert rating_means.interval("d", items) is None
    assert rating_means.count_failed("d", items) == 3
    assert rating_means.coverage("d", items) == 0


def test_one_judged_answer_makes_it_a_judged_run() -> None:
    items = [item(None, "unjudged"), item(0, "empty"), item(3)]
    assert rating_means.mean_valid("d", items) == 1.5
    assert rating_means.count_failed("d", items) == 1


def test_failures_of_the_candidate_alone_are_a_number() -> None:
    items = [item(0, "empty"), item(0, "refused")]
    assert rating_means.mean_valid("d", items) == 0
    assert rating_means.coverage("d", items) == 1


def test_nothing() -> None:
    assert rating_means.mean_valid("d", []) is None
    assert rating_means.variance_valid("d", []) is None
    assert rating_means.coverage("d", []) is None
    assert rating_means.interval("d", []) is None
    assert rating_means.count_failed("d", []) == 0


@pytest.mark.parametrize("numbers", [[3.0], [0, 5], [1, 2, 4, 5, 5], [0.1, 0.2, 0.3]])
def test_the_variance_is_the_populations(numbers: list[float]) -> None:
    assert rating_means.variance(numbers) == pytest.approx(statistics.pvariance(numbers))


def test_the_variance_of_two() -> None:
    """0 and 5: 6.25, where n - 1 would give 12.5."""
    assert rating_means.variance([0, 5]) == 6.25
    assert rating_means.variance([]) is None


def test_no_bit_depends_on_the_order() -> None:
    numbers = [0.1, 1 / 3, 2.7, 4.9, 1e-9]
    items = [item(number, video=f"v{place % 2}") for place, number in enumerate(numbers)]
    found = {
        (
            rating_means.mean_valid("d", order),
            rating_means.variance_valid("d", order),
            json.dumps(interval.as_dict()),
        )
        for order in map(list, itertools.permutations(items))
        if (interval := rating_means.interval("d", order))
    }
    assert len(found) == 1


def test_the_interval_is_clustered_by_video() -> None:
    items = [item(5, video="a"), item(5, video="a"), item(2, video="b"), item(0, "judge_refused")]
    found = rating_means.interval("d", items)
    assert found is not None
    assert (found.estimate, found.n, found.clusters) == (4, 3, 2)
    assert found.low < 4 < found.high


def test_bad_items_are_not_passed_over() -> None:
    with pytest.raises(KeyError):
        rating_means.mean_valid("d", [{"id": "x"}])
