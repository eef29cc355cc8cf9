"""Whether a model's keyframes lie where it ranks and grounds: shares, chance, and what is none."""

from __future__ import annotations

import itertools
from statistics import fmean

import pytest

from lmms_eval_tasks.haven import consistency

SHOTS = [[1, 2], [3, 4, 5], [6], [7, 8, 9, 10]]


def test_upper_half() -> None:
    assert consistency.upper_half([4, 2, 1, 3]) == [4, 2]
    assert consistency.upper_half([3, 1, 2]) == [3, 1]  # the middle one of an odd number
    assert consistency.upper_half([]) == []


def test_saliency() -> None:
    found = consistency.with_saliency([1, 3, 4, 9], SHOTS, [2, 3, 1, 4])
    assert (found.share, found.chance) == (2 / 4, 4 / 10)
    assert found.difference == pytest.approx(0.1)
    assert (found.reason, found.left_out) == ("", 0)


def test_shots_that_were_not_ranked_count_on_neither_side() -> None:
    found = consistency.with_saliency([1, 3, 9], SHOTS, [2, 1])  # 9 is in shot 4
    assert (found.share, found.chance, found.left_out) == (1 / 2, 3 / 5, 1)
    none = consistency.with_saliency([9], SHOTS, [2, 1])
    assert (none.share, none.chance, none.difference) == (None, None, None)
    assert none.reason == "no selected frame lies in a shot that was shown"


def test_grounding() -> None:
    found = consistency.with_grounding([1, 3, 9], SHOTS, {1, 4})
    assert (found.share, found.chance) == (2 / 3, 6 / 10)
    every = consistency.with_grounding([1, 3, 9], SHOTS, {1, 2, 3, 4})
    assert (every.share, every.chance, every.difference) == (1, 1, 0)


def test_frames_count_once_and_those_in_no_shot_not_at_all() -> None:
    found = consistency.with_grounding([1, 1, 3, 99], SHOTS, [1, 1])
    assert (found.share, found.chance, found.left_out) == (1 / 2, 2 / 10, 1)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_chance_is_the_mean_over_all_selections(k: int) -> None:
    for of, numbers in (
        (consistency.with_saliency, [4, 1, 2, 3]),
        (consistency.with_grounding, [3, 1]),
    ):
        found = [of(frames, SHOTS, numbers) for frames in itertools.combinations(range(1, 11), k)]
        assert fmean(one.share for one in found) == pytest.approx(found[0].chance)


def test_parts_that_are_missing_have_a_reason() -> None:
    assert consistency.with_saliency([], SHOTS, [1, 2]).reason == "no frame is selected"
    assert consistency.with_saliency([1], SHOTS, [1]).reason == "fewer than two shots are ranked"
    assert consistency.with_grounding([1], SHOTS, []).reason == "no sentence is grounded to a clip"
    assert consistency.with_grounding([1], SHOTS, []).difference is None


def test_shots_that_do_not_exist_are_an_error() -> None:
    with pytest.raises(ValueError, match="shot 5: there are 4"):
        consistency.with_saliency([1], SHOTS, [1, 5])
    with pytest.raises(ValueError, match="shot 0: there are 4"):
        consistency.with_grounding([1], SHOTS, [0])
    with pytest.raises(ValueError, match="one is repeated"):
        consistency.with_saliency([1], SHOTS, [1, 1])
