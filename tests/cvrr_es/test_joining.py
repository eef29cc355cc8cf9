"""Joining answers to places: what shows where an answer belongs, and what shows nothing."""

from __future__ import annotations

from random import Random

from lmms_eval_tasks.cvrr_es.candidates import join


def test_what_is_joined() -> None:
    """Answers' questions, the annotations, places in the order of the answers; "." is none."""
    for answers, places, joined in (
        *((one, one, "012") for one in ("abc", "aba", "aaa")),
        ("cab", "abc", "201"),
        # The blocks ax and cx moved; inside them nothing did.
        ("cxdabxe", "abxecxd", "4560123"),
        # On one side alone neighbours tell nothing.
        ("axbcxd", "axcbxd", "0.32.5"),
        ("axb", "axxb", "0.3"),
        # One answer and one place are left.
        ("xabx", "axbx", "1023"),
        # Neighbours that are answered twice are none, nor is the end of a cut file.
        ("axbaxb", "axbx", "......"),
        ("ax", "axbx", "0."),
        # Numbers that do not match.
        ("azc", "abc", "0.2"),
        ("abbc", "abc", "0..2"),
        ("axbxcx", "axbxc", "01234."),
        ("axbc", "axbcx", "0123"),
        # A row without a text is nothing to be found by.
        ("-b", "b-", ".0"),
    ):
        found = join(*([letter.strip("-") for letter in texts] for texts in (answers, places)))
        assert "".join(str(found.get(n, ".")) for n in range(len(answers))) == joined, answers


def test_a_context_may_stand_in_front_of_questions() -> None:
    assert join(["Context: a. Question: b", "a"], ["b", "a"]) == {0: 0, 1: 1}
    assert not join(["A context for b"], ["b", "a"])


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
        found = join([letters[n] for n in moved], letters)
        if [letters[number] for number in moved] == letters:
            assert len(found) == len(letters)
        else:
            assert all(moved[number] == place for number, place in found.items())
            n_open += len(letters) - len(found)
    assert n_open > 0  # else this has not tried anything hard
