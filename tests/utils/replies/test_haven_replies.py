"""HAVEN's replies: selections, orders, alignments and summaries, read against tables of cases."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.utils.replies import forms, reply_text
from lmms_eval_tasks.utils.replies.alignments import read_alignment
from lmms_eval_tasks.utils.replies.orders import read_order
from lmms_eval_tasks.utils.replies.summaries import (
    FrameSelection,
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


def at_limit(case: dict[str, Any]) -> dict[str, bool]:
    return {"at_limit": case["at_limit"]} if "at_limit" in case else {}


def of_frames(found: FrameSelection) -> dict[str, Any]:
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
    text, asked, limit = case["text"], case.get("n_sentences"), at_limit(case)
    if case["read"] == "frames":
        found = of_frames(read_frames(text, case["n_frames"], case["k"], **limit))
    elif case["read"] == "summary":
        found = of_summary(read_summary(text, asked))
    else:
        summary, frames = read_joint(text, case["n_frames"], case["k"], asked, **limit)
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
    found = read_order(case["text"], case["n"], case["unit"], **at_limit(case))
    assert (list(found.units), found.status) == (case["units"], case["status"])
    assert found.violations == case["violations"]
    # The table keeps the rules.
    violations = Counter(case["violations"])
    assert (case["status"] == "ok") == (len(case["units"]) == case["n"])
    assert not case["units"] or violations["missing"] == case["n"] - len(case["units"])


@table("case", cases("alignments"))
def test_alignments(case: dict[str, Any]) -> None:
    limits = case["n_sentences"], case["n_clips"]
    found = read_alignment(case["text"], *limits, **at_limit(case))
    assert [sorted(clips) for clips in found.sets] == case["sets"]
    assert (found.status, found.violations) == (case["status"], case["violations"])


# --- a sentence about something else never changes what is read ----------------------------------

DATA = st.data()
JOINTS = ["\n", "\n\n", " ", ". ", ".\n"]
OF_ORDERS = [
    "{} would be a naive choice.",
    "Note: a naive order is {}.",
    "Timestamps: {}",
    "Given order: {}",
    "The order shown was {}.",
    "{} is what most people would say.",
    "I also thought of {} at first.",
    "One might be led to {} by the light.",
    "Scores: {}",
    "Confidence: {}",
    "L'ordine mostrato: {}",
    "{} ❌",
]
OF_FRAMES = [
    "{} would be a naive choice.",
    "Timestamps: {}",
    "Times in seconds: {}",
    "Scores: {}",
    "Total frames: {}",
    "I left out {}.",
    "The frames {} show only the intro.",
    "The first frames are {}.",
    "Brightness: {}",
    "Others would take {}.",
    "Punteggi: {}",
    "{} ❌",
]


def others(n: int, unit: str) -> list[str]:
    """Two orders of all units, each as a chain, an array and a list."""
    orders = [*range(1, n + 1)], [*range(n, 0, -1)]
    named = [[f"{unit} {number}" for number in order] for order in orders]
    return [
        *(" > ".join(order) for order in named),
        *(", ".join(order) for order in named),
        *(str(order) for order in orders),
    ]


@given(st.sampled_from(cases("orders")), st.sampled_from(JOINTS), st.sampled_from(OF_ORDERS), DATA)
@settings(max_examples=1500, deadline=None)
def test_a_sentence_on_another_order(
    case: dict[str, Any], joint: str, sentence: str, data: st.DataObject
) -> None:
    n, unit = case["n"], case["unit"]
    other = data.draw(st.sampled_from(others(n, unit)))
    found = read_order(case["text"] + joint + sentence.format(other), n, unit)
    before = read_order(case["text"], n, unit)
    if before.status == "ok":
        assert found.status == "unparsed" or found.units == before.units


@given(
    st.sampled_from([case for case in cases("keyframes") if case["read"] != "summary"]),
    st.sampled_from(JOINTS),
    st.sampled_from(OF_FRAMES),
)
@settings(max_examples=1500, deadline=None)
def test_a_sentence_on_other_frames(case: dict[str, Any], joint: str, sentence: str) -> None:
    def read(text: str) -> FrameSelection:
        limits = case["n_frames"], case["k"]
        return read_frames(text, *limits) if alone else read_joint(text, *limits, 2)[1]

    alone = case["read"] == "frames"
    before = read(case["text"])
    found = read(case["text"] + joint + sentence.format("[2, 8, 15]"))
    if before.status == "ok":
        assert found.status in ("unparsed", "empty") or found.selected == before.selected


@given(st.sampled_from(cases("alignments")), st.sampled_from(JOINTS), st.integers(1, 2))
@settings(max_examples=500, deadline=None)
def test_a_sentence_on_other_clips(case: dict[str, Any], joint: str, number: int) -> None:
    limits = case["n_sentences"], case["n_clips"]
    before = read_alignment(case["text"], *limits)
    for sentence in ("Summary {}: Clip 5 would be naive.", "Note that Summary {}: Clip 5", "[5]"):
        found = read_alignment(case["text"] + joint + sentence.format(number), *limits)
        for was, now in zip(before.sets, found.sets, strict=True):
            assert now in (was, frozenset()) or not was


@table("row", [row for row in forms.load_table("lists")["guards"] if "found" in row])
def test_each_guard_has_an_example_that_it_finds_and_one_that_it_misses(
    row: dict[str, str],
) -> None:
    pattern = forms.guards("lists")[row["name"]]
    find = pattern.match if row["name"].endswith((" behind", " on", " end")) else pattern.search
    assert find(row["found"])
    assert not find(row["missed"])


def words(guard: str) -> list[str]:
    """The words of a part, or of the longest alternation of a guard."""
    data = forms.load_table("lists")
    rows = {row["name"]: row["pattern"] for row in data["guards"]} | data["parts"]
    listed = max(re.findall(r"\(\?:([^()]*)\)", rows[guard]), key=len)
    return [word.replace("[ _-]", " ").replace("\\", "") for word in listed.split("|")]


def test_every_word_that_decides() -> None:
    chain, other = "Shot 3 > Shot 1 > Shot 2", "Shot 1 > Shot 2 > Shot 3"

    def order(text: str) -> tuple[int, ...]:
        return read_order(text, 3, "Shot").units

    for word in (word.replace("w*", "") for word in words("quantity")):
        assert read_frames(f"{word}: [1, 2]", 9, 2).status == "unparsed", word
        assert read_frames(f"{word}: [1, 2]\nFrames: [3, 4]", 9, 2).frames == (3, 4), word
    for word in (word.replace("w*", "") for word in words("corrected")):
        assert order(f"{other}\n{word}: {chain}") == (3, 1, 2), word
    assert order(f"{other}\nBeautiful: {chain}") == (1, 2, 3)
    for word in words("OTHER_KIND"):
        assert order(f"{word} order: {other}\n{chain}") == (3, 1, 2), word
        assert order(f"{word} order: {other}") == (), word
    for word in words("ORDER_KIND"):
        assert order(f"{other}\nThe {word} order is {chain}.") == (3, 1, 2), word
    for word in words("ANSWER"):
        assert order(f"{other}\n{word}: {chain}\nThat is all.") == (3, 1, 2), word
    for word in words("FRAMES_KIND"):
        assert read_frames(f"[1, 2]\nThe {word} frames are [3, 4].", 9, 2).frames == (3, 4), word
    for low, high in zip(words("LOW"), words("HIGH"), strict=False):
        assert order(f"From {low} to {high}: {chain}") == (2, 1, 3), (low, high)
        assert order(f"From {high} to {low}: {chain}") == (3, 1, 2), (low, high)


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
    reply = reply_text.shape(text)
    assert (reply.status, reply.text) == (status, left)
    assert reply.has_text == bool(left)
