"""The printed tables: whose number stands where, and its marks. To the last row: tests/golden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import registry
from lmms_eval_tasks.maverix.labels import TASKS
from lmms_eval_tasks.maverix.metrics import WITHOUT
from lmms_eval_tasks.tables.paper_tables import DOUBT
from tests import checks
from tests.checks import lines_of as of
from tests.checks import rows, table

BENCHMARK = registry.load_benchmark("maverix")
ACC = {"a": 0.465, "s": 0.414, "v": 0.354, "vs": 0.579, "av": 0.495}  # Qwen 2.5 Omni, Table 3
SILENT = {"a": "not delivered", "av": "not delivered"}
Numbers = dict[str, dict[str, Any]]


def printed(*given: checks.Row) -> dict[str, list[str]]:
    return checks.printed(BENCHMARK.tables(given))


def counted(numbers: Numbers, sound: Mapping[str, str]) -> Numbers:
    """The numbers with the counts that a run with this sound has in each task."""
    found = {}
    for task, values in numbers.items():
        counts = {f"n_sound_missing_{mode}": state in WITHOUT for mode, state in sound.items()}
        if own := sound.get(TASKS[task].mode.slug, ""):
            counts = {"n_sound_missing": own in WITHOUT, "n_sound_unknown": own == "unknown"}
        found[task] = {**{name: int(count) for name, count in counts.items()}, **values}
    return found


def cells(lines: Sequence[str], starts: str) -> list[str]:
    """The cells behind the names at the start of one line."""
    names = starts.split()
    (line,) = (line for line in lines if line.split()[: len(names)] == names)
    return line.split()[len(names) :]


def modes(**more: Mapping[str, Any]) -> Numbers:
    return {f"maverix_{mode}": {"acc": value, **more.get(mode, {})} for mode, value in ACC.items()}


# Qwen-2-VL's row in the paper: A and V+A were not run.
PAPER: Numbers = {
    f"maverix_{mode}": {"acc": v} for mode, v in (("s", 0.43), ("v", 0.48), ("vs", 0.575))
}
HEARS = {"n_sound_missing": 0, "n_sound_unknown": 0}
DEAF = {"n_sound_missing": 3, "n_sound_unknown": 0, "n_sound_missing_av": 0}


@table(
    "numbers, sound, row",
    [
        # Subtitles stand for sound and are marked, run or not.
        (modes(), SILENT, "41.4* 41.4 35.4 41.4 57.9 57.9* 57.9 +16.5"),
        (PAPER, SILENT, "43.0* 43.0 48.0 48.0 57.5 57.5* 57.5 +9.5"),
        (PAPER, {"a": "raises", "av": "raises"}, "43.0* 43.0 48.0 48.0 57.5 57.5* 57.5 +9.5"),
        (PAPER, dict.fromkeys(("a", "av"), "delivered"), "- 43.0 48.0 - 57.5 - - -"),
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
def test_table_3(numbers: Numbers, sound: Mapping[str, str], row: str) -> None:
    lines = of(printed(*rows(counted(numbers, sound))), "Table 3")
    assert cells(lines, "this run localized") == row.split()


def test_several_models_and_an_invalid_mode() -> None:
    """The cells of an invalid one are marked, and what rests on them."""
    numbers = {**modes(), "maverix_v_oe": {"correctness_valid": 2.0}}
    brackets = {"maverix_s": {"acc": 0.25}, "maverix_long_v": {"acc": 0.5}}  # rich's markup
    shown = printed(*rows(numbers, "m", bad="maverix_v"), *rows(brackets, "n[bold]"))
    lines = of(shown, "Table 3")
    expected = ["46.5", "41.4", "35.4!", "46.5!", "57.9", "49.5", "57.9", "+11.4!"]
    assert cells(lines, "m localized") == expected
    assert cells(lines, "n[bold] localized")[1] == "25.0"
    assert cells(lines, "n[bold] full length")[2] == "50.0"
    assert DOUBT in lines
    assert cells(of(shown, "Table 6)"), "m localized")[2] == "2.0"
    by_label = of(shown, "Tables 4, 5 and 10")
    assert any(" V! " in f"{line} " for line in by_label)
    assert any("n[bold]" in line for line in by_label)


def test_sound_that_does_not_arrive() -> None:
    """By label a mode's own numbers stand, marked; GPT-4o's row of Table 6: S 1.6, V+S 2.2."""
    lines = of(printed(*rows(counted(modes(), SILENT))), "Tables 4, 5 and 10")
    assert cells(lines, "acc") == ["46.5", "41.4", "35.4", "57.9", "49.5"]
    assert any("A^" in line and "V+A^" in line for line in lines)
    assert BENCHMARK.board()["marks"]["^"] in lines
    rating = {"s": 1.6, "v": 1.4, "vs": 2.2}
    numbers = {f"maverix_{m}_oe": {"correctness_valid": v} for m, v in rating.items()}
    lines = of(printed(*rows(counted(numbers, SILENT), "G")), "Table 6)")
    assert cells(lines, "G localized") == ["1.6*", "1.6", "1.4", "2.2", "2.2*"]


def test_what_has_no_number_is_left_out() -> None:
    nothing = {"acc": None, "acc_valid": float("nan"), "words_mean": "N/A"}
    assert printed(*rows({"maverix_av": nothing, "maverix_table3": {"best_uni": 0.5}})) == {}
