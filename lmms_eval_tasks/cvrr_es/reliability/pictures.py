"""The report's pictures: Figures 3 to 5 and what belongs beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.reliability import sheets, svg
from lmms_eval_tasks.cvrr_es.reliability.kappa_values import BANDS
from lmms_eval_tasks.cvrr_es.reliability.panel_sheets import PANEL_TITLES
from lmms_eval_tasks.cvrr_es.reliability.svg import Bar, Cell, Row, Stack
from lmms_eval_tasks.report.paper_tables import NONE, number

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
