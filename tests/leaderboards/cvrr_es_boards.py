"""The judge study's leaderboard for tests, whole or with some figures replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.leaderboards import Leaderboard, Row, Table, leaderboard, load
from tests.leaderboards.maverix_boards import of, with_rows

NAME = "cvrr_es"
SLUGS = {dimension.short: slug for slug, dimension in DIMENSIONS.items()}


def table(number: int) -> Table:
    """A table as it is stored."""
    return {each.number: each for each in load(NAME)}[number]


def beside(name: str) -> Table:
    """What stands beside the tables, as it is stored."""
    return leaderboard(NAME).beside[name]


def with_figures(row: Row, values: Mapping[str, str | None]) -> Row:
    """A row with figures replaced, by the titles of dimensions or by names of columns."""
    new = {SLUGS.get(key, key): None if v is None else Decimal(v) for key, v in values.items()}
    assert set(new) <= set(row.figures)
    return row.model_copy(update={"figures": row.figures | new})


def replaced(board: Leaderboard, number: int, old: Row, new: Row) -> Leaderboard:
    """A leaderboard with one row of a table replaced."""
    assert any(row is old for row in of(board, number).rows)
    return with_rows(board, number, lambda rows: [new if row is old else row for row in rows])


def figures(*changes: tuple[int, str, str, Mapping[str, str | None]], nth: int = 0) -> Leaderboard:
    """The leaderboard with figures replaced: (table, group, row, figures) each.

    `nth` tells rows of one name and group apart.
    """
    board = leaderboard(NAME)
    for number, group, name, values in changes:
        rows = [r for r in of(board, number).rows if (r.group, r.name) == (group, name)]
        board = replaced(board, number, rows[nth], with_figures(rows[nth], values))
    return board


def renamed(number: int, group: str, name: str, new: str, nth: int = 0) -> Leaderboard:
    """The leaderboard with another name of a row."""
    board = leaderboard(NAME)
    rows = [r for r in of(board, number).rows if (r.group, r.name) == (group, name)]
    changed = rows[nth].model_copy(update={"name": new})
    return replaced(board, number, rows[nth], changed)


def without(number: int, group: str, name: str, nth: int = 0) -> Leaderboard:
    """The leaderboard without one row."""
    board = leaderboard(NAME)
    rows = [r for r in of(board, number).rows if (r.group, r.name) == (group, name)]
    return with_rows(board, number, lambda old: [row for row in old if row is not rows[nth]])


def listing(role: str, models: str) -> Leaderboard:
    """The leaderboard with other names in a row of Table 1."""
    board = leaderboard(NAME)
    old = of(board, 1).row("", role)
    return replaced(board, 1, old, old.model_copy(update={"attributes": {"models": models}}))


def figures_beside(which: str, name: str, values: Mapping[str, str | None]) -> Leaderboard:
    """The leaderboard with figures of a row beside the tables replaced."""
    board = leaderboard(NAME)
    whole = board.beside[which]
    rows = [with_figures(row, values) if row.name == name else row for row in whole.rows]
    new = whole.model_copy(update={"rows": rows})
    return board.model_copy(update={"beside": board.beside | {which: new}})


def states(**values: str) -> Leaderboard:
    """The leaderboard with figures of the text replaced."""
    board = leaderboard(NAME)
    stated = dict(board.stated)
    for key, value in values.items():
        stated[key] = stated[key].model_copy(update={"value": Decimal(value)})
    return board.model_copy(update={"stated": stated})


def names(**lists: Sequence[str]) -> Leaderboard:
    """The leaderboard with some of the text's lists of names replaced."""
    board = leaderboard(NAME)
    named = dict(board.named)
    for key, listed in lists.items():
        named[key] = named[key].model_copy(update={"names": list(listed)})
    return board.model_copy(update={"named": named})
