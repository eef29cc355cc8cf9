"""MAVERIX's printed figures as its claims and contradictions ask for them."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards import Row, checking
from lmms_eval_tasks.leaderboards.maverix_checks import HUMAN

OMNI, GEMINI20, GEMINI25 = "Qwen 2.5 Omni", "Gemini 2.0-FL", "Gemini 2.5-FL"
EGO, OLA, VITA = "EgoGPT-7B", "Ola-7B", "VITA 1.5"


class Paper(checking.BasePaper):
    """MAVERIX's tables by the models' names in Table 3."""

    def row(self, number: int, model: str) -> Row:
        """A model's row by its name in Table 3, or the human row."""
        table = self.table(number)
        row = table.row("", HUMAN) if model == HUMAN else table.of(model)
        if row is None:
            raise KeyError(f"Table {number} has no row of {model}")
        return row

    def __call__(self, number: int, model: str, column: str) -> Decimal:
        """One figure of a table with models as rows."""
        return self.row(number, model).printed(column)

    def overall(self, statistic: str) -> Decimal:
        """A line of Table 2 in its overall column."""
        rows = [row for row in self.table(2).rows if row.name == statistic]
        if len(rows) != 1:
            raise KeyError(f"Table 2 has {len(rows)} lines {statistic!r}")
        return rows[0].printed("in_overall")

    def models(self, number: int = 3) -> list[str]:
        """The models of a table by their names in Table 3, people left out."""
        return [row.identity for row in self.table(number).rows if row.identity]

    def with_sound(self) -> list[str]:
        """The models of Table 3 that take sound."""
        return [m for m in self.models() if self.row(3, m).attributes["sound"]]


# What the files of claims are lists of.
Statement = checking.Statement[Paper]
