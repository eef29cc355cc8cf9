"""The report's tables as data: what they are made of, single judges' agreement, what judges gave.

Tables of judges together are in panel_sheets.py, which also draws all of them for terminals;
page.py draws them for pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.report.paper_tables import NONE, fixed, has_numbers, number, signed

Part = Mapping[str, Any]
Report = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A row: its names, its numbers as text, and whether it sums up those above."""

    names: tuple[str, ...]
    cells: Sequence[str]
    strong: bool = False


@dataclass(frozen=True)
class Sheet:
    """A table.

    Attributes:
        key: section of the page that it belongs to.
        title: what it shows, and which table of the paper.
        names, columns: headings of names and of numbers.
        rows: as many names and cells each as there are headings.
        notes: what it rests on, a line each.
    """

    key: str
    title: str
    names: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Line]
    notes: Sequence[str] = ()

    @property
    def has_numbers(self) -> bool:
        """Whether any cell is more than a dash."""
        return any(has_numbers(row.cells) for row in self.rows)


# --- numbers as text ------------------------------------------------------------------------------


def percent(value: Any, decimals: int = 2) -> str:
    """Times 100, as the paper prints kappas; a dash for None."""
    found = number(value)
    return fixed(None if found is None else 100 * found, decimals)


def plain(value: Any, decimals: int = 3) -> str:
    """With so many decimals; a dash for None."""
    return fixed(number(value), decimals)


def difference(value: Any, decimals: int = 3) -> str:
    """With its sign; a dash for None."""
    found = number(value)
    return NONE if found is None else signed(found, decimals)


def span(interval: Part | None, decimals: int = 3, times: float = 1) -> str:
    """An interval as [low, high]; a dash where there is none."""
    if interval is None or number(interval["low"]) is None or number(interval["high"]) is None:
        return NONE
    low, high = (fixed(times * interval[end], decimals) for end in ("low", "high"))
    return f"[{low}, {high}]"


def share(value: Any) -> str:
    """A share in %, never 100 unless all, nor 0 unless none."""
    found = number(value)
    if found is None:
        return NONE
    shown = f"{100 * found:.1f}"
    if shown == "100.0" and found < 1:
        return ">99.9"
    return "<0.1" if shown == "0.0" and found > 0 else shown


# --- what every table says ------------------------------------------------------------------------


def heads(report: Part) -> list[str]:
    """The dimensions' short names, as the paper's tables have them."""
    return [DIMENSIONS[one].short for one in report["data"]["dimensions"]]


def basis(report: Part) -> str:
    """What every number of the report rests on."""
    data = report["data"]
    videos = f" on {data['videos']:,} videos" if data["videos"] else ""
    return (
        f"{data['items']:,} answers of {len(data['candidates'])} candidates to "
        f"{data['questions']:,} questions{videos}"
    )


def intervals(report: Part) -> str:
    """How intervals were made, or why there are none."""
    data = report["data"]
    if data["questions_without_video"]:
        return (
            f"no intervals: the video of {data['questions_without_video']:,} of "
            f"{data['questions']:,} questions is not known"
        )
    if not data["resamples"]:
        return "no bootstrap intervals: none were asked for"
    if data["videos"] < 2:
        return "no intervals: all answers are on one video"
    return (
        f"intervals: 95 %, bootstrap over {data['videos']:,} videos, {data['resamples']:,} "
        f"resamples, seed {data['seed']}"
    )


def compared(report: Part) -> str:
    """With what kappas compare, or that there is nothing yet."""
    reference = report["reference"]
    if reference is None:
        return "no kappa: no reference ratings yet (make them with `debate`, name with --reference)"
    return (
        f"kappa: quadratic weights, labels 1 to 5, with the reference of {reference['name']} "
        f"({reference['counts']['rated']:,} ratings)"
    )


def folds(report: Part) -> str:
    """How what is fitted to the reference was kept from its own answers."""
    data = report["data"]
    if data["folds"] < 2:
        return "nothing is cross-fitted: that needs two videos or more"
    by = "questions" if not data["videos"] else "videos"
    note = f" ({data['folds_note']})" if data["folds_note"] else ""
    return f"cross-fitted: {data['folds']} folds by {by}{note}"


def cells(report: Report, part: Part, candidate: str, key: str = "kappa") -> list[Any]:
    """A number of a candidate in each dimension; None where there are no answers."""
    by_dimension = [part["cells"][one] for one in report["data"]["dimensions"]]
    return [own.get(candidate, {}).get(key) for own in by_dimension]


