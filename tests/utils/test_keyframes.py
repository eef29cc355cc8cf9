"""Keyframes: replies against the table of cases, closed forms by enumeration, exact knapsack."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from dataclasses import astuple
from statistics import fmean
from typing import Any

import pytest
from haven_replies import DRAWS, cases, check_chance, check_size, slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import keyframes, summaries
from lmms_eval_tasks.utils.keyframes import Scores, read_frames
from lmms_eval_tasks.utils.summaries import read_joint, read_summary
from tests.checks import refused, table

CASES = cases("haven_keyframes.json")


def close(scores: Scores) -> Any:
    return pytest.approx(astuple(scores), abs=1e-12)


# --- replies ----------------------------------------------------------------------------------


def of_frames(found: keyframes.Frames) -> dict[str, Any]:
    return {
        "frames": list(found.frames),
        "selected": sorted(found.selected),
        "status": found.status,
        "violations": found.violations,
    }


def of_summary(found: summaries.Summary) -> dict[str, Any]:
    return {
        "sentences": list(found.sentences),
        "summary_status": found.status,
        "summary_violations": found.violations,
    }


@table("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    text, asked = case["text"], case.get("n_sentences")
    if case["read"] == "frames":
        found = of_frames(read_frames(text, case["n_frames"], case["k"]))
    elif case["read"] == "summary":
        found = of_summary(read_summary(text, asked))
    else:
        joint = read_joint(text, case["n_frames"], case["k"], asked)
        found = {**of_frames(joint.frames), **of_summary(joint.summary)}
    assert found == {name: case[name] for name in found}


def test_the_table_is_as_large_as_required() -> None:
    check_size([case for case in CASES if case["read"] == "frames"], ok=1, unparsed=1)
    assert Counter(case["read"] for case in CASES)["joint"] >= 25


def test_what_a_table_cannot_say() -> None:
    found = read_frames(f"[{'9' * 5000}, 2, {'0' * 5000}1]", 20, 3)
    assert found.frames == (2, 1)
    assert found.violations == {"out_of_range": 1, "other_form": 1}
    assert len(found.selected) == 3
    summary = read_summary("SUMMARY:\n1. **È** così.\n2. It’s “b”.")
    assert summary.text == "È così. It’s “b”."  # as written: no accents or quotes are changed


ARRAYS = ["[1, ", "[", "1,", "[1],", "9", "example [1] ", "not [", "[ ", "Frame ", "- \n"]
PARTS = ["SUMMARY:\n", "important frames: [", "1. a\n", "1. a ", "- a\n", "a. ", "*", " ", "\r\n"]
PARTS += ["[1],", "TASK 2 ", "_"]


def test_long_replies_are_read_in_time() -> None:
    assert slow(lambda text: read_frames(text, 100, 15), ARRAYS) == []
    assert slow(lambda text: read_joint(text, 100, 15, 4), PARTS, "SUMMARY:") == []


@given(st.lists(st.integers(1, 50), min_size=1, max_size=10, unique=True), st.text(max_size=200))
@settings(max_examples=150, deadline=None)
def test_every_selection_is_read_as_it_was_written(frames: list[int], text: str) -> None:
    listed = ", ".join(f"Frame {frame}" for frame in frames)
    joint = read_joint(f"SUMMARY:\n1. A.\nIMPORTANT FRAMES: [{listed}]", 50, len(frames), 1)
    for found in (joint.frames, read_frames(json.dumps(frames), 50, len(frames))):
        assert (list(found.frames), found.status, found.violations) == (frames, "ok", {})
    # No text raises.
    assert set(read_frames(text, 5, 2).frames) <= set(range(1, 6))
    assert set(read_joint(text, 5, 2, 3).frames.frames) <= set(range(1, 6))
    assert isinstance(read_summary(text).text, str)


# --- scores -----------------------------------------------------------------------------------


def test_known_scores() -> None:
    scores = keyframes.precision_recall_f1
    assert scores({1, 2, 3, 4}, {3, 4, 5}) == Scores(0.5, 2 / 3, 4 / 7)
    assert scores({3}, {3}) == Scores(1, 1, 1)
    assert scores({1}, {3}) == scores(set(), {3}) == Scores(0, 0, 0)
    # A frame that does not exist is wrong.
    assert scores(read_frames("[3, 99]", 20, 2).selected, {3}) == Scores(0.5, 1, 2 / 3)
    refused(ValueError, "no true keyframes", scores, {1}, set())
    refused(ValueError, "repeated", scores, [1, 1], [1])


def test_uniform_and_first_frames() -> None:
    assert keyframes.uniform(10, 1) == [6]
    assert keyframes.uniform(10, 2) == [3, 8]
    assert keyframes.uniform(100, 4) == [13, 38, 63, 88]
    for n_frames in range(1, 40):
        for k in range(1, n_frames + 1):
            found = keyframes.uniform(n_frames, k)
            assert len(found) == k
            assert found == sorted(set(found))
            assert set(found) <= set(range(1, n_frames + 1))
            gaps = {b - a for a, b in itertools.pairwise(found)}
            assert not gaps or max(gaps) - min(gaps) <= 1
    assert keyframes.first(10, 3) == [1, 2, 3]
    for baseline in (keyframes.uniform, keyframes.first):
        for wrong in ((3, 4), (3, 0), (0, 0)):
            refused(ValueError, r"of \d frames", baseline, *wrong)


@table("n_frames, n_true, k", [(6, 2, 3), (7, 3, 1), (5, 5, 2), (6, 1, 6)])
def test_closed_forms_over_all_selections(n_frames: int, n_true: int, k: int) -> None:
    true = set(range(1, n_true + 1))
    found = [
        astuple(keyframes.precision_recall_f1(chosen, true))
        for chosen in itertools.combinations(range(1, n_frames + 1), k)
    ]
    columns = list(zip(*found, strict=True))
    assert tuple(map(fmean, columns)) == close(keyframes.chance(n_frames, n_true, k))
    assert tuple(map(max, columns)) == close(keyframes.best(n_true, k))
    assert keyframes.best(5, 3) == Scores(1, 0.6, 0.75)
    for wrong in ((0, 1), (1, 0)):
        refused(ValueError, "1 or more", keyframes.best, *wrong)
    refused(ValueError, "0 of 5", keyframes.chance, 5, 0, 2)


def test_a_random_model_is_at_chance() -> None:
    rng, n_frames, k = random.Random(21), 40, 6
    true = set(rng.sample(range(1, n_frames + 1), 9))
    found = [
        astuple(keyframes.precision_recall_f1(rng.sample(range(1, n_frames + 1), k), true))
        for _ in range(DRAWS)
    ]
    check_chance(found, astuple(keyframes.chance(n_frames, len(true), k)))


# --- knapsack ---------------------------------------------------------------------------------


def brute(values: list[int], weights: list[int], capacity: int) -> list[int]:
    """The same by its definition: most value, least weight, first list of places."""

    def total(of: list[int], places: Any) -> int:
        return sum(of[at] for at in places)

    sets = (
        places
        for size in range(len(values) + 1)
        for places in itertools.combinations(range(len(values)), size)
        if total(weights, places) <= capacity
    )
    return list(min(sets, key=lambda one: (-total(values, one), total(weights, one), one)))


def test_knapsack_against_all_sets() -> None:
    rng = random.Random(0)
    for _ in range(80):
        n = rng.randint(0, 10)
        highest = rng.choice([1, 3, 10**6])  # low values make ties
        values = [rng.randint(0, highest) for _ in range(n)]
        weights = [rng.randint(1, rng.choice([2, 9])) for _ in range(n)]
        capacity = rng.randint(0, 25)
        assert keyframes.knapsack(values, weights, capacity) == brute(values, weights, capacity)


@table("values, weights, capacity, found")
def test_knapsack_by_hand(values, weights, capacity, found) -> None:
    assert (
        keyframes.knapsack(values, weights, capacity) == found == brute(values, weights, capacity)
    )


def test_knapsack_of_a_long_video_is_fast() -> None:
    rng = random.Random(3)
    values = [rng.randint(0, 10**6) for _ in range(200)]
    weights = [rng.randint(5, 15) for _ in range(200)]
    found = keyframes.knapsack(values, weights, keyframes.capacity(sum(weights)))
    assert 0 < sum(weights[at] for at in found) <= keyframes.capacity(sum(weights))
    assert [keyframes.capacity(n) for n in (1, 6, 7, 13, 14, 20, 100)] == [0, 0, 1, 1, 2, 3, 15]
    assert keyframes.capacity(10**18 + 20) == 15 * 10**16 + 3


@table("values, weights, capacity, message")
def test_knapsack_of_what_is_none(values, weights, capacity, message) -> None:
    refused(ValueError, message, keyframes.knapsack, values, weights, capacity)
