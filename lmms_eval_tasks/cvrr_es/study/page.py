"""The report's pictures: Figures 3 to 5 and what belongs beside them.

The report as one HTML page: pictures with their numbers as tables beside them.

The page loads nothing, needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from html import escape
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study import panel_sheets, sheets, svg
from lmms_eval_tasks.cvrr_es.study.kappas import BANDS
from lmms_eval_tasks.cvrr_es.study.panel_sheets import PANEL_TITLES
from lmms_eval_tasks.cvrr_es.study.sheets import Sheet
from lmms_eval_tasks.cvrr_es.study.svg import Bar, Cell, Row, Stack
from lmms_eval_tasks.report.paper_tables import NONE, number

# --- pictures ---


Report = Mapping[str, Any]

_ALONE, _FINAL, _FREE, _FITTED = range(4)  # colours of bars
_GROUPS = {
    _ALONE: "Judges alone",
    _FINAL: "Final judge with others' ratings",
    _FREE: "Panels without the reference",
    _FITTED: "Panels fitted to the reference",
}


def kappa_bars(report: Report) -> str:
    """Kappas with intervals: single, collective, mixture, panels. Empty without a reference."""
    if report["reference"] is None:
        return ""
    rows = [
        _bar(part["name"], part["kappa"], _FINAL if _is_final(part) else _ALONE)
        for part in report["raters"]
    ]
    for one in (report["panels"] or {"panels": []})["panels"]:
        kind = _FREE if one["fitted_to"] == "nothing" else _FITTED
        rows.append(_bar(PANEL_TITLES[one["name"]], one["kappa"], kind))
    ordered = sorted(rows, key=lambda bar: bar.kind)
    stripes = [(limit, name) for limit, name in BANDS if limit > 0]
    return svg.bars("Kappa of judges and panels with the reference", ordered, stripes)


def _is_final(part: Report) -> bool:
    return part["round"] in ("collective", "mixture")


def _bar(label: str, kappa: Report | None, kind: int) -> Bar:
    mean = kappa["mean"] if kappa else {"kappa": None, "interval": None}
    interval = mean["interval"] or {"low": None, "high": None}
    return Bar(
        label,
        number(mean["kappa"]),
        number(interval["low"]),
        number(interval["high"]),
        kind,
        _GROUPS[kind],
    )


def kappa_map(report: Report) -> str:
    """Averages of Table 5 and of the rounds: raters by dimensions (the right of Figure 4)."""
    if report["reference"] is None:
        return ""
    dimensions = report["data"]["dimensions"]
    rows = []
    for part in report["raters"]:
        kappa = part["kappa"]
        cells = [
            _kappa_cell(kappa["by_dimension"][one], f"{part['name']}, {head}")
            for one, head in zip(dimensions, sheets.heads(dimensions), strict=True)
        ]
        rows.append(Row(part["name"], (*cells, _kappa_cell(kappa["mean"], part["name"]))))
    return svg.heat_map(
        "Mean kappa of each judge in each dimension, x100",
        [*sheets.heads(dimensions), "mean"],
        rows,
    )


def _kappa_cell(kappa: Report | None, hint: str) -> Cell:
    """x100; the colour's strength is the kappa's, in another colour below 0."""
    value = number((kappa or {"kappa": None})["kappa"])
    if kappa is None or value is None:
        return Cell(NONE, None, f"{hint}: {(kappa or {}).get('reason') or 'no answers'}")
    # Away from 0, so that every kappa above or below it shows.
    level = int(math.copysign(math.ceil(abs(value) * 10), value))
    told = sheets.span(kappa.get("interval"), 1, 100)
    return Cell(sheets.percent(value, 1), level, f"{hint}: {sheets.percent(value)} {told}")


def round_maps(report: Report) -> str:
    """Figure 5: the final judge alone, in the collective and in the mixture, by candidate."""
    finals = {one["judge"] for one in report["rounds"]}
    if report["reference"] is None or not finals:
        return ""
    data = report["data"]
    rows = []
    for part in report["raters"]:
        if part["judge"] not in finals or part["round"] == "reference":
            continue
        title = part["name"] if part["round"] != "first" else f"{part['name']}, alone"
        for candidate in data["candidates"]:
            kappa = part["kappa"]
            cells = [
                _kappa_cell(kappa["cells"][one].get(candidate), f"{title}, {candidate}, {head}")
                for one, head in zip(
                    data["dimensions"], sheets.heads(data["dimensions"]), strict=True
                )
            ]
            mean = {"kappa": kappa["by_candidate"].get(candidate)}
            rows.append(
                Row(
                    sheets.marked(part, candidate),
                    (*cells, _kappa_cell(mean, f"{title}, {candidate}")),
                    title,
                )
            )
    return svg.heat_map(
        "Kappa of the final judge alone and with others, by candidate and dimension, x100",
        [*sheets.heads(data["dimensions"]), "mean"],
        rows,
    )


def rating_map(report: Report) -> str:
    """Figure 3: mean ratings, candidates and judges by dimensions."""
    data = report["data"]
    rows = []
    for candidate in data["candidates"]:
        for part in sheets.with_reference(report):
            told = part["ratings"]
            means = [told["cells"][one].get(candidate) for one in data["dimensions"]]
            cells = [
                _rating_cell(one, f"{part['name']} on {candidate}")
                for one in [*means, told["by_candidate"][candidate]]
            ]
            own = " *" if candidate in part["itself"] else ""
            rows.append(Row(f"{part['name']}{own}", tuple(cells), f"Answers of {candidate}"))
    return svg.heat_map(
        "Mean ratings of candidates by judges and dimensions, 1 to 5",
        [*sheets.heads(data["dimensions"]), "all"],
        rows,
    )


def _rating_cell(told: Report | None, hint: str) -> Cell:
    mean = number((told or {"mean": None})["mean"])
    if told is None or mean is None:
        return Cell(NONE, None, f"{hint}: no rating")
    return Cell(
        f"{mean:.2f}", round((mean - 1) / 4 * 10), f"{hint}: {mean:.2f} of {told['rated']:,}"
    )


def distribution(report: Report) -> str:
    """The left of Figure 4: how ratings are spread."""
    stacks = []
    for part in sheets.with_reference(report):
        told = part["ratings"]["overall"]
        counts = [told["distribution"][str(one)] for one in RATINGS]
        whole = sum(counts)
        shares = tuple(count / whole for count in counts) if whole else ()
        lost = [f"{told['failed']:,} failed"] if told["failed"] else []
        lost += [f"{told['missing']:,} no row"] if told["missing"] else []
        stacks.append(Stack(part["name"], shares, ", ".join([f"{told['rated']:,}", *lost])))
    names = [f"{one} {name}" for one, name in RATINGS.items()]
    return svg.stacked_bars("Shares of the ratings 1 to 5 by each judge", names, stacks)


def pair_map(report: Report) -> str:
    """Kappa of every two raters, and of each with the reference."""
    names = [part["name"] for part in report["raters"]]
    if len(names) < 2:
        return ""
    found = {(one["one"], one["other"]): one for one in report["between"]["pairs"]}
    found |= {(other, one): kappa for (one, other), kappa in found.items()}
    rows = []
    for part in report["raters"]:
        cells = [_pair_cell(found.get((part["name"], other))) for other in names]
        if report["reference"] is not None:
            cells.append(_kappa_cell(part["kappa"]["pooled"], f"{part['name']} and the reference"))
        rows.append(Row(part["name"], tuple(cells)))
    columns = [*names, "reference"] if report["reference"] is not None else names
    return svg.heat_map("Kappa of every two raters, x100", columns, rows)


def _pair_cell(found: Report | None) -> Cell:
    if found is None:
        return Cell("", None)
    return _kappa_cell(found, f"{found['one']} and {found['other']}")


def accuracies(report: Report) -> str:
    """Judges' own accuracy against their kappa."""
    found = report["accuracy"]
    if found is None or not found["pairs"]:
        return ""
    marks = [(judge, own["accuracy"], own["kappa"]) for judge, own in found["pairs"].items()]
    return svg.points(
        "Own accuracy and kappa of judges", marks, ("own accuracy on the benchmark", "kappa")
    )


