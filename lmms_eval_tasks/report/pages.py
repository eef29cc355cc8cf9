"""HTML pages from templates, and pictures in them: nothing is loaded, no script is needed.

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

WIDE, NARROW = 700, 190  # pixels of a chart's plot, without the names beside it
SERIES = tuple(f"var(--s{n})" for n in range(1, 5))  # colours that both settings have


def filled(template: Path, **values: object) -> str:
    """A page from a template, which may extend base.html; every text in it is escaped.

    A value that the template lacks is a bug and raises.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folders = FileSystemLoader([template.parent, Path(__file__).parent])
    env = Environment(loader=folders, autoescape=True, undefined=StrictUndefined, finalize=_shown)
    return env.get_template(template.name).render(values)


def _shown(value: object) -> object:
    """A text as it may stand in a page; what a template puts there as it is stays so."""
    return visible(value) if type(value) is str else value


def picture(draw: Callable[[int], altair.TopLevelMixin], about: str) -> Markup:
    """A chart as SVG for a page, once for wide pages and once for narrow ones.

    Colours are the stylesheet's: `var(--ink)`, and those of SERIES.

    Args:
        draw: the chart whose plot is so many pixels wide.
        about: what it shows, for those who cannot see it.
    """
    import vl_convert
    from markupsafe import Markup

    drawn = Markup()
    for kind, width in (("wide", WIDE), ("narrow", NARROW)):
        labels = {"labelLimit": 280 if kind == "wide" else 150}  # pixels of names beside a plot
        chart = draw(width).configure(**{**_CONFIG, "axis": {**_CONFIG["axis"], **labels}})
        spec = _drawable(chart.to_dict())
        svg = Markup(vl_convert.vegalite_to_svg(spec))  # noqa: S704 - vega escapes text
        drawn += Markup('<figure class="{}" role="img" aria-label="{}">{}</figure>').format(
            kind, about, svg
        )
    return drawn


def _drawable(value: Json) -> Json:
    """The same with all its texts visible: a control character in one would end the process."""
    if isinstance(value, dict):
        return {key: _drawable(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_drawable(one) for one in value]
    return visible(value) if isinstance(value, str) else value


def label_expression(names: Sequence[str]) -> str:
    """An axis' expression (`labelExpr`) whose labels are these, by the place of each."""
    return f"{json.dumps([*map(visible, names)])}[datum.value]"


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
    """The class of a coloured cell: p0 to p10 by its size, n1 to n10 below 0.

    Rounded up, so that every number but 0 shows.
    """
    step = min(10, math.ceil(round(10 * abs(size) / largest, 9)))
    return f"{'n' if size < 0 and step else 'p'}{step}"
