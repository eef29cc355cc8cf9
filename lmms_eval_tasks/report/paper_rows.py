"""A paper's tables with the user's runs below its rows, and their differences."""

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


class OurCell(NamedTuple):
    """A run's number in the place of a paper's figure."""

    cell: PrintedCell  # the figure of the same model, or of another model in the same place
    value: Interval
    is_same: bool  # True if the cell's figure belongs to the same model
    tasks: Collection[str] = ()  # tasks whose items count
    is_valid: bool = True  # False if it is INVALID

    @property
    def difference(self) -> float | None:
        """The run's number minus the published one, in our unit; None if they cannot be compared.

        They cannot be compared if the number is INVALID, or if the model has no figure.
        """
        known = self.is_same and self.is_valid and self.cell.figure is not None
        return self.value.estimate - self.cell.value if known else None

    @property
    def inside(self) -> bool | None:
        """True if a value that is printed like the figure lies in the interval; None if unknown."""
        if self.difference is None or self.value.ends is None:
            return None
        (low, high), (lowest, highest) = self.value.ends, self.cell.range
        return lowest <= high and low <= highest


class LeaderboardRow(NamedTuple):
    """A printed row, or a run's numbers in the same columns."""

    group: str  # title of its group, or the difference between a run's rows
    name: str
    cells: Sequence[PrintedCell]
    run: str = ""  # label of the side; "" for a row of the paper
    our_cells: Sequence[OurCell | None] = ()  # a run's numbers
    published_model: str = ""  # the published model that equals the run's
    source: str = ""  # kind, place and conditions of a row that others publish


class Leaderboard(NamedTuple):
    """A table of the paper, with runs below its rows."""

    benchmark: str
    title: str
    caption: str
    heads: tuple[str, str]  # headings of the rows' groups, if there are any, and of their names
    # Title of the group of columns, and title of the column.
    columns: Sequence[tuple[str, str]] = ()
    lines: Sequence[LeaderboardRow] = ()  # empty if we have no number for the table
    notes: Sequence[str] = ()  # notes of the table, and on columns without a number of ours
    turned: bool = False  # True if the rows are printed as columns


def leaderboards_of(
    benchmark: Benchmark, runs: Mapping[str, str | None], sides: Sequence[Side]
) -> list[Leaderboard]:
    """Return the benchmark's tables.

    Args:
        benchmark: the benchmark.
        runs: the paper's name for a run's model, by the side's label; None: by checkpoint.
        sides: the sides, of which any may have no task of this benchmark.
    """
    tables = leaderboards.stored_tables(benchmark.board())
    return [_board(benchmark, table, runs, sides) for table in tables]


def _board(
    benchmark: Benchmark,
    table: Mapping[str, Json],
    runs: Mapping[str, str | None],
    sides: Sequence[Side],
) -> Leaderboard:
    stored = benchmark.board()
    groups, titles, place = stored["groups"], stored["columns"], table.get("models")
    title = f"{benchmark.title}, {leaderboards.title(table)}"
    heads = table.get("group_title", ""), table.get("name_title", "Model")
    if isinstance(why := table.get("ours"), str):
        return Leaderboard(
            benchmark.name, title, table["caption"], heads, notes=[f"Not shown: {why}."]
        )
    grid = leaderboards.cells(stored, table)
    sources = [leaderboards.source(stored, table, row) or {} for row in table["rows"]]
    # The kind of a row's own source takes the place of a group.
    group_of = [
        own["kind"] if "source" in row else groups[row.get("group", "")]
        for own, row in zip(sources, table["rows"], strict=True)
    ]
    if turned := place == "columns":
        rows = list(zip(group_of, (line[0].row for line in grid), strict=True))
        lines = [LeaderboardRow("", cells[0].model, cells) for cells in zip(*grid, strict=True)]
        columns = rows
    else:
        columns = [("", titles[name]["title"]) for name in table["columns"]]
        lines = [
            LeaderboardRow(group, cells[0].row, cells, source="; ".join(own.values()))
            for group, cells, own in zip(group_of, grid, sources, strict=True)
        ]
    lines += [
        own
        for side in sides
        for own in _own_lines(benchmark, lines, side, runs.get(side.label), table)
    ]
    notes = [table["note"]] if table.get("note") else []
    notes += _sources(lines, with_names="source" not in table)
    notes += _reasons(grid, [titles[name]["title"] for name in table["columns"]])
    return Leaderboard(
        benchmark.name, title, table["caption"], heads, columns, lines, notes, turned
    )


