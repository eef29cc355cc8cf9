"""The report as one HTML page: a picture of the kappas with their intervals, then every table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.study.kappas import BANDS
from lmms_eval_tasks.cvrr_es.study.tables import PANEL_TITLES, about, sheets, two_lines
from lmms_eval_tasks.report.pages import SERIES, WIDE, filled, level, picture
from lmms_eval_tasks.report.paper_tables import number

if TYPE_CHECKING:
    import altair

_ALONE, _FINAL, _FREE, _FITTED = _KINDS = (  # of judges; their places are the colours
    "Judges alone",
    "Final judge with others' ratings",
    "Panels without the reference",
    "Panels fitted to the reference",
)


def html(report: Mapping[str, Any]) -> str:
    """The page."""
    return filled(
        Path(__file__).with_name("page.html"),
        about="; ".join(about(report)),
        notes=report["notes"],
        kappas=_kappas(report) if report["reference"] is not None else "",
        sheets=sheets(report),
        two_lines=two_lines,
        colour=_colour,
    )


def _colour(cell: str, largest: float) -> str:
    """The class of a coloured table's cell."""
    return level(float(cell), largest) if largest and cell != "-" else ""


def _kappas(report: Mapping[str, Any]) -> str:
    """Kappas of single judges, of final judges and of panels, as a picture."""
    rows = [
        (one["name"], _FINAL if one["round"] in ("collective", "mixture") else _ALONE, one["kappa"])
        for one in report["raters"]
    ]
    for one in (report["panels"] or {"panels": []})["panels"]:
        kind = _FREE if one["fitted_to"] == "nothing" else _FITTED
        rows.append((PANEL_TITLES[one["name"]], kind, one["kappa"]))
    dots: list[dict[str, Any]] = []
    for place, (_, kind, kappa) in enumerate(rows):
        mean = kappa["mean"] if kappa else {"kappa": None, "interval": None}
        ends = mean["interval"] or {"low": None, "high": None}
        dot = {"kappa": mean["kappa"], "low": ends["low"], "high": ends["high"]}
        dots.append({"place": place, "kind": kind, **{k: number(v) for k, v in dot.items()}})
    lowest = min(0.0, *(dot[end] for dot in dots for end in ("kappa", "low") if dot[end]))
    names = json.dumps([name for name, _, _ in rows])

    def draw(width: int) -> altair.LayerChart:
        return _chart(dots, names, lowest, width)

    return picture(draw, "Kappas with their 95 % intervals; the numbers are in the tables below")


def _chart(dots: list[dict[str, Any]], names: str, lowest: float, width: int) -> altair.LayerChart:
    """A dot with its interval for each, over the bands."""
    import altair as alt

    kinds = [kind for kind in _KINDS if any(dot["kind"] == kind for dot in dots)]
    striped = [{"from": low, "to": high} for (low, _), (high, _) in list(pairwise(BANDS))[::2]]
    scale = alt.Scale(domain=[lowest, 1], nice=False)
    legend = alt.Legend(orient="top", columns=1 if width < WIDE else 4)
    of_kind = alt.Scale(domain=kinds, range=list(SERIES[: len(kinds)]))
    axis = alt.Axis(labelExpr=f"{names}[datum.value]", labelPadding=9)
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
