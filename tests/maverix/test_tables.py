"""The printed tables: every number is there, none is cut off, none stands under a wrong name."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks.console import TABLE_WIDTH
from lmms_eval_tasks.maverix import metrics, tables
from lmms_eval_tasks.maverix.labels import DIMENSIONS, MODES, SPLITS
from lmms_eval_tasks.maverix.table_rows import MARKS
from tests.maverix.items import KINDS

HUMANS = {
    (mode, which): {"social": 0.9, "gaming": 0.5, "overall": value}
    for mode, value in (("v", 0.801), ("a", 0.432), ("av", 0.927))
    for which in tables.WHICH
}
ACC = {"a": 0.465, "s": 0.414, "v": 0.354, "vs": 0.579, "av": 0.495}  # Qwen 2.5 Omni, Table 3
SILENT = {"maverix_a": "not delivered", "maverix_av": "not delivered"}


def printed(
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    sound: Mapping[str, str] | None = None,
    people: tables.Humans | None = None,
) -> dict[str, list[str]]:
    """Lines of each table by its title, at the width of the user's console."""
    shown = {}
    for table in tables.tables(rows, sound, HUMANS if people is None else people):
        sink = io.StringIO()
        Console(file=sink, width=TABLE_WIDTH).print(table)
        lines = [line.rstrip() for line in sink.getvalue().splitlines()]
        assert "\u2026" not in sink.getvalue()  # rich's ellipsis: a cell did not fit
        assert all(len(line) <= TABLE_WIDTH for line in lines)
        shown.setdefault(str(table.title), []).extend(lines)
    return shown


def of(shown: Mapping[str, list[str]], part: str) -> list[str]:
    """The lines of the one table whose title contains `part`."""
    (lines,) = (lines for title, lines in shown.items() if part in title)
    return lines


def noted(lines: Sequence[str], mark: str) -> bool:
    """Whether a mark's note stands under the table, which may wrap it."""
    return " ".join(MARKS[mark].split()) in " ".join(" ".join(lines).split())


def cells(lines: Sequence[str], *starts: str) -> list[str]:
    """The cells behind the names at the start of one line."""
    (line,) = (line for line in lines if line.split()[: len(starts)] == list(starts))
    return line.split()[len(starts) :]


def modes(**more: Mapping[str, Any]) -> dict[str, Any]:
    return {f"maverix_{mode}": {"acc": value, **more.get(mode, {})} for mode, value in ACC.items()}