# --- html ---


Report_html = Mapping[str, Any]

# Section -> its heading, the picture and what to know of it. Its tables are those of its key.
_SECTIONS = {
    "summary": (
        "Who can be relied on",
        kappa_bars,
        "Quadratic weighted kappa with the reference: mean over candidates, then over dimensions. "
        "Whiskers: 95 %. Bands as in the paper's 5.2.",
    ),
    "agreement": (
        "Agreement by dimension",
        kappa_map,
        "Kappa x100, mean over candidates; orange is below 0. A constant judge's 0 says nothing.",
    ),
    "rounds": (
        "Collective and mixture",
        round_maps,
        "The final judge alone, with all others' ratings, and with those of selected judges "
        "(Figure 5). Kappa x100.",
    ),
    "panels": ("Panels", None, ""),
    "selection": ("Selection of judges", None, ""),
    "ratings": (
        "Ratings",
        rating_map,
        "Mean ratings, 1 to 5 (Figure 3); * judges itself.",
    ),
    "distribution": (
        "Distribution of ratings",
        distribution,
        "Shares of the whole ratings, % (the left of Figure 4); at the right the number rated.",
    ),
    "itself": ("Judges that judge themselves", None, ""),
    "between": (
        "Judges with each other",
        pair_map,
        "Kappa x100 of every two, pooled over the answers that both rated.",
    ),
    "accuracy": (
        "Own accuracy and reliability",
        accuracies,
        "A point is a judge that rated alone (section 6).",
    ),
    "preferences": ("Preferences", None, ""),
    "empty": ("Empty answers", None, ""),
}

