"""Kernel Temporal Segmentation against all segmentations there are; the features it is given."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lmms_eval_tasks.utils.media.segmentation import (
    automatic,
    halved,
    histograms,
    normalised,
    scatter,
    segment,
)
from tests.checks import table


def least(rows: np.ndarray, number: int) -> float:
    """The least scatter of all segmentations into so many segments."""
    borders = itertools.combinations(range(1, len(rows)), number - 1)
    return min(scatter(rows, [0, *own]) for own in borders)


@st.composite
def features(draw: st.DrawFn) -> np.ndarray:
    """Up to 14 frames: any numbers, or few different ones, so that there are ties."""
    n, d = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    whole = draw(st.booleans())
    number = st.integers(-1, 2).map(float) if whole else st.floats(-4, 4, allow_subnormal=False)
    return np.array(
        draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=n, max_size=n))
    )


@settings(max_examples=60, deadline=None)
@given(features(), st.data())
def test_no_segmentation_has_less_scatter(given: np.ndarray, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(given)))
    found = segment(given, number)
    assert len(found) == number
    assert found[0] == 0
    assert found == sorted(set(found))
    assert all(0 <= start < len(given) for start in found)
    rows = normalised(given)
    assert scatter(rows, found) == pytest.approx(least(rows, number), abs=1e-7)
    parts = np.split(rows, found[1:])
    distances = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
    assert scatter(rows, found) == pytest.approx(distances, abs=1e-7)


@settings(max_examples=25, deadline=None)
@given(features())
def test_the_automatic_number_has_the_least_objective(given: np.ndarray) -> None:
    rows, n = normalised(given), len(given)
    found = automatic(given, n)

    def objective(value: float, number: int) -> float:
        borders = number - 1
        term = borders * (math.log(n / borders) + 1) if borders else 0.0
        return value / n + 0.5 * term / n

    best = min(objective(least(rows, number), number) for number in range(1, n + 1))
    assert objective(scatter(rows, found), len(found)) == pytest.approx(best, abs=1e-7)


def test_known_scenes_are_found() -> None:
    scenes = np.repeat(np.eye(4), [7, 3, 9, 1], axis=0) + 0.01
    assert segment(scenes, 4) == [0, 7, 10, 19]
    assert automatic(scenes, 10) == [0, 7, 10, 19]
    assert len(automatic(scenes, 2)) <= 2


def test_a_still_picture_is_cut_evenly() -> None:
    assert segment(np.ones((10, 3)), 3) == [0, 3, 5]
    assert segment(np.zeros((8, 2)), 4) == [0, 2, 4, 6]
    assert automatic(np.ones((10, 3)), 10) == [0]
    # What can be told apart comes first; then the longest is halved.
    scenes = np.repeat(np.eye(2), [2, 8], axis=0)
    assert segment(scenes, 4) == [0, 2, 4, 6]
    assert halved([0, 4], 9, 2) == [0, 4]
    assert halved([0, 4], 9, 3) == [0, 4, 7]


@table(
    "given, number, why",
    [
        (np.ones((3, 2)), 4, "4 segments of 3 frames"),
        (np.ones((3, 2)), 0, "0 segments of 3 frames"),
        (np.ones(3), 1, "shape"),
        (np.ones((0, 2)), 1, "shape"),
        (np.array([[1.0], [np.nan]]), 1, "finite"),
    ],
)
def test_what_cannot_be_cut(given: np.ndarray, number: int, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        segment(given, number)


def test_colour_histograms_by_hand() -> None:
    pixels = [[(0, 0, 0), (31, 31, 31)], [(255, 255, 255), (32, 0, 64)]]
    grey = Image.new("L", (2, 2), 250)  # a picture of another mode counts as RGB
    rows = histograms([Image.fromarray(np.array(pixels, np.uint8)), grey])
    assert rows.shape == (2, 8**3)
    assert (rows[0, 0], rows[0, 511], rows[0, 1 * 64 + 0 * 8 + 2]) == (0.5, 0.25, 0.25)
    assert rows[1, 511] == 1
