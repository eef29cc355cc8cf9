"""The report as one HTML page: pictures (Figures 3 to 5) with their numbers as tables beside them.

The page loads nothing, needs no script, and follows the reader's light or dark setting.
"""

from __future__ import annotations

import math
import re
from html import escape
from pathlib import Path

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study import panel_sheets, sheets, svg
from lmms_eval_tasks.cvrr_es.study.kappas import BANDS
from lmms_eval_tasks.cvrr_es.study.panel_sheets import PANEL_TITLES
from lmms_eval_tasks.cvrr_es.study.sheets import Report, Sheet
from lmms_eval_tasks.cvrr_es.study.svg import Bar, Cell, Row, Stack
from lmms_eval_tasks.report.paper_tables import NONE, number

_ALONE, _FINAL, _FREE, _FITTED = range(4)  # colours of bars
_GROUPS = (
    "Judges alone",
    "Final judge with others' ratings",
    "Panels without the reference",
    "Panels fitted to the reference",
)

# --- pictures -----------------------------------------------------------------------------------


def kappa_bars(report: Report) -> str:
    """Kappas with intervals: single, collective, mixture, panels. Empty without a reference."""
    if report["reference"] is None:
        return ""
    rows = []
    for part in report["raters"]:
        kind = _FINAL if part["round"] in ("collective", "mixture") else _ALONE
        rows.append(_bar(part["name"], part["kappa"], kind))
    for one in (report["panels"] or {"panels": []})["panels"]:
        kind = _FREE if one["fitted_to"] == "nothing" else _FITTED
        rows.append(_bar(PANEL_TITLES[one["name"]], one["kappa"], kind))
    ordered = sorted(rows, key=lambda bar: bar.kind)
    stripes = [(limit, name) for limit, name in BANDS if limit > 0]
    return svg.bars("Kappa of judges and panels with the reference", ordered, stripes)


def _bar(label: str, kappa: Report | None, kind: int) -> Bar:
    mean = kappa["mean"] if kappa else {"kappa": None, "interval": None}
    low, high = (number((mean["interval"] or {}).get(end)) for end in ("low", "high"))
    return Bar(label, number(mean["kappa"]), low, high, kind, _GROUPS[kind])


def kappa_map(report: Report) -> str:
    """Averages of Table 5 and of the rounds: raters by dimensions (the right of Figure 4)."""
    if report["reference"] is None:
        return ""
    rows = []
    for part in report["raters"]:
        kappa, name = part["kappa"], part["name"]
        cells = [
            _kappa_cell(kappa["by_dimension"][one], f"{name}, {head}")
            for one, head in zip(report["data"]["dimensions"], sheets.heads(report), strict=True)
        ]
        rows.append(Row(name, (*cells, _kappa_cell(kappa["mean"], name))))
    about = "Mean kappa of each judge in each dimension, x100"
    return svg.heat_map(about, [*sheets.heads(report), "mean"], rows)


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
    data, heads, rows = report["data"], sheets.heads(report), []
    for part in report["raters"]:
        if part["judge"] not in finals or part["round"] == "reference":
            continue
        title = part["name"] if part["round"] != "first" else f"{part['name']}, alone"
        for candidate in data["candidates"]:
            kappa, hint = part["kappa"], f"{title}, {candidate}"
            cells = [
                _kappa_cell(kappa["cells"][one].get(candidate), f"{hint}, {head}")
                for one, head in zip(data["dimensions"], heads, strict=True)
            ]
            cells.append(_kappa_cell({"kappa": kappa["by_candidate"].get(candidate)}, hint))
            rows.append(Row(sheets.marked(part, candidate), tuple(cells), title))
    about = "Kappa of the final judge alone and with others, by candidate and dimension, x100"
    return svg.heat_map(about, [*heads, "mean"], rows)


def rating_map(report: Report) -> str:
    """Figure 3: mean ratings, candidates and judges by dimensions."""
    data, rows = report["data"], []
    for candidate in data["candidates"]:
        for part in sheets.with_reference(report):
            told, name = part["ratings"], part["name"]
            means = [told["cells"][one].get(candidate) for one in data["dimensions"]]
            means.append(told["by_candidate"][candidate])
            cells = [_rating_cell(one, f"{name} on {candidate}") for one in means]
            own = " *" if candidate in part["itself"] else ""
            rows.append(Row(f"{name}{own}", tuple(cells), f"Answers of {candidate}"))
    about = "Mean ratings of candidates by judges and dimensions, 1 to 5"
    return svg.heat_map(about, [*sheets.heads(report), "all"], rows)


def _rating_cell(told: Report | None, hint: str) -> Cell:
    mean = number((told or {"mean": None})["mean"])
    if told is None or mean is None:
        return Cell(NONE, None, f"{hint}: no rating")
    level = round((mean - 1) / 4 * 10)
    return Cell(f"{mean:.2f}", level, f"{hint}: {mean:.2f} of {told['rated']:,}")


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
    found, rows = panel_sheets.pair_kappas(report), []
    for part in report["raters"]:
        own = [found.get((part["name"], other)) for other in names]
        cells = [
            _kappa_cell(one, f"{one['one']} and {one['other']}") if one else Cell("", None)
            for one in own
        ]
        if report["reference"] is not None:
            cells.append(_kappa_cell(part["kappa"]["pooled"], f"{part['name']} and the reference"))
        rows.append(Row(part["name"], tuple(cells)))
    columns = [*names, "reference"] if report["reference"] is not None else names
    return svg.heat_map("Kappa of every two raters, x100", columns, rows)


def accuracies(report: Report) -> str:
    """Judges' own accuracy against their kappa."""
    found = report["accuracy"]
    if found is None or not found["pairs"]:
        return ""
    marks = [(judge, own["accuracy"], own["kappa"]) for judge, own in found["pairs"].items()]
    about = "Own accuracy and kappa of judges"
    return svg.points(about, marks, ("own accuracy on the benchmark", "kappa"))


# --- the page -----------------------------------------------------------------------------------

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
    "ratings": ("Ratings", rating_map, "Mean ratings, 1 to 5 (Figure 3); * judges itself."),
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


def _style() -> str:
    """The page's style, with a class for each level of the two colours of maps."""
    levels = "".join(
        f".p{n}{{fill:color-mix(in srgb,var(--hot) {n * 9}%,var(--cold))}}"
        f".n{n}{{fill:color-mix(in srgb,var(--under) {n * 9}%,var(--cold))}}"
        for n in range(11)
    )
    style = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
    return "\n" + style.replace("/* LEVELS */", levels + "\n").replace("\n\n.b0", "\n.b0")


def html(report: Report) -> str:
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
<title>Reliability of judges</title><style>{_style()}</style></head><body>
<h1>Reliability of judges on CVRR-ES</h1>
<p>{escape(sheets.basis(report))}; {escape(sheets.compared(report))}; \
{escape(sheets.intervals(report))}; {escape(sheets.folds(report))}.</p>
{_known(report)}
<nav class="soft">{" ".join(links)}</nav>
{"".join(sections)}
</body></html>
"""


def _known(report: Report) -> str:
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
        new, before = row.names[0] != before, row.names[0]
        kinds = " ".join(kind for kind, so in (("first", new), ("strong", row.strong)) if so)
        # In tables with two names the first is not repeated below itself.
        shown = row.names if new or len(row.names) == 1 else ("", *row.names[1:])
        names = "".join(f'<th class="name" scope="row">{escape(name)}</th>' for name in shown)
        cells = "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row.cells)
        opened = f'<tr class="{kinds}">' if kinds else "<tr>"
        rows.append(f"{opened}{names}{cells}</tr>")
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
