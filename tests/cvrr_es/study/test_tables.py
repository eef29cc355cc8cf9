"""The report's tables: cells as computed by hand, captions that say what they rest on."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from lmms_eval_tasks.cvrr_es.study import sheets
from lmms_eval_tasks.cvrr_es.study.panel_sheets import all_sheets, tables
from lmms_eval_tasks.cvrr_es.study.report import Options, report
from lmms_eval_tasks.cvrr_es.study.sheets import Sheet
from tests.cvrr_es.study.hand_made import FOURS, LENIENT, REFERENCE, given, judged, referred
from tests.cvrr_es.study.study_rows import PARTIAL, TIME, rows

QUICK = Options(resamples=0)


def sheet(found: dict[str, Any], key: str, place: int = 0) -> Sheet:
    return [one for one in all_sheets(found) if one.key == key][place]


def cells(one: Sheet, *names: str) -> tuple[str, ...]:
    return next(row.cells for row in one.rows if row.names == names)


def printed(found: dict[str, Any]) -> str:
    console = Console(width=150, record=True, file=io.StringIO())
    for table in tables(found):
        console.print(table)
    return console.export_text()


@pytest.fixture(scope="module")
def full() -> dict[str, Any]:
    more = given("J", REFERENCE, round="collective") + given("J", FOURS, round="mixture")
    accuracies = {"J": 70.0, "K": 12.5, "b": 40.0}
    return report(
        [*judged(), *given("b", LENIENT), *more], referred(), Options(accuracies=accuracies)
    )


class TestCells:
    """Numbers as text."""

    def test_summary(self, full: dict[str, Any]) -> None:
        one = sheet(full, "summary")
        row = dict(zip(one.columns, cells(one, "J"), strict=False))
        assert (row["kappa"], row["x100"], row["band"]) == ("0.857", "85.71", "almost perfect")
        assert (row["pooled\nkappa"], row["n"]) == ("0.911", "8")
        assert (row["mean\nrating"], row["minus\nreference"]) == ("3.25", "+0.50")
        assert (row["failed"], row["rated\n%"]) == ("0", "100.0")
        assert cells(one, "K")[:4:3] == ("0.000", "none")
        assert cells(one, "b *")[0] == "0.857"

    def test_table_5(self, full: dict[str, Any]) -> None:
        one = sheet(full, "agreement")
        assert one.columns == ("Partial Actions", "mean")
        assert cells(one, "J", "A") == ("71.43", "71.43")
        assert cells(one, "J", "B") == ("100.00", "100.00")
        assert cells(one, "J", "Average") == ("85.71", "85.71")
        assert cells(one, "J", "pooled") == ("91.11", "91.11")
        assert cells(one, "b", "B (itself)") == ("100.00", "100.00")
        assert [row.strong for row in one.rows[:4]] == [False, False, True, True]

    def test_table_4(self, full: dict[str, Any]) -> None:
        one = sheet(full, "ratings")
        assert cells(one, "A", "J") == ("3.50", "3.50")
        assert cells(one, "A", "reference") == ("2.50", "2.50")
        assert cells(one, "B", "b *") == ("3.00", "3.00")
        assert cells(one, "A", "b") == ("3.50", "3.50")
        assert "reference: debate" in one.notes

    def test_tables_6_and_7(self, full: dict[str, Any]) -> None:
        collective, mixture = sheet(full, "rounds"), sheet(full, "rounds", 1)
        assert "Table 6" in collective.title
        assert "Table 7" in mixture.title
        assert cells(collective, "Average") == ("100.00", "100.00")
        assert cells(collective, "J alone") == ("85.71", "85.71")
        assert len(collective.rows) == 4  # no second average: it rated the same answers
        assert any("collective minus alone: 14.29 [" in note for note in collective.notes)
        assert cells(mixture, "A") == ("0.00", "0.00")
        assert any("mixture minus alone: -85.71 [" in note for note in mixture.notes)

    def test_other_answers_than_alone(self) -> None:
        part = {"A": [None, 2, 3, 4], "B": [1, 1, 5, 5]}
        alone = {"A": [2, None, 4, 5], "B": [1, 1, 5, 5]}
        more = given("J", alone) + given("J", part, round="collective")
        one = sheet(report(more, referred(), QUICK), "rounds")
        names = [row.names[0] for row in one.rows]
        assert names == ["A", "B", "Average", "Average, both ways", "J alone"]
        assert any("on the 6 answers rated both ways" in note for note in one.notes)

    def test_panels(self, full: dict[str, Any]) -> None:
        one = sheet(full, "panels")
        row = cells(one, "best judge elsewhere", "other folds")
        assert row[0] == "0.857"
        assert row[5] == "0.000"
        assert cells(one, "J", "nothing")[5:] == ("-",) * 4
        assert cells(one, "mean of selected, paper's way", "the same items")[0] != "-"
        assert cells(one, "J, mixture", "its choice of judges")[5] == "-0.857"
        assert any("best single judge: J, the best in hindsight" in note for note in one.notes)

    def test_notes_of_panels_are_said_once(self) -> None:
        half = [*given("K", {**LENIENT, "A": [2.5, 3, 4, 5]}), *judged()]
        one = sheet(report([row for row in half if row.judge != "J"][:8] + given("M", FOURS),
                           referred(), QUICK), "panels")  # fmt: skip
        told = [note for note in one.notes if "no whole number" in note]
        assert sum(note.startswith("majority, median, mean, Dawid-Skene") for note in told) == 1
        assert len(told) < 4

    def test_selection(self, full: dict[str, Any]) -> None:
        one = sheet(full, "selection")
        assert one.columns == ("K", "b", "fell\nback")
        assert cells(one, "Partial Actions", "other folds") == ("0/2 0.0", "2/2 33.3", "0")
        assert cells(one, "Partial Actions", "the paper's way") == ("no 0.0", "yes 85.7", "0")
        assert any("the final judge (J)" in note for note in one.notes)

    def test_range_over_folds(self) -> None:
        """On the one video 1/3 (E 6, D 4 halved), on the other 1: lowest to highest."""
        changed = {"A": [1, 2, 4, 5], "B": [1, 1, 5, 5]}
        one = sheet(report(given("M", changed), referred(), QUICK), "selection")
        assert cells(one, "Partial Actions", "other folds")[0] == "2/2 33.3..100.0"

    def test_pairs(self, full: dict[str, Any]) -> None:
        one = sheet(full, "between")
        assert cells(one, "J")[:3] == ("-", "0.0", "100.0")
        assert cells(one, "b")[:3] == ("100.0", "0.0", "-")
        assert cells(one, "J")[-1] == "91.1"
        assert any("of the 3 judges that rated alone" in note for note in one.notes)

    def test_accuracy(self, full: dict[str, Any]) -> None:
        one = sheet(full, "accuracy")
        assert [row.names[0] for row in one.rows] == ["J", "b", "K"]
        assert one.rows[0].cells == ("70.00", "85.71")
        assert one.notes[0].startswith("Spearman's rho over 3 judges: 0.866")

    def test_preferences(self, full: dict[str, Any]) -> None:
        one = sheet(full, "preferences")
        assert cells(one, "J")[0] == "50.0"
        assert cells(one, "J")[2:] == ("100.0", "4", "62.5", "37.5")
        assert cells(one, "reference") == ("-", "-", "-", "-", "37.5", "62.5")

    def test_distribution(self, full: dict[str, Any]) -> None:
        one = sheet(full, "distribution")
        assert cells(one, "J") == ("25.0", "12.5", "12.5", "12.5", "37.5", "8", "0", "0", "0")

    def test_itself(self, full: dict[str, Any]) -> None:
        assert cells(sheet(full, "itself"), "b", "B")[:3] == ("0.00", "+1.00", "-1.00")

    def test_empty(self) -> None:
        with_empty = [replace(row, empty=row.question.endswith("003")) for row in judged()]
        one = sheet(report(with_empty, referred(), QUICK), "empty")
        assert cells(one, "J")[4:] == ("8", "6", "2", "0")
        assert one.notes[0].startswith("2 of 8 answers are empty")

    def test_nothing_is_empty(self, full: dict[str, Any]) -> None:
        assert "empty" not in [one.key for one in all_sheets(full)]

    def test_differences_over_fewer_answers_than_the_panels_say_so(self) -> None:
        """K rated all 8, so the panel has 8; J, the best single judge, lacks one."""
        one = sheet(report(judged()[1:], referred(), QUICK), "panels")
        row = cells(one, "mean", "nothing")
        assert row[4] == "8"
        assert row[5].endswith(" (n 7)")
        assert cells(one, "best judge elsewhere", "other folds")[7][-1] != ")"
        assert any("chosen on the 7 answers that all judges rated;" in note for note in one.notes)


class TestCaptions:
    """What a table rests on."""

    def test_basis_everywhere(self, full: dict[str, Any]) -> None:
        basis = "8 answers of 2 candidates to 4 questions on 2 videos"
        for key in ("summary", "agreement", "rounds", "panels", "ratings", "distribution"):
            assert sheet(full, key).notes[0].startswith(basis), key

    def test_intervals_and_folds(self, full: dict[str, Any]) -> None:
        notes = " ".join(sheet(full, "summary").notes)
        assert "bootstrap over 2 videos, 1,000 resamples, seed 0" in notes
        assert "cross-fitted: 2 folds by videos" in notes
        assert "with the reference of debate (8 ratings)" in notes

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"questions_without_video": 3}, "no intervals: the video of 3 of 4 questions"),
            ({"resamples": 0}, "no bootstrap intervals: none were asked for"),
            ({"videos": 1}, "no intervals: all answers are on one video"),
        ],
    )
    def test_no_intervals(
        self, full: dict[str, Any], changes: dict[str, int], expected: str
    ) -> None:
        made = {**full, "data": {**full["data"], **changes}}
        assert sheets.intervals(made).startswith(expected)

    def test_undefined_cells(self) -> None:
        """Both always 4: no kappa in that cell, and the caption counts it."""
        rows = given("J", {"A": [4, 4, 4, 4], "B": [1, 2, 3, 4]})
        truth = given("debate", {"A": [4, 4, 4, 4], "B": [1, 2, 3, 4]}, round="reference")
        one = sheet(report(rows, truth, QUICK), "agreement")
        assert cells(one, "J", "A") == ("-", "-")
        assert one.notes[-1] == "cells without a kappa, which averages leave out: J 1 of 2"


class TestGaps:
    """Dashes where there is nothing."""

    def test_no_reference(self) -> None:
        found = report([*judged(), *given("b", LENIENT)], [], QUICK)  # b is a candidate too
        keys = [one.key for one in all_sheets(found)]
        assert keys == ["summary", "ratings", "distribution", "between", "preferences"]
        one = sheet(found, "summary")
        assert cells(one, "J")[:5] == ("-",) * 5
        assert "make them with `debate`" in one.notes[0]
        assert "reference" not in [row.names[1] for row in sheet(found, "ratings").rows]

    def test_a_candidate_lacks_a_dimension(self) -> None:
        more = [*judged(), *rows([1, 5], judge="J", dimension=TIME)]
        truth = [*referred(), *rows([1, 5], judge="debate", round="reference", dimension=TIME)]
        one = sheet(report(more, truth, QUICK), "agreement")
        assert one.columns == ("Partial Actions", "Time Order", "mean")
        assert cells(one, "J", "A") == ("71.43", "100.00", "85.71")
        assert cells(one, "J", "B") == ("100.00", "-", "100.00")
        assert cells(one, "K", "A")[1] == "-"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [(None, "-"), (0.0, "0.0"), (0.0001, "<0.1"), (0.9999, ">99.9"), (1.0, "100.0")],
    )
    def test_share(self, value: float | None, expected: str) -> None:
        assert sheets.share(value) == expected

    def test_span(self) -> None:
        assert sheets.span(None) == "-"
        assert sheets.span({"low": None, "high": 1.0}) == "-"
        assert sheets.span({"low": -0.0004, "high": 0.5}) == "[0.000, 0.500]"
        assert sheets.span({"low": 0.25, "high": 0.5}, 1, 100) == "[25.0, 50.0]"


class TestPrinted:
    """In a terminal."""

    def test_all_of_it(self, full: dict[str, Any]) -> None:
        text = printed(full)
        for title in ("Table 4", "Table 5", "Table 6", "Table 7", "Krippendorff", "Panels beside"):
            assert title in text
        long = [note for one in all_sheets(full) for note in one.notes if len(note) > 150]
        assert long
        assert all(note.rsplit(maxsplit=2)[-2] in text for note in long)
        assert "(8 ratings)" in text  # the end of a caption that is too long for one line

    def test_markup_in_names(self) -> None:
        """Of rows and, of judges and candidates, of columns."""
        names = ("[red]J[/red]", "x[/y]")
        found = report([row for name in names for row in given(name, LENIENT)], referred(), QUICK)
        text = printed(found)
        assert all(name in text for name in names)
        assert PARTIAL not in text
        answers = [
            [replace(row, candidate=f"[{row.candidate}][/y]") for row in own]
            for own in (judged(), referred())
        ]
        assert "[B][/y]" in printed(report(*answers, QUICK))
