"""HTML pages from templates, with pictures: nothing is loaded, no script is needed.

A page is a jinja2 template that extends base.html, whose one stylesheet follows the reader's light
or dark setting. A picture is a chart of altair, as SVG inside the page.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.notify import visible
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    import altair
    from markupsafe import Markup

WIDE, NARROW = 700, 190  # width of a chart's plot in pixels, without the names beside it
# Colours that exist in the light and the dark setting.
SERIES = tuple(f"var(--s{n})" for n in range(1, 9))


def filled(template: Path, **values: object) -> str:
    """Return a page from a template, which may extend base.html; every text in it is escaped.

    A missing value is a bug and raises an error.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folders = FileSystemLoader([template.parent, Path(__file__).parent])
    env = Environment(loader=folders, autoescape=True, undefined=StrictUndefined, finalize=_shown)
    return env.get_template(template.name).render(values)


def _shown(value: object) -> object:
    """Return a text without control characters; the template's own markup stays."""
    return visible(value) if type(value) is str else value


def picture(draw: Callable[[int], altair.TopLevelMixin], about: str) -> Markup:
    """Return a chart as SVG for a page, in a wide and a narrow form.

    Colours are the stylesheet's: `var(--ink)`, and those of SERIES.

    Args:
        draw: returns the chart for a plot's width in pixels.
        about: description of the chart for readers who cannot see it.
    """
    import vl_convert
    from markupsafe import Markup

    drawn = Markup()
    for kind, width in (("wide", WIDE), ("narrow", NARROW)):
        labels = {"labelLimit": 400 if kind == "wide" else 150}  # pixels of names beside a plot
        chart = draw(width).configure(**{**_CONFIG, "axis": {**_CONFIG["axis"], **labels}})
        spec = _drawable(chart.to_dict())
        svg = Markup(vl_convert.vegalite_to_svg(spec))  # noqa: S704 - vega escapes text
        drawn += Markup('<figure class="{}" role="img" aria-label="{}">{}</figure>').format(
            kind, about, svg
        )
    return drawn


def _drawable(value: Json) -> Json:
    """Return a chart's JSON without control characters, one of which would end the process."""
    if isinstance(value, dict):
        return {key: _drawable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_drawable(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def label_expression(names: Sequence[Json]) -> str:
    """Return an axis' expression (`labelExpr`) whose labels are these names, by index.

    A list of texts is a name of several lines.
    """
    return f"{json.dumps(_drawable([*names]))}[datum.value]"


_CONFIG: JsonObject = {
    "background": "transparent",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--ink)",
        "titleColor": "var(--soft)",
        "gridColor": "var(--line)",
        "domain": False,
        "ticks": False,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "legend": {"labelColor": "var(--ink)", "labelFontSize": 12, "labelLimit": 300, "title": None},
    "text": {"color": "var(--ink)", "fontSize": 12},
    "rule": {"color": "var(--ink)"},
}


def level(size: float, largest: float) -> str:
    """Return the class of a coloured cell: p0 to p10 by its size, n1 to n10 below 0.

    The size is rounded up, so that every number but 0 is coloured.
    """
    step = min(10, math.ceil(round(10 * abs(size) / largest, 9)))
    return f"{'n' if size < 0 and step else 'p'}{step}"
