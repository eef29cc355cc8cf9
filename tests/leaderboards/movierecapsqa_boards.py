"""MovieRecapsQA's leaderboard for tests, whole or with some figures replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Leaderboard, Table, leaderboard, load
from tests.leaderboards.maverix_boards import of, with_rows

NAME = "movierecapsqa"


def table(number: int) -> Table:
    """A table as it is stored."""
    return {each.number: each for each in load(NAME)}[number]


def figures(*changes: tuple[int, str, str, Mapping[str, str]]) -> Leaderboard:
    """The leaderboard with figures replaced: (table, group, row, figures) each."""
    board = leaderboard(NAME)
    for number, group, name, values in changes:
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


def changed(number: int, group: str, name: str, **values: str) -> Leaderboard:
    """The leaderboard with figures of one row replaced."""
    return figures((number, group, name, values))


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
