"""The report as printed tables."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.console import UNSEEN
from lmms_eval_tasks.cvrr_es.reliability import judge_sheets, panel_sheets, rating_sheets
from lmms_eval_tasks.cvrr_es.reliability.sheets import Sheet
from lmms_eval_tasks.report.paper_tables import by_row

if TYPE_CHECKING:
    from rich.table import Table


def all_sheets(report: Mapping[str, Any]) -> list[Sheet]:
    """The report's tables in the order of the page; those without any number are left out.

    Args:
        report: of report.report, or its JSON read again.
    """
    found = [
        judge_sheets.summary(report),
        judge_sheets.agreement(report),
        *panel_sheets.rounds(report),
        panel_sheets.panels(report),
        panel_sheets.selection(report),
        rating_sheets.ratings(report),
        rating_sheets.distribution(report),
        rating_sheets.itself(report),
        panel_sheets.pairs(report),
        panel_sheets.accuracy(report),
        rating_sheets.preferred(report),
        rating_sheets.empties(report),
    ]
    return [sheet for sheet in found if sheet is not None and sheet.has_numbers]


def tables(report: Mapping[str, Any]) -> list[Table]:
    """The same for a terminal."""
    return [
        table
        for sheet in all_sheets(report)
        for table in by_row(
            sheet.title,
            sheet.names,
            [_two_lines(heading) for heading in sheet.columns],
            [(row.names, row.cells) for row in sheet.rows],
            "\n".join(line for note in sheet.notes for line in textwrap.wrap(note, UNSEEN)),
        )
    ]


def _two_lines(heading: str) -> str:
    short = "\n" in heading or len(heading) < 9
    return heading if short else heading.replace(" ", "\n", 1)
