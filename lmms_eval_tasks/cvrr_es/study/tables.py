"""The tables of the report: as data for its page, and as text on a terminal.

They are not layouts of leaderboards/: they show several judges, panels and candidates together,
from `report.py`'s dict instead of a run's rows, and the page colours some cells.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.notify import UNSEEN
from lmms_eval_tasks.tables.paper_tables import NONE, by_row, fixed, has_numbers, signed

if TYPE_CHECKING:
    from rich.table import Table

Report = Mapping[str, Any]


class Sheet(NamedTuple):
    """A table as data."""

    title: str  # its content, and the paper's table
    names: Sequence[str]  # headings of the columns of names
    columns: Sequence[str]
    rows: Sequence[tuple[Sequence[str], Sequence[str]]]  # names, and numbers as text
    notes: Sequence[str]  # caveats, a line each
    coloured: float = 0  # the value with the darkest colour; 0: no colours


def sheets(report: Report) -> list[Sheet]:
    """The tables in the order of the page, without those that have no number."""
    found = [of(report) for of in (_summary, _agreement, _differences, _ratings, _distribution)]
    return [sheet for sheet in found if any(has_numbers(cells) for _, cells in sheet.rows)]


def printed(report: Report) -> list[Table]:
    """Return the tables for a terminal."""
    return [
        table
        for sheet in sheets(report)
        for table in by_row(
            *sheet[:4],
            "\n".join(line for note in sheet.notes for line in textwrap.wrap(note, UNSEEN)),
        )
    ]


# --- numbers as text ------------------------------------------------------------------------------


def _percent(value: float | None, decimals: int = 2) -> str:
    """Return a value times 100, as the paper prints kappas; a dash for None."""
    return fixed(None if value is None else 100 * value, decimals)


def _apart(part: Report, decimals: int = 3) -> list[str]:
    """Return a difference with its sign, and its interval."""
    value = part["value"]
    return [NONE if value is None else signed(value, decimals), _span(part, decimals)]


def _span(part: Report, decimals: int = 3) -> str:
    """Return a number's interval as "[low, high]"; a dash if there is none."""
    own = part["interval"]
    return f"[{fixed(own['low'], decimals)}, {fixed(own['high'], decimals)}]" if own else NONE


def _cells(report: Report, part: Report, candidate: str, key: str) -> list[float | None]:
    """Return a number of a candidate for each dimension; None without answers."""
    by_dimension = [part["cells"][one] for one in report["data"]["dimensions"]]
    return [own.get(candidate, {}).get(key) for own in by_dimension]


def _heads(report: Report, last: str) -> list[str]:
    columns = leaderboards.stored("cvrr_es")["columns"]
    return [*(leaderboards.heading(columns[one]) for one in report["data"]["dimensions"]), last]


def _with_reference(report: Report) -> list[Report]:
    """Return all raters, then the reference under the name "reference", if there is one."""
    last = report["reference"]
    return [*report["raters"], *([{**last, "name": "reference", "itself": []}] if last else [])]


# --- the tables -----------------------------------------------------------------------------------


def about(report: Report) -> list[str]:
    """The basis of every number of the report: the answers, the reference, the intervals."""
    data, reference = report["data"], report["reference"]
    videos = f"{data['videos']:,} videos"
    return [
        f"{data['items']:,} answers of {len(data['candidates'])} candidates to "
        f"{data['questions']:,} questions on {videos}",
        "kappa: quadratic weights, labels 1 to 5, with the reference of "
        f"{reference['name']} ({reference['ratings']['overall']['rated']:,} ratings)"
        if reference
        else "no kappa, because there are no reference ratings (`debate` makes "
        "them, --reference names their file)",
        f"intervals: 95 %, clustered by {videos}"
        if data["videos"] > 1
        else "no intervals: all answers are on one video",
    ]


def _summary(report: Report) -> Sheet:
    """A row per rater and panel: both kappas, the band, and its ratings."""
    rows = []
    for part in (*report["raters"], *report["panels"]):
        told, mean, pooled = part["ratings"]["overall"], *map(part["kappa"].get, ("mean", "pooled"))
        made = [
            *(fixed(mean["kappa"], 3), _percent(mean["kappa"]), _span(mean), mean["band"] or NONE),
            *(fixed(pooled["kappa"], 3), f"{pooled['n']:,}", fixed(told["mean"])),
            *(*_apart(part["leniency"], 2), f"{told['failed']:,}", _percent(told["coverage"], 1)),
        ]
        rows.append(([part["name"] + " *" * bool(part["itself"])], made))
    basis, compared, intervals = about(report)
    notes = [
        f"{basis}; {compared}",
        "kappa: mean over candidates, then over dimensions (Table 5's "
        "averages); pooled: over all answers at once; n: answers that both "
        "rated",
        "minus reference: leniency; above 0 the judge rates too high; its "
        "interval is clustered by video",
        f"{intervals}; * is also a candidate, so it judges itself too",
    ]
    if alpha := report["alpha"]:
        notes.append(
            "Krippendorff's alpha (interval) of the judges that rated alone: "
            f"{fixed(alpha['value'], 3)}, over {alpha['n']:,} answers that two "
            "or more rated"
        )
    columns = [
        *("kappa", "x100", "95 %", "band", "pooled\nkappa", "n"),
        *("mean\nrating", "minus\nreference", "95 %", "failed", "rated\n%"),
    ]
    return Sheet("Reliability of each judge", ["judge"], columns, rows, notes)


