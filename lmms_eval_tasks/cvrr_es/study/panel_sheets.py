"""The report's tables of judges together: Tables 6 and 7, panels, selection; and all as printed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from lmms_eval_tasks.console import UNSEEN
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.study import sheets
from lmms_eval_tasks.cvrr_es.study.sheets import Line, Report, Sheet
from lmms_eval_tasks.report.paper_tables import NONE, by_row

if TYPE_CHECKING:
    from rich.table import Table

_TABLES = {"collective": "6", "mixture": "7"}
# Panel of panel_report -> what a reader should call it.
PANEL_TITLES = {
    "majority": "majority",
    "median": "median",
    "mean": "mean",
    "dawid_skene": "Dawid-Skene",
    "dawid_skene_mean": "Dawid-Skene, mean of classes",
    "kappa_weighted": "kappa-weighted mean",
    "best_judge": "best judge elsewhere",
    "naive_bayes": "naive Bayes",
    "naive_bayes_mean": "naive Bayes, mean of classes",
    "selected_mean": "mean of selected judges",
    "selected_mean_same_items": "mean of selected, paper's way",
}


def all_sheets(report: Report) -> list[Sheet]:
    """The report's tables in the order of the page; those without any number are left out."""
    found = [
        sheets.summary(report),
        sheets.agreement(report),
        *rounds(report),
        panels(report),
        selection(report),
        sheets.ratings(report),
        sheets.distribution(report),
        sheets.itself(report),
        pairs(report),
        accuracy(report),
        sheets.preferred(report),
        sheets.empties(report),
    ]
    return [sheet for sheet in found if sheet is not None and sheet.has_numbers]


def tables(report: Report) -> list[Table]:
    """The same for a terminal."""
    return [
        table
        for sheet in all_sheets(report)
        for table in by_row(
            sheet.title,
            tuple(sheet.names),
            [two_lines(heading) for heading in sheet.columns],
            [(row.names, row.cells) for row in sheet.rows],
            "\n".join(line for note in sheet.notes for line in textwrap.wrap(note, UNSEEN)),
        )
    ]


def two_lines(heading: str) -> str:
    """A heading on two lines where it is long."""
    short = "\n" in heading or len(heading) < 9
    return heading if short else heading.replace(" ", "\n", 1)


def rounds(report: Report) -> list[Sheet]:
    """Tables 6 and 7: the final judge with others' ratings, beside itself alone."""
    parts = {part["name"]: part for part in report["raters"]}
    return [_round(report, parts[one["name"]], one) for one in report["rounds"]]


def _round(report: Report, part: Report, one: Report) -> Sheet:
    dimensions, kappa, judge = report["data"]["dimensions"], part["kappa"], one["judge"]
    rows = [
        Line((sheets.marked(part, candidate),), sheets.kappas_of(report, part, candidate))
        for candidate in report["data"]["candidates"]
    ]
    average = {name: kappa["by_dimension"][name]["kappa"] for name in dimensions}
    below = [("Average", {"by_dimension": average, "mean": kappa["mean"]["kappa"]})]
    notes = [f"{sheets.basis(report)}; {sheets.compared(report)}"]
    if one["alone"]:
        n, apart = one["together"]["n"], one["difference"]
        if n != kappa["pooled"]["n"]:
            below.append(("Average, both ways", one["together"]))
        below.append((f"{judge} alone", one["by_itself"]))
        told = f" {sheets.span(apart['interval'], 2, 100)}" if apart["interval"] else ""
        notes += [
            f"alone: Average of {judge}'s own ratings, on the {n:,} answers rated both ways; "
            f"{one['round']} minus alone: {sheets.percent(apart['value'])}{told}",
            sheets.intervals(report),
        ]
    else:
        notes.append(f"no comparison: {judge} has no ratings alone (round `first`)")
    if one["round"] == "mixture":
        notes.append(
            "how the mixture chose its judges is not in the ratings: the rule below is the report's"
        )
    for title, own in below:
        values = [*(own["by_dimension"].get(name) for name in dimensions), own["mean"]]
        rows.append(Line((title,), [*map(sheets.percent, values)], strong=True))
    return Sheet(
        "rounds",
        f"{part['name']}: kappa with the reference, x100 (the paper's Table "
        f"{_TABLES[one['round']]})",
        ["candidate"],
        [*sheets.heads(report), "mean"],
        rows,
        notes,
    )


def panels(report: Report) -> Sheet | None:
    """Every panel beside single judges and the final judge; None without a reference or panels."""
    found = report["panels"]
    if found is None or report["reference"] is None:
        return None
    looks = {"reference": "the reference answer", "mixture": "its choice of judges"}
    rows = []
    for part in report["raters"]:
        look, apart = looks.get(part["round"], "nothing"), found["finals"].get(part["name"])
        rows.append(_kappa_line(part["name"], look, part["kappa"], apart))
    noted: dict[str, list[str]] = {}  # note -> panels, since many say the same
    for one in found["panels"]:
        title = PANEL_TITLES[one["name"]]
        rows.append(_kappa_line(title, one["fitted_to"], one["kappa"], one))
        if one["note"]:
            noted.setdefault(one["note"], []).append(title)
    best, n = found["best_single"], found["best_single_n"]
    where = (
        f"the {n:,} answers that all judges rated"
        if n
        else "each judge's own answers, since those that all rated give no kappa"
    )
    return Sheet(
        "panels",
        "Panels beside single judges and the final judge",
        ["ratings by", "takes from the reference"],
        [
            *("kappa", "95 %", "band", "pooled", "n"),
            *("minus\nbest single", "95 %", "minus\nmean panel", "95 %"),
        ],
        rows,
        [
            f"{sheets.basis(report)}; panels of the {len(found['judges'])} judges that rated "
            f"alone: {', '.join(found['judges'])}",
            f"best single judge: {best}, the best in hindsight, chosen on {where}; `best judge "
            "elsewhere` had to be chosen on other folds"
            if best
            else "best single judge: none has a kappa",
            "differences are paired, on the answers that both rated, (n) where those are not the "
            f"row's; {sheets.intervals(report)}",
            "intervals hold fixed what was fitted and who was chosen",
            f"{sheets.folds(report)}. `the paper's way` chooses and scores on the same answers, "
            "which flatters",
            *(f"{', '.join(titles)}: {note}" for note, titles in noted.items()),
        ],
    )


