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


def table3(numbers: Mapping[str, Any], sound: Mapping[str, str] | None = None) -> list[str]:
    return cells(of(printed([("Q", numbers)], sound), "Table 3"), "Q localized")


# --- Table 3 ------------------------------------------------------------------------------------


def test_subtitles_stand_for_sound_and_are_marked() -> None:
    """Run or not, as in Qwen-2-VL's row in the paper: S 43.0, V 48.0, V+S 57.5."""
    lines = of(printed([("", modes())], SILENT), "Table 3")
    numbers = ["41.4*", "41.4", "35.4", "41.4", "57.9", "57.9*", "57.9", "+16.5"]
    assert cells(lines, "this run localized") == numbers
    assert tables.MARKS["*"] in lines
    paper = {"maverix_s": 0.43, "maverix_v": 0.48, "maverix_vs": 0.575}
    numbers = {task: {"acc": value} for task, value in paper.items()}
    expected = ["43.0*", "43.0", "48.0", "48.0", "57.5", "57.5*", "57.5", "+9.5"]
    for state in ("not delivered", "raises"):
        assert table3(numbers, {"a": state, "av": state}) == expected
    dashes = ["-", "43.0", "48.0", "-", "57.5", "-", "-", "-"]
    for count, shown in ((9, expected), (0, dashes)):
        counts = {"n_sound_missing_a": count, "n_sound_missing_av": count}
        assert table3({task: {**values, **counts} for task, values in numbers.items()}) == shown
    assert table3(numbers) == dashes


def test_saved_counts_tell_what_the_caller_does_not() -> None:
    missing = {"n_sound_missing": 3, "n_sound_unknown": 0, "n_sound_missing_av": 0}
    heard = {"n_sound_missing": 0, "n_sound_unknown": 0}
    found = table3(modes(a=heard, av=missing))
    assert (found[0], found[5]) == ("46.5", "57.9*")
    # A was run and is silent; V+A, not run, is not: its column stays empty.
    rows = modes(a=missing, s={"n_sound_missing_a": 3, "n_sound_missing_av": 0})
    del rows["maverix_av"]
    assert table3(rows) == ["41.4*", "41.4", "35.4", "41.4", "57.9", "-", "-", "-"]


def test_what_rests_on_unknown_or_lost_sound_is_marked() -> None:
    """Of a silent A that was run beside no S, the number stays, marked."""
    sound = {"a": "unknown", "av": "delivered"}
    expected = ["46.5?", "41.4", "35.4", "46.5?", "57.9", "49.5", "57.9", "+11.4?"]
    assert table3(modes(), sound) == expected
    assert tables.MARKS["?"] in of(printed([("x", modes())], sound), "Table 3")
    assert table3({"maverix_a": {"acc": 0.5}}, SILENT)[0] == "50.0^"


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
