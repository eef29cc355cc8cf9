"""Orders: replies against the table of cases, correlations against scipy and by enumeration."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any

import pytest
from haven_replies import slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import rankings
from lmms_eval_tasks.utils.rankings import Correlation

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "haven_orders.json").read_text(encoding="utf-8")
)
DRAWS = 10_000
BOUND = 4.0  # standard errors, two-sided: 6 in 100,000 by chance, and the seed is fixed
TIES = [1.5, 1.5, 3.0, 5.0, 5.0, 5.0]


def close(value: float) -> Any:
    return pytest.approx(value, abs=1e-12)


def numbers(found: Correlation) -> tuple[float, float]:
    assert found.spearman is not None
    assert found.kendall is not None
    return found.spearman, found.kendall


# --- replies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    found = rankings.read_order(case["text"], case["n"], case["unit"])
    assert (list(found.units), found.status) == (case["units"], case["status"])
    assert found.violations == case["violations"]


def test_the_table_is_as_large_as_required() -> None:
    statuses = Counter(case["status"] for case in CASES)
    assert len({(case["text"], case["unit"]) for case in CASES}) == len(CASES) >= 40
    assert statuses["ok"] >= 30
    assert statuses["unparsed"] >= 20
    assert {"empty", "truncated", "refused", "model_error"} <= statuses.keys()


def test_the_table_keeps_the_rules() -> None:
    for case in CASES:
        found = Counter(case["violations"])
        assert (case["status"] == "ok") == (len(case["units"]) == case["n"]), case["id"]
        if case["units"]:
            assert found["missing"] == case["n"] - len(case["units"]), case["id"]


def test_numbers_of_thousands_of_digits() -> None:
    huge = "9" * 5000
    found = rankings.read_order(f"Shot {huge} > Shot 2 > Shot {'0' * 5000}1", 2, "Shot")
    assert found.units == (2, 1)
    assert found.violations == {"unknown": 1, "other_form": 1}


def test_an_order_of_one_or_none() -> None:
    assert rankings.read_order("Shot 1", 1, "Shot").status == "unparsed"
    with pytest.raises(ValueError, match="0 units"):
        rankings.read_order("Shot 1", 0, "Shot")


def test_long_replies_are_read_in_time() -> None:
    pieces = (
        *(
            "Shot 1 > ",
            "1 > ",
            "9",
            "(",
            "> \n",
            "\n>",
            "Shot 1 > Shot 2\n",
            "Shot 1, ",
            "1. Shot 2\n",
        ),
        *("Shot 1 (", "least last to ", ":", "[", " ", "not "),
    )
    assert slow(lambda text: rankings.read_order(text, 30, "Shot"), pieces) == []


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_raises(text: str) -> None:
    found = rankings.read_order(text, 5, "Shot")
    assert set(found.units) <= set(range(1, 6))


@given(st.permutations(range(1, 9)), st.sampled_from([" > ", ">", " →\n", " -> ", "\n> "]))
@settings(max_examples=100, deadline=None)
def test_every_order_is_read_as_it_was_written(order: list[int], sign: str) -> None:
    text = sign.join(f"Sentence {unit}" for unit in order)
    found = rankings.read_order(text, 8, "Sentence")
    assert (list(found.units), found.status) == (order, "ok")


# --- ranks ------------------------------------------------------------------------------------


def test_predicted_ranks() -> None:
    assert rankings.predicted_ranks([3, 1, 2], 3) == [2, 3, 1]
    assert rankings.predicted_ranks([3, 1], 5) == [2, 4, 1, 4, 4]  # places 3, 4, 5 shared
    assert rankings.predicted_ranks([], 3) == [2, 2, 2]
    for wrong in ([1, 1], [0, 1], [4]):
        with pytest.raises(ValueError, match="no order of distinct numbers"):
            rankings.predicted_ranks(wrong, 3)


def test_ranks_add_up_whatever_is_missing() -> None:
    for size in range(5):
        assert sum(rankings.predicted_ranks(list(range(1, size + 1)), 4)) == 10


def test_the_most_important_is_first() -> None:
    assert rankings.importance_ranks([0.1, 0.9, 0.5]) == [3, 1, 2]
    assert rankings.importance_ranks([0.5, 0.9, 0.5, 0.1]) == [2.5, 1, 2.5, 4]
    ranks = rankings.importance_ranks([0.1, 0.9, 0.5])
    assert numbers(rankings.correlations(rankings.predicted_ranks([2, 3, 1], 3), ranks)) == (1, 1)
    worst = rankings.correlations(rankings.predicted_ranks([1, 3, 2], 3), ranks)
    assert numbers(worst) == (close(-1), close(-1))


def test_rounding_unties_nothing() -> None:
    mean = sum([0.1, 0.2, 0.3]) / 3
    assert mean != 0.2
    assert rankings.importance_ranks([mean, 0.2, 0.3]) == [2.5, 2.5, 1]
    assert rankings.importance_ranks([0.20001, 0.2]) == [1, 2]
    assert rankings.importance_ranks([2e-30, 1e-30, 0.0]) == [1, 2, 3]


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_importance_that_is_no_number(wrong: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        rankings.importance_ranks([0.1, wrong])


# --- correlations -----------------------------------------------------------------------------


def test_known_correlations() -> None:
    # d^2 = 1 + 1 + 0 + 0: rho = 1 - 6 * 2 / (4 * 15); one of six pairs is turned round.
    found = rankings.correlations([2, 1, 3, 4], [1, 2, 3, 4])
    assert numbers(found) == (close(0.8), close(4 / 6))
    # tau-b with one tied pair of six: 5 / sqrt(6 * 5).
    tied = rankings.correlations([1, 2, 3, 4], [1, 2, 3.5, 3.5])
    assert numbers(tied)[1] == close(5 / math.sqrt(30))


def test_what_is_undefined_has_a_reason() -> None:
    assert rankings.correlations([1], [1]) == Correlation(
        None, None, "fewer than two units to order"
    )
    assert rankings.correlations([1, 2], [1.5, 1.5]).reason == "all true ranks are equal"
    assert rankings.correlations([1.5, 1.5], [1, 2]).reason == "all predicted ranks are equal"
    for of in (rankings.best_reachable, rankings.identity, rankings.chance):
        assert of([2, 2, 2]).spearman is None
        assert of([2, 2, 2]).reason == "all true ranks are equal"
    assert rankings.chance([]).reason == "fewer than two units to order"
    with pytest.raises(ValueError, match="2 predicted ranks, 3 true"):
        rankings.correlations([1, 2], [1, 2, 3])


def test_two_units() -> None:
    assert numbers(rankings.correlations([2, 1], [1, 2])) == (close(-1), close(-1))


def test_identity_is_the_order_as_shown() -> None:
    assert numbers(rankings.identity([1, 2, 3])) == (close(1), close(1))
    assert numbers(rankings.identity([3, 2, 1])) == (close(-1), close(-1))
    assert numbers(rankings.identity([2, 1, 3, 4])) == (close(0.8), close(4 / 6))


TRUTHS = [
    [1.0, 2.0],
    [1.5, 1.5, 3.0],
    [2.0, 3.0, 1.0],
    [1.0, 2.5, 2.5, 4.0],
    [4.0, 1.0, 2.5, 2.5, 5.0],
    TIES,
    [6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
]


@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_closed_forms_over_all_orders(truth: list[float]) -> None:
    n = len(truth)
    found = [
        numbers(rankings.correlations(rankings.predicted_ranks(order, n), truth))
        for order in itertools.permutations(range(1, n + 1))
    ]
    best = numbers(rankings.best_reachable(truth))
    for side, column in enumerate(zip(*found, strict=True)):
        assert fmean(column) == close(0) == close(numbers(rankings.chance(truth))[side])
        assert max(column) == close(best[side])
    assert min(best) < 1 - 1e-9 or len(set(truth)) == n  # ties cannot be said in a strict order


@pytest.mark.parametrize("truth", [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], TIES], ids=str)
def test_a_random_model_is_at_chance(truth: list[float]) -> None:
    rng, n = random.Random(20), len(truth)

    @cache  # of 720 orders each is scored once: the scorer is pure, scipy slow
    def scored(order: tuple[int, ...]) -> tuple[float, float]:
        return numbers(rankings.correlations(rankings.predicted_ranks(order, n), truth))

    found = [scored(tuple(rng.sample(range(1, n + 1), n))) for _ in range(DRAWS)]
    expected = numbers(rankings.chance(truth))
    for column, mean in zip(zip(*found, strict=True), expected, strict=True):
        assert abs(fmean(column) - mean) < BOUND * math.sqrt(pvariance(column) / DRAWS)


def test_nothing_readable_is_worth_what_the_rules_say() -> None:
    truth = [1.0, 2.0, 3.0, 4.0]
    part = rankings.read_order("Shot 1 > Shot 2", 4, "Shot")
    ranks = rankings.predicted_ranks(part.units, 4)
    assert ranks == [1, 2, 3.5, 3.5]
    assert numbers(rankings.correlations(ranks, truth))[1] == close(5 / math.sqrt(30))
    none = rankings.read_order("Shot 1 > Shot 9", 4, "Shot")
    assert len(none.units) < 2
