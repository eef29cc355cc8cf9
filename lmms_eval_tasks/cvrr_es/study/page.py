"""The report as one HTML page: kappas as bars with their intervals, then every table.

Kappas, ratings and shares are coloured by their size, as in the paper's Figures 3 to 5. The page
loads nothing, needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import json
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
from lmms_eval_tasks.report.pages import SERIES, WIDE, filled, picture
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
    return filled(
        Path(__file__).with_name("page.html"),
        about="; ".join(line(report) for line in about),
        notes=report["notes"],
        kappas=_kappas(report) if report["reference"] is not None else "",
        sheets=panel_sheets.all_sheets(report),
        two_lines=panel_sheets.two_lines,
        colour=colour,
    )


def _kappas(report: Report) -> str:
    """Kappas of single judges, of final judges and of panels, as a picture."""
    import altair as alt

    dots: list[dict[str, Any]] = []

    def add(name: str, kappa: Report | None, kind: str) -> None:
        mean = kappa["mean"] if kappa else {"kappa": None, "interval": None}
        ends = mean["interval"] or {}
        numbers = (number(one) for one in (mean["kappa"], ends.get("low"), ends.get("high")))
        drawn = dict(zip(("kappa", "low", "high"), numbers, strict=True))
        dots.append({"place": len(dots), "name": name, "kind": kind, **drawn})

    for part in report["raters"]:
        final = part["round"] in ("collective", "mixture")
        add(part["name"], part["kappa"], _GROUPS[_FINAL if final else _ALONE])
    for one in (report["panels"] or {"panels": []})["panels"]:
        kind = _FREE if one["fitted_to"] == "nothing" else _FITTED
        add(PANEL_TITLES[one["name"]], one["kappa"], _GROUPS[kind])
    lowest = min(
        [0.0, *(dot[end] for dot in dots for end in ("kappa", "low") if dot[end] is not None)]
    )
    names = json.dumps([dot["name"] for dot in dots])
    kinds = [kind for kind in _GROUPS if any(dot["kind"] == kind for dot in dots)]

    striped = [{"from": low, "to": high} for (low, _), (high, _) in list(pairwise(BANDS))[::2]]
    axis = alt.Axis(labelExpr=f"{names}[datum.value]")

    def draw(width: int) -> alt.LayerChart:
        scale = alt.Scale(domain=[lowest, 1], nice=False)
        legend = alt.Legend(orient="top", columns=1 if width < WIDE else 4)
        of_kind = alt.Scale(domain=kinds, range=list(SERIES[: len(kinds)]))
        base = alt.Chart(alt.Data(values=dots)).encode(y=alt.Y("place:O", title=None, axis=axis))
        bands = alt.Chart(alt.Data(values=striped)).mark_rect(color="var(--band)")
        return alt.layer(
            bands.encode(x=alt.X("from:Q", scale=scale), x2="to:Q"),
            base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
            base.mark_point(filled=True, size=90, opacity=1).encode(
                x=alt.X("kappa:Q", title=None, axis=alt.Axis(grid=False)),
                color=alt.Color("kind:N", legend=legend, scale=of_kind),
                shape=alt.Shape("kind:N", scale=alt.Scale(domain=kinds)),
            ),
        ).properties(width=width, height=alt.Step(22))

    return picture(draw, "Kappas with their 95 % intervals; the numbers are in the tables below")


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
