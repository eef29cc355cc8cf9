"""Charts of numbers with their intervals: dots by row, a star of categories, a heat map."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.notify import visible
from lmms_eval_tasks.report.pages import SERIES, WIDE, label_expression, picture
from lmms_eval_tasks.tables.paper_tables import INVALID, number
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    import altair

    from lmms_eval_tasks.report.aggregation import Quantity
    from lmms_eval_tasks.report.cards import Card
    from lmms_eval_tasks.report.compare import Comparison

STEP = 22  # height of a row in pixels
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


class Runs(NamedTuple):
    """The runs of a page: they have the same colour and shape in each of its charts."""

    labels: Sequence[str]
    invalid: Collection[tuple[str, str]] = ()  # label and task, of numbers that are INVALID

    def scale(self, values: Sequence[str], lines: Sequence[Comparison]) -> altair.Scale:
        """Return the scale from the runs that have a number in `lines` to their colours or shapes.

        Args:
            values: the colours or shapes; they repeat if there are more runs.
            lines: the numbers of the chart.
        """
        import altair as alt

        drawn = {label for line in lines for label in line.numbers}
        domain = [label for label in self.labels if label in drawn]
        places = [self.labels.index(label) % len(values) for label in domain]
        return alt.Scale(domain=domain, range=[values[place] for place in places])

    def legend(self, lines: Sequence[Comparison], width: int) -> altair.Legend:
        """Return the legend of a chart whose plot has this width in pixels.

        A run whose numbers in `lines` are all INVALID has the word behind its name.
        """
        import altair as alt

        invalid = [
            visible(label)
            for label in self.labels
            if not any(
                line.is_valid(label, self.invalid) for line in lines if label in line.numbers
            )
        ]
        is_valid = f"indexof({json.dumps(invalid)}, datum.label) < 0"
        return alt.Legend(
            orient="top",
            columns=1 if width < WIDE else 3,
            labelExpr=f"datum.label + ({is_valid} ? '' : ' {INVALID}')",
        )


def dots(lines: Sequence[Comparison], runs: Runs, about: str) -> str:
    """Return a chart with a row for each line: a dot with interval for each run.

    The paper's figures and chance are drawn, too. INVALID stands beside a number that is INVALID.
    """
    metrics = {line.quantity.metric for line in lines}
    names = [f"{q.row} {q.metric}" if len(metrics) > 1 else q.row for q in _of(lines)]
    return picture(lambda width: _panel(lines, names, runs, width, lines), about)


def overview(cards: Sequence[Card], runs: Runs, about: str) -> str:
    """Return a chart with the headline number of each benchmark, one below the other.

    Args:
        cards: of the benchmarks.
        runs: the page's runs.
        about: description of the chart for readers who cannot see it.
    """
    lines = [card.line for card in cards]

    def draw(width: int) -> altair.VConcatChart:
        import altair as alt

        panels = [
            _panel([card.line], [[card.title, card.name]], runs, width, lines) for card in cards
        ]
        return alt.vconcat(*panels, spacing=12)

    return picture(draw, about)


def _panel(
    lines: Sequence[Comparison],
    names: Sequence[Json],
    runs: Runs,
    width: int,
    chart_lines: Sequence[Comparison],
) -> altair.LayerChart:
    """Return a chart of `lines`, or the part of a chart.

    Args:
        lines: the numbers.
        names: names of the rows; a list is a name of several lines.
        runs: the page's runs.
        width: of the plot in pixels.
        chart_lines: the numbers of the whole chart; its parts have one legend.
    """
    import altair as alt

    labels = [label for label in runs.labels if any(label in line.numbers for line in lines)]
    numbers: list[JsonObject] = []
    papers: list[JsonObject] = []
    chances: list[JsonObject] = []
    for place, line in enumerate(lines):
        for nth, label in enumerate(labels):
            if label in line.numbers:
                interval = line.numbers[label]
                # The runs of a row are drawn below each other, so that no interval hides another.
                lane = place + (nth + 1) / (len(labels) + 1) - 0.5
                ends = {"value": interval.estimate, "low": interval.low, "high": interval.high}
                mark = "" if line.is_valid(label, runs.invalid) else INVALID
                numbers.append(
                    {"lane": lane, "side": label, "mark": mark}
                    | {end: number(value) for end, value in ends.items()}
                )
        if published := line.quantity.published:
            papers += [{"lane": place, "paper": figure} for figure in published.papers.values()]
            if published.chance is not None:
                ends = {"lane": place - 0.4, "end": place + 0.4}
                chances.append({"chance": published.chance, **ends})
    drawn = [row[end] for row in numbers for end in ("value", "low", "high")]
    drawn += [row["paper"] for row in papers] + [row["chance"] for row in chances]
    finite = [value for value in drawn if value is not None]
    lowest, highest = min([0.0, *finite]), max([0.0, *finite])
    top = next((end for end in (1.0, 5.0, 10.0, 100.0) if highest <= end), highest)

    y_scale = alt.Scale(domain=[-0.5, len(lines) - 0.5], reverse=True, nice=False)
    # Each panel of an overview has names of this width, so that the plots stand below each other.
    names_width = {"minExtent": 150 if width < WIDE else 230} if len(lines) == 1 else {}
    axis = alt.Axis(
        values=list(range(len(lines))),
        labelExpr=label_expression(names),
        labelPadding=9,
        grid=False,
        **names_width,
    )
    y = alt.Y("lane:Q", title=None, axis=axis, scale=y_scale)
    scale = alt.Scale(domain=[lowest, top], nice=False)
    base = alt.Chart(alt.Data(values=numbers)).encode(y=y)
    legend = runs.legend(chart_lines, width)
    value = alt.X("value:Q", title=None, axis=alt.Axis(tickCount=5), scale=scale)
    layers = [
        alt.Chart(alt.Data(values=papers))
        .mark_tick(color="var(--soft)", thickness=1.5, size=16, opacity=0.75)
        .encode(y=y, x=alt.X("paper:Q", scale=scale)),
        alt.Chart(alt.Data(values=chances))
        .mark_rule(color="var(--soft)", strokeDash=[3, 3])
        .encode(y=y, y2="end:Q", x=alt.X("chance:Q", scale=scale)),
        base.mark_rule(strokeWidth=2).encode(
            x=alt.X("low:Q", scale=scale), x2="high:Q", color=alt.Color("side:N")
        ),
        # Behind the plot, where neither a line nor a name is.
        base.mark_text(align="left", dx=9).encode(x=alt.value(width), text="mark:N"),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=value,
            color=alt.Color("side:N", legend=legend, scale=runs.scale(SERIES, chart_lines)),
            shape=alt.Shape("side:N", legend=legend, scale=runs.scale(SHAPES, chart_lines)),
        ),
    ]
    kept = [layer for layer, rows in zip(layers, [papers, chances, 1, 1, 1], strict=True) if rows]
    height = max(STEP, 14 * len(labels) + 8) * len(lines)
    return alt.layer(*kept).properties(width=width, height=height)


def _of(lines: Sequence[Comparison]) -> list[Quantity]:
    return [line.quantity for line in lines]


def ranked(
    panels: Mapping[str, Sequence[Mapping[str, Json]]], rows: Sequence[str], about: str
) -> str:
    """Return a chart with a row for each model: rings for published figures, dots for runs.

    Args:
        panels: by title the points, each with name, side ("" for a published one) and value; a
            run's may have low and high.
        rows: names in their order; names without a point are left out.
        about: description of the chart for readers who cannot see it.
    """
    points = [point for own in panels.values() for point in own]
    names = [name for name in dict.fromkeys(rows) if any(p["name"] == name for p in points)]
    labels = list(dict.fromkeys(point["side"] for point in points if point["side"]))

    def panel(title: str, width: int, show_names: bool) -> altair.LayerChart:
        import altair as alt

        axis = (
            alt.Axis(labelPadding=9, grid=True) if show_names else alt.Axis(labels=False, grid=True)
        )
        y = alt.Y("name:N", title=None, sort=names, axis=axis, scale=alt.Scale(domain=names))
        x = alt.X("value:Q", title=title, axis=alt.Axis(tickCount=3), scale=alt.Scale(zero=False))
        scale = alt.Scale(
            domain=labels, range=[SERIES[n % len(SERIES)] for n in range(len(labels))]
        )
        papers = [one for one in panels[title] if not one["side"]]
        runs = [one for one in panels[title] if one["side"]]
        colour = alt.Color("side:N", scale=scale, legend=None)
        return alt.layer(
            alt.Chart(alt.Data(values=papers))
            .mark_point(color="var(--soft)", size=45, strokeWidth=1.6, opacity=1)
            .encode(x=x, y=y),
            alt.Chart(alt.Data(values=runs))
            .mark_rule(strokeWidth=2)
            .encode(x=alt.X("low:Q"), x2="high:Q", y=y, color=colour),
            alt.Chart(alt.Data(values=runs))
            .mark_point(filled=True, size=80, opacity=1)
            .encode(x=x, y=y, color=colour),
        ).properties(width=width, height=STEP * 0.8 * len(names))

    def draw(width: int) -> altair.ConcatChart:
        import altair as alt

        side_by_side = min(3, len(panels)) if width >= WIDE else 1
        each = width // side_by_side - 20
        made = [
            panel(title, each, show_names=place % side_by_side == 0)
            for place, title in enumerate(panels)
        ]
        return alt.concat(*made, columns=side_by_side)

    return picture(draw, about)


def heat(lines: Sequence[Comparison], runs: Runs, about: str) -> str:
    """Return a chart with a column for each line and a row for each side, coloured by number."""
    cells = [
        {"line": line.quantity.row, "side": side, "value": interval.estimate}
        for line in lines
        for label, interval in line.numbers.items()
        for side in [label if line.is_valid(label, runs.invalid) else f"{label} {INVALID}"]
    ]
    columns = [one.row for one in _of(lines)]

    def draw(width: int) -> altair.LayerChart:
        import altair as alt

        x = alt.X("line:N", title=None, sort=columns, axis=alt.Axis(labelAngle=-40))
        base = alt.Chart(alt.Data(values=cells)).encode(
            x=x, y=alt.Y("side:N", title=None, sort=None)
        )
        scale = alt.Scale(domain=[0, 1], range=[0, 0.9], clamp=True)
        return alt.layer(
            base.mark_rect(color="var(--hot)").encode(
                opacity=alt.Opacity("value:Q", legend=None, scale=scale)
            ),
            base.mark_text(fontSize=11).encode(text=alt.Text("value:Q", format=".2f")),
        ).properties(width=width, height=alt.Step(26))

    return picture(draw, about)


def star(lines: Sequence[Comparison], runs: Runs, about: str) -> str:
    """Return a chart with a spoke from 0 to 1 for each line, and an outline for each side."""
    labels = list(dict.fromkeys(label for line in lines for label in line.numbers))
    count = len(lines)

    def at(place: int, radius: float) -> dict[str, float]:
        turn = 2 * math.pi * place / count
        return {"x": radius * math.sin(turn), "y": radius * math.cos(turn)}

    outlines = [
        {**at(place, line.numbers[label].estimate), "side": label, "order": order}
        for label in labels
        for order, (place, line) in enumerate([*enumerate(lines), (0, lines[0])])
        if label in line.numbers
    ]
    rings = [
        {**at(place, ring), "ring": ring, "order": place}
        for ring in (0.25, 0.5, 0.75, 1.0)
        for place in range(count + 1)
    ]
    spokes = [{**at(place, 1), "zero": 0} for place in range(count)]
    names: list[JsonObject] = [
        {**at(place, 1.1), "name": one.row} for place, one in enumerate(_of(lines))
    ]
    # Names beside the star begin or end at its edge.
    aligned = {
        "left": [one for one in names if one["x"] > 0.05],
        "right": [one for one in names if one["x"] < -0.05],
        "center": [one for one in names if abs(one["x"]) <= 0.05],
    }

    def draw(width: int) -> altair.LayerChart:
        import altair as alt

        size = min(width + 130, 480)
        plain = alt.Scale(domain=[-1.8, 1.8], nice=False)
        x = alt.X("x:Q", axis=None, scale=plain)
        y = alt.Y("y:Q", axis=None, scale=alt.Scale(domain=[-1.26, 1.26], nice=False))

        def chart(values: Sequence[Mapping[str, Json]]) -> altair.Chart:
            return alt.Chart(alt.Data(values=values)).encode(x=x, y=y)

        legend, scale = runs.legend(lines, width), runs.scale(SERIES, lines)
        return alt.layer(
            chart(rings)
            .mark_line(color="var(--line)", strokeWidth=1)
            .encode(detail="ring:N", order="order:Q"),
            chart(spokes)
            .mark_rule(color="var(--line)")
            .encode(x2=alt.X2("zero:Q"), y2=alt.Y2("zero:Q")),
            chart(outlines)
            .mark_line(point=True, strokeWidth=2)
            .encode(color=alt.Color("side:N", scale=scale, legend=legend), order="order:Q"),
            *(
                chart(own).mark_text(fontSize=11, align=side).encode(text="name:N")
                for side, own in aligned.items()
            ),
        ).properties(width=size, height=round(size * 0.7))

    return picture(draw, about)


KINDS: dict[str, Callable[[Sequence[Comparison], Runs, str], str]] = {
    "dots": dots,
    "star": star,
    "heat": heat,
}