class TestTable3:
    def test_percent_and_best(self) -> None:
        lines = of(printed([("Qwen", modes())]), "Table 3")
        numbers = ["46.5", "41.4", "35.4", "46.5", "57.9", "49.5", "57.9", "+11.4"]
        assert cells(lines, "Qwen", "localized") == numbers

    def test_subtitles_stand_for_sound_and_are_marked(self) -> None:
        lines = of(printed([("", modes())], SILENT), "Table 3")
        numbers = ["41.4*", "41.4", "35.4", "41.4", "57.9", "57.9*", "57.9", "+16.5"]
        assert cells(lines, "this", "run", "localized") == numbers
        assert noted(lines, "*")

    def test_a_model_without_sound_that_ran_s_v_and_vs_alone(self) -> None:
        """Qwen-2-VL's row in the paper: S 43.0, V 48.0, V+S 57.5; A and V+A are filled by S."""
        paper = {"maverix_s": 0.43, "maverix_v": 0.48, "maverix_vs": 0.575}
        numbers = {task: {"acc": value} for task, value in paper.items()}
        expected = ["43.0*", "43.0", "48.0", "48.0", "57.5", "57.5*", "57.5", "+9.5"]
        for state in ("not delivered", "raises"):
            hears = {"maverix_a": state, "maverix_av": state}
            lines = of(printed([("Q", numbers)], hears), "Table 3")
            assert cells(lines, "Q", "localized") == expected
            assert noted(lines, "*")
        counts = {"n_sound_missing_a": 9, "n_sound_missing_av": 9}
        saved = {task: {**values, **counts} for task, values in numbers.items()}
        assert cells(of(printed([("Q", saved)]), "Table 3"), "Q", "localized") == expected
        dashes = ["-", "43.0", "48.0", "-", "57.5", "-", "-", "-"]
        counts = {"n_sound_missing_a": 0, "n_sound_missing_av": 0}
        saved = {task: {**values, **counts} for task, values in numbers.items()}
        assert cells(of(printed([("Q", saved)]), "Table 3"), "Q", "localized") == dashes
        assert cells(of(printed([("Q", numbers)]), "Table 3"), "Q", "localized") == dashes

    def test_every_column_of_sound_is_filled_by_s_where_a_was_not_run(self) -> None:
        values = {"acc": 0.5, "acc_difficulty_easy": 0.25, "n_sound_missing_a": 1}
        values |= {"n_sound_missing_av": 1, "acc_agentic_social": 0.125}
        rated = {f"{name}_valid": 2.5 for name in DIMENSIONS} | {"n_sound_missing_av": 1}
        rated |= {"n_sound_missing_a": 1}
        numbers = {f"maverix_{mode}": values for mode in ("s", "v", "vs")}
        numbers |= {f"maverix_{mode}_oe": rated for mode in ("s", "v", "vs")}
        shown = printed([("Q", numbers)])
        four = cells(of(shown, "Table 4"), "Q", "localized")
        assert four[:4] == ["25.0*", "25.0", "25.0*", "0.0*"]
        assert cells(of(shown, "Table 6)"), "Q", "localized") == ["2.5*", "2.5", "2.5*", "0.0*"]
        assert cells(of(shown, "Tables 8 and 9"), "Q", "localized") == [
            *(["2.5000", "2.5000*", "2.5000*"] * 4)
        ]
        for mode, mark, behind in (("A", "*", "-6.8"), ("V", "", "+30.1"), ("V+A", "*", "+42.7")):
            own = cells(of(shown, "(the paper's Table 7)"), "Q", "localized", mode)
            assert (own[0], own[-1]) == (f"12.5{mark}", f"50.0{mark}")
            gaps = cells(of(shown, "Figure 4b"), "Q", "localized", mode)
            assert gaps[-1] == behind + mark

    def test_the_other_way_s_state_is_not_taken_over(self) -> None:
        """A was run and is silent; V+A, not run, is not: its column stays empty."""
        told = {"n_sound_missing": 3, "n_sound_unknown": 0, "n_sound_missing_av": 0}
        rows = modes(a=told, s={"n_sound_missing_a": 3, "n_sound_missing_av": 0})
        del rows["maverix_av"]
        found = cells(of(printed([("x", rows)]), "Table 3"), "x", "localized")
        assert found == ["41.4*", "41.4", "35.4", "41.4", "57.9", "-", "-", "-"]

    @pytest.mark.parametrize(
        ("sound", "uni", "multi", "delta"),
        [
            ({"maverix_a": "unknown", "maverix_av": "unknown"}, "46.5?", "57.9", "+11.4?"),
            ({"maverix_a": "unknown", "maverix_av": "delivered"}, "46.5?", "57.9", "+11.4?"),
            ({"maverix_a": "delivered", "maverix_av": "unknown"}, "46.5", "57.9", "+11.4"),
        ],
    )
    def test_the_best_that_rests_on_unknown_sound_is_marked(
        self, sound: Mapping[str, str], uni: str, multi: str, delta: str
    ) -> None:
        """A is the best of its three, V+A is not: without sound V+S would be the best as well."""
        found = cells(of(printed([("x", modes())], sound), "Table 3"), "x", "localized")
        assert (found[3], found[6], found[7]) == (uni, multi, delta)
        high = modes(av={"acc": 0.75})
        found = cells(of(printed([("x", high)], sound), "Table 3"), "x", "localized")
        assert found[6] == ("75.0?" if sound["maverix_av"] == "unknown" else "75.0")
        group = {"maverix_table3": {"best_uni": 0.5, "best_multi": 0.25, "delta_multi": -0.25}}
        lines = of(printed([("x", group)], sound), "Table 3")
        found = cells(lines, "x", "localized")
        assert (found[3][-1] == "?") == (sound["maverix_a"] == "unknown")
        assert (found[6][-1] == "?") == (sound["maverix_av"] == "unknown")
        assert found[7] == "-25.0?"
        assert noted(lines, "?")

    @pytest.mark.parametrize("sound", [{"Qwen": "raises"}, {"Qwen maverix_a": "raises"}])
    def test_sound_by_label(self, sound: Mapping[str, str]) -> None:
        """One state stands for both modes where the other has none."""
        shown = printed([("Qwen", modes()), ("Ola", modes())], sound)
        assert cells(of(shown, "Table 3"), "Qwen", "localized")[0] == "41.4*"
        assert cells(of(shown, "Table 3"), "Ola", "localized")[0] == "46.5"

    def test_saved_counts_tell_what_the_caller_does_not(self) -> None:
        counts = {"n_sound_missing": 3, "n_sound_unknown": 0}
        heard = {"n_sound_missing": 0, "n_sound_unknown": 0}
        found = cells(
            of(printed([("", modes(a=heard, av=counts))]), "Table 3"), "this", "run", "localized"
        )
        assert (found[0], found[5]) == ("46.5", "57.9*")
        unknown = {"n_sound_missing": 0, "n_sound_unknown": 3}
        lines = of(printed([("", modes(a=unknown, av=unknown))]), "Table 3")
        assert cells(lines, "this", "run", "localized")[0] == "46.5?"
        assert noted(lines, "?")

    def test_the_best_of_fewer_modes_is_a_dash(self) -> None:
        numbers = {name: values for name, values in modes().items() if name != "maverix_s"}
        found = cells(of(printed([("x", numbers)]), "Table 3"), "x", "localized")
        assert found == ["46.5", "-", "35.4", "-", "57.9", "49.5", "57.9", "-"]

    def test_the_groups_row_alone(self) -> None:
        numbers = {"maverix_table3": {"best_uni": 0.5, "best_multi": 0.25, "delta_multi": -0.25}}
        found = cells(of(printed([("x", numbers)]), "Table 3"), "x", "localized")
        assert found == ["-", "-", "-", "50.0", "-", "-", "25.0", "-25.0"]

    def test_names_with_more_behind_them(self) -> None:
        """Several models rescored at once, and a run whose judge failed."""
        numbers = {"maverix_v m1": {"acc": 0.25}, "maverix_long_v m1": {"acc": 0.5}}
        lines = of(printed([("", numbers)]), "Table 3")
        assert cells(lines, "m1", "localized")[2] == "25.0"
        assert cells(lines, "m1", "full", "length")[2] == "50.0"
        invalid = {"maverix_v_oe INVALID": {"correctness_valid": 2.0}}
        assert "this run INVALID" in " ".join(of(printed([("", invalid)]), "Table 6"))