def kappas_of(report: Report, part: Part, candidate: str) -> list[str]:
    """A candidate's kappas x100 in each dimension, and their mean."""
    kappa = part["kappa"]
    own = kappa["by_candidate"].get(candidate)
    return [percent(one) for one in [*cells(report, kappa, candidate), own]]


def with_reference(report: Part) -> list[Part]:
    """All raters; last the reference, if there is one, named so."""
    last = report["reference"]
    return [*report["raters"], *([{**last, "name": "reference", "itself": []}] if last else [])]


def marked(part: Part, candidate: str) -> str:
    """A candidate's name, marked where the judge rates itself."""
    return f"{candidate} (itself)" if candidate in part["itself"] else candidate


# --- single judges' agreement: who can be relied on, and Table 5 ----------------------------------


def summary(report: Report) -> Sheet:
    """A line per rater: kappa in both ways, its band, and how it rates."""

    def line(part: Part) -> Line:
        told, lenient = part["ratings"]["overall"], part["leniency"]["overall"]
        mean, pooled = part["kappa"]["mean"], part["kappa"]["pooled"]
        made = [
            plain(mean["kappa"]),
            percent(mean["kappa"]),
            span(mean["interval"]),
            mean["band"] or NONE,
            plain(pooled["kappa"]),
            f"{pooled['n']:,}",
            plain(part["without_offset"]["mean"]["kappa"]),
            plain(told["mean"], 2),
            difference(lenient["value"], 2),
            span(lenient["interval"], 2),
            f"{told['failed']:,}",
            share(told["coverage"]),
        ]
        return Line((part["name"] + (" *" if part["itself"] else ""),), made)

    return Sheet(
        "summary",
        "How far each judge can be relied on",
        ["judge"],
        [
            *("kappa", "x100", "95 %", "band", "pooled\nkappa", "n", "without\noffset"),
            *("mean\nrating", "minus\nreference", "95 %", "failed", "rated\n%"),
        ],
        [line(part) for part in report["raters"]],
        [
            f"{basis(report)}; {compared(report)}",
            "kappa: mean over candidates, then over dimensions (Table 5's averages); pooled: over "
            "all answers at once; n: answers that both rated",
            "without offset: kappa after the judge's mean offset, as fitted on other folds, is "
            f"taken off; {folds(report)}",
            "minus reference: leniency, above 0 rates too high; its interval is clustered by video",
            f"{intervals(report)}; * is among the candidates, so it judges itself too",
        ],
    )


def agreement(report: Report) -> Sheet:
    """Table 5: kappas x100 of each judge and candidate, with the average."""
    rows, lacking = [], []
    for part in report["raters"]:
        kappa, mean = part["kappa"], part["kappa"]["mean"]
        for candidate in report["data"]["candidates"]:
            names = (part["name"], marked(part, candidate))
            rows.append(Line(names, kappas_of(report, part, candidate)))
        for title, by, whole, key in (
            ("Average", "by_dimension", "mean", "kappa"),
            ("levels that occur", "by_dimension", "mean", "kappa_authors"),
            ("pooled", "pooled_by_dimension", "pooled", "kappa"),
        ):
            own = [*(kappa[by][one] for one in report["data"]["dimensions"]), kappa[whole]]
            shown = [percent(one[key]) for one in own]
            rows.append(Line((part["name"], title), shown, strong=True))
        if mean["defined"] < mean["cells"] and report["reference"] is not None:
            lacking.append(f"{part['name']} {mean['cells'] - mean['defined']} of {mean['cells']}")
    left_out = f"cells without a kappa, which averages leave out: {'; '.join(lacking)}"
    return Sheet(
        "agreement",
        "Kappa with the reference, x100 (the paper's Table 5)",
        ["judge", "candidate"],
        [*heads(report), "mean"],
        rows,
        [
            f"{basis(report)}; {compared(report)}",
            "Average: mean over candidates; levels that occur: the same with distances over these "
            "alone, as the study's code has it; pooled: all candidates' answers at once. A dash: "
            "no answer was rated by both, or both gave one and the same rating. 0.00 of a constant "
            "judge says nothing",
            *([left_out] if lacking else []),
        ],
    )


# --- what judges gave: Table 4, spread, preferences, empty answers --------------------------------


def ratings(report: Report) -> Sheet:
    """Table 4: mean ratings of candidates by judges and dimensions."""
    rows = []
    for candidate in report["data"]["candidates"]:
        for part in with_reference(report):
            told = part["ratings"]
            means = cells(report, told, candidate, "mean")
            means.append(told["by_candidate"][candidate]["mean"])
            name = part["name"] + (" *" if candidate in part["itself"] else "")
            rows.append(Line((candidate, name), [plain(mean, 2) for mean in means]))
    return Sheet(
        "ratings",
        "Mean rating of each candidate, 1 to 5 (the paper's Table 4)",
        ["candidate", "judge"],
        [*heads(report), "all"],
        rows,
        [
            f"{basis(report)}; each mean is over the answers that the judge rated",
            "all: over all of the candidate's answers, each counted alike; * judges itself",
            *_named(report),
        ],
    )


