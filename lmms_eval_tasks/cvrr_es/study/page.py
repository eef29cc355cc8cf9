"""The report as one HTML page: kappas as bars with their intervals, then every table.

Kappas, ratings and shares are coloured by their size, as in the paper's Figures 3 to 5. The page
loads nothing, needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study import panel_sheets, sheets
from lmms_eval_tasks.cvrr_es.study.kappas import BANDS
from lmms_eval_tasks.cvrr_es.study.panel_sheets import PANEL_TITLES
from lmms_eval_tasks.cvrr_es.study.sheets import Report
from lmms_eval_tasks.report.pages import filled
from lmms_eval_tasks.report.paper_tables import number

_GROUPS = (  # of bars; their places are the bars' colours
    "Judges alone",
    "Final judge with others' ratings",
    "Panels without the reference",
    "Panels fitted to the reference",
)
_ALONE, _FINAL, _FREE, _FITTED = range(4)
_NUMBER = re.compile(r"[<>]?(-?\d+(?:\.\d+)?)")


def html(report: Report) -> str:
    """The page."""
    about = (sheets.basis, sheets.compared, sheets.intervals, sheets.folds)
    bars = _bars(report) if report["reference"] is not None else []
    lowest = min([0.0, *(end for bar in bars for end in (bar["value"], bar["low"]) if end)])
    return filled(
        Path(__file__).with_name("page.html"),
        about="; ".join(line(report) for line in about),
        notes=report["notes"],
        groups=[
            (name, [bar for bar in bars if bar["kind"] == n]) for n, name in enumerate(_GROUPS)
        ],
        bands=[(below, end, name) for (below, _), (end, name) in pairwise(BANDS)],
        at=lambda value: round(100 * (value - lowest) / (1 - lowest), 2),
        sheets=panel_sheets.all_sheets(report),
        two_lines=panel_sheets.two_lines,
        colour=colour,
    )


def _bars(report: Report) -> list[dict[str, Any]]:
    """Kappas of single judges, of final judges and of panels."""

    def bar(label: str, kappa: Report | None, kind: int) -> dict[str, Any]:
        mean = kappa["mean"] if kappa else {"kappa": None, "interval": None}
        low, high = (number((mean["interval"] or {}).get(end)) for end in ("low", "high"))
        span = sheets.span(mean["interval"]) if mean["interval"] else ""
        told = f"{sheets.plain(mean['kappa'])} {span}".strip()
        value = number(mean["kappa"])
        return {
            "label": label,
            "value": value,
            "low": low,
            "high": high,
            "told": told,
            "kind": kind,
        }

    finals = ("collective", "mixture")
    found = [
        bar(part["name"], part["kappa"], _FINAL if part["round"] in finals else _ALONE)
        for part in report["raters"]
    ]
    for one in (report["panels"] or {"panels": []})["panels"]:
        kind = _FREE if one["fitted_to"] == "nothing" else _FITTED
        found.append(bar(PANEL_TITLES[one["name"]], one["kappa"], kind))
    return found


# --- colours of numbers: their levels, -10 to 10 --------------------------------------------------


def _of_kappa(percent: float) -> int:
    """Away from 0, so that every kappa above or below it shows."""
    return int(math.copysign(math.ceil(abs(percent) / 10), percent))


def _of_rating(mean: float) -> int:
    return round((mean - 1) / 4 * 10)


def _of_share(percent: float) -> int:
    return round(percent / 10)


# Key of a sheet -> the level of its numbers, and in how many of its columns.
_LEVELS: dict[str, tuple[Callable[[float], int], int]] = {
    **dict.fromkeys(("agreement", "rounds", "between"), (_of_kappa, sys.maxsize)),
    "ratings": (_of_rating, sys.maxsize),
    "distribution": (_of_share, len(RATINGS)),
}


def colour(key: str, column: int, cell: str) -> str:
    """The class of a table's cell: p0 to p10, n1 to n10 below 0; "" where it has no colour."""
    level, columns = _LEVELS.get(key, (_of_share, 0))
    found = _NUMBER.fullmatch(cell)
    if found is None or column >= columns:
        return ""
    size = level(float(found[1]))
    return f"{'n' if size < 0 else 'p'}{min(abs(size), 10)}"
