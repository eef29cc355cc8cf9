"""Agreement with published scores: hand-computed cases, SciPy's numbers, and what is left out."""

from __future__ import annotations

import dataclasses
import random
import statistics
from collections.abc import Sequence

import pytest

from lmms_eval_tasks.runs.agreement.order import order
from lmms_eval_tasks.utils.score_agreement import (
    Pair,
    absolute_difference,
    by_question,
    mean_row,
    row,
    rows,
    spearman,
    weighted_kappa,
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


def drawn(seed: int) -> list[tuple[float, float]]:
    rng = random.Random(seed)
    used = rng.sample(range(6), rng.randint(1, 6))
    return [
        (float(rng.choice(used)), float(rng.choice(used))) for _ in range(rng.choice([2, 5, 40]))
    ]


class TestCoefficients:
    """One set of answers."""

    def test_rho_is_scipys_also_with_ties(self) -> None:
        from scipy.stats import spearmanr

        undefined = 0
        for seed in range(200):
            both = drawn(seed)
            ours = spearman(both)
            sides = list(zip(*both, strict=True))
            if min(len(set(side)) for side in sides) == 1:
                undefined += 1
                assert ours is None
            else:
                assert ours == pytest.approx(spearmanr(*sides).statistic, abs=1e-12)
        assert 0 < undefined < 100
        assert spearman([]) is None

    def test_kappa_is_over_the_whole_scale(self) -> None:
        """metrics.md, with 0 to 5 in place of 1 to 5: a used scale of 1, 4, 5 would give 0.8."""
        both = list(zip([1, 4, 5, 4, 5, 4, 1], [1, 1, 5, 5, 5, 4, 1], strict=True))
        found = weighted_kappa(both, SCALE)
        assert found is not None
        assert round(found, 3) == 0.768
        assert weighted_kappa([(3.5, 4.0), (1.0, 1.0)], SCALE) is None

    def test_a_row_by_hand(self) -> None:
        found = row(pairs([0, 5, 3, None, 4], [0, 4, 3, 2, None]), SCALE, 50)
        assert (found.n, found.missing) == (3, 1)
        assert (found.ours, found.published) == (pytest.approx(8 / 3), pytest.approx(7 / 3))
        assert found.absolute == pytest.approx(1 / 3)
        assert found.rho == pytest.approx(1)
        # Observed 1 in 3; by chance (16 + 9) + (25 + 1 + 4) + (9 + 1) in 9 pairs.
        assert found.kappa == pytest.approx(1 - 3 / 65)
        assert found.intervals["absolute"].clusters == 3

    def test_nothing_to_compare_is_no_number(self) -> None:
        found = row(pairs([None, 3], [2, None]), SCALE)
        assert (found.n, found.missing, found.intervals) == (0, 1, {})
        assert found.kappa is found.rho is found.absolute is found.ours is found.published is None
        assert absolute_difference([]) is None

    def test_the_order_of_the_answers_does_not_matter(self) -> None:
        given = [
            Pair("m", f"q{n}", f"v{n % 4}", ours, published)
            for n, (ours, published) in enumerate(drawn(11) * 3)
        ]
        mixed = random.Random(2).sample(given, len(given))
        assert row(mixed, SCALE, 50) == row(given, SCALE, 50)

    def test_intervals_are_drawn_by_video(self) -> None:
        one = row(pairs([1, 2, 3], [1, 3, 3], clusters=["v"] * 3), SCALE, 50).as_dict()
        assert one["intervals"]["kappa"]["low"] is None
        # Two videos, one of which agrees throughout: a resample is all the one, the other, or both.
        two = row(pairs([1, 2, 3, 4], [1, 2, 5, 2], clusters=["a", "a", "b", "b"]), SCALE, 200)
        assert (two.intervals["absolute"].low, two.intervals["absolute"].high) == (0, 2)


class TestRows:
    """Which rows there are."""

    def test_models_groups_all_and_people(self) -> None:
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

    def test_a_mean_needs_all_its_models(self) -> None:
        known = row(pairs([1, 2], [1, 3]), SCALE, 20)
        unknown = dataclasses.replace(known, kappa=None, ours=4.5)
        mean = mean_row([known, unknown])
        assert (mean.kappa, mean.rho, mean.ours) == (None, known.rho, 3.0)

    def test_average_and_best_of_each_question(self) -> None:
        """5.3: averaged, or the maximum, across participants; ours and theirs each by itself."""
        given = [
            Pair("people", "q", "v", 5, 2),
            Pair("people", "q", "v", 2, 4),
            Pair("people", "q", "v", None, 5),  # the judge failed
            Pair("people", "r", "w", 1, 1),
        ]
        assert by_question(given, max) == [
            Pair("people", "q", "v", 5, 4),
            Pair("people", "r", "w", 1, 1),
        ]
        assert by_question(given, statistics.fmean)[0] == Pair("people", "q", "v", 3.5, 3.0)
        found = rows(given, [], "people", {}, scale=SCALE, resamples=20)
        assert list(found) == [
            "people",
            "people, average of each question",
            "people, best of each question",
        ]
        assert [one.n for one in found.values()] == [3, 2, 2]


class TestOrder:
    """The order of the models."""

    def test_only_questions_that_all_models_have_scores_for(self) -> None:
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
        # Without b in the comparison q2 is judged, and counts.
        two = order(given, ["a", "b", "c"], ["a", "c"], resamples=50)
        assert (two.complete, two.judged, two.means["c"]) == (3, 3, (7 / 3, 7 / 3))

    def test_a_pair_that_is_tied_once_is_in_no_order(self) -> None:
        given = [
            *pairs([4, 4], [4, 4], "a"),
            *pairs([3, 5], [3, 3], "b"),
            *pairs([1, 1], [5, 5], "c"),
        ]
        found = order(given, ["a", "b", "c"], ["a", "b", "c"], resamples=50)
        assert (found.same, found.tied, found.pairs) == (0, 1, 3)

    def test_tau_is_scipys(self) -> None:
        from scipy.stats import kendalltau

        for seed in range(50):
            rng = random.Random(seed)
            names = [f"m{n}" for n in range(rng.randint(2, 7))]
            columns = {
                name: ([rng.randint(0, 3) for _ in range(3)], [rng.randint(0, 3) for _ in range(3)])
                for name in names
            }
            given = [one for name, (a, b) in columns.items() for one in pairs(a, b, name)]
            found = order(given, names, names, resamples=1)
            sums = [(sum(a), sum(b)) for a, b in columns.values()]
            expected = kendalltau(*zip(*sums, strict=True)).statistic
            assert found.tau == (pytest.approx(expected) if expected == expected else None)

    def test_no_models_no_order(self) -> None:
        given = pairs([1, 2], [1, 2], "a")
        for chosen in ([], ["a"]):
            found = order(given, ["a"], chosen)
            assert (found.complete, found.tau, found.interval) == (2, None, None)