_LEVELS = "".join(
    f".p{n}{{fill:color-mix(in srgb,var(--hot) {n * 9}%,var(--cold))}}"
    f".n{n}{{fill:color-mix(in srgb,var(--under) {n * 9}%,var(--cold))}}"
    for n in range(11)
)
_STYLE = f"""
:root {{ color-scheme: light dark; --ink: #1c2230; --soft: #5b6475; --line: #d5dae3; --page: #fff;
  --band: #f0f2f6; --cold: #f3f5f9; --hot: #17479e; --under: #9c4406; --on: #fff;
  --k0: #5f7fb8; --k1: #1f3f7a; --k2: #8a93a3; --k3: #2f8a6b; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e9f0; --soft: #9aa4b6; --line: #39404e;
  --page: #14171d; --band: #1c212a; --cold: #222833; --hot: #3d74e0; --under: #c0660f;
  --on: #fff; --k0: #86a7e6; --k1: #c8d8fa; --k2: #828b9b; --k3: #5cc49d; }} }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--page);
  color: var(--ink); font: .875rem/1.45 system-ui, sans-serif; }}
h1 {{ font-size: 1.4rem; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.1rem; margin: 2.5rem 0 .25rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }}
p {{ margin: .25rem 0 .5rem; }} .soft, .notes {{ color: var(--soft); }}
nav a {{ color: inherit; margin-right: .9rem; white-space: nowrap; }}
ul.notes {{ padding-left: 1.1rem; margin: .3rem 0 0; font-size: .8125rem; }}
.known {{ background: var(--band); padding: .6rem 1rem; border-radius: .4rem; margin: .75rem 0; }}
.known ul {{ margin: .25rem 0; padding-left: 1.1rem; }}
/* On a narrow screen pictures are scrolled, like tables, rather than shrunk. */
svg {{ display: block; width: 100%; min-width: 46rem; height: auto; margin: .5rem 0 1rem;
  font: 11.5px system-ui, sans-serif; }}
svg text {{ fill: var(--ink); }} svg .mid {{ text-anchor: middle; }}
svg .end {{ text-anchor: end; }} svg .soft {{ fill: var(--soft); }} svg .on {{ fill: var(--on); }}
svg .group {{ font-weight: 600; }} .no {{ fill: var(--band); }}
{_LEVELS}
.b0 {{ fill: var(--band); }} .b1 {{ fill: none; }}
.axis, .frame {{ stroke: var(--soft); fill: none; }}
.frame {{ stroke: var(--line); }}
.whisker {{ stroke: var(--ink); stroke-width: 1.4; fill: none; }}
.k0 {{ fill: var(--k0); }} .k1 {{ fill: var(--k1); }} .k2 {{ fill: var(--k2); }}
.k3 {{ fill: var(--k3); }}
.s0 {{ fill: #a63d1c; }} .s1 {{ fill: #e2a078; }} .s2 {{ fill: #c3c8d2; }} .s3 {{ fill: #86add9; }}
.s4 {{ fill: #2a5ca8; }} svg .t0, svg .t4 {{ fill: #fff; }}
svg .t1, svg .t2, svg .t3 {{ fill: #1c2230; }}
.scroll {{ overflow-x: auto; margin: .25rem 0 .25rem; }}
table {{ border-collapse: collapse; font-size: .75rem; line-height: 1.3; }}
caption {{ text-align: left; white-space: nowrap; font-size: .875rem; font-weight: 600;
  padding: .75rem 0 .35rem; }}
th, td {{ padding: .16rem .27rem; text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }}
thead th {{ vertical-align: bottom; border-bottom: 1px solid var(--soft); font-weight: 600; }}
th.name {{ text-align: left; font-weight: 400; white-space: normal; min-width: 5.5rem; }}
thead th.name {{ font-weight: 600; }}
tbody tr.first > * {{ border-top: 1px solid var(--line); }}
tr.strong > * {{ font-weight: 600; background: var(--band); }}
@media print {{ .scroll {{ overflow: visible; }} svg {{ min-width: 0; }} }}
"""


