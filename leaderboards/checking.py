"""What the checks of all papers share: rounding, looking figures up, statements and checks.

A printed figure stands for any value within half a unit of its last place, and two figures disagree
if no values in those ranges are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, TypeVar

from lmms_eval_tasks.leaderboards import Leaderboard, Table
from lmms_eval_tasks.leaderboards.findings import Claim, Contradiction, Finding

PaperT = TypeVar("PaperT")


def half(figure: Decimal) -> Decimal:
    """Half a unit of a figure's last printed place: 0.05 for 49.5, 0.00005 for 1.6420."""
    exponent = figure.as_tuple().exponent
    if not isinstance(exponent, int):
        raise ValueError(f"{figure} is not a printed figure")
    return Decimal(5).scaleb(exponent - 1)


def apart(one: Decimal, other: Decimal) -> bool:
    """Whether two printed figures cannot stand for the same value (a tie rounds one way only)."""
    return abs(one - other) >= half(one) + half(other)


def mean(values: Iterable[Decimal]) -> Decimal:
    """The mean of printed figures."""
    given = list(values)
    return sum(given, Decimal(0)) / len(given)


def listed(pairs: Iterable[tuple[str, Decimal]]) -> str:
    """`name figure, name figure`."""
    return ", ".join(f"{name} {figure}" for name, figure in pairs)


class BasePaper:
    """Tables, stated figures and listed names. KeyError for anything that is not in the paper."""

    def __init__(self, board: Leaderboard) -> None:
        self._stated, self._named = board.stated, board.named
        self._tables = {table.number: table for table in board.tables}

    def table(self, number: int) -> Table:
        """A whole table."""
        return self._tables[number]

    def stated(self, key: str) -> Decimal:
        """A figure of the text."""
        return self._stated[key].value

    def names(self, key: str) -> list[str]:
        """A list of names in the text."""
        return self._named[key].names


@dataclass(frozen=True)
class Statement(Generic[PaperT]):
    """A statement of the text with the function that compares it."""

    key: str
    section: str
    says: str
    check: Callable[[PaperT], tuple[bool, str]]  # does it hold, and the evidence
    follow: str = ""  # needed where it does not hold

    def claim(self, paper: PaperT) -> Claim:
        """The statement with what the paper's figures say about it."""
        holds, evidence = self.check(paper)
        return Claim(self.key, self.section, self.says, holds, evidence, self.follow)


@dataclass(frozen=True)
class Check(Generic[PaperT]):
    """A check of the tables with the function that makes it."""

    kind: str
    where: str
    says: str
    find: Callable[[PaperT], list[Finding]]
    follow: str

    def contradiction(self, paper: PaperT) -> Contradiction:
        """What the check finds, possibly nothing."""
        return Contradiction(self.kind, self.where, self.says, tuple(self.find(paper)), self.follow)


def contradictions(checks: Iterable[Check[PaperT]], paper: PaperT) -> list[Contradiction]:
    """What checks find, in their order; one that finds nothing is left out."""
    made = [check.contradiction(paper) for check in checks]
    return [each for each in made if each.findings]
