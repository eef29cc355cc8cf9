"""A paper's tables with the user's runs: on the terminal, as a page, and as data."""

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
from lmms_eval_tasks.report.paper_rows import (
    Leaderboard,
    LeaderboardRow,
    OurCell,
    called,
    leaderboards_of,
)
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

Conditions = Mapping[str, Record]  # conditions of a run's numbers, by the run's label


# --- as text --------------------------------------------------------------------------------------


class TextRow(NamedTuple):
    """A row of a table as text."""

    names: Sequence[str]
    texts: Sequence[str]
    kind: str  # paper, value, interval or difference


def _shown(board: Leaderboard) -> Iterator[TextRow]:
    """Yield the rows; a run has up to three: value, interval, and difference to the paper's."""
    places = [_decimals(board, place) for place in range(len(board.columns))]
    for line in board.lines:
        if not line.run:
            texts = [NONE if cell.figure is None else str(cell.figure) for cell in line.cells]
            yield TextRow((line.group, line.name), texts, "paper")
            continue

        def texts_of(of: Callable[[OurCell, int], str], line: LeaderboardRow = line) -> list[str]:
            pairs = zip(line.our_cells, places, strict=True)
            return [NONE if own is None else of(own, decimals) for own, decimals in pairs]

        yield TextRow((line.group, line.name), texts_of(_value), "value")
        if has_numbers(ends := texts_of(_ends)):
            yield TextRow((line.group, "  95 %"), ends, "interval")
        if line.published_model:
            names = line.group, f"  less {line.published_model}"
            yield TextRow(names, texts_of(_difference), "difference")


def _decimals(board: Leaderboard, place: int) -> int:
    """Return the number of the paper's decimals in a column, plus one."""
    figures = (line.cells[place].figure for line in board.lines)
    return max((-int(one.as_tuple().exponent) for one in figures if one is not None), default=2) + 1


def _value(cell: OurCell, decimals: int) -> str:
    mark = "" if cell.is_valid else f" {INVALID}"
    return f"{fixed(cell.value.estimate / cell.cell.scale, decimals)}{mark}"


def _ends(cell: OurCell, decimals: int) -> str:
    if cell.value.ends is None:
        return NONE
    low, high = (fixed(end / cell.cell.scale, decimals) for end in cell.value.ends)
    return f"{low}..{high}"


def _difference(cell: OurCell, decimals: int) -> str:
    if cell.difference is None:
        return NONE
    mark = {True: " in", False: " out", None: ""}[cell.inside]
    return f"{signed(cell.difference / cell.cell.scale, decimals)}{mark}"


def _grid(board: Leaderboard) -> tuple[list[str], list[str], list[TextRow]]:
    """Return the headings of names and of columns, and the rows in their printed form."""
    lines, columns = list(_shown(board)), [title for _, title in board.columns]
    if board.turned:
        # A line here is a column of the paper's table.
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


def _text(boards: Sequence[Leaderboard], conditions: Conditions) -> Iterator[RenderableType]:
    for board in boards:
        if not board.lines:
            yield "\n".join([f"{board.title}: {board.caption}", *board.notes])
            continue
        names, columns, lines = _grid(board)
        heads = [title.replace(" ", "\n") for title in columns]
        title = f"{board.title}: {board.caption}"
        yield from by_row(
            title, names, heads, [(one.names, one.texts) for one in lines], "\n".join(board.notes)
        )
    yield from _told(boards, conditions)


def _told(boards: Sequence[Leaderboard], conditions: Conditions) -> Iterator[str]:
    """Yield the legend, and the conditions of the runs as lists."""
    if any(line.published_model for board in boards for line in board.lines):
        yield LEGEND
    for label, own in conditions.items():
        yield f"{label}: {_DIFFER}:{'' if limits(own) else ' none known'}"
        yield from (f"  - {line}" for line in limits(own))
        if facts := [one.line for one in own if not one.is_limit]:
            yield f"{label}: conditions of its numbers:"
            yield from (f"  - {line}" for line in facts)


def _markdown(boards: Sequence[Leaderboard], conditions: Conditions) -> str:
    import pandas

    parts = []
    for board in boards:
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
    told = "\n".join(_told(boards, shown))
    return "\n\n".join([*parts, *([told] if told else [])]) + "\n"


# --- as data --------------------------------------------------------------------------------------


