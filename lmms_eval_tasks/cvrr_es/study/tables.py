"""The report's tables: as data for its page, and as printed on a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.console import UNSEEN
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.report.paper_tables import NONE, by_row, fixed, has_numbers, number, signed

if TYPE_CHECKING:
    from rich.table import Table

Report = Mapping[str, Any]
# Panel of the report -> what a reader should call it.
PANEL_TITLES = {
    "majority": "majority",
    "mean": "mean",
    "dawid_skene": "Dawid-Skene",
    "kappa_weighted": "kappa-weighted mean",
}


class Line(NamedTuple):
    """A row: its names, its numbers as text, and whether it sums up those above."""

    names: tuple[str, ...]
    cells: Sequence[str]
    strong: bool = False


class Sheet(NamedTuple):
    """A table.

    Attributes:
        title: what it shows, and which table of the paper.
        names, columns: headings of names and of numbers.
        rows: as many names and cells each as there are headings.
        notes: what it rests on, a line each.
        coloured: the number that has the darkest colour; 0: no colours.
    """

    title: str
    names: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Line]
    notes: Sequence[str]
    coloured: float = 0


def sheets(report: Report) -> list[Sheet]:
    """The tables in the order of the page; those without any number are left out."""
    of = (_summary, _agreement, _rounds, _panels, _ratings, _distribution)
    found = [make(report) for make in of]
    return [sheet for sheet in found if any(has_numbers(row.cells) for row in sheet.rows)]


def printed(report: Report) -> list[Table]:
    """The same for a terminal."""
    return [
        table
        for sheet in sheets(report)
        for table in by_row(
            sheet.title,
            sheet.names,
            [two_lines(heading) for heading in sheet.columns],
            [(row.names, row.cells) for row in sheet.rows],
            "\n".join(line for note in sheet.notes for line in textwrap.wrap(note, UNSEEN)),
        )
    ]


def two_lines(heading: str) -> str:
    """A heading on two lines where it is long."""
    short = "\n" in heading or len(heading) < 9
    return heading if short else heading.replace(" ", "\n", 1)


# --- numbers as text ------------------------------------------------------------------------------


def _plain(value: Any, decimals: int = 3) -> str:
    return fixed(number(value), decimals)


def _percent(value: float | None, decimals: int = 2) -> str:
    """Times 100, as the paper prints kappas; a dash for None."""
    return NONE if value is None else _plain(100 * value, decimals)


def _apart(part: Report, decimals: int = 3) -> list[str]:
    """A difference with its sign, and its interval."""
    found = number(part["value"])
    return [NONE if found is None else signed(found, decimals), _span(part, decimals)]


def _span(part: Report, decimals: int = 3) -> str:
    """A number's interval as [low, high]; a dash where there is none."""
    interval = part["interval"] or {"low": None, "high": None}
    ends = [_plain(interval[end], decimals) for end in ("low", "high")]
    return NONE if NONE in ends else f"[{', '.join(ends)}]"


# --- what every table says ------------------------------------------------------------------------


def about(report: Report) -> list[str]:
    """What every number of the report rests on."""
    data, reference = report["data"], report["reference"]
    videos = f"{data['videos']:,} videos"
    on_videos = f" on {videos}" if data["videos"] else ""
    told = [
        f"{data['items']:,} answers of {len(data['candidates'])} candidates to "
        f"{data['questions']:,} questions{on_videos}",
        "kappa: quadratic weights, labels 1 to 5, with the reference of "
        f"{reference['name']} ({reference['ratings']['overall']['rated']:,} ratings)"
        if reference
        else "no kappa: no reference ratings yet (make them with `debate`, name with --reference)",
    ]
    if data["questions_without_video"]:
        told.append(
            f"no intervals: the video of {data['questions_without_video']:,} of "
            f"{data['questions']:,} questions is not known"
        )
    elif data["videos"] < 2:
        told.append("no intervals: all answers are on one video")
    else:
        told.append(f"intervals: 95 %, bootstrap over {videos}, 1,000 resamples, seed 0")
    fitted = f"cross-fitted: {data['folds']} folds by {'videos' if on_videos else 'questions'}"
    few = "nothing is cross-fitted: that needs two videos or more"
    return [*told, fitted if data["folds"] > 1 else few]