def _named(report: Report) -> list[str]:
    reference = report["reference"]
    return [] if reference is None else [f"reference: {reference['name']}"]


def distribution(report: Report) -> Sheet:
    """The left of Figure 4, as numbers."""
    rows = []
    for part in with_reference(report):
        told = part["ratings"]["overall"]
        whole = sum(told["distribution"].values())
        shares = [
            share(told["distribution"][str(one)] / whole) if whole else NONE for one in RATINGS
        ]
        counts = [f"{told[key]:,}" for key in ("rated", "not_whole", "failed", "missing")]
        rows.append(Line((part["name"],), [*shares, *counts]))
    return Sheet(
        "distribution",
        "How ratings are spread, % (the left of the paper's Figure 4)",
        ["judge"],
        [
            *(f"{one}\n{name}" for one, name in RATINGS.items()),
            *("rated", "not\nwhole", "failed", "no\nrow"),
        ],
        rows,
        [
            f"{basis(report)}; shares of the whole ratings. Ratings such as 4.5 count in "
            "means, not in kappas; a failure is no rating",
            *_named(report),
        ],
    )


def itself(report: Report) -> Sheet | None:
    """Judges that are candidates: their leniency toward themselves; None without a reference."""
    if report["reference"] is None:
        return None
    rows = []
    for part in report["raters"]:
        if (own := part["self_preference"]) is not None:
            kinds = ("toward_itself", "toward_others", "difference")
            shown = [difference(own[kind]["value"], 2) for kind in kinds]
            shown += [span(own["difference"]["interval"], 2), f"{own['difference']['n']:,}"]
            rows.append(Line((part["name"], ", ".join(own["candidates"])), shown))
    return Sheet(
        "itself",
        "Judges that judge themselves: rating minus reference",
        ["judge", "as candidate"],
        ["its own\nanswers", "others'", "apart", "95 %", "n"],
        rows,
        [
            "above 0 in the third column is no proof of vanity: good answers leave less room above "
            "the reference than bad ones; compare with other judges of the same candidates",
            intervals(report),
        ],
    )


def empties(report: Report) -> Sheet | None:
    """With and without the answers that are empty; None if none is."""
    data, rows = report["data"], []
    if not data["empty"]:
        return None
    for part in report["raters"]:
        kappa, counts, less = part["kappa"], part["counts"], part["without_empty"]
        shown = [kappa["mean"]["kappa"], less["mean"], kappa["pooled"]["kappa"], less["pooled"]]
        n = [kappa["pooled"]["n"], less["n"], counts["empty_rated"], counts["empty_failed"]]
        rows.append(Line((part["name"],), [*map(percent, shown), *(f"{one:,}" for one in n)]))
    return Sheet(
        "empty",
        "With and without empty answers: kappa x100",
        ["judge"],
        [
            *("kappa\nwith", "without", "pooled\nwith", "without", "n\nwith", "without"),
            *("empty\nrated", "empty\nfailed"),
        ],
        rows,
        [
            f"{data['empty']:,} of {data['items']:,} answers are empty: the "
            "published scripts skip them; here a judge rates them or fails on them"
        ],
    )


def preferred(report: Report) -> Sheet:
    """Do judges prefer the answers that the reference prefers? And whom do they prefer?"""
    candidates, rows = report["data"]["candidates"], []
    for part in with_reference(report):
        same = part.get("preferences")  # which the reference has not
        told = [NONE] * 4
        if same:
            told = [share(same["agreement"]), span(same["interval"], 1, 100)]
            told += [share(same["decided"]), f"{same['n']:,}"]
        told += [percent(part["win_rates"]["score"].get(one), 1) for one in candidates]
        rows.append(Line((part["name"],), told, strong=not same))
    return Sheet(
        "preferences",
        "Pairs of candidates: the answer rated higher wins (4.3), %",
        ["judge"],
        ["same as\nreference", "95 %", "same\nwinner", "pairs", *candidates],
        rows,
        [
            "same as reference: of pairs of answers to one question that both rated, a tie being "
            "an outcome; same winner: where both have one, chance is 50",
            "candidates: share of pairs that they win against all others, a tie as half; intervals "
            "clustered by video",
        ],
    )
