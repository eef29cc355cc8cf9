"""Where MovieRecapsQA's printed tables contradict themselves or each other.

Pure functions; each result is data. Rounding is allowed for as in checking.py: a sum or a mean of
printed figures is off by no more than its terms can be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from lmms_eval_tasks.leaderboards import Row
from lmms_eval_tasks.leaderboards.checking import apart, mean
from lmms_eval_tasks.leaderboards.findings import Finding
from lmms_eval_tasks.leaderboards.movierecapsqa_counts import about, yes_or_no
from lmms_eval_tasks.leaderboards.movierecapsqa_paper import (
    AVERAGE,
    BEST,
    CATEGORIES,
    DIMENSIONS,
    GROUPS,
    MODALITIES,
    Paper,
)


def best_below_average(paper: Paper) -> list[Finding]:
    """Table 4: metrics in which the best of the people is below their average."""
    return [
        _finding(
            "best",
            (4,),
            ("human", BEST, name),
            {"average": paper(AVERAGE, name), "best": paper(BEST, name)},
            f"{_title(paper, name)} {paper(BEST, name)}, on average {paper(AVERAGE, name)}",
        )
        for name in _human_columns(paper)
        if paper(BEST, name) < paper(AVERAGE, name)
        and apart(paper(BEST, name), paper(AVERAGE, name))
    ]


def people_by_bertscore(paper: Paper) -> list[Finding]:
    """Table 4: people further above the models in BERTScore than models are spread, not in ROUGE-L.

    Both compare with the same reference; suspicious, not impossible.
    """
    models, overlap = paper.column("bertscore"), paper.column("rouge_l")
    found = []
    for name in (AVERAGE, BEST):
        above = paper(name, "bertscore") - max(models.values())
        below = min(overlap.values()) - paper(name, "rouge_l")
        if above > paper.spread("bertscore") and below > 0:
            text = (
                f"BERTScore {paper(name, 'bertscore')} against {min(models.values())} to "
                f"{max(models.values())} for models, ROUGE-L {paper(name, 'rouge_l')} against "
                f"{min(overlap.values())} to {max(overlap.values())}"
            )
            values = {"above": above, "spread": paper.spread("bertscore"), "below": below}
            found.append(_finding("bertscore", (4,), ("human", name, "bertscore"), values, text))
    return found


def people_vary_as_one(paper: Paper) -> list[Finding]:
    """Table 4: people's average fluency, if it varies as much as single yes-or-no answers do.

    Averages over several people vary less, unless all agree on each question: suspicious.
    """
    average, variance = (paper(AVERAGE, f"helmet_fluency{end}") for end in ("", "_var"))
    if about(variance).high < yes_or_no(average).low:
        return []
    text = (
        f"HELMET Fluency {average} ± {variance}, the average of "
        f"{paper.stated('human_participants')} people; single answers that are 0 or 1 vary by "
        f"{average * (1 - average):.3f}"
    )
    values = {"printed": variance, "single": average * (1 - average)}
    place = ("human", AVERAGE, "helmet_fluency_var")
    return [_finding("one_person", (4,), place, values, text)]


def groups_against_5(paper: Paper) -> list[Finding]:
    """Means over a group's models in Table 4 against Table 5, weighted with Table 3's counts.

    Allowed is what rounding can do to both. A finding says how many subsets of the group's models,
    single ones among them, Table 5 could be the mean of in both dimensions.
    """
    found = []
    for group in GROUPS:
        whole = {d: weighted(paper, paper.split(d, group), MODALITIES) for d in DIMENSIONS}
        subsets = list(_fitting(paper, group, whole))
        for dimension in DIMENSIONS:
            models = mean(paper.column(dimension, group).values())
            if abs(models - whole[dimension]) <= Decimal("0.01"):
                continue
            text = (
                f"{models:.3f} in Table 4, {whole[dimension]:.3f} in "
                f"Table 5 ({len(subsets)} subsets of the group fit both scores)"
            )
            row = paper.split(dimension, group)
            values = {"table4": round(models, 4), "table5": round(whole[dimension], 4)}
            found.append(
                _finding("groups", (4, 5), (row.group, row.name, "dialogue..th"), values, text)
            )
    return found


def halves_of_5(paper: Paper) -> list[Finding]:
    """Table 5: rows whose mean over modalities is not that over categories (Table 3's counts)."""
    found = []
    for dimension in DIMENSIONS:
        for group in GROUPS:
            for condition in ("", "frames", "dialogue"):
                row = paper.split(dimension, group, condition)
                one, other = (weighted(paper, row, c) for c in (MODALITIES, CATEGORIES))
                if abs(one - other) <= Decimal("0.01"):
                    continue
                values = {"modalities": round(one, 4), "categories": round(other, 4)}
                text = f"{one:.3f} over modalities, {other:.3f} over categories"
                found.append(
                    _finding("halves", (3, 5), (row.group, row.name, "dialogue..th"), values, text)
                )
    return found


def weighted(paper: Paper, row: Row, columns: Mapping[str, str]) -> Decimal:
    """The mean of a row of Table 5 over all questions, by the counts of Table 3."""
    counts = paper.questions(columns)
    total = sum((row.printed(c) * n for c, n in counts.items()), Decimal(0))
    return total / sum(counts.values())


def people_against_5(paper: Paper) -> list[Finding]:
    """Whether Table 5's human rows can give Table 4's averages of people.

    Both are over the same questions, so one split of them over the columns must give both
    averages, within rounding. Tried are all whole numbers of questions.
    """
    total = int(paper.stated("human_questions"))
    one, other = (paper.split(dimension, "human") for dimension in DIMENSIONS)
    goals = (paper(AVERAGE, DIMENSIONS[0]), paper(AVERAGE, DIMENSIONS[1]))
    found = []
    for name, columns in (("modalities", MODALITIES), ("categories", CATEGORIES)):
        used = [c for c in columns if one.figures[c] is not None]
        least = nearest(tuple((one.printed(c), other.printed(c)) for c in used), goals, total)
        if least > Fraction(1, 100):
            text = (
                f"over {name} no split of the {total} questions gives both averages; the nearest "
                f"is off by {float(least):.4f}, rounding by 0.01 at most"
            )
            place = ("human", AVERAGE, f"{used[0]}..{used[-1]}")
            found.append(_finding("people", (4, 5), place, {"least": round(float(least), 4)}, text))
    return found


@lru_cache(maxsize=16)  # a search over all splits: a quarter of a million for four parts
def nearest(
    parts: tuple[tuple[Decimal, Decimal], ...], goals: tuple[Decimal, Decimal], total: int
) -> Fraction:
    """The least possible worst distance of two weighted means from their goals.

    Args:
        parts: the two means of each part, with two decimals.
        goals: the two means of the whole, with two decimals.
        total: items to split over the parts; one split for both means.
    """
    # In hundredths and times the total, so that the search runs on whole numbers.
    steps = [(int(100 * one), int(100 * other)) for one, other in parts]
    start = (-int(100 * goals[0]) * total, -int(100 * goals[1]) * total)
    return Fraction(_nearest(steps, start, total), 100 * total)


def _nearest(steps: Sequence[tuple[int, int]], at: tuple[int, int], left: int) -> int:
    (x, y), *rest = steps
    if not rest:
        return max(abs(at[0] + left * x), abs(at[1] + left * y))
    return min(_nearest(rest, (at[0] + n * x, at[1] + n * y), left - n) for n in range(left + 1))


def _fitting(paper: Paper, group: str, whole: Mapping[str, Decimal]) -> Iterator[tuple[str, ...]]:
    models = paper.models(group)
    for size in range(1, len(models) + 1):
        for subset in combinations(models, size):
            if all(
                abs(mean(paper(m, d) for m in subset) - whole[d]) <= Decimal("0.01")
                for d in DIMENSIONS
            ):
                yield subset


def _human_columns(paper: Paper) -> list[str]:
    row = paper.table(4).row("human", BEST)
    return [c for c, figure in row.figures.items() if figure is not None and c[-4:] != "_var"]


def _title(paper: Paper, name: str) -> str:
    return next(c.title for c in paper.table(4).columns if c.name == name)


def _finding(
    kind: str,
    tables: tuple[int, ...],
    place: tuple[str, str, str],
    values: Mapping[str, Decimal | float],
    text: str,
) -> Finding:
    group, model, column = place
    plain = {name: float(value) for name, value in values.items()}
    return Finding(kind, tables, group, model, column, plain, text)
