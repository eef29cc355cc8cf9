"""The printed tables: every number is there, none is cut off, none stands under a wrong name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.maverix import tables
from lmms_eval_tasks.maverix.labels import TASKS
from lmms_eval_tasks.maverix.metrics import WITHOUT
from tests import checks
from tests.checks import lines_of as of
from tests.checks import table
from tests.maverix.items import KINDS

ACC = {"a": 0.465, "s": 0.414, "v": 0.354, "vs": 0.579, "av": 0.495}  # Qwen 2.5 Omni, Table 3
SILENT = {"a": "not delivered", "av": "not delivered"}
HEARD = {"a": "delivered", "av": "delivered"}


def printed(
    rows: Sequence[tuple[str, Mapping[str, Any]]], sound: Mapping[str, str] | None = None
) -> dict[str, list[str]]:
    """Lines of each table by its title, at the width of the user's console.

    `sound` is what a run counts beside its numbers: state by mode.
    """
    found = sound or {}
    return checks.printed(tables.tables([(name, counted(own, found)) for name, own in rows]))


def counted(numbers: Mapping[str, Any], sound: Mapping[str, str]) -> dict[str, Any]:
    """The numbers with the counts that a run with this sound has in each task."""
    found = {}
    for task, values in numbers.items():
        asked = TASKS.get(task)
        own = sound.get(asked.mode.slug, "") if asked else ""
        counts = {f"n_sound_missing_{mode}": state in WITHOUT for mode, state in sound.items()}
        if own:
            counts = {"n_sound_missing": own in WITHOUT, "n_sound_unknown": own == "unknown"}
        found[task] = {**{name: int(count) for name, count in counts.items()}, **values}
    return found


def cells(lines: Sequence[str], starts: str) -> list[str]:
    """The cells behind the names at the start of one line."""
    names = starts.split()
    (line,) = (line for line in lines if line.split()[: len(names)] == names)
    return line.split()[len(names) :]


def modes(**more: Mapping[str, Any]) -> dict[str, Any]:
    return {f"maverix_{mode}": {"acc": value, **more.get(mode, {})} for mode, value in ACC.items()}


# Qwen-2-VL's row in the paper: A and V+A were not run.
PAPER = {f"maverix_{mode}": {"acc": v} for mode, v in (("s", 0.43), ("v", 0.48), ("vs", 0.575))}
HEARS = {"n_sound_missing": 0, "n_sound_unknown": 0}
DEAF = {"n_sound_missing": 3, "n_sound_unknown": 0, "n_sound_missing_av": 0}


def said(missing: int) -> dict[str, Any]:
    """What the other modes' items say of A and V+A."""
    counts = {"n_sound_missing_a": missing, "n_sound_missing_av": missing}
    return {task: {**values, **counts} for task, values in PAPER.items()}


@table(
    "numbers, sound, row",
    [
        # Subtitles stand for sound and are marked, run or not.
        (modes(), SILENT, "41.4* 41.4 35.4 41.4 57.9 57.9* 57.9 +16.5"),
        (PAPER, SILENT, "43.0* 43.0 48.0 48.0 57.5 57.5* 57.5 +9.5"),
        (PAPER, {"a": "raises", "av": "raises"}, "43.0* 43.0 48.0 48.0 57.5 57.5* 57.5 +9.5"),
        # Saved counts tell what the caller does not.
        (said(9), {}, "43.0* 43.0 48.0 48.0 57.5 57.5* 57.5 +9.5"),
        (said(0), {}, "- 43.0 48.0 - 57.5 - - -"),
        (PAPER, {}, "- 43.0 48.0 - 57.5 - - -"),
        (modes(a=HEARS, av=DEAF), {}, "46.5 41.4 35.4 46.5 57.9 57.9* 57.9 +11.4"),
        # What rests on sound of which nobody knows is marked, and a silent A that was run alone.
        (
            modes(),
            {"a": "unknown", "av": "delivered"},
            "46.5? 41.4 35.4 46.5? 57.9 49.5 57.9 +11.4?",
        ),
        ({"maverix_a": {"acc": 0.5}}, SILENT, "50.0^ - - - - - - -"),
    ],
)
def test_table_3(numbers: Mapping[str, Any], sound: Mapping[str, str], row: str) -> None:
    lines = of(printed([("", numbers)], sound), "Table 3")
    assert cells(lines, "this run localized") == row.split()
    notes = {mark for mark in "*?^" if tables.MARKS[mark] in lines}
    assert notes == {mark for mark in "*?^" if mark in row}