def test_difficulty_and_the_gain_over_sound() -> None:
    """Gemini 2.5-FL's easy items in Table 4: 47.7, 48.3, 59.8, a gain of 12.1."""
    easy = {"a": 0.477, "v": 0.483, "av": 0.598}
    numbers = {f"maverix_{mode}": {"acc_difficulty_easy": value} for mode, value in easy.items()}
    found = cells(of(printed([("G", numbers)]), "Table 4"), "G", "localized")
    assert found == ["47.7", "48.3", "59.8", "+12.1", *["-"] * 8]


def test_no_sign_before_zero() -> None:
    numbers = {f"maverix_{mode}": {"acc_difficulty_easy": 0.5} for mode in ("a", "v")}
    numbers["maverix_av"] = {"acc_difficulty_easy": 0.4999}
    assert cells(of(printed([("G", numbers)]), "Table 4"), "G", "localized")[3] == "0.0"


class TestLabels:
    def numbers(self) -> dict[str, Any]:
        """Every cell different, so that each can be found in what was printed."""
        names = [f"acc_{split}_{slug}" for split, slugs in SPLITS.items() for slug in slugs]
        return {name: 0.1 + n / 1000 for n, name in enumerate(names)}

    def test_every_label_is_printed(self) -> None:
        values = {**self.numbers(), "acc": 0.31, "acc_valid": 0.32, "acc_failed": 7}
        text = "\n".join(of(printed([("m", {"maverix_av": values})]), "Tables 5 and 10"))
        for name, value in self.numbers().items():
            split, slug = name.removeprefix("acc_").split("_")
            line = next(
                line for line in text.splitlines() if line.strip().startswith(SPLITS[split][slug])
            )
            assert line.split()[-1] == f"{100 * value:.1f}"
            assert f" {100 * value:.1f}" in text
        for shown in ("31.0", "32.0", " 7"):
            assert shown in text

    def test_many_models_with_long_names_are_all_there(self) -> None:
        names = [f"a-model-with-a-very-long-name-{n}" for n in range(11)]
        rows = [
            (name, {"maverix_av": {"acc": n / 100 + 0.01, "acc_topic_extended": 1.0}})
            for n, name in enumerate(names)
        ]
        shown = printed(rows)
        text = "\n".join(of(shown, "Tables 5 and 10"))
        for n in range(11):
            assert f" {n + 1}.0" in text
        assert text.count("Low Quality and Extended Content") == 2
        for name in names:
            assert any(name in line for line in of(shown, "Table 3"))

    def test_what_has_no_sound_does_not_stand_under_its_name(self) -> None:
        lines = of(printed([("m", modes())], SILENT), "Tables 5 and 10")
        (overall,) = (line.split() for line in lines if line.strip().startswith("accuracy "))
        assert overall == ["accuracy", "41.4", "35.4", "57.9"]
        assert noted(lines, "~")


