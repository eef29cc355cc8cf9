"""MAVERIX's data file: what is collected per item, what stops the file, the authors' lines."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import release
from lmms_eval_tasks.maverix.labels import SPLITS
from lmms_eval_tasks.maverix.release import Release
from tests.checks import refused, table
from tests.maverix.entries import CASES, entry, lines, write, write_lines


def read(folder: Path, *entries: dict[str, Any]) -> Release:
    return release.read_maverix(write(folder, list(entries)))


_ODD = [(n, v) for n in ("start", "end") for v in (math.nan, math.inf, -math.inf, 10**400)]


@table(
    "change, says",
    [
        *((case["change"], case["says"]) for case in CASES["bad"]),
        *(({name: value}, f"^{name}: .*(finite|valid|or more)") for name, value in _ODD),
        *(({name: ...}, f"^{name}: the field is missing$") for name in CASES["absent"]),
        ({"question": "", "start": -1, "video": "a/b", "topic": "x" * 5000}, "; .*; "),
    ],
)
def test_a_bad_item_is_told_in_one_line_and_the_others_are_kept(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    found = read(tmp_path, entry(1, **change), entry(2))
    assert [item.id for item in found.items] == ["item-2"]
    assert list(found.problems) == ["item-1"]
    said = found.problems["item-1"]
    assert re.search(says, said), said
    assert "\n" not in said
    assert len(said) < 300


def test_what_may_be_absent_or_null(tmp_path: Path) -> None:
    for nothing in (..., None):
        nulls = {"start": None, "end": None, "shuffled": ..., **dict.fromkeys(SPLITS, nothing)}
        (item,) = read(tmp_path, entry(question=" Chi è?\nLui? ", **nulls)).items
        assert all(getattr(item, name) is None for name in (*SPLITS, "start", "end"))
        assert (item.shuffled, item.question) == (False, "Chi è?\nLui?")


@table(
    "content, says",
    [
        ("oops", "expected .*items"),
        ({"questions": []}, "expected .*items"),
        ({"items": {}}, "expected .*items"),
        ([], "no entries"),
        ([entry(1), "x"], "entry 2: expected an object, found 'x'"),
        ([entry(1), entry(2, id=...)], "entry 2: id: the field is missing"),
        ([entry(1), entry(2, id=" ")], "entry 2: id: expected a text, found an empty one"),
        ([entry(1), entry(2, id=7)], "entry 2: id: expected a text"),
        ([entry(1), entry(2), entry(1)], "entry 3: id 'item-1' is also the id of entry 1"),
        ([entry(1), entry(1, options=[])], "entry 2: id 'item-1' is also the id of entry 1"),
        (
            [entry(1, question=...), entry(2, question=...)],
            "none of 2 entries fits the schema; 'item-1': question: the field is missing",
        ),
    ],
)
def test_what_stops_the_whole_file(content: Any, says: str, tmp_path: Path) -> None:
    file = write(tmp_path, content)
    assert str(file) in refused(DataError, says, release.read_maverix, file)


def test_the_hash(tmp_path: Path) -> None:
    """A changed file is read again; the form of the file does not matter."""
    first = read(tmp_path, entry())
    (tmp_path / "data.json").write_text(json.dumps([entry()], indent=3, sort_keys=True))
    assert release.read_maverix(tmp_path).digest == first.digest
    assert read(tmp_path, entry(reference="Another")).digest != first.digest
    named = write(tmp_path, {"version": "1.0", "items": [entry()]})
    assert release.read_maverix(named).items == first.items


# --- the authors' lines, three to a question -----------------------------------------------------


def released(folder: Path, *rows: dict[str, Any]) -> Release:
    return release.read_maverix(write_lines(folder / "test_full.jsonl", rows))


def test_three_lines_are_one_item(tmp_path: Path) -> None:
    found = released(tmp_path, *lines(7))
    assert (found.released, found.problems) == (True, {})
    first, second = found.items
    assert (first.id, first.video, first.start, first.shuffled) == ("0007_1", "clip", None, True)
    assert (first.question, first.opened) == ("Which lamp 7.1 is lit?",) * 2
    assert (first.paraphrase, first.reference) == ("Lit is which lamp 7.1?", "The lamp 1")
    assert first.options == [*(f"Colour {x}71" for x in "ABCDEFG"), "Unsure."]
    # Of several agentic categories the first one counts.
    assert (first.answer, first.agentic, first.duration) == ("C", "egocentric", "middle")
    assert (first.difficulty, first.audio, first.topic) == ("easy", "natural", "pets")
    assert (first.ability, second.topic) == ("causal", None)
    # The second one's first wording asks for the first one's lamp.
    assert (second.question, second.opened) == ("Which lamp 7.2 is lit?", "Which lamp 7.1 is lit?")
    assert found.borrowed == ["0007_2"]
    rows = lines(7)
    rows[4]["question"] = "Which lamp, 7.2, is lit?"
    assert released(tmp_path, *rows).borrowed == []


def test_lines_that_do_not_fit(tmp_path: Path) -> None:
    fillers = ["C. Unsure.", "Unsure.", "E. nan", "F. nan", "G. nan", "H. nan"]
    row, *rest = lines(1, questions=1)
    (item,) = released(tmp_path, {**row, "options": ["A. x", "B. y", *fillers]}, *rest).items
    assert item.options == ["x", "y", "Unsure.", "Unsure.", *["nan"] * 4]
    for changed, says in (
        ({"options": ["A. x", "B. x", *fillers]}, "A and B are the same"),
        ({"options": None}, "options: expected a list"),
        ({"options": ["A. x"] * 9}, "options: expected at most 8"),
        ({"answer": "J"}, "answer: String should match"),
    ):
        found = released(tmp_path, {**row, **changed}, *rest, *lines(2))
        assert says in found.problems["0001_1"]
    for left, says in ((0, "options"), (1, "opened"), (2, "paraphrase")):
        rows = lines(1, questions=1)
        rows.pop(left)
        assert says in released(tmp_path, *rows, *lines(2)).problems["0001_1"]
    for more, says in (
        ({"question_id": "1-1"}, "line 2: question_id '1-1': expected NNNN_q-k"),
        ({}, "line 2: question_id '0001_1-1': occurs in another line too"),
    ):
        refused(DataError, says, released, tmp_path, row, {**row, **more})


def test_labels_of_released_lines(tmp_path: Path) -> None:
    """Words of the paper and of the release; an unknown one takes no item away, and is told."""
    rows = lines(1, questions=1)
    for split, field, word, slug in (
        ("agentic", "domain", ["information_querying", "gaming"], "information"),
        ("agentic", "domain", [], None),
        ("audio", "audio_category", "mixed_sounds", "mixed"),
        ("topic", "sub_category", "Movies, TV, & Animation", "movies"),
        ("topic", "sub_category", "Low-Quality & Extended Content", "extended"),
        ("ability", "task_type", "temporal distance", "temporal"),
    ):
        rows[0][field] = word
        found = released(tmp_path, *rows)
        assert (getattr(found.items[0], split), found.notes) == (slug, ()), word
    rows[0] |= {"domain": ["cooking"], "audio_category": "buzz", "extra": 1}
    found = released(tmp_path, *rows)
    assert (found.items[0].agentic, found.items[0].audio) == (None, None)
    unknown = "1 items have the unknown label"
    assert found.notes == (f"{unknown} agentic 'cooking'", f"{unknown} audio 'buzz'")
