"""A paper's tables with own runs below its rows: what differs, and whether it may be chance."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks import __version__, benchmarks, leaderboards
from lmms_eval_tasks.benchmark import Benchmark
from lmms_eval_tasks.errors import DataError, nearest
from lmms_eval_tasks.leaderboards import Cell, Ours
from lmms_eval_tasks.report import compare, drawn, fold, sides
from lmms_eval_tasks.report.pages import HERE, filled
from lmms_eval_tasks.report.paper_tables import NONE, by_row, fixed, number, signed
from lmms_eval_tasks.report.sides import Side
from lmms_eval_tasks.utils.json_files import check_output
from lmms_eval_tasks.utils.metrics.stats import Interval

if TYPE_CHECKING:
    from rich.console import Console


class Own(NamedTuple):
    """A number of a run in the place of a paper's figure."""

    cell: Cell  # of the same model, or of one in the same place
    value: Interval
    is_same: bool  # whether the cell's figure is of the same model

    @property
    def difference(self) -> float | None:
        """Own less published, in our unit; None where nothing is published of this model."""
        known = self.is_same and self.cell.figure is not None
        return self.value.estimate - self.cell.value if known else None

    @property
    def inside(self) -> bool | None:
        """Whether a value that is printed like the figure lies in the interval; None: unknown."""
        low, high = number(self.value.low), number(self.value.high)
        if self.difference is None or low is None or high is None:
            return None
        lowest, highest = self.cell.range
        return lowest <= high and low <= highest


class Line(NamedTuple):
    """A printed row, or a run's numbers in the place of one."""

    group: str  # title of its group, or what tells a run's lines from each other
    name: str
    cells: Sequence[Cell]
    run: str = ""  # label of the side; "" of the paper's
    own: Sequence[Own | None] = ()  # a run's
    beside: str = ""  # the published model that the run's is the same as


class Board(NamedTuple):
    """A table of the paper, runs below its rows."""

    title: str
    caption: str
    heads: tuple[str, str]  # of the lines' groups, if there are any, and of their names
    columns: Sequence[tuple[str, str]]  # title of a group of columns, and of a column
    lines: Sequence[Line]
    notes: Sequence[str]  # the table's own, and of columns that have no number of ours
    turned: bool  # printed with lines as columns


# --- published rows and runs ----------------------------------------------------------------------


def boards(
    benchmark: Benchmark, runs: Mapping[str, str | None], found: Sequence[Side]
) -> list[Board]:
    """The benchmark's tables.

    Args:
        runs: the model that the paper calls a run's, by the side's label; None: by its checkpoint.
        found: the sides, any of which may have none of this benchmark's tasks.
    """
    return [
        _board(benchmark, table, runs, found)
        for table in leaderboards.tables(benchmark.name)
        if table["columns"]
    ]


def _board(
    benchmark: Benchmark,
    table: Mapping[str, Any],
    runs: Mapping[str, str | None],
    found: Sequence[Side],
) -> Board:
    stored = leaderboards.stored(benchmark.name)
    groups, titles, place = stored["groups"], stored["columns"], table.get("models")
    grid = leaderboards.cells(benchmark.name, table)
    heads = table.get("group_title", ""), table.get("name_title", "Model")
    group_of = [groups[row.get("group", "")] for row in table["rows"]]
    if turned := place == "columns":
        rows = list(zip(group_of, (line[0].row for line in grid), strict=True))
        lines = [Line("", cells[0].model, cells) for cells in zip(*grid, strict=True)]
        columns = rows
    else:
        columns = [("", titles[name]["title"]) for name in table["columns"]]
        lines = [
            Line(group, cells[0].row, cells) for group, cells in zip(group_of, grid, strict=True)
        ]
    lines += [
        own
        for side in found
        for own in _own_lines(benchmark, lines, side, runs.get(side.label), place)
    ]
    notes = [table["note"]] if table.get("note") else []
    notes += _reasons(grid, {name: titles[name]["title"] for name in table["columns"]})
    title = f"{benchmark.title}, {leaderboards.title(table)}"
    return Board(title, table["caption"], heads, columns, lines, notes, turned)