def test_one_silent_mode() -> None:
    """A was run and is silent; V+A, not run, is not: its column stays empty."""
    rows = modes(a=DEAF, s={"n_sound_missing_a": 3, "n_sound_missing_av": 0})
    del rows["maverix_av"]
    lines = of(printed([("", rows)]), "Table 3")
    expected = ["41.4*", "41.4", "35.4", "41.4", "57.9", "-", "-", "-"]
    assert cells(lines, "this run localized") == expected


def test_names_with_more_behind_them() -> None:
    """Several models rescored at once."""
    numbers = {"maverix_v m1": {"acc": 0.25}, "maverix_long_v m1": {"acc": 0.5}}
    lines = of(printed([("", numbers)]), "Table 3")
    assert cells(lines, "m1 localized")[2] == "25.0"
    assert cells(lines, "m1 full length")[2] == "50.0"
    brackets = printed([("m[bold]", {"maverix_av": {"acc": 0.5}})])  # rich's markup
    assert cells(of(brackets, "Table 3"), "m[bold] localized")[5] == "50.0"
    assert any("m[bold]" in line for line in of(brackets, "Tables 4, 5 and 10"))


def test_an_invalid_mode_stays_in_its_row() -> None:
    """Its cells are marked, and what rests on them; of one model of two, and of one kind."""
    numbers = {f"{task} m": values for task, values in modes().items()}
    numbers["maverix_v m INVALID"] = numbers.pop("maverix_v m")
    numbers |= {"maverix_v_oe m": {"correctness_valid": 2.0}}
    shown = printed([("", {**numbers, "maverix_s n": {"acc": 0.25}})])
    lines = of(shown, "Table 3")
    expected = ["46.5", "41.4", "35.4!", "46.5!", "57.9", "49.5", "57.9", "+11.4!"]
    assert cells(lines, "m localized") == expected
    assert cells(lines, "n localized")[1] == "25.0"
    assert tables.MARKS["!"] in lines
    assert cells(of(shown, "Table 6)"), "m localized")[2] == "2.0"
    assert any(" V! " in f"{line} " for line in of(shown, "Tables 4, 5 and 10"))


# --- other tables -------------------------------------------------------------------------------


@table(
    "kind, title, metric",
    [
        ("choice", "Table 3", "acc"),
        ("open", "Table 6)", "correctness_valid"),
        ("circular", "eight rotations", "circ_acc"),
    ],
)
def test_a_single_mode_stands_in_the_first_table(kind: str, title: str, metric: str) -> None:
    for task, asked in TASKS.items():
        if asked.kind == kind:
            first, lines = next(iter(printed([("m", {task: {metric: 0.5}})]).items()))
            assert title in first, task
            assert any({"50.0", "0.5"} & {*line.split()} for line in lines), task


def test_sound_that_does_not_arrive() -> None:
    """By label a mode's own numbers stand, marked; GPT-4o's row of Table 6: S 1.6, V+S 2.2."""
    lines = of(printed([("m", modes())], SILENT), "Tables 4, 5 and 10")
    assert cells(lines, "acc") == ["46.5", "41.4", "35.4", "57.9", "49.5"]
    assert any("A^" in line and "V+A^" in line for line in lines)
    assert tables.MARKS["^"] in lines
    rating = {"s": 1.6, "v": 1.4, "vs": 2.2}
    numbers = {f"maverix_{m}_oe": {"correctness_valid": v} for m, v in rating.items()}
    for sound, expected in (
        (SILENT, ["1.6*", "1.6", "1.4", "2.2", "2.2*"]),
        (HEARD, ["-", "1.6", "1.4", "2.2", "-"]),
    ):
        assert cells(of(printed([("G", numbers)], sound), "Table 6)"), "G localized") == expected


def test_what_has_no_number_is_left_out() -> None:
    nothing = {"acc": None, "acc_valid": float("nan"), "words_mean": "N/A"}
    assert printed([("m", {"maverix_av": nothing, "maverix": {}, "maia_vsv": {"acc": 0.5}})]) == {}
    for name in ("maverix_long_table3", "maverix_long_long_a"):
        assert printed([("x", {name: {"best_uni": 0.5, "acc": 0.5}})]) == {}


@table("kind, task", [("choice", "v"), ("circular", "v_circular"), ("open", "v_oe")])
def test_every_metric_is_printed_somewhere(kind: str, task: str) -> None:
    """Each with a number of its own, but for those that only marks stand for.

    Under which name is seen in the recorded tables (tests/golden).
    """
    names = {one.name for one in KINDS[kind] if not one.name.startswith("n_sound_")}
    values = {name: 1000 + n for n, name in enumerate(sorted(names))}
    shown = printed([("m", {f"maverix_{task}": values})])
    text = " ".join(line for lines in shown.values() for line in lines)
    seen = {name for name, value in values.items() if re.search(rf"\b{value}(00)?\b", text)}
    assert seen == names
