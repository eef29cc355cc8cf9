"""Keyframes: replies against the table of cases, closed forms by enumeration, exact knapsack."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from dataclasses import astuple
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from haven_replies import slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import keyframes, summaries
from lmms_eval_tasks.utils.keyframes import Scores

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "cases" / "haven_keyframes.json").read_text(encoding="utf-8")
)
DRAWS = 10_000
BOUND = 4.0  # standard errors, two-sided: 6 in 100,000 by chance, and the seed is fixed


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


def read(case: dict[str, Any]) -> dict[str, Any]:
    text, asked = case["text"], case.get("n_sentences")
    if case["read"] == "frames":
        return of_frames(keyframes.read_frames(text, case["n_frames"], case["k"]))
    if case["read"] == "summary":
        return of_summary(summaries.read_summary(text, asked))
    joint = summaries.read_joint(text, case["n_frames"], case["k"], asked)
    return {**of_frames(joint.frames), **of_summary(joint.summary)}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any]) -> None:
    found = read(case)
    assert found == {name: case[name] for name in found}


def test_the_table_is_as_large_as_required() -> None:
    kinds = Counter(case["read"] for case in CASES)
    assert kinds["frames"] >= 40
    assert kinds["joint"] >= 25
    assert len({(case["read"], case["text"], case.get("n_sentences")) for case in CASES}) == len(
        CASES
    )
    assert {"ok", "unparsed", "empty", "refused", "truncated", "model_error"} == {
        case["status"] for case in CASES if case["read"] == "frames"
    }


def test_numbers_of_thousands_of_digits() -> None:
    found = keyframes.read_frames(f"[{'9' * 5000}, 2, {'0' * 5000}1]", 20, 3)
    assert found.frames == (2, 1)
    assert found.violations == {"out_of_range": 1, "other_form": 1}
    assert len(found.selected) == 3


def test_the_text_of_a_summary() -> None:
    found = summaries.read_summary("SUMMARY:\n1. **È** così.\n2. It’s “b”.")
    assert found.text == "È così. It’s “b”."  # as written: no accents or quotes are changed


def test_long_replies_are_read_in_time() -> None:
    arrays = ("[1, ", "[", "1,", "[1],", "9", "example [1] ", "not [", "[ ", "Frame ", "- \n")
    assert slow(lambda text: keyframes.read_frames(text, 100, 15), arrays) == []
    parts = (
        *("SUMMARY:\n", "important frames: [", "1. a\n", "1. a ", "- a\n", "a. ", "*", " ", "\r\n"),
        *("[1],", "TASK 2 ", "_"),
    )
    assert slow(lambda text: summaries.read_joint(text, 100, 15, 4), parts, "SUMMARY:") == []


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_text_raises(text: str) -> None:
    assert set(keyframes.read_frames(text, 5, 2).frames) <= set(range(1, 6))
    assert set(summaries.read_joint(text, 5, 2, 3).frames.frames) <= set(range(1, 6))
    assert isinstance(summaries.read_summary(text).text, str)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=10, unique=True), st.booleans())
@settings(max_examples=100, deadline=None)
def test_every_selection_is_read_as_it_was_written(frames: list[int], joint: bool) -> None:
    if joint:
        listed = ", ".join(f"Frame {frame}" for frame in frames)
        text = f"SUMMARY:\n1. A.\nIMPORTANT FRAMES: [{listed}]"
        found = summaries.read_joint(text, 50, len(frames), 1).frames
    else:
        found = keyframes.read_frames(json.dumps(frames), 50, len(frames))
    assert (list(found.frames), found.status, found.violations) == (frames, "ok", {})


# --- scores -----------------------------------------------------------------------------------


def test_known_scores() -> None:
    assert keyframes.precision_recall_f1({1, 2, 3, 4}, {3, 4, 5}) == Scores(0.5, 2 / 3, 4 / 7)
    assert keyframes.precision_recall_f1({3}, {3}) == Scores(1, 1, 1)
    assert keyframes.precision_recall_f1({1}, {3}) == Scores(0, 0, 0)
    assert keyframes.precision_recall_f1(set(), {3}) == Scores(0, 0, 0)


def test_a_frame_that_does_not_exist_is_wrong() -> None:
    found = keyframes.read_frames("[3, 99]", 20, 2)
    assert keyframes.precision_recall_f1(found.selected, {3}) == Scores(0.5, 1, 2 / 3)


def test_what_cannot_be_scored_is_an_error() -> None:
    with pytest.raises(ValueError, match="no true keyframes"):
        keyframes.precision_recall_f1({1}, set())
    with pytest.raises(ValueError, match="repeated"):
        keyframes.precision_recall_f1([1, 1], [1])


def test_uniform_frames() -> None:
    assert keyframes.uniform(10, 1) == [6]
    assert keyframes.uniform(10, 2) == [3, 8]
    assert keyframes.uniform(100, 4) == [13, 38, 63, 88]
    for n_frames in range(1, 40):
        for k in range(1, n_frames + 1):
            found = keyframes.uniform(n_frames, k)
            assert len(set(found)) == k
            assert found == sorted(found)
            assert set(found) <= set(range(1, n_frames + 1))
            gaps = {b - a for a, b in itertools.pairwise(found)}
            assert not gaps or max(gaps) - min(gaps) <= 1
    assert keyframes.uniform(7, 7) == list(range(1, 8))


def test_first_frames() -> None:
    assert keyframes.first(10, 3) == [1, 2, 3]


@pytest.mark.parametrize("baseline", [keyframes.uniform, keyframes.first])
def test_no_more_frames_than_there_are(baseline: Any) -> None:
    for wrong in ((3, 4), (3, 0), (0, 0)):
        with pytest.raises(ValueError, match=r"of \d frames"):
            baseline(*wrong)


@pytest.mark.parametrize(("n_frames", "n_true", "k"), [(6, 2, 3), (7, 3, 1), (5, 5, 2), (6, 1, 6)])
def test_closed_forms_over_all_selections(n_frames: int, n_true: int, k: int) -> None:
    true = set(range(1, n_true + 1))
    found = [
        astuple(keyframes.precision_recall_f1(chosen, true))
        for chosen in itertools.combinations(range(1, n_frames + 1), k)
    ]
    columns = list(zip(*found, strict=True))
    assert tuple(map(fmean, columns)) == close(keyframes.chance(n_frames, n_true, k))
    assert tuple(map(max, columns)) == close(keyframes.best(n_true, k))


def test_best_under_the_budget() -> None:
    assert keyframes.best(3, 3) == Scores(1, 1, 1)
    assert keyframes.best(5, 3) == Scores(1, 0.6, 0.75)
    assert keyframes.best(2, 4) == Scores(0.5, 1, 2 / 3)
    for wrong in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="1 or more"):
            keyframes.best(*wrong)
    with pytest.raises(ValueError, match="0 of 5"):
        keyframes.chance(5, 0, 2)


def test_a_random_model_is_at_chance() -> None:
    rng, n_frames, k = random.Random(21), 40, 6
    true = set(rng.sample(range(1, n_frames + 1), 9))
    found = [
        astuple(keyframes.precision_recall_f1(rng.sample(range(1, n_frames + 1), k), true))
        for _ in range(DRAWS)
    ]
    expected = astuple(keyframes.chance(n_frames, len(true), k))
    for column, mean in zip(zip(*found, strict=True), expected, strict=True):
        assert abs(fmean(column) - mean) < BOUND * stdev(column) / math.sqrt(DRAWS)
        assert stdev(column) > 0


# --- knapsack ---------------------------------------------------------------------------------


def brute(values: list[int], weights: list[int], capacity: int) -> list[int]:
    """The same by its definition: most value, least weight, first list of places."""
    sets = (
        list(places)
        for size in range(len(values) + 1)
        for places in itertools.combinations(range(len(values)), size)
    )
    fitting = [places for places in sets if sum(weights[at] for at in places) <= capacity]
    return min(
        fitting,
        key=lambda places: (
            -sum(values[at] for at in places),
            sum(weights[at] for at in places),
            places,
        ),
    )


@pytest.mark.parametrize("seed", range(8))
def test_knapsack_against_all_sets(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        n = rng.randint(0, 10)
        highest = rng.choice([1, 3, 10**6])  # low values make ties
        values = [rng.randint(0, highest) for _ in range(n)]
        weights = [rng.randint(1, rng.choice([2, 9])) for _ in range(n)]
        capacity = rng.randint(0, 25)
        assert keyframes.knapsack(values, weights, capacity) == brute(values, weights, capacity)


def test_knapsack_of_twelve_items() -> None:
    rng = random.Random(7)
    values = [rng.randint(0, 4) for _ in range(12)]
    weights = [rng.randint(1, 5) for _ in range(12)]
    found = keyframes.knapsack(values, weights, 13)
    assert found == brute(values, weights, 13)
    assert len(found) > 2


def test_knapsack_ties() -> None:
    assert keyframes.knapsack([5, 5, 5], [2, 2, 2], 4) == [0, 1]  # earlier items
    assert keyframes.knapsack([5, 5], [3, 2], 3) == [1]  # less weight before that
    assert keyframes.knapsack([6, 3, 3], [4, 2, 2], 4) == [0]  # the list that comes first
    assert keyframes.knapsack([0, 1], [1, 1], 2) == [1]  # nothing that is worth nothing
    assert keyframes.knapsack([3, 3, 6], [2, 2, 4], 4) == [0, 1]


def test_knapsack_is_exact_where_floats_are_not() -> None:
    large = 10**17
    assert keyframes.knapsack([large, large + 1], [1, 1], 1) == [1]


def test_knapsack_with_no_room_or_no_items() -> None:
    assert keyframes.knapsack([5], [1], 0) == []
    assert keyframes.knapsack([5], [2], 1) == []
    assert keyframes.knapsack([], [], 5) == []


def test_knapsack_of_a_long_video_is_fast() -> None:
    rng = random.Random(3)
    values = [rng.randint(0, 10**6) for _ in range(200)]
    weights = [rng.randint(5, 15) for _ in range(200)]
    found = keyframes.knapsack(values, weights, keyframes.capacity(sum(weights)))
    assert 0 < sum(weights[at] for at in found) <= keyframes.capacity(sum(weights))


@pytest.mark.parametrize(
    ("values", "weights", "capacity", "message"),
    [
        ([1], [1, 2], 3, "1 values, 2 weights"),
        ([0.5], [1], 3, "value 0.5"),
        ([-1], [1], 3, "value -1"),
        ([True], [1], 3, "value True"),
        ([1], [0], 3, "weight 0"),
        ([1], [1], -1, "capacity -1"),
    ],
)
def test_knapsack_of_what_is_none(
    values: list[Any], weights: list[int], capacity: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        keyframes.knapsack(values, weights, capacity)


def test_capacity_is_exact() -> None:
    assert [keyframes.capacity(n) for n in (1, 6, 7, 13, 14, 20, 100)] == [0, 0, 1, 1, 2, 3, 15]
    assert keyframes.capacity(10**18 + 20) == 15 * 10**16 + 3