class TestPeople:
    def test_both_of_figure_4(self) -> None:
        short = {"acc": 0.6, "acc_agentic_social": 0.7, "acc_agentic_gaming": 0.6}
        full = {"acc": 0.5, "acc_agentic_social": 0.75}
        shown = printed([("m", {"maverix_av": short, "maverix_long_av": full})])
        change = cells(of(shown, "Figure 4a"), "m", "V+A")
        assert change == ["+5.0", "-", "-", "-", "-", "-", "-", "-10.0"]
        gap = of(shown, "Figure 4b")
        behind = ["+20.0", "-", "-", "-", "-", "-10.0", "-", "+32.7"]
        assert cells(gap, "m", "localized", "V+A") == behind
        assert cells(gap, "m", "full", "length", "V+A")[0] == "+15.0"

    def test_table_7_stands_beside_ours(self) -> None:
        lines = of(printed([("m", {"maverix_av": {"acc": 0.5}})]), "(the paper's Table 7)")
        assert cells(lines, "people,", "average", "V+A")[-1] == "92.7"
        assert cells(lines, "m", "localized", "V+A")[-1] == "50.0"
        assert not any("people" in line and line.split()[2] == "V" for line in lines)

    def test_subtitles_are_marked_there_too(self) -> None:
        lines = of(printed([("m", modes())], SILENT), "Figure 4b")
        assert cells(lines, "m", "localized", "A")[-1] == "+1.8*"  # 43.2 less 41.4

    def test_the_papers_rows(self) -> None:
        found = tables.humans()
        assert found["av", "average"]["sports"] == pytest.approx(0.9471)
        assert found["a", "worst"]["overall"] == pytest.approx(0.221)
        assert found.keys() == {(m, w) for m in ("v", "a", "av") for w in tables.WHICH}
        for values in found.values():
            assert values.keys() == {*SPLITS["agentic"], "overall"} - {"egocentric"}
        shown = printed([("m", {"maverix_v": {"acc": 0.5}})], people=found)
        assert cells(of(shown, "(the paper's Table 7)"), "people,", "average", "V")[-1] == "80.0"


class TestOpen:
    def numbers(self) -> dict[str, Any]:
        return {
            f"maverix_{mode}_oe": {
                f"{name}_valid": 1 + d / 10 + m / 100 for d, name in enumerate(DIMENSIONS)
            }
            for m, mode in enumerate(MODES)
        }

    def test_table_6_and_its_gain(self) -> None:
        """GPT-4o's row: S 1.6, V 1.4, V+S 2.2, a gain of 0.6 over the better one."""
        rating = {"s": 1.6, "v": 1.4, "vs": 2.2}
        numbers = {f"maverix_{m}_oe": {"correctness_valid": v} for m, v in rating.items()}
        lines = of(printed([("G", numbers)], {"G": "not delivered"}), "Table 6)")
        assert cells(lines, "G", "localized") == ["1.6*", "1.4", "2.2*", "+0.6*"]

    def test_tables_8_and_9(self) -> None:
        """Modes are numbered a, s, v, vs, av: V is 2, A 0, V+A 4 in the second decimal."""
        lines = of(printed([("m", self.numbers())]), "Tables 8 and 9")
        assert cells(lines, "m", "localized") == [
            f"{1 + d / 10 + m / 100:.4f}" for d in range(4) for m in (2, 0, 4)
        ]

    def test_twelve_marked_columns_fit_beside_a_long_name(self) -> None:
        name = "a-model-with-a-very-long-name-and-its-arguments=" + "x" * 60
        lines = of(printed([(name, self.numbers())], {name: "not delivered"}), "Tables 8 and 9")
        assert "".join(line.split()[0] for line in lines if line.split()).count("x") >= 60
        assert sum("1.0100*" in line for line in lines) == 1

    def test_by_category_with_coverage(self) -> None:
        values = {f"detail_valid_{slug}": n + 0.5 for n, slug in enumerate(SPLITS["agentic"])}
        values = {k: v / 2 for k, v in values.items()}
        values |= {"detail_valid": 3.25, "detail_coverage": 0.875, "detail_failed": 6}
        lines = of(printed([("m", {"maverix_v_oe": values})]), "C.4")
        assert [line.split()[-1] for line in lines if "." in line and "C.4" not in line] == [
            "3.2500",
            *(f"{(n + 0.5) / 2:.4f}" for n in range(7)),
            "87.5",
        ]
        assert cells(lines, "without", "a", "rating") == ["6"]

    def test_lengths_and_robustness(self) -> None:
        values = {"words_mean": 16.1, "words_max": 140, "words_sd": 12.7}
        values |= {"robust_both": 0.25, "robust_diff": 1.5, "robust_n": 8, "robust_failed": 3}
        shown = printed([("m", {"maverix_v_oe": values})])
        words = cells(of(shown, "length of the replies"), "m", "localized", "V", "open-ended")
        assert words == ["16.1", "140", "12.7"]
        robust = cells(of(shown, "paraphrase"), "m", "localized", "V")
        assert robust == ["25.0", "1.5000", "8", "3"]


