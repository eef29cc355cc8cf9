"""HAVEN's replies: selections, orders, alignments and summaries, read against tables of cases."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lmms_eval_tasks.utils.replies import answers
from lmms_eval_tasks.utils.replies.numbered import read_alignment, read_order
from lmms_eval_tasks.utils.replies.summaries import (
    Frames,
    Summary,
    read_frames,
    read_joint,
    read_leniently,
    read_summary,
)
from tests.checks import table


def cases(name: str) -> list[dict[str, Any]]:
    file = Path(__file__).parents[2] / "cases" / f"haven_{name}.json"
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return found


def of_frames(found: Frames) -> dict[str, Any]:
    return {
        "frames": list(found.frames),
        "selected": sorted(found.selected),
        "status": found.status,
        "violations": found.violations,
    }


def of_summary(found: Summary) -> dict[str, Any]:
    return {
        "sentences": list(found.sentences),
        "summary_status": found.status,
        "summary_violations": found.violations,
    }


@table("case", cases("keyframes"))
def test_keyframes_and_summaries(case: dict[str, Any]) -> None:
    text, asked = case["text"], case.get("n_sentences")
    if case["read"] == "frames":
        found = of_frames(read_frames(text, case["n_frames"], case["k"]))
    elif case["read"] == "summary":
        found = of_summary(read_summary(text, asked))
    else:
        summary, frames = read_joint(text, case["n_frames"], case["k"], asked)
        found = {**of_frames(frames), **of_summary(summary)}
    assert found == {name: case[name] for name in found}


@table(
    "text, k, frames",
    [
        ("[3, 1, 2]", 2, (3, 1)),
        ("First [4, 4, 99, 5], then [6].", 9, (4, 5)),  # the first list, not the last
        ("Frame 7, then 2 and 12.", 3, (7, 2)),  # without a list all integers, of 10 frames
        ("[Frame 3, Frame 8]", 3, (3, 8)),
        ("1. [2, 3,]", 3, (1, 2, 3)),  # no JSON: all integers
        ("<think>[1]</think>\n[2]", 3, (2,)),
        ("<think>[1]", 3, ()),
        ("Some of them.", 3, ()),
        ("[99]", 3, ()),
        ("SUMMARY:\n1. A.\nIMPORTANT FRAMES: [Frame 3, Frame 3, Frame 11, 1]", None, (3, 1)),
        ("**Important frames:** Frame 4 and 2\n5", None, (4, 2)),
        ("IMPORTANT FRAMES: none.\n[1]", None, ()),
        ("[Frame 1]", None, ()),
    ],
)
def test_frames_as_the_published_scores_take_them(
    text: str, k: int | None, frames: tuple[int, ...]
) -> None:
    assert read_leniently(text, 10, k) == frames


@table("case", cases("orders"))
def test_orders(case: dict[str, Any]) -> None:
    found = read_order(case["text"], case["n"], case["unit"])
    assert (list(found.units), found.status) == (case["units"], case["status"])
    assert found.violations == case["violations"]
    # The table keeps the rules.
    violations = Counter(case["violations"])
    assert (case["status"] == "ok") == (len(case["units"]) == case["n"])
    assert not case["units"] or violations["missing"] == case["n"] - len(case["units"])


@table("case", cases("alignments"))
def test_alignments(case: dict[str, Any]) -> None:
    found = read_alignment(case["text"], case["n_sentences"], case["n_clips"])
    assert [sorted(clips) for clips in found.sets] == case["sets"]
    assert (found.status, found.violations) == (case["status"], case["violations"])


def test_numbers_of_any_size() -> None:
    huge, padded = "9" * 5000, "0" * 5000  # longer than Python converts
    frames = read_frames(f"[{huge}, 2, {padded}1]", 20, 3)
    assert frames.frames == (2, 1)
    assert frames.violations == {"out_of_range": 1, "other_form": 1}
    assert len(frames.selected) == 3
    assert read_order(f"Shot {huge} > Shot 2 > Shot {padded}1", 2, "Shot").units == (2, 1)
    clips = read_alignment(f"Summary 1: Clip {huge}, Clip {padded}2\nSummary {huge}: Clip 1", 1, 5)
    assert clips.violations == {"unknown_clips": 1, "unknown": 1}
    assert 2 in clips.sets[0]
    assert len(clips.sets[0]) == 2
    ranges = {"2-999999999": [2, 3, 4, 5, 6], "700-999999999": [700]}  # cost no memory
    for text, found in ranges.items():
        assert sorted(read_alignment(f"Summary 1: Clip {text}", 1, 5).sets[0]) == found


ARRAYS = ["[1, ", "[", "1,", "[1],", "9", "example [1] ", "not [", "[ ", "Frame ", "- \n"]
PARTS = ["SUMMARY:\n", "important frames: [", "1. a\n", "1. a ", "- a\n", "a. ", "*", " ", "\r\n"]
PARTS += ["[1],", "TASK 2 ", "_"]
ORDERS = ["Shot 1 > ", "1 > ", "9", "(", "> \n", "\n>", "Shot 1 > Shot 2\n", "Shot 1, ", "not "]
ORDERS += ["1. Shot 2\n", "Shot 1 (", "least last to ", ":", "[", " "]
CLIPS = ["Summary 1: ", "Summary 1: Clip 1, ", "Clip 1, ", "1-", "1, ", "clip ", "Summary 1:\n"]
CLIPS += ["9", "Clip 1\n", "1 and ", '"', "Summary 1: Clip 1-99999999\n", "Clip 1 to ", "a "]
STATUSES = {"ok", "unparsed", "refused", "empty"}


@table("piece", {*ARRAYS, *PARTS, *ORDERS, *CLIPS})
def test_long_replies(piece: str) -> None:
    """20,000 characters, at which quadratic matching takes minutes."""
    text = piece * (20_000 // len(piece)) + "x"
    for head in ("", "SUMMARY:", "Summary 1: "):
        read_joint(head + text, 100, 15, 4)
        assert read_frames(head + text, 100, 15).status in STATUSES
        assert read_order(head + text, 30, "Shot").status in STATUSES
        assert read_alignment(head + text, 5, 30).status in STATUSES


@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    assert set(read_frames(text, 5, 2).frames) <= set(range(1, 6))
    assert set(read_joint(text, 5, 2, 3)[1].frames) <= set(range(1, 6))
    assert isinstance(read_summary(text).text, str)
    assert set(read_order(text, 5, "Shot").units) <= set(range(1, 6))
    assert len(read_alignment(text, 3, 5).sets) == 3


# --- before every reader: is there a reply, and is a statement denied ---------------------------


@table("text, status, left")
def test_shape(text: str, status: str, left: str) -> None:
    reply = answers.shape(text)
    assert (reply.status, reply.text) == (status, left)
    assert reply.there == bool(left)
