"""Joining answers to places: what shows where an answer belongs, and what shows nothing."""

from __future__ import annotations

from random import Random
from typing import Any

from lmms_eval_tasks.cvrr_es.joining import join

NOTHING: dict[str, Any] = {"unknown": [], "several": [], "open": []}


def said(questions: str) -> list[tuple[str, str]]:
    """One letter is one question, and the empty text a "-"; every answer is unlike all others."""
    return [(letter.strip("-"), f"{letter}{number}") for number, letter in enumerate(questions)]


def test_what_is_joined_and_what_is_told() -> None:
    """Answers, the annotations, places in the order of the answers ("." is none), ways, trouble."""
    for answers, places, joined, ways, trouble in (
        *((one, one, "012", {"order": 3}, {}) for one in ("abc", "aba", "aaa")),
        ("cab", "abc", "201", {"text": 3}, {}),
        # The blocks ax and cx moved; inside them nothing did.
        ("cxdabxe", "abxecxd", "4560123", {"text": 5, "neighbours": 2}, {}),
        # On one side alone neighbours tell nothing.
        ("axbcxd", "axcbxd", "0.32.5", {"text": 4}, {"open": [1, 4]}),
        ("axb", "axxb", "0.3", {"text": 2}, {"open": [1]}),
        # Neighbours that are answered twice are none, nor is the end of a cut file.
        ("axbaxb", "axbx", "......", {}, {"several": [0, 2, 3, 5], "open": [1, 4]}),
        ("ax", "axbx", "0.", {"text": 1}, {"open": [1]}),
        # Numbers that do not match.
        ("azc", "abc", "0.2", {"text": 2}, {"unknown": [1]}),
        ("abbc", "abc", "0..2", {"text": 2}, {"several": [1, 2]}),
        ("axbxcx", "axbxc", "01234.", {"text": 3, "neighbours": 2}, {"open": [5]}),
        ("axbc", "axbcx", "0123", {"text": 3, "neighbours": 1}, {}),
        # A row without a text is nothing to be found by.
        ("-b", "b-", ".0", {"text": 1}, {"unknown": [0]}),
    ):
        found, how, left = join(said(answers), [question for question, _ in said(places)])
        shown = "".join(str(found.get(number, ".")) for number in range(len(answers)))
        assert (shown, how, left) == (joined, ways, {**NOTHING, **trouble}), answers


def test_a_context_may_stand_in_front_of_questions() -> None:
    found, ways, _ = join([("Context: a. Question: b", "B"), ("a", "A")], ["b", "a"])
    assert (found, ways) == ({0: 0, 1: 1}, {"order": 2})
    assert not join([("A context for b", "B")], ["b", "a"])[0]


def test_last_with_equal_answers() -> None:
    found, ways, _ = join([("b", "B"), ("x", ""), ("a", "A"), ("x", "")], list("axbx"))
    assert ({found[1], found[3]}, ways) == ({1, 3}, {"text": 2, "last": 2})


def test_moved_blocks_are_joined_rightly_or_left_open() -> None:
    """Whole blocks between unique questions, of any mixture of repeats, over 200 seeds."""
    n_open = 0
    for seed in range(200):
        draw = Random(seed)
        letters = [draw.choice("abcdefgxxyy") for _ in range(draw.randint(1, 14))]
        ends = [n for n, letter in enumerate(letters) if letters.count(letter) == 1]
        blocks = [range(a, b) for a, b in zip([0, *ends], [*ends, len(letters)], strict=True)]
        draw.shuffle(blocks)
        moved = [number for block in blocks for number in block]
        found, ways, _ = join([(letters[n], f"said{n}") for n in moved], letters)
        if [letters[number] for number in moved] == letters:
            assert ways == {"order": len(letters)}
        else:
            assert all(moved[number] == place for number, place in found.items())
            n_open += len(letters) - len(found)
    assert n_open > 0  # else this has not tried anything hard
