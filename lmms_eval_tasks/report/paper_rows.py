"""A paper's tables with own runs below its rows: what differs, and whether it may be chance."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lmms_eval_tasks import leaderboards
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.errors import DataError, nearest
from lmms_eval_tasks.leaderboards import OurNumber, PrintedCell
from lmms_eval_tasks.report import compare
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.metrics.stats import Interval


class Own(NamedTuple):
    """A number of a run in the place of a paper's figure."""

    cell: PrintedCell  # of the same model, or of one in the same place
    value: Interval
    is_same: bool  # whether the cell's figure is of the same model
    tasks: Collection[str] = ()  # whose items it is of
    is_valid: bool = True  # False if it is INVALID

    @property
    def difference(self) -> float | None:
        """Own less published, in our unit; None of INVALID, or of a model without a figure."""
        known = self.is_same and self.is_valid and self.cell.figure is not None
        return self.value.estimate - self.cell.value if known else None

    @property
    def inside(self) -> bool | None:
        """True if a value that is printed like the figure lies in the interval; None: unknown."""
        if self.difference is None or self.value.ends is None:
            return None
        (low, high), (lowest, highest) = self.value.ends, self.cell.range
        return lowest <= high and low <= highest


class BoardRow(NamedTuple):
    """A printed row, or a run's numbers in the place of one."""

    group: str  # title of its group, or what tells a run's lines from each other
    name: str
    cells: Sequence[PrintedCell]
    run: str = ""  # label of the side; "" of the paper's
    own: Sequence[Own | None] = ()  # a run's
    beside: str = ""  # the published model that the run's is the same as


class Board(NamedTuple):
    """A table of the paper, runs below its rows."""

    benchmark: str
    title: str
    caption: str
    heads: tuple[str, str]  # of the lines' groups, if there are any, and of their names
    columns: Sequence[tuple[str, str]] = ()  # title of a group of columns, and of a column
    lines: Sequence[BoardRow] = ()  # none of a table that no number of ours can stand beside
    notes: Sequence[str] = ()  # the table's own, and of columns that have no number of ours
    turned: bool = False  # printed with lines as columns


def boards(
    benchmark: Benchmark, runs: Mapping[str, str | None], found: Sequence[Side]
) -> list[Board]:
    """The benchmark's tables.

    Args:
        runs: the model that the paper calls a run's, by the side's label; None: by its checkpoint.
        found: the sides, any of which may have none of this benchmark's tasks.
    """
    tables = leaderboards.tables(benchmark.board())
    return [_board(benchmark, table, runs, found) for table in tables]


def _board(
    benchmark: Benchmark,
    table: Mapping[str, Json],
    runs: Mapping[str, str | None],
    found: Sequence[Side],
) -> Board:
    stored = benchmark.board()
    groups, titles, place = stored["groups"], stored["columns"], table.get("models")
    title = f"{benchmark.title}, {leaderboards.title(table)}"
    heads = table.get("group_title", ""), table.get("name_title", "Model")
    if isinstance(why := table.get("ours"), str):
        return Board(benchmark.name, title, table["caption"], heads, notes=[f"Not shown: {why}."])
    grid = leaderboards.cells(stored, table)
    group_of = [groups[row.get("group", "")] for row in table["rows"]]
    if turned := place == "columns":
        rows = list(zip(group_of, (line[0].row for line in grid), strict=True))
        lines = [BoardRow("", cells[0].model, cells) for cells in zip(*grid, strict=True)]
        columns = rows
    else:
        columns = [("", titles[name]["title"]) for name in table["columns"]]
        lines = [
            BoardRow(group, cells[0].row, cells)
            for group, cells in zip(group_of, grid, strict=True)
        ]
    lines += [
        own
        for side in found
        for own in _own_lines(benchmark, lines, side, runs.get(side.label), table)
    ]
    notes = [table["note"]] if table.get("note") else []
    notes += _reasons(grid, [titles[name]["title"] for name in table["columns"]])
    return Board(benchmark.name, title, table["caption"], heads, columns, lines, notes, turned)


