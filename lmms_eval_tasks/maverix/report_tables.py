"""How MAVERIX's tables are drawn: cells as text, marks with their notes, nothing cut off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lmms_eval_tasks.maverix.labels import SPLITS
from lmms_eval_tasks.maverix.report_runs import MARKS, Entry
from lmms_eval_tasks.report.paper_tables import by_row, empty, has_numbers, signed

if TYPE_CHECKING:
    from rich.table import Table

Cell = tuple[float | None, str]  # a value and its mark
AT_ONCE = 9  # columns of models beside the labels, in 150 characters

# The paper's titles in columns: broken, so that seven or eight stand beside each other.
AGENTIC = {**SPLITS["agentic"], "egocentric": "Egocentric\nAgent", "information": "Information"}
AGENTIC["information"] += "\nQuerying"


def percent(cell: Cell) -> str:
    """A share in percent with one decimal as in the paper; a dash where there is no number."""
    return "-" if cell[0] is None else f"{100 * cell[0]:.1f}{cell[1]}"


def points(cell: Cell) -> str:
    """A difference of shares in percentage points, with its sign."""
    return "-" if cell[0] is None else signed(100 * cell[0]) + cell[1]


def rating(cell: Cell, decimals: int = 4) -> str:
    """A mean rating: four decimals as in Tables 8 and 9, one as in Table 6."""
    return "-" if cell[0] is None else f"{cell[0]:.{decimals}f}{cell[1]}"


def count(cell: Cell) -> str:
    """A whole number."""
    return "-" if cell[0] is None else f"{cell[0]:.0f}{cell[1]}"


def minus(left: Cell, right: Cell) -> Cell:
    """The difference of two cells, with the marks of both; no number where one is missing."""
    value = None if left[0] is None or right[0] is None else left[0] - right[0]
    return value, "".join(sorted({*left[1], *right[1]}))


def by_model(
    title: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Sequence[str], Sequence[str]]],
    names: Sequence[str] = ("model", "video"),
    notes: str = "",
) -> list[Table]:
    """A table with a row per model; none if no row has a number.

    Args:
        title: what it shows, and which table of the paper.
        columns: headings of the numbers.
        rows: each row's names and its numbers as text; rows of dashes are left out.
        names: headings of the names.
        notes: marks that need their note although no cell has them.
    """
    texts = [cell for head, cells in rows if has_numbers(cells) for cell in (*head, *cells)]
    return by_row(f"MAVERIX: {title}", names, columns, rows, _marks(texts, notes))


def by_label(
    title: str,
    columns: Sequence[str],
    blocks: Sequence[tuple[str, Sequence[tuple[str, Sequence[str]]]]],
    notes: str = "",
) -> list[Table]:
    """Tables with labels as rows and models as columns (Table 10), nine at a time.

    Args:
        title: what it shows, and which table of the paper.
        columns: headings of the models.
        blocks: a heading and its rows, each a label and one text per model; rows of dashes are
            left out, and a heading without rows is too.
        notes: as in `by_model`.
    """
    from rich.markup import escape

    made = []
    for start in range(0, len(columns), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        kept = [
            (heading, [(label, cells[some]) for label, cells in rows if has_numbers(cells[some])])
            for heading, rows in blocks
        ]
        if not any(rows for _, rows in kept):
            continue
        table = empty(f"MAVERIX: {title}", _marks(columns[some], notes))
        table.add_column("", overflow="fold", min_width=34)
        for heading in columns[some]:
            # The longest number is `5.0000`; a model's name is folded above it.
            name = escape(heading)
            table.add_column(name, justify="right", overflow="fold", min_width=6, max_width=10)
        for heading, rows in kept:
            if rows:
                table.add_row(heading)
            for label, cells in rows:
                table.add_row(f"  {label}", *cells)
        made.append(table)
    return made


def column_title(entry: Entry, mode: str) -> str:
    """A column's heading where models stand beside each other."""
    return f"{entry.title}\n{entry.length}\n{entry.mode_title(mode)}"


def hidden(entries: Sequence[Entry], kind: str) -> str:
    """The mark for the note on modes that `Entry.modes` leaves out, if there are any."""
    return "~" if any(entry.hides(kind) for entry in entries) else ""


def _marks(texts: Sequence[str], more: str) -> str:
    """The notes for the marks at the end of texts, and for those in `more`."""
    used = set(more)
    for text in texts:
        used |= set(text[len(text.rstrip("*?")) :])
    return "\n".join(note for mark, note in MARKS.items() if mark in used)
