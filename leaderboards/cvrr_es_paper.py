"""The judge study's printed figures as its claims and contradictions ask for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Leaderboard, Row, Table, checking
from lmms_eval_tasks.leaderboards.checking import mean

AVERAGE, DEBATE, TEXT_JUDGE = "Average", "Agent-Debate", "GPT-3.5"
VIDEO_LLAVA, LLAMA_VID, MINI = "Video-LLaVA", "LLaMA-VID", "GPT-4o mini"
INTERNVL2, GPT4O = "InternVL2", "GPT-4o"
COLLECTIVE, MIXTURE = "Collective thought", "Mixture Judge"
PANELS = {COLLECTIVE: 6, MIXTURE: 7}  # group of rows -> its table
# Judges' names in Figure 6 -> the figure that shows their replies. Two have none.
REPLIES = {
    "by_gpt4o": "figure_9",
    "by_gpt4o_mini": "figure_10",
    "by_internvl2": "figure_11",
    "by_video_llava": "figure_12",
    "by_llama_vid": "figure_13",
}

Figures = Mapping[str, Decimal]  # dimension -> figure


@dataclass(frozen=True)
class Cell:
    """A place in a table: a judge's figure for a candidate in a dimension."""

    judge: str
    candidate: str
    dimension: str
    figure: Decimal


class Paper(checking.BasePaper):
    """Ratings (Table 4), agreement (5 to 7), examples (Figures 6 to 13) and the release."""

    def __init__(self, board: Leaderboard) -> None:
        super().__init__(board)
        self._models, self._beside = board.models, board.beside
        columns = self.table(4).columns
        self.dimensions = [column.name for column in columns]
        self._titles = {column.name: column.title for column in columns}
        self._ratings = {(row.group, row.name): printed(row) for row in self.table(4).rows}
        self._followed = {judge: self._means(judge) for judge in (*self.judges(), *PANELS)}

    def title(self, dimension: str) -> str:
        """A dimension's name in the tables."""
        return self._titles[dimension]

    def dimension(self, title: str) -> str:
        """The dimension of a name in the tables. KeyError if there is none."""
        return {title: name for name, title in self._titles.items()}[title]

    def model(self, spelled: str) -> str | None:
        """The one name of a model, None for a spelling that is no model's."""
        return self._models.get(spelled)

    def role(self, name: str) -> list[str]:
        """The names in a row of Table 1; what stands in parentheses is left out."""
        listed = self.table(1).row("", name).attributes["models"] or ""
        return re.sub(r" \([^)]*\)", "", listed).split(", ")

    @property
    def candidates(self) -> list[str]:
        """Table 1's."""
        return self.role("Candidates")

    def beside(self, name: str) -> Table:
        """What stands beside the tables: `figure6`, `figure7` or `release`."""
        return self._beside[name]

    def ratings(self, candidate: str, judge: str) -> dict[str, Decimal]:
        """Mean ratings by dimension (Table 4). KeyError if there are none."""
        return self._ratings[candidate, judge]

    def raters(self) -> list[str]:
        """Table 4's judges, in its order."""
        return list(dict.fromkeys(row.name for row in self.table(4).rows))

    def cells(self, judges: Iterable[str]) -> list[Cell]:
        """Table 4's cells of some judges."""
        given = set(judges)
        return [
            Cell(judge, candidate, name, figure)
            for (candidate, judge), row in self._ratings.items()
            if judge in given
            for name, figure in row.items()
        ]

    def judges(self) -> list[str]:
        """Table 5's judges, in its order."""
        return list(dict.fromkeys(row.group for row in self.table(5).rows))

    def rows(self, judge: str) -> list[Row]:
        """The candidates' rows of a judge in Table 5, or of a panel in Table 6 or 7, as printed."""
        table = self.table(PANELS.get(judge, 5))
        return [row for row in table.rows if row.group == judge and row.name != AVERAGE]

    def averages(self, judge: str) -> dict[str, Decimal]:
        """The printed averages of a judge or panel over candidates, by dimension."""
        return printed(self.table(PANELS.get(judge, 5)).row(judge, AVERAGE))

    def followed(self, judge: str) -> dict[str, Decimal]:
        """The means of a judge's or panel's printed rows, each of equal ones taken once if only so
        do the averages fit (InternVL2)."""
        return self._followed[judge]

    def overall(self, judge: str) -> Decimal:
        """The mean over dimensions of what `followed` gives."""
        return mean(self.followed(judge).values())

    def _means(self, judge: str) -> dict[str, Decimal]:
        rows = fitting_rows(self, judge)
        return {name: mean(row.printed(name) for row in rows) for name in self.dimensions}


# What the files of claims are lists of.
Statement = checking.Statement[Paper]


def printed(row: Row) -> dict[str, Decimal]:
    """A row's figures by column, without dashes."""
    return {name: figure for name, figure in row.figures.items() if figure is not None}


def distinct(rows: Sequence[Row]) -> list[Row]:
    """Rows without those whose figures all equal those of a row before."""
    return [row for i, row in enumerate(rows) if row.figures not in [r.figures for r in rows[:i]]]


def fits(figure: Decimal, values: Sequence[Decimal]) -> bool:
    """Whether a printed average can be the mean of printed figures, rounding allowed for.

    A mean of rounded figures is off by no more than the coarsest of them.
    """
    slack = checking.half(figure) + max(checking.half(value) for value in values)
    return abs(figure - mean(values)) <= slack


def fitting_rows(paper: Paper, judge: str) -> list[Row]:
    """The rows whose means the averages are: all; the distinct ones if more averages fit those."""
    rows, averages = paper.rows(judge), paper.averages(judge)

    def score(given: Sequence[Row]) -> int:
        return sum(fits(figure, [r.printed(n) for r in given]) for n, figure in averages.items())

    return max((rows, distinct(rows)), key=score)


def span(figures: Iterable[Decimal]) -> tuple[Decimal, Decimal]:
    """The lowest and the highest."""
    given = list(figures)
    return min(given), max(given)


def descending(figures: Mapping[str, Decimal]) -> list[str]:
    """Names, that of the highest figure first; equal ones in the order given."""
    return sorted(figures, key=lambda name: -figures[name])


def ranked(figures: Mapping[str, Decimal]) -> str:
    """`name figure, name figure`, the highest first; means to two decimals."""
    return ", ".join(f"{name} {figures[name]:.2f}" for name in descending(figures))
