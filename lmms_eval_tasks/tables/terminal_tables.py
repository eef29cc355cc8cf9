"""Tables on a terminal of any width: a wide table is split into parts, nothing is cut off."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.notify import UNSEEN, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Column, Table

# Options of rich: brackets in a path or an error are no markup, and ":x:" is no picture.
_PLAIN: Any = {"highlight": False, "markup": False, "emoji": False}
NAME_WIDTH = 34  # most characters of a column of names
_LEAST = 8  # characters of a heading that is not broken


def show(console: Console, renderables: Iterable[RenderableType]) -> None:
    """Print tables and lines; a wide table is split into parts, which all have the names."""
    from rich.table import Table

    for one in renderables:
        if not isinstance(one, Table):
            console.print(_shown(one), **_PLAIN)
            continue
        if one.title:
            console.print(_shown(one.title), style="table.title", **_PLAIN)
        for part in parts(one, console.width):
            console.print(part)
        if one.caption:
            console.print(_shown(one.caption), style="table.caption", **_PLAIN)


def as_file(renderables: Iterable[RenderableType]) -> str:
    """Return tables and lines as the text of a file."""
    from rich.console import Console

    stream = io.StringIO()
    show(Console(file=stream, width=UNSEEN), renderables)
    return stream.getvalue()


def _shown(part: RenderableType) -> RenderableType:
    """Return a text without control characters of terminals; rich's markup stays."""
    from rich.text import Text

    if isinstance(part, Text):
        part.plain = visible(part.plain)
        return part
    return visible(part) if isinstance(part, str) else part


def parts(table: Table, width: int) -> list[Table]:
    """Return a table as tables that are at most `width` wide, without title and caption.

    Each of them has the columns of names, which are aligned to the left. On a narrow terminal, long
    headings of numbers are broken.
    """
    from itertools import takewhile

    if sum(_width(column, whole=True) for column in table.columns) <= width:
        return [_of_columns(table, table.columns)]
    if width < UNSEEN:
        for column in table.columns:
            if column.justify == "right":
                column.header = _folded(column)
    names = list(takewhile(lambda column: column.justify == "left", table.columns))
    room = width - sum(map(_width, names)) - 2
    groups: list[list[Column]] = [[]]
    for column in table.columns[len(names) :]:
        if groups[-1] and sum(map(_width, [*groups[-1], column])) > room:
            groups.append([])
        groups[-1].append(column)
    return [_of_columns(table, [*names, *group], NAME_WIDTH) for group in groups]


def _folded(column: Column) -> str:
    """Return the heading of a column in lines that are not much wider than the column's cells."""
    cells = (line for cell in column.cells for line in str(cell).split("\n"))
    room = max(_LEAST, *map(len, cells), 0)
    lines = []
    for word in str(column.header).split("\n"):
        rest = word
        while len(rest) > room + 2:  # no line of one or two letters
            end = rest.rfind("-", 0, room) + 1
            lines.append(rest[:end] if end else f"{rest[: room - 1]}-")
            rest = rest[end or room - 1 :]
        lines.append(rest)
    return "\n".join(lines)


def _width(column: Column, *, whole: bool = False) -> int:
    """Return the width of a column in characters, including the space beside it."""
    texts = [str(column.header), *map(str, column.cells)]
    widest = max((len(line) for text in texts for line in text.split("\n")), default=0)
    if column.justify == "left" and not whole:
        widest = min(widest, NAME_WIDTH)
    return max(widest, column.min_width or 0) + 2


def _of_columns(table: Table, columns: Sequence[Column], names: int | None = None) -> Table:
    """Return some columns as a table; `names` is the largest width of a column of names."""
    from rich.table import Table

    own = [column.copy() for column in columns]  # the copy has no cells
    for column in own:
        column.header = _shown(column.header)
        column.max_width = names if column.justify == "left" else None
    made = Table(*own, box=table.box, padding=table.padding)
    cells = [list(column.cells) for column in columns]
    for place, row in enumerate(table.rows):
        made.add_row(*(_shown(one[place]) for one in cells), end_section=row.end_section)
    return made
