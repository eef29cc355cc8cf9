"""What Tables 6 and 7 say about the selection of judges, of which the study gives no number.

The mixture shows the final judge the ratings of selected judges (3.3). Where it has the
collective's figures, all judges seem to have been shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Row
from lmms_eval_tasks.leaderboards.cvrr_es_paper import (
    AVERAGE,
    COLLECTIVE,
    GPT4O,
    MIXTURE,
    PANELS,
    Paper,
    fits,
    printed,
)
from lmms_eval_tasks.leaderboards.findings import Finding


@dataclass(frozen=True)
class Compared:
    """A dimension of Tables 6 and 7, candidate by candidate."""

    dimension: str
    equal: int  # candidates with the same figure
    candidates: int

    @property
    def repeated(self) -> bool:
        """Whether most candidates have the collective's figure."""
        return 2 * self.equal > self.candidates


def compared(paper: Paper) -> list[Compared]:
    """Every dimension, in the tables' order."""
    pairs = _pairs(paper)
    return [
        Compared(
            name,
            sum(one.printed(name) == other.printed(name) for one, other in pairs),
            len(pairs),
        )
        for name in paper.dimensions
    ]


def repeated(paper: Paper) -> list[str]:
    """The dimensions in which the mixture has the collective's figures."""
    return [each.dimension for each in compared(paper) if each.repeated]


def equal_dimensions(paper: Paper) -> list[Finding]:
    """Table 7: dimensions with Table 6's figures."""
    found = []
    for each in compared(paper):
        if not each.equal:
            continue
        text = f"{paper.title(each.dimension)} {each.equal} of {each.candidates}"
        values: dict[str, float] = {"equal": each.equal, "candidates": each.candidates}
        place = ("", MIXTURE, each.dimension)
        found.append(Finding("equal_dimensions", (6, 7), *place, values, text))
    return found


def odd_cells(paper: Paper) -> list[Finding]:
    """Table 7: cells that differ from Table 6 where the other candidates' do not."""
    found = []
    pairs, whole = _pairs(paper), paper.averages(MIXTURE)
    for name in repeated(paper):
        for one, other in pairs:
            first, second = one.printed(name), other.printed(name)
            if first == second:
                continue
            text = f"{paper.title(name)} {second}, where Table 6 has {first}"
            same = [n for n, v in printed(one).items() if v == second and n != name]
            if same:
                text += f" and {second} in {', '.join(paper.title(n) for n in same)}"
            values = [row.printed(name) for _, row in pairs if row is not other]
            if fits(whole[name], [*values, first]) and not fits(whole[name], [*values, second]):
                text += f"; the average {whole[name]} is that with {first}"
            figures = {"printed": float(second), "collective": float(first)}
            found.append(Finding("odd_cells", (6, 7), MIXTURE, other.name, name, figures, text))
    return found


@dataclass(frozen=True)
class Threshold:
    """Averages of Table 5 by which judges would be selected in a dimension or not."""

    judges: tuple[str, ...]
    least: Decimal  # the lowest, over dimensions with figures of their own, of the best judge's
    least_in: str
    most: Decimal  # the highest, over the repeated dimensions, of the best judge's
    most_in: str

    @property
    def possible(self) -> bool:
        """Whether a threshold lies between, that nobody passes in the repeated dimensions."""
        return self.least > self.most


def threshold(paper: Paper, judges: tuple[str, ...], without: str = "") -> Threshold | None:
    """What a threshold for these judges must lie between; None without dimensions of both kinds.

    Args:
        paper: the study's figures.
        judges: who could be selected, of Table 5.
        without: a dimension to leave out.
    """
    again, names = repeated(paper), [name for name in paper.dimensions if name != without]
    best = {name: max(paper.averages(judge)[name] for judge in judges) for name in names}
    inside = {name: best[name] for name in names if name in again}
    outside = {name: best[name] for name in names if name not in again}
    if not inside or not outside:
        return None
    low, high = min(outside, key=lambda n: outside[n]), max(inside, key=lambda n: inside[n])
    return Threshold(judges, outside[low], low, inside[high], high)


def thresholds(paper: Paper) -> list[Finding]:
    """Tables 5 to 7: that no threshold of averages explains which dimensions are repeated.

    Somebody must pass it in each dimension where the mixture has figures of its own, nobody in the
    others; the final judge is left out, which judges anyway. Judges who alone would do are named.
    """
    others = tuple(judge for judge in paper.judges() if judge != GPT4O)
    together = threshold(paper, others)
    if together is None or together.possible:
        return []
    alone = [each for judge in others if (each := threshold(paper, (judge,))) and each.possible]
    listed = ", ".join(f"{each.judges[0]}'s of {each.most} to {each.least}" for each in alone)
    rest = threshold(paper, others, together.most_in)
    if rest and rest.possible:
        listed = f"{listed or 'none'}. Without that dimension {rest.most} to {rest.least} would"
    text = (
        f"somebody must pass in {paper.title(together.least_in)}, where the best judge has "
        f"{together.least}, nobody in {paper.title(together.most_in)}, where the best has "
        f"{together.most}; a threshold for one judge alone would do: {listed or 'none'}"
    )
    values = {"least": float(together.least), "most": float(together.most)}
    return [Finding("thresholds", (5, 6, 7), "", MIXTURE, together.most_in, values, text)]


def _pairs(paper: Paper) -> list[tuple[Row, Row]]:
    """Rows of Tables 6 and 7 in their order, which is that of the candidates; names differ."""
    six, seven = (
        [row for row in paper.table(PANELS[panel]).rows if row.name != AVERAGE]
        for panel in (COLLECTIVE, MIXTURE)
    )
    return list(zip(six, seven, strict=True))
