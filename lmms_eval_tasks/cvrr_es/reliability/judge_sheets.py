"""The report's tables of single judges' agreement: who can be relied on, and Table 5."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lmms_eval_tasks.cvrr_es.reliability import sheets
from lmms_eval_tasks.cvrr_es.reliability.sheets import Line, Sheet
from lmms_eval_tasks.report.paper_tables import NONE

Report = Mapping[str, Any]


def summary(report: Report) -> Sheet:
    """A line per rater: kappa in both ways, its band, and how it rates."""
    rows = []
    for part in report["raters"]:
        kappa, told = part["kappa"], part["ratings"]["overall"]
        mean, pooled, lenient = kappa["mean"], kappa["pooled"], part["leniency"]["overall"]
        rows.append(
            Line(
                (part["name"] + (" *" if part["itself"] else ""),),
                (
                    sheets.plain(mean["kappa"]),
                    sheets.percent(mean["kappa"]),
                    sheets.span(mean["interval"]),
                    mean["band"] or NONE,
                    sheets.plain(pooled["kappa"]),
                    f"{pooled['n']:,}",
                    sheets.plain(part["without_offset"]["mean"]["kappa"]),
                    sheets.plain(told["mean"], 2),
                    sheets.difference(lenient["value"], 2),
                    sheets.span(lenient["interval"], 2),
                    f"{told['failed']:,}",
                    sheets.share(told["coverage"]),
                ),
            )
        )
    return Sheet(
        "summary",
        "How far each judge can be relied on",
        ("judge",),
        (
            *("kappa", "x100", "95 %", "band", "pooled\nkappa", "n", "without\noffset"),
            *("mean\nrating", "minus\nreference", "95 %", "failed", "rated\n%"),
        ),
        tuple(rows),
        (
            f"{sheets.basis(report)}; {sheets.compared(report)}",
            "kappa: mean over candidates, then over dimensions (Table 5's averages); pooled: over "
            "all answers at once; n: answers that both rated",
            "without offset: kappa after the judge's mean offset, as fitted on other folds, is "
            f"taken off; {sheets.folds(report)}",
            "minus reference: leniency, above 0 rates too high; its interval is clustered by video",
            f"{sheets.intervals(report)}; * is among the candidates, so it judges itself too",
        ),
    )


def agreement(report: Report) -> Sheet:
    """Table 5: kappas x100 of each judge and candidate, with the average."""
    data, rows = report["data"], []
    for part in report["raters"]:
        kappa = part["kappa"]
        for candidate in data["candidates"]:
            cells = [sheets.cell(kappa, one, candidate) for one in data["dimensions"]]
            own = kappa["by_candidate"].get(candidate)
            rows.append(
                Line(
                    (part["name"], sheets.marked(part, candidate)),
                    tuple(map(sheets.percent, [*cells, own])),
                )
            )
        rows += [
            Line((part["name"], title), tuple(cells), strong=True)
            for title, cells in _averages(data["dimensions"], kappa)
        ]
    return Sheet(
        "agreement",
        "Kappa with the reference, x100 (the paper's Table 5)",
        ("judge", "candidate"),
        (*sheets.heads(data["dimensions"]), "mean"),
        tuple(rows),
        (
            f"{sheets.basis(report)}; {sheets.compared(report)}",
            "Average: mean over candidates; pooled: all candidates' answers at once. A dash: no "
            "answer was rated by both, or both gave one and the same rating. 0.00 of a constant "
            "judge says nothing",
            *_undefined(report),
        ),
    )


def _averages(dimensions: list[str], kappa: Report) -> Iterator[tuple[str, list[str]]]:
    for title, by, whole in (
        ("Average", "by_dimension", "mean"),
        ("pooled", "pooled_by_dimension", "pooled"),
    ):
        values = [kappa[by][one]["kappa"] for one in dimensions]
        yield title, [sheets.percent(value) for value in [*values, kappa[whole]["kappa"]]]


def _undefined(report: Report) -> list[str]:
    """How many cells have no kappa, of whom."""
    if report["reference"] is None:
        return []
    lacking = [
        f"{part['name']} {mean['cells'] - mean['defined']} of {mean['cells']}"
        for part in report["raters"]
        if (mean := part["kappa"]["mean"])["defined"] < mean["cells"]
    ]
    return (
        [f"cells without a kappa, which averages leave out: {'; '.join(lacking)}"]
        if lacking
        else []
    )
