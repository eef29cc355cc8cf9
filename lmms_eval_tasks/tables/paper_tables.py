"""Tables in the papers' form: a row for each model, a dash for a missing number."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.utils.json_files import Json

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

NONE = "-"
INVALID = "INVALID"  # stands behind an invalid number if a cell has room for the word
DOUBT = f"! {INVALID}: too many failures of the model or of the judge"


class Sure(float):
    """A number with its additions in a table: the 95 % interval below it, marks behind it."""

    ends: tuple[float, ...] = ()
    marks: str = ""

    @classmethod
    def of(cls, value: Json, interval: Mapping[str, Json] | None) -> Json:
        """Return the value with its stored interval (stats.Interval.as_dict), if that has ends."""
        low, high = (number((interval or {}).get(end)) for end in ("low", "high"))
        if number(value) is None or low is None or high is None:
            return value
        return cls._made(value, (low, high), "")

    @classmethod
    def marked(cls, value: float | None, marks: str) -> Sure | None:
        """Return the value with marks; None without a value."""
        return None if value is None else cls._made(value, getattr(value, "ends", ()), marks)

    @classmethod
    def _made(cls, value: float, ends: tuple[float, ...], marks: str) -> Sure:
        made = cls(value)
        made.ends, made.marks = ends, marks
        return made

    def __rmul__(self, times: float) -> Sure:
        """Return the number and its interval in another unit, such as percent."""
        return Sure._made(times * float(self), tuple(times * one for one in self.ends), self.marks)


def number(value: object) -> float | None:
    """Return a value as a finite number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value if isinstance(value, Sure) else float(value)


def has_numbers(cells: Sequence[str]) -> bool:
    """Return True if any cell is more than a dash."""
    return any(cell != NONE for cell in cells)


def fixed(value: float | None, decimals: int = 2) -> str:
    """Return a number with so many decimals, without the sign of -0.00; a dash for None."""
    if value is None:
        return NONE
    ends, marks = (value.ends, value.marks) if isinstance(value, Sure) else ((), "")
    plain, *interval = (_without_zero_sign(f"{one:.{decimals}f}") for one in (value, *ends))
    return f"{plain}{marks}\n{interval[0]}–{interval[1]}" if interval else f"{plain}{marks}"


def marked(cell: str, mark: str) -> str:
    """Return the cell with a mark behind its number, before its interval."""
    plain, line, interval = cell.partition("\n")
    return f"{plain}{mark}{line}{interval}"


def signed(value: float, decimals: int = 1) -> str:
    """Return a difference with its sign and marks; a difference that rounds to zero has no sign."""
    marks = value.marks if isinstance(value, Sure) else ""
    return _without_zero_sign(f"{value:+.{decimals}f}") + marks


def doubted(cell: str, invalid: bool) -> str:
    """Return the cell of a number, with a mark if it is invalid."""
    return marked(cell, "!") if invalid and cell != NONE else cell


def p_text(p: float | None) -> str:
    """Return a p-value as text; a dash for None."""
    return NONE if p is None else "<0.001" if p < 0.001 else f"{p:.3f}"


def _without_zero_sign(text: str) -> str:
    return text if float(text) else text.lstrip("+-")


def by_row(
    title: str,
    names: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[tuple[Sequence[str], Sequence[str]]],
    notes: str = "",
) -> list[Table]:
    """Return a table with names and numbers in each row; [] if no row has a number.

    Args:
        title: the content, and the number of the paper's table.
        names: headings of the names.
        columns: headings of the numbers.
        rows: each row's names and its numbers as text; rows of dashes are left out.
        notes: lines below the table; the meaning of the mark of invalid cells is added.
    """
    from rich.markup import escape

    kept = [(head, cells) for head, cells in rows if has_numbers(cells)]
    if not kept:
        return []
    if DOUBT not in notes and any("!" in cell for _, cells in kept for cell in cells):
        notes = f"{notes}\n{DOUBT}".strip()
    table = empty(title, notes)
    for place, name in enumerate(names):
        table.add_column(escape(name), overflow="fold", min_width=0 if place else 12)
    for heading in columns:
        table.add_column(escape(heading), justify="right", no_wrap=True)
    for head, cells in kept:
        table.add_row(*map(escape, head), *cells)
    return [table]


def by_column(
    title: str,
    heads: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[tuple[str, Sequence[str]]]]],
    notes: str = "",
) -> list[Table]:
    """Return a table with a column of numbers for each of `heads`; [] if there is no block.

    Args:
        title: the content, and the number of the paper's table.
        heads: headings of the columns.
        blocks: each block's heading and rows; a row is a name and its numbers.
        notes: lines below the table.
    """
    from rich.markup import escape

    if not blocks:
        return []
    table = empty(title, notes)
    table.add_column("", overflow="fold", min_width=34)
    for head in heads:
        # Wide enough for the longest number, `5.0000`; a model's name is folded.
        table.add_column(escape(head), justify="right", overflow="fold", min_width=6, max_width=10)
    for block, rows in blocks:
        table.add_row(block)
        for name, cells in rows:
            table.add_row(f"  {name}", *cells)
    return [table]


def empty(title: str, notes: str = "") -> Table:
    """Return a table without columns, in this package's style."""
    from rich import box
    from rich.table import Table

    # Wrapping would break title and notes at the width of the columns: "the paper's Table" and "6".
    return Table(
        title=_whole(title, "table.title"),
        title_justify="left",
        caption=_whole(notes, "table.caption") if notes else None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )


def _whole(text: str, style: str) -> Text:
    """Return a text whose lines are never broken, even if they are wider than the table."""
    from rich.text import Text

    return Text(text, style=style, no_wrap=True, overflow="ignore")
