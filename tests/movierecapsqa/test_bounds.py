"""Labels, and the scores that they allow."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from lmms_eval_tasks.movierecapsqa import bounds
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS

CASES = json.loads(
    (Path(__file__).parents[1] / "cases" / "movierecapsqa_bounds.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize(("dimension", "labels", "expected"), CASES["intervals"])
def test_intervals(dimension: str, labels: list[str], expected: list[int]) -> None:
    for order in permutations(labels):
        assert bounds.interval(dimension, order) == tuple(expected)


def test_the_cases_have_every_label_of_every_dimension() -> None:
    seen = {(dimension, label) for dimension, labels, _ in CASES["intervals"] for label in labels}
    assert seen == {(name, label) for name, labels in bounds.LABELS.items() for label in labels}
    assert tuple(bounds.LABELS) == DIMENSIONS


@pytest.mark.parametrize(
    ("dimension", "labels", "said"),
    [
        ("factuality", [], "no labels"),
        ("factuality", ["supported", "relevant"], "'relevant' is no label of factuality"),
        ("coherence", ["Consistent"], "'Consistent' is no label of coherence"),
    ],
)
def test_what_has_no_interval(dimension: str, labels: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        bounds.interval(dimension, labels)


@pytest.mark.parametrize(("dimension", "written", "expected"), CASES["words"])
def test_words(dimension: str, written: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(ValueError, match="none of"):
            bounds.label(dimension, written)
    else:
        assert bounds.label(dimension, written) == expected


def test_every_label_is_its_own_word() -> None:
    for dimension, labels in bounds.LABELS.items():
        assert [bounds.label(dimension, label) for label in labels] == list(labels)