def _reasons(grid: Sequence[Sequence[Cell]], titles: Mapping[str, str]) -> Iterator[str]:
    """What has no number of ours, and why: whole columns by name, else rows."""
    where: dict[str, dict[str, set[str]]] = {}
    for cell in itertools.chain(*grid):
        if isinstance(cell.ours, str):
            where.setdefault(cell.ours, {}).setdefault(cell.column, set()).add(cell.row)
    for reason, columns in where.items():
        if len(columns) == len(titles):
            rows = dict.fromkeys(row for own in columns.values() for row in sorted(own))
            which = "" if all(len(own) == len(grid) for own in columns.values()) else rows
        else:
            which = [titles[name] for name in columns]
        yield f"Nothing of ours{' beside ' if which else ''}{', '.join(which)}: {reason}."


def _own_lines(
    benchmark: Benchmark, lines: Sequence[Line], side: Side, called: str | None, place: str | None
) -> Iterator[Line]:
    """A run's numbers: one line for each set of places that the printed lines have."""
    sets: dict[tuple[Ours | str, ...], list[Line]] = {}
    for line in lines:
        sets.setdefault(tuple(cell.ours for cell in line.cells), []).append(line)
    for wanted, alike in sets.items():
        found = [
            None if isinstance(one, str) else compare.beside(benchmark, one, side) for one in wanted
        ]
        if not any(found):
            continue
        same = next((line for line in alike if _is_same(line.cells[0], side, called)), None)
        cells = (same or alike[0]).cells
        own = [
            one and Own(cell, one, same is not None) for cell, one in zip(cells, found, strict=True)
        ]
        beside = same.cells[0].model if same else ""
        shared = {line.group for line in alike}
        group = shared.pop() if len(shared) == 1 else ""
        if place == "group":
            yield Line(side.label, alike[0].name, cells, side.label, own, beside)
        else:
            tasks = {one.task for one in wanted if isinstance(one, Ours)}
            name = (
                side.label
                if group or len(sets) == 1 or len(tasks) > 1
                else f"{side.label} ({min(tasks)})"
            )
            yield Line(group, name, cells, side.label, own, beside)


def _is_same(cell: Cell, side: Side, called: str | None) -> bool:
    """Whether a figure is of the side's model: of the same checkpoint, or of the name given."""
    names = [name for name in (cell.model, cell.identity) if name]
    if called is not None:
        return leaderboards.plain(called) in map(_short, names) or called in names
    return cell.identity is not None and _short(cell.identity) == _short(side.checkpoint)


def _short(name: str) -> str:
    """A checkpoint's own name, without whose it is."""
    return leaderboards.plain(name.rstrip("/").rpartition("/")[2])


def _called(name: str, found: Sequence[Side], given: Sequence[str]) -> dict[str, str | None]:
    """The published model of each side, as the user names them in the order of the runs.

    Raises:
        DataError: more names than runs, or no table has one of them.
    """
    if len(given) > len(found):
        raise DataError(f"--as names {len(given)} models for {len(found)} runs: one for each")
    cells = itertools.chain(
        *(line for table in leaderboards.tables(name) for line in leaderboards.cells(name, table))
    )
    known = list(dict.fromkeys(n for cell in cells for n in (cell.model, cell.identity) if n))
    for one in given:
        if leaderboards.plain(one) not in map(_short, known) and one not in known:
            raise DataError(f"--as: no row of the paper is {one!r}{nearest(one, known)}")
    return dict(itertools.zip_longest((side.label for side in found), given))


# --- as text --------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A line of a table as text."""

    names: tuple[str, str]
    texts: Sequence[str]
    kind: str  # paper, value, interval or difference


def _shown(board: Board) -> Iterator[Shown]:
    """The lines, of a run's up to three: value, interval, and what it is less the paper's."""
    places = [_decimals(board, place) for place in range(len(board.columns))]
    for line in board.lines:
        if not line.run:
            texts = [NONE if cell.figure is None else str(cell.figure) for cell in line.cells]
            yield Shown((line.group, line.name), texts, "paper")
            continue

        def texts_of(of: Callable[[Own, int], str], line: Line = line) -> list[str]:
            pairs = zip(line.own, places, strict=True)
            return [NONE if own is None else of(own, decimals) for own, decimals in pairs]

        yield Shown((line.group, line.name), texts_of(_value), "value")
        yield Shown((line.group, f"{line.name}: 95 %"), texts_of(_ends), "interval")
        if line.beside:
            names = line.group, f"{line.name} less {line.beside}"
            yield Shown(names, texts_of(_difference), "difference")


