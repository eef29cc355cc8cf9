"""Grounding: replies against the table of cases, scores and chance by enumeration."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from haven_replies import slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import alignments
from lmms_eval_tasks.utils.alignments import SetScores

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "haven_alignments.json").read_text(encoding="utf-8")
)
DRAWS = 10_000
BOUND = 4.0  # standard errors, two-sided: 6 in 100,000 by chance, and the seed is fixed


def close(scores: SetScores) -> Any:
    return pytest.approx(astuple(scores), abs=1e-12)


# --- replies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    found = alignments.read_alignment(case["text"], case["n_sentences"], case["n_clips"])
    assert [sorted(clips) for clips in found.sets] == case["sets"]
    assert (found.status, found.violations) == (case["status"], case["violations"])


def test_the_table_is_as_large_as_required() -> None:
    statuses = Counter(case["status"] for case in CASES)
    assert len({case["text"] for case in CASES}) == len(CASES) >= 40
    assert statuses["ok"] >= 25
    assert statuses["unparsed"] >= 12
    assert {"empty", "truncated", "refused", "model_error"} <= statuses.keys()
    for case in CASES:
        assert len(case["sets"]) == case["n_sentences"], case["id"]


def test_numbers_of_thousands_of_digits() -> None:
    huge = "9" * 5000
    text = f"Summary 1: Clip {huge}, Clip {'0' * 5000}2\nSummary {huge}: Clip 1"
    found = alignments.read_alignment(text, 1, 5)
    assert found.violations == {"unknown_clips": 1, "unknown": 1}
    assert 2 in found.sets[0]
    assert len(found.sets[0]) == 2


def test_a_range_costs_no_memory() -> None:
    found = alignments.read_alignment("Summary 1: Clip 2-999999999", 1, 5)
    assert sorted(found.sets[0]) == [2, 3, 4, 5, 6]
    beyond = alignments.read_alignment("Summary 1: Clip 700-999999999", 1, 5)
    assert sorted(beyond.sets[0]) == [700]
    assert beyond.violations["unknown_clips"] == 1


def test_long_replies_are_read_in_time() -> None:
    pieces = (
        *(
            "Summary 1: ",
            "Summary 1: Clip 1, ",
            "Clip 1, ",
            "1-",
            "1, ",
            "clip ",
            "Summary 1:\n",
            "9",
        ),
        *("Clip 1\n", "1 and ", '"', "Summary 1: Clip 1-99999999\n", "Clip 1 to ", "a "),
    )
    read = alignments.read_alignment
    assert slow(lambda text: read(text, 5, 30), pieces, "Summary 1: ") == []


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_raises(text: str) -> None:
    assert len(alignments.read_alignment(text, 3, 5).sets) == 3


@given(st.lists(st.sets(st.integers(1, 20), min_size=1, max_size=6), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_every_alignment_is_read_as_it_was_written(sets: list[set[int]]) -> None:
    lines = [
        f"Summary {number}: {', '.join(f'Clip {clip}' for clip in clips)}"
        for number, clips in enumerate(sets, 1)
    ]
    found = alignments.read_alignment("\n".join(lines), len(sets), 20)
    assert ([set(clips) for clips in found.sets], found.status) == (sets, "ok")
    assert found.violations == {}


# --- scores -----------------------------------------------------------------------------------


def test_known_scores() -> None:
    assert alignments.set_scores({1, 2, 3}, {3, 4}) == SetScores(0.4, 0.25, 1)
    assert alignments.set_scores({1}, {2}) == SetScores(0, 0, 0)
    assert alignments.set_scores(set(), {2}) == SetScores(0, 0, 0)
    assert alignments.set_scores({2, 3}, {2, 3}) == alignments.BEST


def test_a_clip_that_does_not_exist_is_wrong() -> None:
    assert alignments.set_scores({2, 99}, {2}) == SetScores(2 / 3, 0.5, 1)


def test_mean_over_sentences() -> None:
    found = alignments.score([{1, 2, 3}, set(), {5}], [{3, 4}, {1}, {5}])
    assert astuple(found) == pytest.approx((1.4 / 3, 1.25 / 3, 2 / 3))
    assert alignments.clips_predicted([{1, 2, 3}, set(), {5}]) == 4 / 3


def test_what_cannot_be_scored_is_an_error() -> None:
    with pytest.raises(ValueError, match="no true clip"):
        alignments.set_scores({1}, set())
    with pytest.raises(ValueError, match="no sentences"):
        alignments.mean_scores([])
    with pytest.raises(ValueError, match="no sentences"):
        alignments.clips_predicted([])
    with pytest.raises(ValueError, match="clips of 1 sentences, 2 asked for"):
        alignments.score([{1}], [{1}, {2}])
    for of in (alignments.all_clips, alignments.one_at_random, alignments.as_many_at_random):
        for wrong in ((3, 0), (3, 4)):
            with pytest.raises(ValueError, match="true clips of 3"):
                of(*wrong)


BASELINES = [
    pytest.param(alignments.all_clips, lambda n, g: n, id="all"),
    pytest.param(alignments.one_at_random, lambda n, g: 1, id="one"),
    pytest.param(alignments.as_many_at_random, lambda n, g: g, id="as-many"),
]


@pytest.mark.parametrize(("baseline", "size"), BASELINES)
def test_closed_forms_over_all_sets(
    baseline: Callable[[int, int], SetScores], size: Callable[[int, int], int]
) -> None:
    for n in range(1, 8):
        for g in range(1, n + 1):
            true = set(range(1, g + 1))
            found = [
                astuple(alignments.set_scores(clips, true))
                for clips in itertools.combinations(range(1, n + 1), size(n, g))
            ]
            assert tuple(map(fmean, zip(*found, strict=True))) == close(baseline(n, g))


@pytest.mark.parametrize(("baseline", "size"), BASELINES[1:])
def test_a_random_model_is_at_chance(
    baseline: Callable[[int, int], SetScores], size: Callable[[int, int], int]
) -> None:
    rng, n = random.Random(22), 12
    true = [{1, 2, 3}, {7}, {2, 8, 9, 10, 11}]
    found = [
        astuple(
            alignments.score(
                [set(rng.sample(range(1, n + 1), size(n, len(clips)))) for clips in true], true
            )
        )
        for _ in range(DRAWS)
    ]
    expected = astuple(alignments.baseline(baseline, true, n))
    for column, mean in zip(zip(*found, strict=True), expected, strict=True):
        assert abs(fmean(column) - mean) < BOUND * stdev(column) / math.sqrt(DRAWS)
        assert stdev(column) > 0


def test_a_baseline_is_the_mean_over_sentences() -> None:
    found = alignments.baseline(alignments.all_clips, [{1}, {2, 3}], 4)
    assert astuple(found) == pytest.approx(((2 / 5 + 4 / 6) / 2, (1 / 4 + 2 / 4) / 2, 1))
