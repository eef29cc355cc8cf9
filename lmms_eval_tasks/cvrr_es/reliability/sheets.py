"""A table of the report as data, drawn by tables.py for terminals and by html.py for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.report.paper_tables import NONE, fixed, has_numbers, number, signed

Part = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A row: its names, its numbers as text, and whether it sums up those above."""

    names: tuple[str, ...]
    cells: tuple[str, ...]
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
    names: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[Line, ...]
    notes: tuple[str, ...] = ()

    @property
    def has_numbers(self) -> bool:
        """Whether any cell is more than a dash."""
        return any(has_numbers(row.cells) for row in self.rows)


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
    return (
        f"[{fixed(times * interval['low'], decimals)}, {fixed(times * interval['high'], decimals)}]"
    )


def share(value: Any) -> str:
    """A share in %, never 100 unless all, nor 0 unless none."""
    found = number(value)
    if found is None:
        return NONE
    shown = f"{100 * found:.1f}"
    if shown == "100.0" and found < 1:
        return ">99.9"
    return "<0.1" if shown == "0.0" and found > 0 else shown


def heads(dimensions: Sequence[str]) -> list[str]:
    """The dimensions' short names, as the paper's tables have them."""
    return [DIMENSIONS[one].short for one in dimensions]


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


def cell(part: Part, dimension: str, candidate: str, key: str = "kappa") -> Any:
    """A number of one cell of a rater's `ratings` or kappas; None where there are no answers."""
    return part["cells"][dimension].get(candidate, {}).get(key)


def with_reference(report: Part) -> list[Part]:
    """All raters; last the reference, if there is one, named so."""
    last = report["reference"]
    return [*report["raters"], *([{**last, "name": "reference", "itself": []}] if last else [])]


def marked(part: Part, candidate: str) -> str:
    """A candidate's name, marked where the judge rates itself."""
    return f"{candidate} (itself)" if candidate in part["itself"] else candidate
