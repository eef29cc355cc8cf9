"""Grounding: replies against the table of cases, scores and chance by enumeration."""

from __future__ import annotations

import itertools
import random
from dataclasses import astuple
from statistics import fmean
from typing import Any

import pytest
from haven_replies import DRAWS, cases, check_chance, check_size, slow
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils import alignments
from lmms_eval_tasks.utils.alignments import SetScores, read_alignment
from tests.checks import refused, table

CASES = cases("haven_alignments.json")
PIECES = [
    "Summary 1: ",
    "Summary 1: Clip 1, ",
    "Clip 1, ",
    "1-",
    "1, ",
    "clip ",
    "Summary 1:\n",
    "9",
]
PIECES += ["Clip 1\n", "1 and ", '"', "Summary 1: Clip 1-99999999\n", "Clip 1 to ", "a "]


def close(scores: SetScores) -> Any:
    return pytest.approx(astuple(scores), abs=1e-12)


# --- replies ----------------------------------------------------------------------------------


@table("case", CASES)
def test_case(case: dict[str, Any]) -> None:
    found = read_alignment(case["text"], case["n_sentences"], case["n_clips"])
    assert [sorted(clips) for clips in found.sets] == case["sets"]
    assert (found.status, found.violations) == (case["status"], case["violations"])
    assert len(case["sets"]) == case["n_sentences"]


def test_the_table_is_as_large_as_required() -> None:
    check_size(CASES, ok=25, unparsed=12)


def test_numbers_of_any_size() -> None:
    huge = "9" * 5000
    text = f"Summary 1: Clip {huge}, Clip {'0' * 5000}2\nSummary {huge}: Clip 1"
    found = read_alignment(text, 1, 5)
    assert found.violations == {"unknown_clips": 1, "unknown": 1}
    assert 2 in found.sets[0]
    assert len(found.sets[0]) == 2
    found = read_alignment("Summary 1: Clip 2-999999999", 1, 5)  # a range costs no memory
    assert sorted(found.sets[0]) == [2, 3, 4, 5, 6]
    beyond = read_alignment("Summary 1: Clip 700-999999999", 1, 5)
    assert sorted(beyond.sets[0]) == [700]
    assert beyond.violations["unknown_clips"] == 1


def test_long_replies_are_read_in_time() -> None:
    assert slow(lambda text: read_alignment(text, 5, 30), PIECES, "Summary 1: ") == []


@given(
    st.lists(st.sets(st.integers(1, 20), min_size=1, max_size=6), min_size=1, max_size=12),
    st.text(max_size=200),
)
@settings(max_examples=150, deadline=None)
def test_every_alignment_is_read_as_it_was_written(sets: list[set[int]], text: str) -> None:
    lines = [
        f"Summary {number}: {', '.join(f'Clip {clip}' for clip in clips)}"
        for number, clips in enumerate(sets, 1)
    ]
    found = read_alignment("\n".join(lines), len(sets), 20)
    assert ([set(clips) for clips in found.sets], found.status) == (sets, "ok")
    assert found.violations == {}
    assert len(read_alignment(text, 3, 5).sets) == 3  # no text raises


# --- scores -----------------------------------------------------------------------------------


def test_known_scores() -> None:
    assert alignments.set_scores({1, 2, 3}, {3, 4}) == SetScores(0.4, 0.25, 1)
    assert alignments.set_scores({1}, {2}) == SetScores(0, 0, 0)
    assert alignments.set_scores(set(), {2}) == SetScores(0, 0, 0)
    assert alignments.set_scores({2, 3}, {2, 3}) == alignments.BEST
    # A clip that does not exist is wrong.
    assert alignments.set_scores({2, 99}, {2}) == SetScores(2 / 3, 0.5, 1)
    found = alignments.score([{1, 2, 3}, set(), {5}], [{3, 4}, {1}, {5}])
    assert astuple(found) == pytest.approx((1.4 / 3, 1.25 / 3, 2 / 3))
    assert alignments.clips_predicted([{1, 2, 3}, set(), {5}]) == 4 / 3
    found = alignments.baseline(alignments.all_clips, [{1}, {2, 3}], 4)  # the mean over sentences
    assert astuple(found) == pytest.approx(((2 / 5 + 4 / 6) / 2, (1 / 4 + 2 / 4) / 2, 1))


@table(
    "call, arguments, words",
    [
        (alignments.set_scores, ({1}, set()), "no true clip"),
        (alignments.mean_scores, ([],), "no sentences"),
        (alignments.clips_predicted, ([],), "no sentences"),
        (alignments.score, ([{1}], [{1}, {2}]), "clips of 1 sentences, 2 asked for"),
        (alignments.all_clips, (3, 0), "true clips of 3"),
        (alignments.one_at_random, (3, 4), "true clips of 3"),
    ],
)
def test_what_cannot_be_scored_is_an_error(call, arguments, words) -> None:
    refused(ValueError, words, call, *arguments)


@table("baseline, one", [(alignments.all_clips, False), (alignments.one_at_random, True)])
def test_closed_forms_over_all_sets(baseline, one: bool) -> None:
    for n in range(1, 8):
        for g in range(1, n + 1):
            true = set(range(1, g + 1))
            found = [
                astuple(alignments.set_scores(clips, true))
                for clips in itertools.combinations(range(1, n + 1), 1 if one else n)
            ]
            assert tuple(map(fmean, zip(*found, strict=True))) == close(baseline(n, g))


def test_a_random_model_is_at_chance() -> None:
    rng, n = random.Random(22), 12
    true = [{1, 2, 3}, {7}, {2, 8, 9, 10, 11}]
    found = [
        astuple(alignments.score([{rng.randint(1, n)} for _ in true], true)) for _ in range(DRAWS)
    ]
    check_chance(found, astuple(alignments.baseline(alignments.one_at_random, true, n)))
