"""A paper's tables and own runs on the terminal, as a page, and as data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks import __version__, registry
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.leaderboards import OurNumber
from lmms_eval_tasks.report import charts, compared_runs
from lmms_eval_tasks.report.pages import filled
from lmms_eval_tasks.report.paper_rows import Board, BoardRow, Own, boards, called
from lmms_eval_tasks.tables import escaping, terminal_tables
from lmms_eval_tasks.tables.paper_tables import (
    INVALID,
    NONE,
    by_row,
    fixed,
    has_numbers,
    number,
    signed,
)
from lmms_eval_tasks.utils import extras
from lmms_eval_tasks.utils.conditions import Record, as_columns, concerning, limits
from lmms_eval_tasks.utils.json_files import JsonObject, check_output, write_text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

Conditions = Mapping[str, Record]  # of a run's numbers, by its label


# --- as text --------------------------------------------------------------------------------------


class TextRow(NamedTuple):
    """A line of a table as text."""

    names: Sequence[str]
    texts: Sequence[str]
    kind: str  # paper, value, interval or difference


def _shown(board: Board) -> Iterator[TextRow]:
    """The lines, of a run's up to three: value, interval, and what it is less the paper's."""
    places = [_decimals(board, place) for place in range(len(board.columns))]
    for line in board.lines:
        if not line.run:
            texts = [NONE if cell.figure is None else str(cell.figure) for cell in line.cells]
            yield TextRow((line.group, line.name), texts, "paper")
            continue

        def texts_of(of: Callable[[Own, int], str], line: BoardRow = line) -> list[str]:
            pairs = zip(line.own, places, strict=True)
            return [NONE if own is None else of(own, decimals) for own, decimals in pairs]

        yield TextRow((line.group, line.name), texts_of(_value), "value")
        if has_numbers(ends := texts_of(_ends)):
            yield TextRow((line.group, "  95 %"), ends, "interval")
        if line.beside:
            names = line.group, f"  less {line.beside}"
            yield TextRow(names, texts_of(_difference), "difference")


def _decimals(board: Board, place: int) -> int:
    """The number of decimals that the paper has in a column, and one more."""
    figures = (line.cells[place].figure for line in board.lines)
    return max((-int(one.as_tuple().exponent) for one in figures if one is not None), default=2) + 1


def _value(own: Own, decimals: int) -> str:
    mark = "" if own.is_valid else f" {INVALID}"
    return f"{fixed(own.value.estimate / own.cell.scale, decimals)}{mark}"


def _ends(own: Own, decimals: int) -> str:
    if own.value.ends is None:
        return NONE
    low, high = (fixed(end / own.cell.scale, decimals) for end in own.value.ends)
    return f"{low}..{high}"


def _difference(own: Own, decimals: int) -> str:
    if own.difference is None:
        return NONE
    mark = {True: " in", False: " out", None: ""}[own.inside]
    return f"{signed(own.difference / own.cell.scale, decimals)}{mark}"


def _grid(board: Board) -> tuple[list[str], list[str], list[TextRow]]:
    """Headings of names and of columns, and the rows as they are printed."""
    lines, columns = list(_shown(board)), [title for _, title in board.columns]
    if board.turned:
        # What is a line here is a column of the paper's.
        columns = [" ".join(filter(None, one.names)).strip() for one in lines]
        texts = zip(*(one.texts for one in lines), strict=True)
        pairs = zip(board.columns, texts, strict=True)
        lines = [TextRow(names, list(own), "paper") for names, own in pairs]
    if any(one.names[0] for one in lines):
        return [head or "Setting" for head in board.heads], columns, lines
    return [board.heads[1]], columns, [one._replace(names=one.names[1:]) for one in lines]


_DIFFER = "conditions that differ from the paper's"
LEGEND = (
    "in: a value printed like the paper's figure lies in the run's 95 % interval, which is "
    "clustered by video; out: none does."
)


def _text(made: Sequence[Board], conditions: Conditions) -> Iterator[RenderableType]:
    for board in made:
        if not board.lines:
            yield "\n".join([f"{board.title}: {board.caption}", *board.notes])
            continue
        names, columns, lines = _grid(board)
        heads = [title.replace(" ", "\n") for title in columns]
        title = f"{board.title}: {board.caption}"
        yield from by_row(
            title, names, heads, [(one.names, one.texts) for one in lines], "\n".join(board.notes)
        )
    yield from _told(made, conditions)


def _told(made: Sequence[Board], conditions: Conditions) -> Iterator[str]:
    """The legend, and the conditions of the runs as lists."""
    if any(line.beside for board in made for line in board.lines):
        yield LEGEND
    for label, own in conditions.items():
        yield f"{label}: {_DIFFER}:{'' if limits(own) else ' none known'}"
        yield from (f"  - {line}" for line in limits(own))
        if facts := [one.line for one in own if not one.is_limit]:
            yield f"{label}: conditions of its numbers:"
            yield from (f"  - {line}" for line in facts)


def _markdown(made: Sequence[Board], conditions: Conditions) -> str:
    import pandas

    parts = []
    for board in made:
        parts.append(f"**{board.title}.** {board.caption}")
        if not board.lines:
            parts += board.notes
            continue
        names, columns, lines = _grid(board)
        frame = pandas.DataFrame(
            [[*map(escaping.markdown, one.names), *one.texts] for one in lines],
            columns=[*names, *map(escaping.markdown, columns)],
        )
        aligned = ["left"] * len(names) + ["right"] * len(columns)
        table = frame.to_markdown(index=False, colalign=aligned, disable_numparse=True)
        parts += [table, *board.notes]
    shown = {
        escaping.markdown(label): tuple(
            one._replace(text=escaping.markdown(one.text)) for one in own
        )
        for label, own in conditions.items()
    }
    told = "\n".join(_told(made, shown))
    return "\n\n".join([*parts, *([told] if told else [])]) + "\n"


# --- as data --------------------------------------------------------------------------------------


def _rows(made: Sequence[Board], conditions: Conditions) -> Iterator[JsonObject]:
    """Every figure and every number of a run, in our units."""
    for board in made:
        for line in board.lines:
            for place, (cell, column) in enumerate(zip(line.cells, board.columns, strict=True)):
                own = line.own[place] if line.run else None
                if own is None if line.run else cell.figure is None:
                    continue
                ours = cell.ours if isinstance(cell.ours, OurNumber) else None
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
                yield row | as_columns(_of(conditions, line, own))


def _of(conditions: Conditions, line: BoardRow, own: Own | None) -> Record:
    """The conditions of a number of a run; none of the paper's."""
    return concerning(conditions[line.run], own.tasks) if own else ()


