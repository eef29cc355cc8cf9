"""Colour histograms: bins by hand, shares, order."""

from __future__ import annotations

import numpy as np
from PIL import Image

from lmms_eval_tasks.utils.colour_histograms import BINS, histogram, histograms
from tests.checks import refused


def test_each_pixel_falls_into_one_bin() -> None:
    pixels = [[(0, 0, 0), (31, 31, 31)], [(255, 255, 255), (32, 0, 64)]]
    found = histogram(Image.fromarray(np.array(pixels, dtype=np.uint8)))
    assert found.shape == (BINS**3,)
    assert found[0] == 0.5
    assert found[511] == 0.25
    assert found[1 * 64 + 0 * 8 + 2] == 0.25
    assert found.sum() == 1


def test_rows_are_in_the_order_of_the_pictures() -> None:
    colours = [(250, 0, 0), (0, 250, 0)]
    rows = histograms(Image.new("RGB", (4, 2), colour) for colour in colours)
    assert rows.argmax(axis=1).tolist() == [7 * 64, 7 * 8]
    # A picture of another mode counts as RGB.
    assert histogram(Image.new("L", (2, 2), 250)).argmax() == 511
    refused(ValueError, "no pictures", histograms, [])
    refused(ValueError, "without pixels", histogram, Image.new("RGB", (0, 0)))