def _sources(lines: Sequence[LeaderboardRow], *, with_names: bool) -> Iterator[str]:
    """Yield a line on each source of rows, with the rows' names if `with_names`."""
    for text in dict.fromkeys(line.source for line in lines if line.source):
        names = ", ".join(line.name for line in lines if line.source == text)
        yield f"{names if with_names else 'Source'}: {text}."


def _reasons(grid: Sequence[Sequence[PrintedCell]], titles: Sequence[str]) -> Iterator[str]:
    """Yield lines on columns without a number of ours, with the reason and, if needed, the rows."""
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
    lines: Sequence[LeaderboardRow],
    side: Side,
    known_as: str | None,
    table: Mapping[str, Json],
) -> Iterator[LeaderboardRow]:
    """Yield a run's rows: one for each different set of our numbers in the printed rows."""
    groups, place = benchmark.board()["groups"], table.get("models")
    sets: dict[tuple[OurNumber | str, ...], list[LeaderboardRow]] = {}
    for line in lines:
        sets.setdefault(tuple(cell.ours for cell in line.cells), []).append(line)
    for wanted, alike in sets.items():
        found = [
            None if isinstance(one, str) else compare.our_cell(benchmark, one, side)
            for one in wanted
        ]
        if not any(found):
            continue
        same = next((line for line in alike if _is_same(line.cells[0], side, known_as)), None)
        cells = (same or alike[0]).cells
        own = [
            None if one is None else _own(benchmark, side, cell, one, is_same=same is not None)
            for cell, one in zip(cells, found, strict=True)
        ]
        published_model = same.cells[0].model if same else ""
        if place == "group":
            yield LeaderboardRow(side.label, alike[0].name, cells, side.label, own, published_model)
            continue
        kinds = {cell.kind for line in alike for cell in line.cells}
        group = groups[kinds.pop()] if len(sets) > len(kinds) == 1 else ""
        of = "" if group or len(sets) == 1 else _apart(wanted, sets)
        yield LeaderboardRow(group, f"{side.label}{of}", cells, side.label, own, published_model)


def _own(
    benchmark: Benchmark, side: Side, cell: PrintedCell, value: Interval, *, is_same: bool
) -> OurCell:
    tasks = benchmark.tasks_of(cell.ours.task) if isinstance(cell.ours, OurNumber) else ()
    return OurCell(cell, value, is_same, tasks, side.is_valid(tasks))


def _apart(numbers: Iterable[OurNumber | str], others: Iterable[Iterable[OurNumber | str]]) -> str:
    """Return the task, or else the metric, that distinguishes a run's row from its other rows."""
    own = [one for one in numbers if isinstance(one, OurNumber)]
    every = [one for line in others for one in line if isinstance(one, OurNumber)]
    for field in ("task", "metric"):
        names, known = ({getattr(one, field) for one in some} for some in (own, every))
        if len(names) == 1 < len(known):
            return f" ({names.pop()})"
    return ""


def _is_same(cell: PrintedCell, side: Side, known_as: str | None) -> bool:
    """Return True if a figure belongs to the side's model, by checkpoint or by the given name."""
    names = [name for name in (cell.model, cell.identity) if name]
    if known_as is not None:
        return leaderboards.plain(known_as) in map(_short, names) or known_as in names
    return cell.identity is not None and _short(cell.identity) == _short(side.model)


def _short(name: str) -> str:
    """Return a checkpoint's name without its owner, in letters and digits."""
    return leaderboards.plain(name.rstrip("/").rpartition("/")[2])


def called(
    paper: Mapping[str, Json], sides: Sequence[Side], names: Sequence[str]
) -> dict[str, str | None]:
    """Return the published model of each side, named by the user in the order of the runs.

    Raises:
        DataError: there are more names than runs, or no table has one of them.
    """
    if len(names) > len(sides):
        raise DataError(f"--as names {len(names)} models for {len(sides)} runs: one for each")
    cells = itertools.chain(
        *(
            one
            for table in leaderboards.stored_tables(paper)
            for one in leaderboards.cells(paper, table)
        )
    )
    known = list(dict.fromkeys(n for cell in cells for n in (cell.model, cell.identity) if n))
    for one in names:
        if leaderboards.plain(one) not in map(_short, known) and one not in known:
            raise DataError(f"--as: the paper has no row {one!r}{nearest(one, known)}")
    return dict(itertools.zip_longest((side.label for side in sides), names))
