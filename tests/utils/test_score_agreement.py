"""Agreement with published scores: hand-computed cases, SciPy's numbers, and what is left out."""

from __future__ import annotations

import dataclasses
import random
import statistics
from collections.abc import Sequence

import pytest
from scipy.stats import kendalltau, spearmanr

from lmms_eval_tasks.runs.agreement.order import order
from lmms_eval_tasks.utils.metrics.score_agreement import (
    Pair,
    by_question,
    mean_row,
    row,
    rows,
    spearman,
)

SCALE = range(6)
Numbers = Sequence[float | None]


def pairs(
    ours: Numbers, published: Numbers, rater: str = "m", clusters: Sequence[str] = ()
) -> list[Pair]:
    """One question after the other."""
    return [
        Pair(rater, f"q{n}", clusters[n] if clusters else f"v{n}", a, b)
        for n, (a, b) in enumerate(zip(ours, published, strict=True))
    ]


# --- one set of answers -----------------------------------------------------------------------


def test_rho_is_scipys_also_with_ties() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        both = [(rng.choice(range(6)), rng.choice(range(6))) for _ in range(rng.choice([9, 40]))]
        expected = spearmanr(*zip(*both, strict=True)).statistic
        assert spearman(both) == pytest.approx(expected, abs=1e-12)
    assert spearman([(3, 1), (3, 2)]) is None


def test_a_row_by_hand() -> None:
    given = pairs([0, 5, 3, None, 4], [0, 4, 3, 2, None])
    found = row(given, SCALE, 50)
    assert (found.n, found.missing) == (3, 1)
    assert (found.ours, found.published) == (pytest.approx(8 / 3), pytest.approx(7 / 3))
    assert found.absolute == pytest.approx(1 / 3)
    assert found.rho == pytest.approx(1)
    # Observed 1 in 3; by chance (16 + 9) + (25 + 1 + 4) + (9 + 1) in 9 pairs.
    assert found.kappa == pytest.approx(1 - 3 / 65)
    assert found.intervals["absolute"].clusters == 3
    assert row(given[::-1], SCALE, 50) == found
    found = row(pairs([None, 3], [2, None]), SCALE)
    assert (found.n, found.missing, found.intervals) == (0, 1, {})
    assert found.kappa is found.rho is found.absolute is found.ours is found.published is None


def test_intervals_are_drawn_by_video() -> None:
    one = row(pairs([1, 2, 3], [1, 3, 3], clusters=["v"] * 3), SCALE, 50).as_dict()
    assert one["intervals"]["kappa"]["low"] is None
    # Two videos, one of which agrees throughout: a resample is all the one, the other, or both.
    two = row(pairs([1, 2, 3, 4], [1, 2, 5, 2], clusters=["a", "a", "b", "b"]), SCALE, 200)
    assert (two.intervals["absolute"].low, two.intervals["absolute"].high) == (0, 2)


# --- which rows there are ---------------------------------------------------------------------


def test_models_groups_all_and_people() -> None:
    given = [
        *pairs([5, 4, 1], [5, 5, 1], "a"),
        *pairs([2, 2, 0], [2, 3, 3], "b"),
        *pairs([1, 5, 3], [2, 4, 4], "people"),
    ]
    groups = {"both": ["a", "b"], "other": ["c"]}
    found = rows(given, ["a", "b"], "people", groups, scale=SCALE, resamples=20)
    assert list(found) == ["a", "b", "both, mean of 2", "all models", "people"]
    mean = found["both, mean of 2"]
    assert mean.absolute == pytest.approx((1 / 3 + 4 / 3) / 2)
    assert mean.n == found["all models"].n == 6
    assert found["people"].absolute == 1
    known = found["a"]  # a mean needs all its models
    mean = mean_row([known, dataclasses.replace(known, kappa=None)])
    assert (mean.kappa, mean.rho) == (None, known.rho)


def test_average_and_best_of_each_question() -> None:
    """5.3: averaged, or the maximum, across participants; ours and theirs each by itself."""
    given = [
        Pair("people", "q", "v", 5, 2),
        Pair("people", "q", "v", 2, 4),
        Pair("people", "q", "v", None, 5),  # the judge failed
        Pair("people", "r", "w", 1, 1),
    ]
    other = Pair("people", "r", "w", 1, 1)
    assert by_question(given, max) == [Pair("people", "q", "v", 5, 4), other]
    assert by_question(given, statistics.fmean)[0] == Pair("people", "q", "v", 3.5, 3.0)
    found = rows(given, [], "people", {}, scale=SCALE, resamples=20)
    ways = ("average", "best")
    assert list(found) == ["people", *(f"people, {way} of each question" for way in ways)]
    assert [one.n for one in found.values()] == [3, 2, 2]


# --- the order of the models ------------------------------------------------------------------


def test_only_questions_that_all_models_have_scores_for() -> None:
    given = [
        *pairs([5, 4, 3, 0], [5, 5, 1, 1], "a"),
        *pairs([4, 4, None, 5], [3, 5, 4, 5], "b"),
        *pairs([1, 1, 5, 5], [1, 4, 2, None], "c"),
        *pairs([5, 5, 5, 5], [5, 5, 5, 5], "people"),
    ]
    found = order(given, ["a", "b", "c"], ["a", "b", "c"], resamples=50)
    # q3 has no published score of c, q2 none of ours for b.
    assert (found.complete, found.judged) == (3, 2)
    assert found.means == {"a": (4.5, 5.0), "b": (4.0, 4.0), "c": (1.0, 2.5)}
    assert (found.same, found.tied, found.pairs, found.tau) == (3, 0, 3, 1.0)
    none = order(given, ["a"], ["a"])
    assert (none.complete, none.tau, none.interval) == (4, None, None)


def test_tau_is_scipys_and_a_pair_that_is_tied_once_is_in_no_order() -> None:
    given = [
        *pairs([4, 4], [4, 4], "a"),
        *pairs([3, 5], [3, 3], "b"),
        *pairs([1, 1], [5, 5], "c"),
    ]
    found = order(given, ["a", "b", "c"], ["a", "b", "c"], resamples=50)
    assert (found.same, found.tied, found.pairs) == (0, 1, 3)
    for seed in range(50):
        rng = random.Random(seed)
        columns = {
            f"m{n}": ([rng.randint(0, 3) for _ in range(3)], [rng.randint(0, 3) for _ in range(3)])
            for n in range(rng.randint(2, 7))
        }
        given = [one for name, (a, b) in columns.items() for one in pairs(a, b, name)]
        found = order(given, list(columns), list(columns), resamples=1)
        sums = [(sum(a), sum(b)) for a, b in columns.values()]
        expected = kendalltau(*zip(*sums, strict=True)).statistic
        assert found.tau == (pytest.approx(expected) if expected == expected else None)