def _heads(report: Report) -> list[str]:
    """The dimensions' short names, as the paper's tables have them."""
    return [DIMENSIONS[one] for one in report["data"]["dimensions"]]


def _cells(report: Report, part: Report, candidate: str, key: str) -> list[Any]:
    """A number of a candidate in each dimension; None where there are no answers."""
    by_dimension = [part["cells"][one] for one in report["data"]["dimensions"]]
    return [own.get(candidate, {}).get(key) for own in by_dimension]


def _with_reference(report: Report) -> list[Report]:
    """All raters; last the reference, if there is one, named so."""
    last = report["reference"]
    return [*report["raters"], *([{**last, "name": "reference", "itself": []}] if last else [])]


# --- the tables -----------------------------------------------------------------------------------


def _summary(report: Report) -> Sheet:
    """A line per rater: kappa in both ways, its band, and how it rates."""

    def line(part: Report) -> Line:
        told, mean, pooled = (
            *(part["ratings"]["overall"], part["kappa"]["mean"], part["kappa"]["pooled"]),
        )
        made = [
            *(_plain(mean["kappa"]), _percent(mean["kappa"]), _span(mean), mean["band"] or NONE),
            *(_plain(pooled["kappa"]), f"{pooled['n']:,}", _plain(told["mean"], 2)),
            *(*_apart(part["leniency"], 2), f"{told['failed']:,}", _percent(told["coverage"], 1)),
        ]
        return Line((part["name"] + (" *" if part["itself"] else ""),), made)

    basis, compared, intervals, _ = about(report)
    notes = [
        f"{basis}; {compared}",
        "kappa: mean over candidates, then over dimensions (Table 5's averages); pooled: over "
        "all answers at once; n: answers that both rated",
        "minus reference: leniency, above 0 rates too high; its interval is clustered by video",
        f"{intervals}; * is among the candidates, so it judges itself too",
    ]
    if alpha := report["alpha"]:
        told = _plain(alpha["value"]) if alpha["value"] is not None else f"- ({alpha['reason']})"
        notes.append(
            f"Krippendorff's alpha (interval) of the judges that rated alone: {told}, over "
            f"{alpha['n']:,} answers that two or more rated"
        )
    return Sheet(
        "How far each judge can be relied on",
        ["judge"],
        [
            *("kappa", "x100", "95 %", "band", "pooled\nkappa", "n"),
            *("mean\nrating", "minus\nreference", "95 %", "failed", "rated\n%"),
        ],
        [line(part) for part in report["raters"]],
        notes,
    )


def _agreement(report: Report) -> Sheet:
    """Table 5: kappas x100 of each judge and candidate, with the average."""
    rows, lacking = [], []
    for part in report["raters"]:
        kappa, mean = part["kappa"], part["kappa"]["mean"]
        for candidate in report["data"]["candidates"]:
            itself = " (itself)" if candidate in part["itself"] else ""
            own = [*_cells(report, kappa, candidate, "kappa"), kappa["by_candidate"].get(candidate)]
            rows.append(Line((part["name"], candidate + itself), [*map(_percent, own)]))
        for title, by, whole, key in (
            ("Average", "by_dimension", "mean", "kappa"),
            ("levels that occur", "by_dimension", "mean", "kappa_authors"),
            ("pooled", "pooled_by_dimension", "pooled", "kappa"),
        ):
            own = [*(kappa[by][one] for one in report["data"]["dimensions"]), kappa[whole]]
            shown = [_percent(one[key]) for one in own]
            rows.append(Line((part["name"], title), shown, strong=True))
        if mean["defined"] < mean["cells"] and report["reference"] is not None:
            lacking.append(f"{part['name']} {mean['cells'] - mean['defined']} of {mean['cells']}")
    left_out = f"cells without a kappa, which averages leave out: {'; '.join(lacking)}"
    return Sheet(
        "Kappa with the reference, x100 (the paper's Tables 5 to 7)",
        ["judge", "candidate"],
        [*_heads(report), "mean"],
        rows,
        [
            "; ".join(about(report)[:2]),
            "Average: mean over candidates; levels that occur: the same with distances over these "
            "alone, as the study's code has it; pooled: all candidates' answers at once. A dash: "
            "no answer was rated by both, or both gave one and the same rating. 0.00 of a constant "
            "judge says nothing",
            *([left_out] if lacking else []),
        ],
        coloured=100,
    )


