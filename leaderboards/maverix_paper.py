"""MAVERIX's printed figures as its claims and contradictions ask for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Leaderboard, Row, Table
from lmms_eval_tasks.leaderboards.findings import Claim
from lmms_eval_tasks.leaderboards.maverix_checks import HUMAN

OMNI, GEMINI20, GEMINI25 = "Qwen 2.5 Omni", "Gemini 2.0-FL", "Gemini 2.5-FL"
EGO, OLA, VITA = "EgoGPT-7B", "Ola-7B", "VITA 1.5"


class Paper:
    """Tables, stated figures and listed names. KeyError for anything that is not in the paper."""

    def __init__(self, board: Leaderboard) -> None:
        self._stated, self._named = board.stated, board.named
        self._tables = {table.number: table for table in board.tables}

    def table(self, number: int) -> Table:
        """A whole table."""
        return self._tables[number]

    def row(self, number: int, model: str) -> Row:
        """A model's row by its name in Table 3, or the human row."""
        table = self._tables[number]
        row = table.row("", HUMAN) if model == HUMAN else table.of(model)
        if row is None:
            raise KeyError(f"Table {number} has no row of {model}")
        return row

    def __call__(self, number: int, model: str, column: str) -> Decimal:
        """One figure of a table with models as rows."""
        return self.row(number, model).printed(column)

    def overall(self, statistic: str) -> Decimal:
        """A line of Table 2 in its overall column."""
        rows = [row for row in self._tables[2].rows if row.name == statistic]
        if len(rows) != 1:
            raise KeyError(f"Table 2 has {len(rows)} lines {statistic!r}")
        return rows[0].printed("in_overall")

    def models(self, number: int = 3) -> list[str]:
        """The models of a table by their names in Table 3, people left out."""
        return [row.identity for row in self._tables[number].rows if row.identity]

    def with_sound(self) -> list[str]:
        """The models of Table 3 that take sound."""
        return [m for m in self.models() if self.row(3, m).attributes["sound"]]

    def stated(self, key: str) -> Decimal:
        """A figure of the text."""
        return self._stated[key].value

    def names(self, key: str) -> list[str]:
        """A list of names in the text."""
        return self._named[key].names


@dataclass(frozen=True)
class Statement:
    """A statement of the text with the function that compares it."""

    key: str
    section: str
    says: str
    check: Callable[[Paper], tuple[bool, str]]  # does it hold, and the evidence
    follow: str = ""  # needed where it does not hold

    def claim(self, paper: Paper) -> Claim:
        """The statement with what the paper's figures say about it."""
        holds, evidence = self.check(paper)
        return Claim(self.key, self.section, self.says, holds, evidence, self.follow)


def mean(values: Iterable[Decimal]) -> Decimal:
    """The mean of printed figures."""
    listed = list(values)
    return sum(listed, Decimal(0)) / len(listed)


def listed(pairs: Iterable[tuple[str, Decimal]]) -> str:
    """`name figure, name figure`."""
    return ", ".join(f"{name} {figure}" for name, figure in pairs)
