"""MAVERIX's leaderboard for tests, whole or with some figures replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Leaderboard, Row, Table, leaderboard, load


def table(number: int) -> Table:
    """A table as it is stored."""
    return {each.number: each for each in load("maverix")}[number]


def of(board: Leaderboard, number: int) -> Table:
    """A table of a leaderboard."""
    return {each.number: each for each in board.tables}[number]


def with_rows(
    board: Leaderboard, number: int, change: Callable[[list[Row]], Sequence[Row]]
) -> Leaderboard:
    """A leaderboard with the rows of one table replaced."""
    tables = [
        each.model_copy(update={"rows": change(each.rows)}) if each.number == number else each
        for each in board.tables
    ]
    return board.model_copy(update={"tables": tables})


def figures(*changes: tuple[int, str, Mapping[str, str]], group: str = "") -> Leaderboard:
    """The leaderboard with figures of several rows replaced: (table, row, figures) each."""
    board = leaderboard("maverix")
    for number, name, values in changes:
        old = of(board, number).row(group, name)
        assert set(values) <= set(old.figures)
        new = old.model_copy(
            update={"figures": old.figures | {key: Decimal(v) for key, v in values.items()}}
        )
        board = with_rows(
            board,
            number,
            lambda rows, old=old, new=new: [new if row is old else row for row in rows],
        )
    return board


def changed(number: int, name: str, *, group: str = "", **values: str) -> Leaderboard:
    """The leaderboard with figures of one row replaced."""
    return figures((number, name, values), group=group)


def rows(number: int, change: Callable[[list[Row]], Sequence[Row]]) -> Leaderboard:
    """The leaderboard with the rows of one table replaced."""
    return with_rows(leaderboard("maverix"), number, change)


def states(**values: str) -> Leaderboard:
    """The leaderboard with figures of the text replaced."""
    board = leaderboard("maverix")
    stated = dict(board.stated)
    for key, value in values.items():
        stated[key] = stated[key].model_copy(update={"value": Decimal(value)})
    return board.model_copy(update={"stated": stated})


def names(key: str, listed: Sequence[str]) -> Leaderboard:
    """The leaderboard with one of the text's lists of names replaced."""
    board = leaderboard("maverix")
    new = board.named[key].model_copy(update={"names": list(listed)})
    return board.model_copy(update={"named": board.named | {key: new}})
