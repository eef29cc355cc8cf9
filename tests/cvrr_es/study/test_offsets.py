"""Taking off a judge's mean offset, fitted on other videos."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons, kappas, study
from lmms_eval_tasks.cvrr_es.study.study import Folds, Study
from tests.cvrr_es.study.study_rows import TIME, drawn, of, rows, study

HALVES = Folds({f"partial_actions/{n:03d}": n // 2 for n in range(4)}, 2)


def corrected(judge, reference, split=HALVES):
    made = study({"J": {"A": judge}}, {"A": reference})
    found = comparisons.take_off(made, of(made), split)
    return list(found.ratings.values()), found


def test_by_hand():
    """Differences 1, 1 | 2, 1: the first half loses 1.5 (0.5 to 1, 1.5 to 2), the second 1."""
    ratings, found = corrected([2, 3, 5, 5], [1, 2, 3, 4])
    assert found.offsets == (1.5, 1.0)
    assert ratings == [1, 2, 4, 4]
    assert (found.clipped, found.not_fitted, found.note) == (0, 0, "")


def test_one_offset_for_all_dimensions():
    """2 too high in one dimension, right in the other: 1 is taken off both."""
    given = [*rows([4, 4, 4, 4]), *rows([2, 2, 2, 2], dimension=TIME)]
    truth = [*rows([2, 2, 2, 2], judge="d"), *rows([2, 2, 2, 2], judge="d", dimension=TIME)]
    made = Study.of(given, truth)
    found = comparisons.take_off(
        made, of(made), Folds({q: int(q[-1]) // 2 for q in made.questions}, 2)
    )
    assert found.offsets == (1.0, 1.0)
    assert list(found.ratings.values()) == [3] * 4 + [1] * 4


def test_clipped_to_the_scale():
    """Offsets -4 and 4 make 9 and -3."""
    ratings, found = corrected([5, 5, 1, 1], [1, 1, 5, 5])
    assert ratings == [5, 5, 1, 1]
    assert found.clipped == 4


def test_halves_go_up():
    """Offsets of -0.5 and 0.5: 3.5 becomes 4, 2.5 becomes 3."""
    ratings, found = corrected([3, 3, 3, 3], [2, 3, 4, 3])
    assert found.offsets == (-0.5, 0.5)
    assert ratings == [4, 4, 3, 3]


def test_what_has_no_rating_keeps_none_and_not_whole_ones_stay():
    ratings, found = corrected([2, None, 4.5, 3], [1, 1, 3, 2])
    assert found.offsets == (1.25, 1.0)
    assert ratings == [1, None, 4.5, 2]


def test_rows_that_are_not_there_stay_away():
    ratings, found = corrected([2, "absent", 3, 3], [1, 1, 2, 2])
    assert ratings == [1, 2, 2]
    assert len(found.ratings) == 3


def test_a_fold_is_never_fitted_on_itself():
    """Whatever happens in one half changes the other half's offset only."""
    _, before = corrected([2, 3, 5, 5], [1, 2, 3, 4])
    _, after = corrected([5, 5, 5, 5], [1, 2, 3, 4])
    assert after.offsets[0] == before.offsets[0]
    assert after.offsets[1] != before.offsets[1]


def test_nothing_to_fit_on():
    whole = Folds({f"partial_actions/{n:03d}": 0 for n in range(4)}, 1, "one video")
    ratings, found = corrected([2, 3, 4, None], [1, 2, 3, 4], whole)
    assert ratings == [None, None, None, None]
    assert (found.offsets, found.not_fitted, found.note) == ((None,), 3, "one video")
    ratings, found = corrected([2, 3, 4, 5], [1, 2, None, None])
    assert found.offsets == (None, 1.0)
    assert ratings == [None, None, 3, 4]
    assert found.not_fitted == 2


def test_a_lenient_judge_is_mended_and_a_blind_one_is_not():
    truth = [1, 2, 3, 4] * 10
    blind = [4, 3, 4, 3, 3, 4, 3, 4] * 5
    made = study(
        {"lenient": {"A": [one + 1 for one in truth]}, "blind": {"A": blind}}, {"A": truth}
    )
    split = study.by_video(made)
    values = {}
    for judge in ("lenient", "blind"):
        ratings = of(made, judge)
        moved = comparisons.take_off(made, ratings, split).ratings
        values[judge] = [
            kappas.reliability(made, given, resamples=0).pooled.value for given in (ratings, moved)
        ]
    assert values["lenient"] == [pytest.approx(5 / 7), 1]
    assert abs(values["blind"][1]) < 0.1


def test_both_kappas_are_of_the_same_items():
    made = drawn(5)
    moved = comparisons.take_off(made, of(made), study.by_video(made))
    before = kappas.reliability(made, of(made), resamples=0).pooled.agreement
    after = kappas.reliability(made, moved.ratings, resamples=0).pooled.agreement
    assert (after.n, after.missing, after.off_scale) == (before.n, before.missing, before.off_scale)
    assert before.off_scale > 0


def test_unknown_videos_are_told():
    made = Study.of(rows([2, 3, 4], video=""), rows([1, 2, 3], judge="d", video=""))
    found = comparisons.take_off(made, of(made), study.by_video(made))
    assert "folds are by question" in found.note
    assert list(found.ratings.values()) == [1, 2, 3]
