"""HAVEN's leaderboard for tests, whole or with some figures replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Leaderboard, Row, Table, leaderboard, load
from tests.leaderboards.maverix_boards import of, with_rows

NAME = "haven"


def table(number: int) -> Table:
    """A table as it is stored."""
    return {each.number: each for each in load(NAME)}[number]


def replaced(board: Leaderboard, number: int, old: Row, **update: object) -> Leaderboard:
    """A leaderboard with fields of one row replaced."""
    new = old.model_copy(update=update)
    assert any(row is old for row in of(board, number).rows)
    return with_rows(board, number, lambda rows: [new if row is old else row for row in rows])


def figures(
    *changes: tuple[int, str, Mapping[str, str | None]],
    group: str = "",
    board: Leaderboard | None = None,
) -> Leaderboard:
    """The leaderboard with figures replaced: (table, row, figures) each; None makes a dash.

    `group` tells Table 2's rows of one name apart.
    """
    board = board or leaderboard(NAME)
    for number, name, values in changes:
        rows = [r for r in of(board, number).rows if r.name == name and group in ("", r.group)]
        (old,) = rows
        assert set(values) <= set(old.figures)
        new = {key: None if v is None else Decimal(v) for key, v in values.items()}
        board = replaced(board, number, old, figures=old.figures | new)
    return board


def changed(number: int, name: str, *, group: str = "", **values: str | None) -> Leaderboard:
    """The leaderboard with figures of one row replaced."""
    return figures((number, name, values), group=group)


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
