"""Two raters' kappas on the same answers, judges among each other, leniency."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons
from lmms_eval_tasks.cvrr_es.study.study import Study
from tests.cvrr_es.study.study_rows import KAPPA_A, PARTIAL, judged, of, referred, study


class TestDifferences:
    def test_only_shared_answers_count(self) -> None:
        made = Study.of(judged(), referred())
        one, other = of(made, "J"), of(made, "K")
        part = {item: rating for item, rating in one.items() if item.candidate == "A"}
        for pair, value in (((part, other), KAPPA_A), ((other, part), -KAPPA_A)):
            found = comparisons.difference(made, *pair, resamples=0)
            assert (found["value"], found["n"]) == (pytest.approx(value), 4)
        assert len(comparisons.shared(made, part, other).items) == 4
        # The same ratings differ by exactly 0 in every resample: the interval is paired.
        same = comparisons.difference(made, one, dict(one))
        assert same["value"] == same["interval"]["low"] == same["interval"]["high"] == 0
        assert comparisons.difference(made, {}, other)["reason"] == "no item both rated"
        made = Study.of(judged(), [])
        nothing = comparisons.difference(made, of(made, "J"), of(made, "K"))
        assert nothing["reason"] == "no item has a reference rating: there is none yet"
        bare = [[replace(one, video="") for one in own] for own in (judged(), referred())]
        made = Study.of(*bare)
        unknown = comparisons.difference(made, *made.raters.values())
        assert unknown["no_interval"] == "the video of 8 of 8 items is not known"


class TestEachOther:
    def test_pairwise_by_hand(self) -> None:
        """J 1, 3, 4 and L 4, 2, 1: 1 - 3 * 19 / (3 * 47 - 2 * 8 * 7)."""
        given = {"J": {"A": [1, 2, 3, 4]}, "K": {"A": [2, 3, 4, 5]}, "L": {"A": [4, None, 2, 1]}}
        for reference in ({"A": [3]}, {}):  # none is no reason not to compare judges
            made = study(given, reference)
            found = comparisons.pairwise(made, {judge: of(made, judge) for judge in "JKL"})
            assert list(found) == [("J", "K"), ("J", "L"), ("K", "L")]
            assert found["J", "K"]["kappa"] == 5 / 7
            assert found["J", "L"]["kappa"] == pytest.approx(1 - 57 / 29)
            assert (found["J", "L"]["n"], found["J", "L"]["missing"]) == (3, 1)

    def test_alpha_by_hand(self) -> None:
        """Items (1, 1), (5, 5), (1, 2): 1 - 5 * 2 / 234 by squared differences."""
        made = study({"J": {"A": [1, 5, 1, 3, 4.5]}, "K": {"A": [1, 5, 2, None, 4]}}, {"A": [1]})
        found = comparisons.alpha(made, [of(made, "J"), of(made, "K")])
        assert found.value == pytest.approx(224 / 234, abs=1e-15)
        assert (found.n, found.missing, found.off_scale) == (3, 1, 1)
        alone = comparisons.alpha(made, [of(made)])
        assert (alone.value, alone.reason) == (None, "alpha needs two judges")


class TestLeniency:
    def test_by_hand(self) -> None:
        """Differences 2, 0 on a video, 2 on another, 3: se^2 = 1.5 * (36 + 1 + 25) / 16 / 16."""
        made = study({"J": {"A": [4, 5, 3, None, 4]}}, {"A": [2, 5, 1, 1, 1]})
        found = comparisons.leniency(made, of(made), made.items)
        assert (found["value"], found["n"], found["reason"]) == (7 / 4, 4, "")
        se = (1.5 * 62) ** 0.5 / 16
        assert found["interval"]["se"] == pytest.approx(se)
        assert found["interval"]["high"] - 7 / 4 == pytest.approx(4.3027 * se, abs=1e-3)  # t(2)
        for judge, reference, value in (
            ([4.5, 1], [4, 1], 0.25),
            ([1, 2], [3, 3], -1.5),
            ([3, 3, 5, 5], [3, 3, None, None], 0),  # means over different items would say +1
        ):
            made = study({"J": {"A": judge}}, {"A": reference})
            assert comparisons.leniency(made, of(made), made.items)["value"] == value
        made = study({"J": {"A": [4, 4], "B": [1, 2]}}, {"A": [3, 3], "B": [3, 3]})
        split = comparisons.leniencies(made, of(made))
        assert split["overall"]["value"] == split["by_dimension"][PARTIAL]["value"] == -0.25
        assert [one["value"] for one in split["by_candidate"].values()] == [1, -1.5]