def _json(made: Sequence[Board], conditions: Conditions) -> str:
    return json.dumps(list(_rows(made, conditions)), indent=1, ensure_ascii=False) + "\n"


def _csv(made: Sequence[Board], conditions: Conditions) -> str:
    rows = (row | {"conditions": "; ".join(row["conditions"])} for row in _rows(made, conditions))
    return str(escaping.frame(rows).to_csv(index=False))


# --- as a page ------------------------------------------------------------------------------------


def _html(made: Sequence[Board], conditions: Conditions) -> str:
    (name,) = {board.benchmark for board in made}
    return filled(
        Path(__file__).with_name("board.html"),
        title=registry.load(name).title,
        paper=registry.load(name).board()["paper"],
        parts=[(board, *_grid(board), _picture(board)) for board in made],
        conditions=conditions,
        differ=_DIFFER,
        legend=LEGEND,
        version=__version__,
    )


def _picture(board: Board) -> str:
    """The numbers that are of all items, or else the first; "" where nothing of ours stands."""
    of = [[line.cells[place].ours for line in board.lines] for place in range(len(board.columns))]
    kept = [place for place, own in enumerate(of) if any(isinstance(one, OurNumber) for one in own)]
    whole = [p for p in kept if any(isinstance(one, OurNumber) and not one.where for one in of[p])]
    panels = {board.columns[p][1]: list(_points(board, p)) for p in whole or kept[:1]}
    names = [_name(line) for line in board.lines]
    return charts.ranked(panels, names, f"{board.title}: {board.caption}") if panels else ""


def _points(board: Board, place: int) -> Iterator[JsonObject]:
    for line in board.lines:
        cell, own = line.cells[place], line.own[place] if line.run else None
        point = {"name": _name(line), "side": line.run}
        if own:
            ends = {"low": number(own.value.low), "high": number(own.value.high)}
            values = {"value": own.value.estimate, **ends}
            yield point | {k: None if v is None else v / cell.scale for k, v in values.items()}
        elif not line.run and cell.figure is not None:
            yield point | {"value": float(cell.figure)}


def _name(line: BoardRow) -> str:
    return " · ".join(filter(None, (line.group, line.name)))


# --- the command ----------------------------------------------------------------------------------

FORMS: dict[str, Callable[[Sequence[Board], Conditions], str]] = {
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
    *,
    names: Sequence[str] = (),
) -> None:
    """Print a benchmark's published rows and those of runs, or write them to a file.

    Args:
        name: of the benchmark.
        runs: folders or sample files; none for the published rows alone.
        form: text, or one of FORMS.
        output: the file; unset, a page goes to leaderboard_NAME.html and all else to the console.
        console: for text.
        names: the published models that are the same as the runs', in their order; by checkpoint
            where no name is given.

    Raises:
        DataError: a run is not there or has nothing of this benchmark, or a name is unknown.
        TasksError: the form needs packages that are not installed.
    """
    benchmark = registry.load(name)
    if form not in ("text", "json"):
        extras.require("report", f"--format {form}")
    file = Path(f"leaderboard_{name}.html") if output is None and form == "html" else output
    if file is not None:
        check_output(file)
    found = compared_runs.read(runs) if runs else []
    for side in found:
        if not any(task in benchmark.tasks for task in side.runs):
            own = ", ".join(side.runs)
            raise DataError(f"{side.label}: no tasks of {benchmark.title}, only {own}")
    made = boards(benchmark, called(benchmark.board(), found, names), found)
    conditions = {side.label: side.record(benchmark.tasks) for side in found}
    if form != "text":
        text = FORMS[form](made, conditions)
    elif file is None:
        terminal_tables.show(console, _text(made, conditions))
        return
    else:
        text = terminal_tables.as_file(_text(made, conditions))
    if file is None:
        print(text, end="")
    else:
        write_text(file, text)
        print(file)
