"""What MAVERIX's printed shares and means say about the number of questions behind them.

An accuracy of n questions is k/n for a whole k, so few n fit all models' printed figures of one
split. The paper prints no counts for Table 10; those found here are deductions of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from lmms_eval_tasks.leaderboards import Table
from lmms_eval_tasks.leaderboards.checking import half
from lmms_eval_tasks.leaderboards.findings import Finding
from lmms_eval_tasks.leaderboards.maverix_checks import HUMAN, LEVELS

CHOICE_QUESTIONS = 852
TITLES = {"a": "A", "s": "S", "v": "V", "vs": "V+S", "av": "V+A"}
MISFIT = "qwen_2_5_omni"
PER_QUESTION = 3  # one choice question, one open question, one paraphrase of it

# Table 2's abilities by Table 10's splits. Two of Table 10's fit Table 2's Context Understanding
# by their counts alone, and two more are in no row of Table 2: a deduction, not the paper's words.
ABILITIES = {
    "Causal Relationship": ("Causal Reasoning",),
    "Emotional Inference": ("Emotional Inference",),
    "Factual Recall": ("Factual Recall",),
    "Situational Understanding": ("Situational Reasoning",),
    "Context Understanding": ("Visual Reasoning", "Spatial Reasoning"),
}


def numerators(figure: Decimal, n: int, scale: int = 1) -> range:
    """The whole k for which scale * k / n is printed as `figure`; empty if there is none.

    `scale` is 100 for a percentage and 1 for a mean.
    """
    step = half(figure)
    halves = int(figure / step)  # whole numbers from here on: halves of the last printed place
    unit = int(scale / step)
    return range(-(-(halves - 1) * n // unit), (halves + 1) * n // unit + 1)


def implied_counts(table10: Table, dimension: str) -> dict[str, int]:
    """Smallest number of questions of each split that fits all models' percentages.

    That the splits of a dimension add up to 852 confirms the counts; they do in all dimensions but
    difficulty.

    Raises:
        ValueError: no number up to 852 fits a split.
    """
    counts = {}
    for row in table10.rows:
        if row.group == dimension:
            fitting = _fitting([row.printed(name) for name in row.figures])
            if not fitting:
                raise ValueError(f"Table 10, {row.name}: no count up to {CHOICE_QUESTIONS} fits")
            counts[row.name] = fitting[0]
    return counts


def difficulty_counts(table10: Table) -> tuple[int, int, int]:
    """Easy, medium and hard questions: the only counts that add up to 852 and fit all models but
    Qwen 2.5 Omni, whose figures fit none.

    Raises:
        ValueError: there are none, or several.
    """
    rows = [table10.row("difficulty", level.capitalize()) for level in LEVELS]
    kept = [name for name in rows[0].figures if name != MISFIT]
    easy, medium, hard = (_fitting([row.printed(name) for name in kept]) for row in rows)
    triples = [
        (one, two, CHOICE_QUESTIONS - one - two)
        for one in easy
        for two in medium
        if CHOICE_QUESTIONS - one - two in hard
    ]
    if len(triples) != 1:
        raise ValueError(f"Table 10: {len(triples)} triples of counts fit, not one")
    return triples[0]


def ability_counts(table2: Table, table10: Table, questions: int) -> list[Finding]:
    """Table 2's overall counts of abilities against the number of questions and Table 10."""
    rows = [row for row in table2.rows if row.group == "counts"]
    total = sum(int(row.printed("in_overall")) for row in rows)
    found = []
    if total != questions:
        text = f"the five overall counts add up to {total:,}, of {questions:,} questions"
        figures = {"sum": float(total), "questions": float(questions)}
        found.append(
            Finding("counts", (2,), "counts", "all abilities", "in_overall", figures, text)
        )
    implied = implied_counts(table10, "ability")
    for row in rows:
        expected = PER_QUESTION * sum(implied[name] for name in ABILITIES[row.name])
        printed = int(row.printed("in_overall"))
        if printed != expected:
            parts = " and ".join(ABILITIES[row.name])
            text = (
                f"{printed} is printed, {expected} would be {PER_QUESTION} for each of the "
                f"{expected // PER_QUESTION} choice questions that Table 10's figures of {parts} "
                "imply"
            )
            figures = {"printed": float(printed), "implied": float(expected)}
            found.append(
                Finding("counts", (2, 10), "counts", row.name, "in_overall", figures, text)
            )
    return found


