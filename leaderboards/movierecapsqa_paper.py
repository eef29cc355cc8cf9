"""MovieRecapsQA's printed figures as its claims and contradictions ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Leaderboard, Row, checking

AVERAGE, BEST = "Avg. Human*", "Best Human*"
GROUPS = ("open", "proprietary")
CONDITIONS = {"frames": "(only frames)", "dialogue": "(only dialogue)"}
ROWS = {"open": "Open-Source Models", "proprietary": "Proprietary Models", "human": "Human*"}
DIMENSIONS = ("factuality", "relevance")
# Columns of Table 5 -> rows of Table 3.
MODALITIES = {
    "dialogue": "Dialogue-centric",
    "vision": "Vision-centric",
    "multimodal": "Multimodal",
}
CATEGORIES = {
    "crd": "Character and Relationship Dynamics (CRD)",
    "npa": "Narrative and Plot Analysis (NPA)",
    "sta": "Setting and Technical Analysis (STA)",
    "temp": "Temporal Reasoning (TEMP)",
    "th": "Thematic Exploration (TH)",
}
# Columns of Table 4 by family, with the highest value of each scale (4.1, 4.2, caption).
SEMANTIC = {"rouge_l": 1, "bertscore": 1, "bartscore": 1}
REFERENCE_BASED = {"g_eval": 1, "helmet_fluency": 1, "helmet_correctness": 3}
REFERENCE_FREE = {"factuality": 5, "relevance": 5}


class Paper(checking.BasePaper):
    """The tables by the models' names in Table 4."""

    def __call__(self, model: str, column: str) -> Decimal:
        """One figure of Table 4; people by AVERAGE and BEST."""
        row = next((row for row in self.table(4).rows if row.name == model), None)
        if row is None:
            raise KeyError(f"Table 4 has no row {model}")
        return row.printed(column)

    def models(self, group: str = "") -> list[str]:
        """The models of Table 4, of a group or all, people left out."""
        return [row.name for row in self.table(4).rows if row.identity and group in ("", row.group)]

    def column(self, name: str, group: str = "") -> dict[str, Decimal]:
        """The models' figures in a column of Table 4."""
        return {model: self(model, name) for model in self.models(group)}

    def spread(self, name: str) -> Decimal:
        """Highest less lowest figure of the models in a column of Table 4."""
        values = self.column(name).values()
        return max(values) - min(values)

    def split(self, dimension: str, group: str, condition: str = "") -> Row:
        """A row of Table 5: of open or proprietary models, or human; a condition is a change."""
        return self.table(5).row(
            f"{dimension}_{group}", CONDITIONS[condition] if condition else ROWS[group]
        )

    def only(self, dimension: str, group: str, condition: str, column: str) -> Decimal:
        """What a change in Table 5 makes of the figure with both inputs."""
        both = self.split(dimension, group).printed(column)
        return both + self.split(dimension, group, condition).printed(column)

    def statistic(self, name: str) -> Decimal:
        """A figure of Table 2."""
        rows = [row for row in self.table(2).rows if row.name == name]
        if len(rows) != 1:
            raise KeyError(f"Table 2 has {len(rows)} rows {name!r}")
        return rows[0].printed("value")

    def questions(self, columns: Mapping[str, str]) -> dict[str, Decimal]:
        """Table 3's counts under Table 5's columns; `columns` is MODALITIES or CATEGORIES."""
        counts = {row.name: row.printed("questions") for row in self.table(3).rows}
        return {column: counts[name] for column, name in columns.items()}


# What the files of claims are lists of.
Statement = checking.Statement[Paper]


def model_groups(board: Leaderboard) -> dict[str, str]:
    """Every stored spelling of a model -> `open` or `proprietary` (5.1; Table 4's groups)."""
    four = next(table for table in board.tables if table.number == 4)
    group = {row.identity: row.group for row in four.rows if row.identity}
    return {spelled: group[one] for spelled, one in board.models.items() if one}


def figures(row: Row, columns: Iterable[str]) -> list[tuple[str, Decimal]]:
    """(modality, or a category's short name, and figure) of a row of Table 5, without dashes."""
    found = ((c if c in MODALITIES else c.upper(), row.figures[c]) for c in columns)
    return [(title, figure) for title, figure in found if figure is not None]


def described(paper: Paper, dimension: str, group: str, columns: Iterable[str]) -> str:
    """A row of Table 5 with both inputs in words."""
    values = checking.listed(figures(paper.split(dimension, group), columns))
    return f"{ROWS[group].removesuffix('*')} {values}"
