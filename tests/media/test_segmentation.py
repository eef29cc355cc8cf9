"""Kernel Temporal Segmentation against all segmentations there are; the features it is given."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lmms_eval_tasks.utils.media.segmentation import histograms, segment
from tests.checks import refused, table


def scatter(rows: np.ndarray, starts: Sequence[int]) -> float:
    """Sum over segments of the squared distances to the segment's mean."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    parts = np.split(rows / np.where(lengths > 0, lengths, 1), list(starts)[1:])
    return sum(float(((part - part.mean(axis=0)) ** 2).sum()) for part in parts)


@st.composite
def features(draw: st.DrawFn) -> np.ndarray:
    """Up to 14 frames: any numbers, or few different ones, so that there are ties."""
    n, d = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    whole = draw(st.booleans())
    number = st.integers(-1, 2).map(float) if whole else st.floats(-4, 4, allow_subnormal=False)
    return np.array(
        draw(st.lists(st.lists(number, min_size=d, max_size=d), min_size=n, max_size=n))
    )


@settings(max_examples=60)
@given(features(), st.data())
def test_no_segmentation_has_less_scatter(given: np.ndarray, data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(given)))
    found = segment(given, number)
    assert (len(found), found[0], found) == (number, 0, sorted(set(found)))
    assert all(0 <= start < len(given) for start in found)
    all_borders = itertools.combinations(range(1, len(given)), number - 1)
    least = min(scatter(given, [0, *own]) for own in all_borders)
    assert scatter(given, found) == pytest.approx(least, abs=1e-7)


@table(
    "given, number, why",
    [
        (np.ones((3, 2)), 4, "4 segments of 3 frames"),
        (np.ones((0, 2)), 1, "shape"),
        (np.array([[1.0], [np.nan]]), 1, "finite"),
    ],
)
def test_what_cannot_be_cut(given: np.ndarray, number: int, why: str) -> None:
    refused(ValueError, why, segment, given, number)


def test_colour_histograms_by_hand() -> None:
    pixels = [[(0, 0, 0), (31, 31, 31)], [(255, 255, 255), (32, 0, 64)]]
    grey = Image.new("L", (2, 2), 250)  # a picture of another mode counts as RGB
    rows = histograms([Image.fromarray(np.array(pixels, np.uint8)), grey])
    assert rows.shape == (2, 8**3)
    assert (rows[0, 0], rows[0, 511], rows[0, 1 * 64 + 0 * 8 + 2]) == (0.5, 0.25, 0.25)
    assert rows[1, 511] == 1