def _reasons(grid: Sequence[Sequence[PrintedCell]], titles: Sequence[str]) -> Iterator[str]:
    """Lines on columns without a number of ours, and why; with rows if it is not all of them."""
    where: dict[str, set[tuple[int, int]]] = {}
    for row, line in enumerate(grid):
        for column, cell in enumerate(line):
            if isinstance(cell.ours, str):
                where.setdefault(cell.ours, set()).add((row, column))
    for reason, places in where.items():
        rows, columns = ({place[axis] for place in places} for axis in (0, 1))
        named = [titles[one] for one in sorted(columns)] if len(columns) < len(titles) else []
        if len(rows) < len(grid):
            named += dict.fromkeys(grid[one][0].row for one in sorted(rows))
        yield f"No rows of your runs{' in ' if named else ''}{', '.join(named)}: {reason}."


def _own_lines(
    benchmark: Benchmark,
    lines: Sequence[BoardRow],
    side: Side,
    known_as: str | None,
    table: Mapping[str, Json],
) -> Iterator[BoardRow]:
    """A run's numbers: one line for each set of places that the printed lines have."""
    groups, place = benchmark.board()["groups"], table.get("models")
    sets: dict[tuple[OurNumber | str, ...], list[BoardRow]] = {}
    for line in lines:
        sets.setdefault(tuple(cell.ours for cell in line.cells), []).append(line)
    for wanted, alike in sets.items():
        found = [
            None if isinstance(one, str) else compare.beside(benchmark, one, side) for one in wanted
        ]
        if not any(found):
            continue
        same = next((line for line in alike if _is_same(line.cells[0], side, known_as)), None)
        cells = (same or alike[0]).cells
        own = [
            None if one is None else _own(benchmark, side, cell, one, is_same=same is not None)
            for cell, one in zip(cells, found, strict=True)
        ]
        beside = same.cells[0].model if same else ""
        if place == "group":
            yield BoardRow(side.label, alike[0].name, cells, side.label, own, beside)
            continue
        kinds = {cell.kind for line in alike for cell in line.cells}
        group = groups[kinds.pop()] if len(sets) > len(kinds) == 1 else ""
        of = "" if group or len(sets) == 1 else _apart(wanted, sets)
        yield BoardRow(group, f"{side.label}{of}", cells, side.label, own, beside)


def _own(
    benchmark: Benchmark, side: Side, cell: PrintedCell, value: Interval, *, is_same: bool
) -> Own:
    tasks = benchmark.tasks_of(cell.ours.task) if isinstance(cell.ours, OurNumber) else ()
    return Own(cell, value, is_same, tasks, side.is_valid(tasks))


def _apart(wanted: Iterable[OurNumber | str], others: Iterable[Iterable[OurNumber | str]]) -> str:
    """The task, or else the metric, that tells a run's line from its other lines."""
    own = [one for one in wanted if isinstance(one, OurNumber)]
    every = [one for line in others for one in line if isinstance(one, OurNumber)]
    for field in ("task", "metric"):
        names, known = ({getattr(one, field) for one in some} for some in (own, every))
        if len(names) == 1 < len(known):
            return f" ({names.pop()})"
    return ""


def _is_same(cell: PrintedCell, side: Side, known_as: str | None) -> bool:
    """Return True if a figure is of the side's model: by checkpoint, or by the name given."""
    names = [name for name in (cell.model, cell.identity) if name]
    if known_as is not None:
        return leaderboards.plain(known_as) in map(_short, names) or known_as in names
    return cell.identity is not None and _short(cell.identity) == _short(side.model)


def _short(name: str) -> str:
    """A checkpoint's own name, without whose it is."""
    return leaderboards.plain(name.rstrip("/").rpartition("/")[2])


def called(
    paper: Mapping[str, Json], found: Sequence[Side], given: Sequence[str]
) -> dict[str, str | None]:
    """The published model of each side, as the user names them in the order of the runs.

    Raises:
        DataError: more names than runs, or no table has one of them.
    """
    if len(given) > len(found):
        raise DataError(f"--as names {len(given)} models for {len(found)} runs: one for each")
    cells = itertools.chain(
        *(one for table in leaderboards.tables(paper) for one in leaderboards.cells(paper, table))
    )
    known = list(dict.fromkeys(n for cell in cells for n in (cell.model, cell.identity) if n))
    for one in given:
        if leaderboards.plain(one) not in map(_short, known) and one not in known:
            raise DataError(f"--as: the paper has no row {one!r}{nearest(one, known)}")
    return dict(itertools.zip_longest((side.label for side in found), given))
