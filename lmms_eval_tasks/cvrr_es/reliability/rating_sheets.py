"""The report's tables of what judges gave: Table 4, spread, preferences, empty answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.reliability import sheets
from lmms_eval_tasks.cvrr_es.reliability.sheets import Line, Sheet
from lmms_eval_tasks.report.paper_tables import NONE

Report = Mapping[str, Any]


def ratings(report: Report) -> Sheet:
    """Table 4: mean ratings of candidates by judges and dimensions."""
    data, rows = report["data"], []
    for candidate in data["candidates"]:
        for part in sheets.with_reference(report):
            told = part["ratings"]
            means = [sheets.cell(told, one, candidate, "mean") for one in data["dimensions"]]
            means.append(told["by_candidate"][candidate]["mean"])
            rows.append(
                Line(
                    (candidate, part["name"] + (" *" if candidate in part["itself"] else "")),
                    tuple(sheets.plain(mean, 2) for mean in means),
                )
            )
    return Sheet(
        "ratings",
        "Mean rating of each candidate, 1 to 5 (the paper's Table 4)",
        ("candidate", "judge"),
        (*sheets.heads(data["dimensions"]), "all"),
        tuple(rows),
        (
            f"{sheets.basis(report)}; each mean is over the answers that the judge rated",
            "all: over all of the candidate's answers, each counted alike; * judges itself",
            *_named(report),
        ),
    )


def _named(report: Report) -> list[str]:
    reference = report["reference"]
    return [] if reference is None else [f"reference: {reference['name']}"]


def distribution(report: Report) -> Sheet:
    """The left of Figure 4, as numbers."""
    rows = []
    for part in sheets.with_reference(report):
        told = part["ratings"]["overall"]
        whole = sum(told["distribution"].values())
        rows.append(
            Line(
                (part["name"],),
                (
                    *(
                        f"{sheets.share(told['distribution'][str(one)] / whole) if whole else NONE}"
                        for one in RATINGS
                    ),
                    *(f"{told[key]:,}" for key in ("rated", "not_whole", "failed", "missing")),
                ),
            )
        )
    return Sheet(
        "distribution",
        "How ratings are spread, % (the left of the paper's Figure 4)",
        ("judge",),
        (
            *(f"{one}\n{name}" for one, name in RATINGS.items()),
            *("rated", "not\nwhole", "failed", "no\nrow"),
        ),
        tuple(rows),
        (
            f"{sheets.basis(report)}; shares of the whole ratings. Ratings such as 4.5 count in "
            "means, not in kappas; a failure is no rating",
            *_named(report),
        ),
    )


def itself(report: Report) -> Sheet | None:
    """Judges that are candidates: their leniency toward themselves; None without a reference."""
    if report["reference"] is None:
        return None
    rows = []
    for part in report["raters"]:
        own = part["self_preference"]
        if own is not None:
            rows.append(
                Line(
                    (part["name"], ", ".join(own["candidates"])),
                    (
                        sheets.difference(own["toward_itself"]["value"], 2),
                        sheets.difference(own["toward_others"]["value"], 2),
                        sheets.difference(own["difference"]["value"], 2),
                        sheets.span(own["difference"]["interval"], 2),
                        f"{own['difference']['n']:,}",
                    ),
                )
            )
    return Sheet(
        "itself",
        "Judges that judge themselves: rating minus reference",
        ("judge", "as candidate"),
        ("its own\nanswers", "others'", "apart", "95 %", "n"),
        tuple(rows),
        (
            "above 0 in the third column is no proof of vanity: good answers leave less room above "
            "the reference than bad ones; compare with other judges of the same candidates",
            sheets.intervals(report),
        ),
    )


def empties(report: Report) -> Sheet | None:
    """With and without the answers that are empty; None if none is."""
    if not report["data"]["empty"]:
        return None
    rows = []
    for part in report["raters"]:
        kappa, counts, less = part["kappa"], part["counts"], part["without_empty"]
        rows.append(
            Line(
                (part["name"],),
                (
                    sheets.percent(kappa["mean"]["kappa"]),
                    sheets.percent(less["mean"]),
                    sheets.percent(kappa["pooled"]["kappa"]),
                    sheets.percent(less["pooled"]),
                    f"{kappa['pooled']['n']:,}",
                    f"{less['n']:,}",
                    f"{counts['empty_rated']:,}",
                    f"{counts['empty_failed']:,}",
                ),
            )
        )
    return Sheet(
        "empty",
        "With and without empty answers: kappa x100",
        ("judge",),
        (
            *("kappa\nwith", "without", "pooled\nwith", "without", "n\nwith", "without"),
            *("empty\nrated", "empty\nfailed"),
        ),
        tuple(rows),
        (
            f"{report['data']['empty']:,} of {report['data']['items']:,} answers are empty: the "
            "published scripts skip them; here a judge rates them or fails on them",
        ),
    )


def preferred(report: Report) -> Sheet:
    """Do judges prefer the answers that the reference prefers? And whom do they prefer?"""
    candidates = report["data"]["candidates"]
    rows = []
    for part in sheets.with_reference(report):
        same = part.get("preferences")  # which the reference has not
        told = [NONE] * 4
        if same:
            told = [
                sheets.share(same["agreement"]),
                sheets.span(same["interval"], 1, 100),
                sheets.share(same["decided"]),
                f"{same['n']:,}",
            ]
        score = part["win_rates"]["score"]
        told += [sheets.percent(score.get(one), 1) for one in candidates]
        rows.append(Line((part["name"],), tuple(told), strong=not same))
    return Sheet(
        "preferences",
        "Pairs of candidates: the answer rated higher wins (4.3), %",
        ("judge",),
        ("same as\nreference", "95 %", "same\nwinner", "pairs", *candidates),
        tuple(rows),
        (
            "same as reference: of pairs of answers to one question that both rated, a tie being "
            "an outcome; same winner: where both have one, chance is 50",
            "candidates: share of pairs that they win against all others, a tie as half; intervals "
            "clustered by video",
        ),
    )