def _decimals(board: Board, place: int) -> int:
    """As many as the paper has in a column, and one more."""
    figures = (line.cells[place].figure for line in board.lines)
    return max((-int(one.as_tuple().exponent) for one in figures if one is not None), default=2) + 1


def _value(own: Own, decimals: int) -> str:
    return fixed(own.value.estimate / own.cell.scale, decimals)


def _ends(own: Own, decimals: int) -> str:
    low, high = number(own.value.low), number(own.value.high)
    if low is None or high is None:
        return NONE
    return f"{fixed(low / own.cell.scale, decimals)}..{fixed(high / own.cell.scale, decimals)}"


def _difference(own: Own, decimals: int) -> str:
    if own.difference is None:
        return NONE
    mark = {True: " in", False: " out", None: ""}[own.inside]
    return f"{signed(own.difference / own.cell.scale, decimals)}{mark}"


def _grid(
    board: Board,
) -> tuple[list[str], list[str], list[tuple[tuple[str, ...], list[str], str]]]:
    """Headings of names and of columns, and the rows as printed: names, texts, kind."""
    shown = list(_shown(board))
    if board.turned:
        # What is a line here is a column of the paper's.
        texts = zip(*(one.texts for one in shown), strict=True)
        lines = [
            (names, list(own), "paper") for names, own in zip(board.columns, texts, strict=True)
        ]
        columns = [" ".join(filter(None, one.names)) for one in shown]
    else:
        lines = [(one.names, list(one.texts), one.kind) for one in shown]
        columns = [title for _, title in board.columns]
    if any(names[0] for names, _, _ in lines):
        return [head or "Run" for head in board.heads], columns, lines
    return [board.heads[1]], columns, [(names[1:], own, kind) for names, own, kind in lines]


LEGEND = (
    "in: a value printed like the paper's figure lies in the run's 95 % interval, which is "
    "clustered by video; out: none does."
)


def _text(made: Sequence[Board], conditions: Mapping[str, Sequence[str]]) -> Iterator[Any]:
    for board in made:
        names, columns, lines = _grid(board)
        heads = [title.replace(" ", "\n") for title in columns]
        title = f"{board.title}: {board.caption}"
        yield from by_row(
            title, names, heads, [(n, t) for n, t, _ in lines], "\n".join(board.notes)
        )
    yield from _told(made, conditions)


