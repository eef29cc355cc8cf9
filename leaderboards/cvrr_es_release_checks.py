"""The benchmark's own published accuracies, recomputed from its release, beside the judge study."""

from __future__ import annotations

from decimal import Decimal

from lmms_eval_tasks.leaderboards.checking import mean
from lmms_eval_tasks.leaderboards.cvrr_es_paper import Paper, fits, printed
from lmms_eval_tasks.leaderboards.findings import Finding

COUNTS = "questions"  # the row of the numbers of questions


def questions(paper: Paper) -> dict[str, Decimal]:
    """Questions by dimension."""
    return printed(paper.beside("release").row("", COUNTS))


def accuracies(paper: Paper) -> dict[str, dict[str, Decimal]]:
    """One name of a model -> accuracy in % by dimension."""
    return {
        row.identity: {name: row.printed(name) for name in paper.dimensions}
        for row in paper.beside("release").rows
        if row.identity is not None
    }


def means(paper: Paper) -> list[Finding]:
    """Means over dimensions that are not those of the dimensions' figures."""
    found = []
    for row in paper.beside("release").rows:
        whole = row.figures["average"]
        values = [row.printed(name) for name in paper.dimensions]
        if whole is None or fits(whole, values):
            continue
        text = f"{whole}, the dimensions give {mean(values):.2f}"
        follows: dict[str, float] = {
            "printed": float(whole),
            "follows": float(round(mean(values), 3)),
        }
        found.append(Finding("release_means", (), "", row.name, "average", follows, text))
    return found