def test_rotations() -> None:
    values = {f"chose_{letter}": 0.01 * n for n, letter in enumerate("abcdefgh")}
    values |= {f"acc_at_{letter}": 0.5 + 0.01 * n for n, letter in enumerate("abcdefgh")}
    values |= {"circ_acc": 0.3, "circ_acc_valid": 0.4, "circ_acc_failed": 2, "acc": 0.7}
    values |= {"acc_valid": 0.8, "acc_failed": 9, "position_bias": 0.125}
    shown = printed([("m", {"maverix_vs_circular": values})])
    found = cells(of(shown, "eight rotations"), "m", "localized", "V+S")
    assert found == ["30.0", "40.0", "2", "70.0", "80.0", "9", "0.1250"]
    letters = of(shown, "letters")
    assert cells(letters, "m", "localized", "V+S", "chosen") == [f"{n}.0" for n in range(8)]
    right = cells(letters, "m", "localized", "V+S", "right", "where", "it", "is", "true")
    assert right == [f"{50 + n}.0" for n in range(8)]


def test_brackets_in_a_name_are_text() -> None:
    """Rich would read `[bold]` as markup, and drop it from the model's arguments."""
    shown = printed([("m[bold]", {"maverix_av": {"acc": 0.5}})])
    assert cells(of(shown, "Table 3"), "m[bold]", "localized")[5] == "50.0"
    assert any("m[bold]" in line for line in of(shown, "Tables 5 and 10"))


def test_what_has_no_number_is_left_out() -> None:
    nothing = {"acc": None, "acc_valid": float("nan"), "words_mean": "N/A"}
    assert printed([("m", {"maverix_av": nothing, "maverix": {}, "maia_vsv": {"acc": 0.5}})]) == {}
    assert printed([]) == {}


def test_titles_and_notes_are_not_broken() -> None:
    """A narrow table would break them at its own width: "the paper's Table" and "6"."""
    numbers = {"maverix_v_oe": {"words_mean": 3, "robust_both": 0.5, "correctness_valid": 2}}
    shown = tables.tables([("x", {**modes(), **numbers})], SILENT, HUMANS)
    narrow = 0
    for table in shown:
        sink = io.StringIO()
        Console(file=sink, width=TABLE_WIDTH).print(table)
        lines = [line.rstrip() for line in sink.getvalue().splitlines()]
        assert lines[0] == str(table.title)
        narrow += len(lines[0]) > max(len(line) for line in lines[1:5])
        for note in str(table.caption or "").splitlines():
            assert note in lines
    assert narrow


@pytest.mark.parametrize("name", ["maverix_long_table3", "maverix_long_long_a"])
def test_groups_that_are_none(name: str) -> None:
    assert tables.tables([("x", {name: {"best_uni": 0.5, "acc": 0.5}})]) == []


def test_every_metric_is_printed_somewhere() -> None:
    """Each metric alone, but for those that only marks stand for and what rotations have least of.

    A group's metrics are no task's (test_the_groups_row_alone).
    """
    tasks = {"choice": "maverix_v", "circular": "maverix_v_circular", "open": "maverix_v_oe"}
    lengths = {"words_mean", "words_max", "words_sd"}
    hidden = {one.name for one in metrics.CHOICE if one.name.startswith("n_sound_")}
    assert len(hidden) == 4
    not_printed = {
        "choice": hidden,
        "circular": hidden | lengths | {"n_withheld"},
        "open": hidden,
    }
    for kind, own in KINDS.items():
        for name in (one.name for one in own):
            shown = printed([("m", {tasks[kind]: {name: 777}})])
            seen = any("777" in line for lines in shown.values() for line in lines)
            assert seen == (name not in not_printed[kind]), name