def impossible_shares(table3: Table) -> list[Finding]:
    """Table 3: models' accuracies that no number of right answers among 852 gives.

    People answered a subset and are left out.
    """
    found = []
    for row in table3.rows:
        for mode in ("a", "s", "v", "vs", "av"):
            share = row.figures[mode]
            if row.name == HUMAN or share is None:
                continue
            if numerators(share, CHOICE_QUESTIONS, 100):
                continue
            low = int(share * CHOICE_QUESTIONS / 100)
            near = [f"{k} right give {k * 100 / CHOICE_QUESTIONS:.2f}" for k in (low, low + 1)]
            text = f"{TITLES[mode]} {share}, but {' and '.join(near)}"
            figures = {"printed": float(share)}
            found.append(Finding("share", (3,), "", row.name, mode, figures, text))
    return found


def levels_against_overall(table3: Table, table4: Table, table10: Table) -> list[Finding]:
    """Table 4's levels of difficulty, weighted by their counts, against Table 3's overall figure.

    The counts are `difficulty_counts`. People answered a subset and are left out.
    """
    counts = dict(zip(LEVELS, difficulty_counts(table10), strict=True))
    found = []
    for row in table4.rows:
        whole = table3.of(row.identity) if row.identity else None
        if whole is None:
            continue
        for mode in ("a", "v", "av"):
            levels = {level: row.printed(f"{level}_{mode}") for level in LEVELS}
            overall = whole.printed(mode)
            parts = [numerators(levels[level], counts[level], 100) for level in LEVELS]
            if not all(parts):
                pairs = zip(LEVELS, parts, strict=True)
                odd = ", ".join(f"{levels[level]} ({level})" for level, k in pairs if not k)
                text = f"{TITLES[mode]} has no whole number of answers for {odd}"
                figures = {"overall": float(overall)}
            else:
                right = sum(k[0] for k in parts)  # one k each: a level has under 1,000 questions
                if right in numerators(overall, CHOICE_QUESTIONS, 100):
                    continue
                follows = 100 * right / CHOICE_QUESTIONS
                text = f"{TITLES[mode]} {overall} in Table 3, {follows:.2f} from Table 4"
                figures = {"overall": float(overall), "follows": round(follows, 2)}
            found.append(Finding("levels", (3, 4), "", row.name, mode, figures, text))
    return found


def judged_denominators(tables: Sequence[Table], answers: int) -> dict[str, int]:
    """How the models' mean ratings (Tables 8 and 9) fit k/n with n the number of answers, or half.

    Returns:
        `cells`: all of them; `half`: those that are k/n for half the answers; `odd`: those that
        need an odd k over all answers. Means over all answers would need an odd k in about half.
    """
    ratings = [
        row.printed(name)
        for table in tables
        for row in table.rows
        if row.name != HUMAN
        for name in row.figures
    ]
    return {
        "cells": len(ratings),
        "half": sum(len(numerators(one, answers // 2)) > 0 for one in ratings),
        "odd": sum(any(k % 2 for k in numerators(one, answers)) for one in ratings),
    }


def _fitting(percentages: Sequence[Decimal]) -> list[int]:
    """Every number of questions up to 852 of which all the percentages can be shares."""
    return [
        n
        for n in range(1, CHOICE_QUESTIONS + 1)
        if all(numerators(figure, n, 100) for figure in percentages)
    ]