def _rounds(report: Report) -> Sheet:
    """Does a final judge rate better with others' ratings than alone?"""
    rows = [
        Line((one["name"],), [*_apart(one["difference"]), f"{one['difference']['n']:,}"])
        for one in report["rounds"]
    ]
    notes = [
        "paired, on the answers rated both ways",
        about(report)[2],
        "how a mixture chose its judges is not in the ratings",
    ]
    title = "Final judges with others' ratings: kappa minus that of the same judge alone"
    return Sheet(title, ["judge"], ["kappa minus alone", "95 %", "n"], rows, notes)


def _panels(report: Report) -> Sheet:
    """Every panel beside single judges and the final judge."""
    found = report["panels"] or {"panels": [], "best_single": None, "judges": []}
    rows = []
    looks = {"reference": "the reference answer", "mixture": "its choice of judges"}
    kinds = [(one["name"], looks.get(one["round"], "nothing"), one) for one in report["raters"]]
    panels = [(PANEL_TITLES[one["name"]], one["fitted_to"], one) for one in found["panels"]]
    for title, fitted, one in [*kinds, *panels] if report["reference"] and panels else []:
        cells = [NONE] * 7
        if kappa := one["kappa"]:
            mean, pooled = kappa["mean"], kappa["pooled"]
            cells[:3] = [_plain(mean["kappa"]), _span(mean), mean["band"] or NONE]
            cells[3:5] = [_plain(pooled["kappa"]), f"{pooled['n']:,}"]
        if apart := one.get("over_best"):
            cells[5:] = _apart(apart)
        rows.append(Line((title, fitted), cells))
    basis, _, intervals, folds = about(report)
    best = found["best_single"]
    return Sheet(
        "Panels beside single judges and the final judge",
        ["ratings by", "takes from the reference"],
        ["kappa", "95 %", "band", "pooled", "n", "minus\nbest single", "95 %"],
        rows,
        [
            f"{basis}; panels of the {len(found['judges'])} judges that rated alone: "
            f"{', '.join(found['judges'])}",
            f"best single judge: {best}, the best in hindsight"
            if best
            else "best single judge: none has a kappa",
            "differences are paired, on the answers that both rated; "
            f"{intervals}; they hold fixed what was fitted and who was chosen",
            folds,
            *(f"{title}: {one['note']}" for title, _, one in panels if one["note"]),
        ],
    )


def _ratings(report: Report) -> Sheet:
    """Table 4: mean ratings of candidates by judges and dimensions."""
    rows = []
    for candidate in report["data"]["candidates"]:
        for part in _with_reference(report):
            told = part["ratings"]
            means = _cells(report, told, candidate, "mean")
            means.append(told["by_candidate"][candidate]["mean"])
            name = part["name"] + (" *" if candidate in part["itself"] else "")
            rows.append(Line((candidate, name), [_plain(mean, 2) for mean in means]))
    return Sheet(
        "Mean rating of each candidate, 1 to 5 (the paper's Table 4)",
        ["candidate", "judge"],
        [*_heads(report), "all"],
        rows,
        [
            f"{about(report)[0]}; each mean is over the answers that the judge rated",
            "all: over all of the candidate's answers, each counted alike; * judges itself",
        ],
        coloured=max(RATINGS),
    )


def _distribution(report: Report) -> Sheet:
    """The left of Figure 4, as numbers."""
    rows = []
    for part in _with_reference(report):
        told = part["ratings"]["overall"]
        whole = sum(told["distribution"].values())
        shares = [
            _percent(told["distribution"][str(one)] / whole, 1) if whole else NONE
            for one in RATINGS
        ]
        counts = [f"{told[key]:,}" for key in ("rated", "not_whole", "failed", "missing")]
        rows.append(Line((part["name"],), [*shares, *counts]))
    return Sheet(
        "How ratings are spread, % (the left of the paper's Figure 4)",
        ["judge"],
        [
            *(f"{one}\n{name}" for one, name in RATINGS.items()),
            *("rated", "not\nwhole", "failed", "no\nrow"),
        ],
        rows,
        [
            f"{about(report)[0]}; shares of the whole ratings. Ratings such as 4.5 count in "
            "means, not in kappas; a failure is no rating",
        ],
    )