def _rows(boards: Sequence[Leaderboard], conditions: Conditions) -> Iterator[JsonObject]:
    """Yield every figure and every number of a run, in our units."""
    for board in boards:
        for line in board.lines:
            for place, (cell, column) in enumerate(zip(line.cells, board.columns, strict=True)):
                our_cell = line.our_cells[place] if line.run else None
                if our_cell is None if line.run else cell.figure is None:
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
                    "value": our_cell.value.estimate if our_cell else cell.value,
                    "low": number(our_cell.value.low) if our_cell else None,
                    "high": number(our_cell.value.high) if our_cell else None,
                    "paper": line.published_model,
                    "difference": our_cell.difference if our_cell else None,
                    "inside": our_cell.inside if our_cell else None,
                    "source": line.source,
                }
                yield row | as_columns(_of(conditions, line, our_cell))


def _of(conditions: Conditions, line: LeaderboardRow, cell: OurCell | None) -> Record:
    """Return the conditions of a run's number; () for a paper's figure."""
    return concerning(conditions[line.run], cell.tasks) if cell else ()


def _json(boards: Sequence[Leaderboard], conditions: Conditions) -> str:
    return json.dumps(list(_rows(boards, conditions)), indent=1, ensure_ascii=False) + "\n"


def _csv(boards: Sequence[Leaderboard], conditions: Conditions) -> str:
    rows = (row | {"conditions": "; ".join(row["conditions"])} for row in _rows(boards, conditions))
    return str(escaping.frame(rows).to_csv(index=False))


# --- as a page ------------------------------------------------------------------------------------


def _html(boards: Sequence[Leaderboard], conditions: Conditions) -> str:
    (name,) = {board.benchmark for board in boards}
    return filled(
        Path(__file__).with_name("board.html"),
        title=registry.load_benchmark(name).title,
        paper=registry.load_benchmark(name).board()["paper"],
        parts=[(board, *_grid(board), _picture(board)) for board in boards],
        conditions=conditions,
        differ=_DIFFER,
        legend=LEGEND,
        version=__version__,
    )


def _picture(board: Leaderboard) -> str:
    """Return a chart of the numbers of all items, or of the first number.

    The chart is "" if the table has no number of ours.
    """
    of = [[line.cells[place].ours for line in board.lines] for place in range(len(board.columns))]
    kept = [place for place, own in enumerate(of) if any(isinstance(one, OurNumber) for one in own)]
    whole = [p for p in kept if any(isinstance(one, OurNumber) and not one.where for one in of[p])]
    panels = {board.columns[p][1]: list(_points(board, p)) for p in whole or kept[:1]}
    names = [_name(line) for line in board.lines]
    return charts.ranked(panels, names, f"{board.title}: {board.caption}") if panels else ""


def _points(board: Leaderboard, place: int) -> Iterator[JsonObject]:
    for line in board.lines:
        cell, own = line.cells[place], line.our_cells[place] if line.run else None
        point = {"name": _name(line), "side": line.run}
        if own:
            ends = {"low": number(own.value.low), "high": number(own.value.high)}
            values = {"value": own.value.estimate, **ends}
            yield point | {k: None if v is None else v / cell.scale for k, v in values.items()}
        elif not line.run and cell.figure is not None:
            yield point | {"value": float(cell.figure)}


def _name(line: LeaderboardRow) -> str:
    return " · ".join(filter(None, (line.group, line.name)))


# --- the command ----------------------------------------------------------------------------------

FORMS: dict[str, Callable[[Sequence[Leaderboard], Conditions], str]] = {
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
        name: name of the benchmark.
        runs: folders or sample files; empty for the published rows alone.
        form: text, or a key of FORMS.
        output: the file. If it is None, a page goes to leaderboard_NAME.html and other forms to the
            console.
        console: console for text.
        names: the published models that are the same as the runs', in the order of the runs;
            without names, the checkpoint decides.

    Raises:
        DataError: a run does not exist or has no task of this benchmark, or a name is unknown.
        TasksError: the form needs packages that are not installed.
    """
    benchmark = registry.load_benchmark(name)
    if form not in ("text", "json"):
        extras.require("report", f"--format {form}")
    file = Path(f"leaderboard_{name}.html") if output is None and form == "html" else output
    if file is not None:
        check_output(file)
    found = compared_runs.read_sides(runs) if runs else []
    for side in found:
        if not any(task in benchmark.tasks for task in side.runs):
            own = ", ".join(side.runs)
            raise DataError(f"{side.label}: no tasks of {benchmark.title}, only {own}")
    boards = leaderboards_of(benchmark, called(benchmark.board(), found, names), found)
    conditions = {side.label: side.record(benchmark.tasks) for side in found}
    if form != "text":
        text = FORMS[form](boards, conditions)
    elif file is None:
        terminal_tables.show(console, _text(boards, conditions))
        return
    else:
        text = terminal_tables.as_file(_text(boards, conditions))
    if file is None:
        print(text, end="")
    else:
        write_text(file, text)
        print(file)
