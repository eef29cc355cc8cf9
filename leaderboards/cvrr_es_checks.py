"""Where the judge study's Tables 4 to 7 contradict themselves, each other, or Table 1.

Pure functions; each result is data. Rounding is allowed for as in checking.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from itertools import combinations

from lmms_eval_tasks.leaderboards import Row
from lmms_eval_tasks.leaderboards.checking import mean
from lmms_eval_tasks.leaderboards.cvrr_es_paper import (
    AVERAGE,
    DEBATE,
    PANELS,
    TEXT_JUDGE,
    Paper,
    distinct,
    fits,
    fitting_rows,
    printed,
    span,
)
from lmms_eval_tasks.leaderboards.findings import Finding

FAR = Decimal(1)  # ratings: our "far" between a cell and all others of its row


def equal_ratings(paper: Paper) -> list[Finding]:
    """Table 4: rows that equal another one in every dimension."""
    return _equal_rows(paper, 4)


def equal_agreement(paper: Paper) -> list[Finding]:
    """Tables 5 to 7: rows that equal another one in every dimension."""
    return [each for number in (5, *PANELS.values()) for each in _equal_rows(paper, number)]


def outliers(paper: Paper) -> list[Finding]:
    """Table 4: cells that are farther than one rating from every other cell of their row."""
    found = []
    for row in paper.table(4).rows:
        for name, figure in printed(row).items():
            low, high = span(v for other, v in printed(row).items() if other != name)
            if low - FAR <= figure <= high + FAR:
                continue
            text = f"{figure} where all others are {low} to {high}"
            debate = paper.ratings(row.group, DEBATE)[name]
            if figure == debate:
                text += f"; {debate} is {DEBATE}'s figure too"
            kappa = _agreement(paper, row, name)
            if kappa is not None:
                text += f"; Table 5 has a kappa of {kappa} there"
            values: dict[str, float] = {
                "printed": float(figure),
                "low": float(low),
                "high": float(high),
            }
            found.append(Finding("outliers", (4,), row.group, row.name, name, values, text))
    return found


def equal_text_judges(paper: Paper) -> list[Finding]:
    """Table 4: candidates whom GPT-3.5 and the debate rate alike to two decimals, and where."""
    found = []
    for candidate in paper.candidates:
        one, other = (paper.ratings(candidate, judge) for judge in (TEXT_JUDGE, DEBATE))
        same = [name for name in paper.dimensions if one[name] == other[name]]
        if not same:
            continue
        listed = ", ".join(f"{paper.title(name)} {one[name]}" for name in same)
        row = (candidate, TEXT_JUDGE, "..".join(dict.fromkeys((same[0], same[-1]))))
        values: dict[str, float] = {"equal": len(same), "dimensions": len(paper.dimensions)}
        found.append(Finding("equal_text_judges", (4,), *row, values, listed))
    return found


def averages(paper: Paper) -> list[Finding]:
    """Tables 5 to 7: averages that are not the means of their rows.

    Equal rows are taken once if only so most of a judge's averages fit (InternVL2).
    """
    found = []
    before: dict[str, dict[str, Decimal]] = {}
    for judge in (*paper.judges(), *PANELS):
        rows, whole = fitting_rows(paper, judge), paper.averages(judge)
        for name, figure in whole.items():
            values = [row.printed(name) for row in rows]
            if fits(figure, values):
                continue
            text = f"{paper.title(name)} {figure}, the rows give {mean(values):.2f}"
            same = [other for other, old in before.items() if old[name] == figure]
            if same:
                text += f" ({figure} is {' and '.join(same)}'s)"
            place = (judge, AVERAGE, name)
            follows: dict[str, float] = {
                "printed": float(figure),
                "follows": float(round(mean(values), 3)),
            }
            found.append(Finding("averages", (PANELS.get(judge, 5),), *place, follows, text))
        before[judge] = whole
    return found


def repeated_candidates(paper: Paper) -> list[Finding]:
    """Tables 5 to 7: judges with another number of rows than there are candidates."""
    found = []
    for judge in (*paper.judges(), *PANELS):
        rows = paper.rows(judge)
        twice = [name for name, count in Counter(row.name for row in rows).items() if count > 1]
        if len(rows) == len(paper.candidates) and not twice:
            continue
        once, all_fit = distinct(rows), fitting_rows(paper, judge)
        text = f"{len(rows)} rows, {' and '.join(twice) or 'none'} twice"
        if len(once) < len(rows):
            text += f", {len(once)} of them distinct"
        if len(all_fit) < len(rows):
            text += f"; the averages are those of the {len(all_fit)} distinct ones"
        values: dict[str, float] = {
            "rows": len(rows),
            "distinct": len(once),
            "averaged": len(all_fit),
        }
        number = PANELS.get(judge, 5)
        found.append(Finding("repeated_candidates", (number,), "", judge, "", values, text))
    return found


def unknown_candidates(paper: Paper) -> list[Finding]:
    """Tables 4 to 7: rows of candidates that Table 1 does not list."""
    found = []
    for judge in (*paper.judges(), *PANELS):
        number = PANELS.get(judge, 5)
        for row in paper.rows(judge):
            if row.name not in paper.candidates:
                missing = set(paper.candidates) - {each.name for each in paper.rows(judge)}
                text = f"{', '.join(sorted(missing))} has no row there"
                found.append(
                    Finding("unknown_candidates", (number,), judge, row.name, "", {}, text)
                )
    return found


def impossible(paper: Paper) -> list[tuple[str, str, str]]:
    """(candidate, judge, dimension) of mean ratings that are off the scale of 4.3."""
    low, high = paper.stated("lowest_rating"), paper.stated("highest_rating")
    return [
        (cell.candidate, cell.judge, cell.dimension)
        for cell in paper.cells(paper.raters())
        if not low <= cell.figure <= high
    ]


def _equal_rows(paper: Paper, number: int) -> list[Finding]:
    """Pairs of rows with the same figures."""
    found = []
    for one, other in combinations(_candidates_rows(paper, number), 2):
        if one.figures != other.figures:
            continue
        text = f"all {len(one.figures)} figures are those of {other.name}, {other.group}"
        values: dict[str, float] = {"equal": len(one.figures)}
        kind = "equal_ratings" if number == 4 else "equal_agreement"
        found.append(Finding(kind, (number,), one.group, one.name, "", values, text))
    return found


def _candidates_rows(paper: Paper, number: int) -> Sequence[Row]:
    return [row for row in paper.table(number).rows if row.name != AVERAGE]


def _agreement(paper: Paper, row: Row, dimension: str) -> Decimal | None:
    """Table 5's kappa of a row of Table 4, None if it has no such judge."""
    rows = paper.rows(row.name) if row.name in paper.judges() else []
    return next((r.printed(dimension) for r in rows if r.name == row.group), None)