def _kappa_line(title: str, fitted: str, kappa: Report | None, apart: Report | None) -> Line:
    if kappa is None:
        return Line((title, fitted), (NONE,) * 9)
    mean, pooled = kappa["mean"], kappa["pooled"]
    made = [sheets.plain(mean["kappa"]), sheets.span(mean["interval"]), mean["band"] or NONE]
    made += [sheets.plain(pooled["kappa"]), f"{pooled['n']:,}"]
    for key in ("over_best", "over_mean"):
        if (own := apart[key] if apart else None) is None:
            made += [NONE, NONE]
            continue
        other = f" (n {own['n']:,})" if own["n"] not in (0, pooled["n"]) else ""
        made += [sheets.difference(own["value"]) + other, sheets.span(own["interval"])]
    return Line((title, fitted), made)


def selection(report: Report) -> Sheet | None:
    """Whom the mixture's rule chooses, by both ways of fitting; None if it can choose nobody."""
    found = report["selection"]
    ways, titles = found["ways"], {"cross_fitted": "other folds", "same_items": "the paper's way"}
    if not any(way["dimensions"] for way in ways.values()):
        return None
    rows = []
    for dimension in report["data"]["dimensions"]:
        for way, title in titles.items():
            if (one := ways[way]["dimensions"].get(dimension)) is not None:
                back = f"{one['fell_back']} of {one['choices']}" if one["fell_back"] else "0"
                made = [*(_chosen(one, judge) for judge in found["judges"]), back]
                rows.append(Line((DIMENSIONS[dimension].short, title), made))
    finals = ", ".join(report["final_judges"]) or "none named"
    whom = "also" if "own=yes" in found["rule"] else "not"
    reasons = {way: own["reason"] for way, own in ways.items() if own["reason"]}
    return Sheet(
        "selection",
        f"Judges that the mixture's rule selects ({found['rule']})",
        ["dimension", "chosen on"],
        [*found["judges"], "fell\nback"],
        rows,
        [
            "each cell: in how many folds the judge is chosen (yes or no: once, on all answers), "
            "and the kappa x100 that this rests on, lowest to highest over the folds",
            f"{whom} selected from: the final judge ({finals}); {sheets.folds(report)}",
            *(f"{way.replace('_', ' ')}: {reason}" for way, reason in reasons.items()),
        ],
    )


def _chosen(one: Report, judge: str) -> str:
    values = [value for value in one["kappas"][judge] if value is not None]
    ends = [sheets.percent(end, 1) for end in (min(values), max(values))] if values else [NONE]
    shown, times = "..".join(dict.fromkeys(ends)), one["chosen"].get(judge, 0)
    if one["choices"] == 1:
        return f"{'yes' if times else 'no'} {shown}"
    return f"{times}/{one['choices']} {shown}"


def pairs(report: Report) -> Sheet:
    """Kappa of every two raters with each other, and of each with the reference."""
    names = [part["name"] for part in report["raters"]]
    between = report["between"]
    kappas = {frozenset((one["one"], one["other"])): one["kappa"] for one in between["pairs"]}
    rows = []
    for part in report["raters"]:
        own = [kappas.get(frozenset((part["name"], other))) for other in names]
        own.append(part["kappa"]["pooled"]["kappa"])
        rows.append(Line((part["name"],), [sheets.percent(one, 1) for one in own]))
    alpha = between["alpha"]
    told = sheets.plain(alpha["value"]) if alpha["value"] is not None else f"- ({alpha['reason']})"
    return Sheet(
        "between",
        "How far raters agree with each other: kappa x100, pooled",
        [""],
        [*names, "reference"],
        rows,
        [
            "over the answers that both rated, all candidates at once",
            f"Krippendorff's alpha ({alpha['level']}) of the {alpha['judges']} judges that rated "
            f"alone: {told}, over {alpha['n']:,} answers that two or more rated",
        ],
    )


def accuracy(report: Report) -> Sheet | None:
    """Judges' own benchmark accuracy beside their kappa (section 6)."""
    found = report["accuracy"]
    if found is None:
        return None
    ordered = sorted(found["pairs"].items(), key=lambda pair: -pair[1]["accuracy"])
    rho = (
        f"Spearman's rho over {len(ordered)} judges: {sheets.plain(found['rho'])}"
        if found["rho"] is not None
        else f"no rank correlation: {found['reason']}"
    )
    why = {
        "without_accuracy": "no accuracy given",
        "without_kappa": "no kappa",
        "unknown": "accuracy given, but no such judge rated alone",
    }
    return Sheet(
        "accuracy",
        "Do judges that answer better judge better? (section 6)",
        ["judge"],
        ["own accuracy", "kappa x100"],
        [
            Line((judge,), [sheets.plain(own["accuracy"], 2), sheets.percent(own["kappa"])])
            for judge, own in ordered
        ],
        [
            f"{rho}; accuracies as given with --accuracies",
            *(f"{told}: {', '.join(found[key])}" for key, told in why.items() if found[key]),
        ],
    )
