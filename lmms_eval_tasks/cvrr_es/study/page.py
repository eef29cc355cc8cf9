"""The report as an HTML page: a chart of the kappas with their intervals, then every table."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.study.kappas import BANDS
from lmms_eval_tasks.cvrr_es.study.tables import Report, about, sheets
from lmms_eval_tasks.report.pages import SERIES, WIDE, filled, label_expression, level, picture

if TYPE_CHECKING:
    import altair

# Kind of a rater by its round; the order of kinds is the order of colours.
_FINAL = "Final judge with others' ratings"
_KINDS = {"first": "Judges alone", "collective": _FINAL, "mixture": _FINAL, "panel": "Panels"}


def html(report: Report) -> str:
    """Return the page."""

    def colour(cell: str, largest: float) -> str:
        """Return the CSS class of a cell in a coloured table."""
        return level(float(cell), largest) if largest and cell != "-" else ""

    def draw(width: int) -> altair.LayerChart:
        return _chart(report, width)

    return filled(
        Path(__file__).with_name("page.html"),
        about="; ".join(about(report)),
        notes=report["notes"],
        kappas=report["reference"]
        and picture(draw, "Kappas with their 95 % intervals; the numbers are in the tables below"),
        sheets=sheets(report),
        colour=colour,
    )


def _chart(report: Report, width: int) -> altair.LayerChart:
    """A dot with its interval for each judge, final judge and panel, over the bands."""
    import altair as alt

    dots: list[dict[str, Any]] = []
    rated = [*report["raters"], *report["panels"]]
    for place, one in enumerate(rated):
        mean = one["kappa"]["mean"]
        ends = mean["interval"] or {"low": None, "high": None}
        dot = {"kappa": mean["kappa"], "low": ends["low"], "high": ends["high"]}
        dots.append({"place": place, "kind": _KINDS.get(one["round"], _KINDS["first"]), **dot})
    names = [one["name"] for one in rated]
    lowest = min(0.0, *(dot[end] for dot in dots for end in ("kappa", "low") if dot[end]))
    kinds = [
        kind for kind in dict.fromkeys(_KINDS.values()) if any(d["kind"] == kind for d in dots)
    ]
    striped = [{"from": low, "to": high} for (low, _), (high, _) in list(pairwise(BANDS))[::2]]
    scale = alt.Scale(domain=[lowest, 1], nice=False)
    legend = alt.Legend(orient="top", columns=1 if width < WIDE else 4)
    of_kind = alt.Scale(domain=kinds, range=list(SERIES[: len(kinds)]))
    axis = alt.Axis(labelExpr=label_expression(names), labelPadding=9)
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