def html(report: Report_html) -> str:
    """The page.

    Args:
        report: of report.report, or its JSON read again.
    """
    by_key: dict[str, list[Sheet]] = {}
    for sheet in panel_sheets.all_sheets(report):
        by_key.setdefault(sheet.key, []).append(sheet)
    sections, links = [], []
    for key, (heading, picture, about) in _SECTIONS.items():
        drawn = picture(report) if picture else ""
        own = by_key.get(key, [])
        if not drawn and not own:
            continue
        links.append(f'<a href="#{key}">{escape(heading)}</a>')
        told = f'<p class="soft">{escape(about)}</p>{_scrolled(heading, drawn)}' if drawn else ""
        sections.append(
            f'<section id="{key}"><h2>{escape(heading)}</h2>\n{told}'
            f"{''.join(map(_table, own))}</section>"
        )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Reliability of judges</title><style>{_STYLE}</style></head><body>
<h1>Reliability of judges on CVRR-ES</h1>
<p>{escape(sheets.basis(report))}; {escape(sheets.compared(report))}; \
{escape(sheets.intervals(report))}; {escape(sheets.folds(report))}.</p>
{_known(report)}
<nav class="soft">{" ".join(links)}</nav>
{"".join(sections)}
</body></html>
"""


def _known(report: Report_html) -> str:
    """The report's notes."""
    if not report["notes"]:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in report["notes"])
    return f'<div class="known"><b>What to know of these ratings</b><ul>{items}</ul></div>'


def _table(sheet: Sheet) -> str:
    heads = "".join(f'<th class="name">{escape(name)}</th>' for name in sheet.names)
    heads += "".join(f"<th>{_broken(name)}</th>" for name in sheet.columns)
    rows, before = [], ""
    for row in sheet.rows:
        new = row.names[0] != before
        before = row.names[0]
        kinds = [kind for kind, is_so in (("first", new), ("strong", row.strong)) if is_so]
        # In tables with two names the first is not repeated below itself.
        shown = row.names if new or len(row.names) == 1 else ("", *row.names[1:])
        names = "".join(f'<th class="name" scope="row">{escape(name)}</th>' for name in shown)
        cells = "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row.cells)
        rows.append(f'<tr class="{" ".join(kinds)}">{names}{cells}</tr>' if kinds
                    else f"<tr>{names}{cells}</tr>")  # fmt: skip
    notes = "".join(f"<li>{escape(note)}</li>" for note in sheet.notes)
    return (
        _scrolled(
            sheet.title,
            f"<table><caption>{escape(sheet.title)}</caption>"
            f"<thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        )
        + f'<ul class="notes">{notes}</ul>'
    )


def _scrolled(name: str, content: str) -> str:
    """What a narrow screen shows a part of; the keyboard can reach it to scroll."""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f"{content}</div>"
    )


def _broken(heading: str) -> str:
    """A heading on two lines where it is long."""
    parts = heading if "\n" in heading else heading.replace(" ", "\n", len(heading) > 8)
    return "<br>".join(map(escape, parts.split("\n")))


def _shown(cell: str) -> str:
    """A dash that is no minus sign; minus signs that are as wide as digits."""
    return "–" if cell == NONE else re.sub(r"(?<!\w)-(?=\d)", "−", cell)