def _told(made: Sequence[Board], conditions: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The legend, and what makes the runs not comparable."""
    if any(line.beside for board in made for line in board.lines):
        yield LEGEND
    for label, lines in conditions.items():
        yield f"{label}: conditions that differ from the paper's: {'' if lines else 'none known'}"
        yield from (f"  - {line}" for line in lines)


def _markdown(made: Sequence[Board], conditions: Mapping[str, Sequence[str]]) -> str:
    import pandas

    parts = []
    for board in made:
        names, columns, lines = _grid(board)
        frame = pandas.DataFrame([[*n, *t] for n, t, _ in lines], columns=[*names, *columns])
        aligned = ["left"] * len(names) + ["right"] * len(columns)
        table = frame.to_markdown(index=False, colalign=aligned, disable_numparse=True)
        parts += [f"**{board.title}.** {board.caption}", table, *board.notes]
    told = "\n".join(_told(made, conditions))
    return "\n\n".join([*parts, *([told] if told else [])]) + "\n"


# --- as data --------------------------------------------------------------------------------------


def _rows(
    made: Sequence[Board], conditions: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    """Every figure and every number of a run, in our units."""
    for board in made:
        for line in board.lines:
            for place, (cell, column) in enumerate(zip(line.cells, board.columns, strict=True)):
                own = line.own[place] if line.run else None
                if own is None if line.run else cell.figure is None:
                    continue
                ours = cell.ours if isinstance(cell.ours, Ours) else None
                row = {
                    "table": board.title,
                    "group": line.group,
                    "row": line.name,
                    "column": " ".join(filter(None, column)),
                    "task": ours and ours.task,
                    "metric": ours and ours.metric,
                    "where": ours and ", ".join(f"{name}={value}" for name, value in ours.where),
                    "run": line.run,
                    "value": own.value.estimate if own else cell.value,
                    "low": number(own.value.low) if own else None,
                    "high": number(own.value.high) if own else None,
                    "paper": line.beside,
                    "difference": own.difference if own else None,
                    "inside": own.inside if own else None,
                }
                yield row | {"conditions": list(conditions[line.run]) if line.run else []}


def _json(made: Sequence[Board], conditions: Mapping[str, Sequence[str]]) -> str:
    return json.dumps(list(_rows(made, conditions)), indent=1, ensure_ascii=False) + "\n"


def _csv(made: Sequence[Board], conditions: Mapping[str, Sequence[str]]) -> str:
    import pandas

    rows = [row | {"conditions": "; ".join(row["conditions"])} for row in _rows(made, conditions)]
    return str(pandas.DataFrame(rows).to_csv(index=False))


# --- as a page ------------------------------------------------------------------------------------


def _html(made: Sequence[Board], conditions: Mapping[str, Sequence[str]]) -> str:
    parts = [(board, *_grid(board), _picture(board)) for board in made]
    return filled(
        HERE / "board.html",
        parts=parts,
        conditions=conditions,
        legend=LEGEND,
        runs=any(line.run for board in made for line in board.lines),
        version=__version__,
    )


def _picture(board: Board) -> str:
    """The numbers that are of all items, or else the first; "" where nothing of ours stands."""
    of = [[line.cells[place].ours for line in board.lines] for place in range(len(board.columns))]
    kept = [place for place, own in enumerate(of) if any(isinstance(one, Ours) for one in own)]
    whole = [p for p in kept if any(isinstance(one, Ours) and not one.where for one in of[p])]
    panels = {board.columns[p][1]: list(_points(board, p)) for p in whole or kept[:1]}
    return drawn.ranked(panels, f"{board.title}: {board.caption}") if panels else ""


def _points(board: Board, place: int) -> Iterator[dict[str, Any]]:
    for line in board.lines:
        cell, own = line.cells[place], line.own[place] if line.run else None
        point = {"name": " · ".join(filter(None, (line.group, line.name))), "side": line.run}
        if own:
            ends = {"low": number(own.value.low), "high": number(own.value.high)}
            values = {"value": own.value.estimate, **ends}
            yield point | {k: None if v is None else v / cell.scale for k, v in values.items()}
        elif not line.run and cell.figure is not None:
            yield point | {"value": float(cell.figure)}


# --- the command ----------------------------------------------------------------------------------

FORMS: dict[str, Callable[[Sequence[Board], Mapping[str, Sequence[str]]], str]] = {
    "html": _html,
    "md": _markdown,
    "csv": _csv,
    "json": _json,
}


def show(
    name: str,
    runs: Sequence[Path],
    form: str,
    output: Path | None,
    console: Console,
    called: Sequence[str] = (),
) -> None:
    """Print a benchmark's published rows and those of runs, or write them to a file.

    Args:
        name: of the benchmark.
        runs: folders or sample files; none for the published rows alone.
        form: text, or one of FORMS.
        output: the file; unset, text goes to the console and a page to leaderboard_NAME.html.
        console: for text.
        called: the published models that are the same as the runs', in their order; by checkpoint
            where no name is given.

    Raises:
        DataError: a run is not there or has nothing of this benchmark, or a name is unknown.
    """
    benchmark = benchmarks.load(name)
    found = sides.read(runs) if runs else []
    for side in found:
        if not any(task in benchmark.tasks for task in side.runs):
            raise DataError(
                f"{side.label}: no tasks of {benchmark.title}, but {', '.join(side.runs)}"
            )
    file = output or (None if form == "text" else Path(f"leaderboard_{name}.{form}"))
    if file is not None:
        check_output(file)
    made = boards(benchmark, _called(name, found, called), found)
    conditions = {side.label: list(side.warnings(benchmark)) for side in found}
    if file is None:
        fold.show(console, _text(made, conditions))
        return
    if form == "text":
        from lmms_eval_tasks.console import table_console

        with file.open("w", encoding="utf-8") as stream:
            fold.show(table_console(file=stream), _text(made, conditions))
    else:
        file.write_text(FORMS[form](made, conditions), encoding="utf-8")
    print(file)