def _agreement(report: Report) -> Sheet:
    """Table 5: kappas x100 of each judge and candidate, with the average."""
    rows = []
    for part in report["raters"]:
        kappa = part["kappa"]
        for candidate in report["data"]["candidates"]:
            itself = " (itself)" if candidate in part["itself"] else ""
            own = [*_cells(report, kappa, candidate, "kappa"), kappa["by_candidate"].get(candidate)]
            rows.append(((part["name"], candidate + itself), [*map(_percent, own)]))
        for title, by, whole, key in (
            ("Average", "by_dimension", "mean", "kappa"),
            ("levels that occur", "by_dimension", "mean", "kappa_authors"),
            ("pooled", "pooled_by_dimension", "pooled", "kappa"),
        ):
            own = [*(kappa[by][one] for one in report["data"]["dimensions"]), kappa[whole]]
            rows.append(((part["name"], title), [_percent(one[key]) for one in own]))
    return Sheet(
        "Kappa with the reference, x100 (the paper's Tables 5 to 7)",
        ["judge", "candidate"],
        _heads(report, "mean"),
        rows,
        [
            "Average: mean over candidates, of the cells that have a kappa; levels that occur: the "
            "same with distances over these alone, as the study's code has it; pooled: all "
            "candidates' answers at once. A dash: no answer was rated by both, or both gave one "
            "and the same rating. 0.00 of a constant judge says nothing",
        ],
        coloured=100,
    )


def _differences(report: Report) -> Sheet:
    """Final judges with others' ratings minus themselves alone; panels minus the best judge."""
    folds = report["data"]["folds"]
    return Sheet(
        "Kappa of final judges with others' ratings, and of panels, minus that of a judge alone",
        ["ratings by", "minus"],
        ["difference", "95 %", "n"],
        [
            ((one["name"], one["minus"]), [*_apart(one), f"{one['n']:,}"])
            for one in report["differences"]
        ],
        [
            "paired, on the answers that both rated; intervals take the fit "
            "and the choice of judges as fixed; the ratings do not say how a "
            "mixture chose its judges",
            "panels: all judges that rated alone, minus the best of them in "
            "hindsight; the kappa-weighted mean is fitted to the reference of "
            f"other videos ({folds} folds)",
        ],
    )


def _ratings(report: Report) -> Sheet:
    """Table 4: mean ratings of candidates by judge and dimension."""
    rows = []
    for candidate in report["data"]["candidates"]:
        for part in _with_reference(report):
            told = part["ratings"]
            means = _cells(report, told, candidate, "mean")
            means.append(told["by_candidate"][candidate]["mean"])
            names = candidate, part["name"] + " *" * (candidate in part["itself"])
            rows.append((names, [fixed(mean) for mean in means]))
    return Sheet(
        "Mean rating of each candidate, 1 to 5 (the paper's Table 4)",
        ["candidate", "judge"],
        _heads(report, "all"),
        rows,
        [
            "mean over the answers that the judge rated; all: each answer counts "
            "the same; * judges itself"
        ],
        coloured=max(RATINGS),
    )


def _distribution(report: Report) -> Sheet:
    """The left of Figure 4 in numbers."""
    rows = []
    for part in _with_reference(report):
        told = part["ratings"]["overall"]
        whole = sum(told["distribution"].values())
        shares = [
            _percent(told["distribution"][str(one)] / whole if whole else None, 1)
            for one in RATINGS
        ]
        counts = [f"{told[key]:,}" for key in ("rated", "not_whole", "failed", "missing")]
        rows.append(([part["name"]], [*shares, *counts]))
    columns = [f"{one}\n{name}" for one, name in RATINGS.items()]
    return Sheet(
        "Distribution of ratings, % (left part of the paper's Figure 4)",
        ["judge"],
        [*columns, "rated", "not\nwhole", "failed", "no\nrow"],
        rows,
        [
            "shares of the whole-number ratings. Ratings such as 4.5 count in "
            "means, not in kappas; failures do not count",
        ],
    )
