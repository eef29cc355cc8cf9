"""Orders: replies against the table of cases, correlations by hand and by enumeration."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from functools import cache
from statistics import fmean
from typing import Any

import pytest
from haven_replies import DRAWS, cases, check_chance, check_size, slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import rankings
from lmms_eval_tasks.utils.rankings import Correlation, read_order
from tests.checks import refused, table

CASES = cases("haven_orders.json")
TIES = [1.5, 1.5, 3.0, 5.0, 5.0, 5.0]


def close(value: float) -> Any:
    return pytest.approx(value, abs=1e-12)


def numbers(found: Correlation) -> tuple[float, float]:
    assert found.spearman is not None
    assert found.kendall is not None
    return found.spearman, found.kendall


# --- replies ----------------------------------------------------------------------------------


@table("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    found = read_order(case["text"], case["n"], case["unit"])
    assert (list(found.units), found.status) == (case["units"], case["status"])
    assert found.violations == case["violations"]
    # The table keeps the rules.
    violations = Counter(case["violations"])
    assert (case["status"] == "ok") == (len(case["units"]) == case["n"])
    assert not case["units"] or violations["missing"] == case["n"] - len(case["units"])


def test_the_table_is_as_large_as_required() -> None:
    check_size(CASES, ok=30, unparsed=20)


def test_what_a_table_cannot_say() -> None:
    found = read_order(f"Shot {'9' * 5000} > Shot 2 > Shot {'0' * 5000}1", 2, "Shot")
    assert found.units == (2, 1)
    assert found.violations == {"unknown": 1, "other_form": 1}
    assert read_order("Shot 1", 1, "Shot").status == "unparsed"
    refused(ValueError, "0 units", read_order, "Shot 1", 0, "Shot")


PIECES = ["Shot 1 > ", "1 > ", "9", "(", "> \n", "\n>", "Shot 1 > Shot 2\n", "Shot 1, ", "not "]
PIECES += ["1. Shot 2\n", "Shot 1 (", "least last to ", ":", "[", " "]


def test_long_replies_are_read_in_time() -> None:
    assert slow(lambda text: read_order(text, 30, "Shot"), PIECES) == []


SIGNS = st.sampled_from([" > ", ">", " →\n", " -> ", "\n> "])


@given(st.permutations(range(1, 9)), SIGNS, st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_every_order_is_read_as_it_was_written(order: list[int], sign: str, text: str) -> None:
    found = read_order(sign.join(f"Sentence {unit}" for unit in order), 8, "Sentence")
    assert (list(found.units), found.status) == (order, "ok")
    assert set(read_order(text, 5, "Shot").units) <= set(range(1, 6))  # no text raises


# --- ranks ------------------------------------------------------------------------------------


def test_predicted_ranks() -> None:
    assert rankings.predicted_ranks([3, 1, 2], 3) == [2, 3, 1]
    assert rankings.predicted_ranks([3, 1], 5) == [2, 4, 1, 4, 4]  # places 3, 4, 5 shared
    assert rankings.predicted_ranks([], 3) == [2, 2, 2]
    for size in range(5):
        assert sum(rankings.predicted_ranks(list(range(1, size + 1)), 4)) == 10
    for wrong in ([1, 1], [0, 1], [4]):
        refused(ValueError, "no order of distinct numbers", rankings.predicted_ranks, wrong, 3)


def test_the_most_important_is_first() -> None:
    ranks = rankings.importance_ranks([0.1, 0.9, 0.5])
    assert ranks == [3, 1, 2]
    assert rankings.importance_ranks([0.5, 0.9, 0.5, 0.1]) == [2.5, 1, 2.5, 4]
    assert numbers(rankings.correlations(rankings.predicted_ranks([2, 3, 1], 3), ranks)) == (1, 1)
    worst = rankings.correlations(rankings.predicted_ranks([1, 3, 2], 3), ranks)
    assert numbers(worst) == (close(-1), close(-1))
    mean = sum([0.1, 0.2, 0.3]) / 3  # rounding unties nothing
    assert mean != 0.2
    assert rankings.importance_ranks([mean, 0.2, 0.3]) == [2.5, 2.5, 1]
    assert rankings.importance_ranks([0.20001, 0.2]) == [1, 2]
    assert rankings.importance_ranks([2e-30, 1e-30, 0.0]) == [1, 2, 3]
    for wrong in (math.nan, math.inf):
        refused(ValueError, "not finite", rankings.importance_ranks, [0.1, wrong])


# --- correlations -----------------------------------------------------------------------------


def test_known_correlations() -> None:
    # d^2 = 1 + 1 + 0 + 0: rho = 1 - 6 * 2 / (4 * 15); one of six pairs is turned round.
    found = rankings.correlations([2, 1, 3, 4], [1, 2, 3, 4])
    assert numbers(found) == (close(0.8), close(4 / 6)) == numbers(rankings.identity([2, 1, 3, 4]))
    # tau-b with one tied pair of six: 5 / sqrt(6 * 5).
    tied = rankings.correlations([1, 2, 3, 4], [1, 2, 3.5, 3.5])
    assert numbers(tied)[1] == close(5 / math.sqrt(30))
    assert numbers(rankings.correlations([2, 1], [1, 2])) == (close(-1), close(-1))
    assert numbers(rankings.identity([1, 2, 3])) == (close(1), close(1))
    # What is left out of a reply shares the last places.
    ranks = rankings.predicted_ranks(read_order("Shot 1 > Shot 2", 4, "Shot").units, 4)
    assert ranks == [1, 2, 3.5, 3.5]
    assert numbers(rankings.correlations(ranks, [1, 2, 3, 4]))[1] == close(5 / math.sqrt(30))


def test_what_is_undefined_has_a_reason() -> None:
    few = "fewer than two units to order"
    assert rankings.correlations([1], [1]) == Correlation(None, None, few)
    assert rankings.correlations([1, 2], [1.5, 1.5]).reason == "all true ranks are equal"
    assert rankings.correlations([1.5, 1.5], [1, 2]).reason == "all predicted ranks are equal"
    for of in (rankings.best_reachable, rankings.identity, rankings.chance):
        assert of([2, 2, 2]) == Correlation(None, None, "all true ranks are equal")
    assert rankings.chance([]).reason == few
    words = "2 predicted ranks, 3 true"
    refused(ValueError, words, rankings.correlations, [1, 2], [1, 2, 3])


@table("truth", [[1.0, 2.0], [1.5, 1.5, 3.0], [2.0, 3.0, 1.0], [4.0, 1.0, 2.5, 2.5, 5.0]])
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


@table("truth", [[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], TIES])
def test_a_random_model_is_at_chance(truth: list[float]) -> None:
    rng, n = random.Random(20), len(truth)

    @cache  # of 720 orders each is scored once: the scorer is pure, scipy slow
    def scored(order: tuple[int, ...]) -> tuple[float, float]:
        return numbers(rankings.correlations(rankings.predicted_ranks(order, n), truth))

    found = [scored(tuple(rng.sample(range(1, n + 1), n))) for _ in range(DRAWS)]
    check_chance(found, numbers(rankings.chance(truth)))
