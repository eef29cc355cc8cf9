"""CVRR-ES's tables: accuracy by dimension, and a judge's kappas and ratings by dimension.

Tables of several judges together, with panels and intervals, are `lmms-eval-tasks reliability`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.benchmark import Row
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, HEADS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.metrics import PREFIX
from lmms_eval_tasks.tables.paper_tables import by_row, doubted, fixed, number

if TYPE_CHECKING:
    from rich.table import Table

_Given = tuple[Mapping[str, Any], bool]  # a task's numbers, and whether they are INVALID
_WITH_HINT = "with hint"
_ONES = "|".join(DIMENSIONS)
_NAME = re.compile(
    rf"(?:cvrr_judge(?:_collective|_mixture)?|cvrr_es(?P<hint>_hint)?(?P<of>_(?:{_ONES}))?)"
)
# Metric -> what it is called, its factor and decimals: of answers; of judges, with two headings.
_ANSWERS = {
    "acc_skip_empty": ("correct, %", 100, 2),
    "acc": ("correct, empty and failed as wrong, %", 100, 2),
    "score_skip_empty": ("score, 0 to 5", 1, 2),
    "score_authors": ("score, cut to whole numbers", 1, 2),
    "acc_failed": ("not judged", 1, 0),
    "empty": ("empty answers", 1, 0),
    # Of runs with empty answers.
    "acc_valid": ("correct, empty as wrong, %", 100, 2),
    "score_valid": ("score, empty as 0", 1, 2),
}
_KAPPAS = {
    "kappa": ("mean over candidates", 100, 2),
    "kappa_authors": ("over levels that occur", 100, 2),
    "kappa_pooled": ("pooled", 100, 2),
}
_RATINGS = {
    "rating_valid": ("mean rating", 1, 2),
    "leniency": ("minus reference", 1, 2),
    "rating_coverage": ("rated, %", 100, 0),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """The tables for one or more models; those without a number are left out."""
    answers: dict[str, dict[str, _Given]] = {}  # model -> dimension
    judges: dict[str, dict[str, _Given]] = {}  # model -> task
    for name, values, model, invalid in rows:
        if (match := _NAME.fullmatch(name)) is None:
            continue
        if name in JUDGE_TASKS:
            judges.setdefault(model, {})[name] = values, invalid
        else:  # with the hint the same model is another row
            whose = f"{model} {_WITH_HINT}".strip() if match["hint"] else model
            answers.setdefault(whose, {})[(match["of"] or "_")[1:]] = values, invalid
    return [*_answers(answers), *_judges(judges)]


def _title(model: str) -> str:
    """A model as the first column shows it."""
    return f"this run {model}".strip() if model in ("", _WITH_HINT) else model


def _cell(values: Mapping[str, Any], metric: str, times: float, decimals: int) -> str:
    found = number(values.get(metric))
    return fixed(None if found is None else times * found, decimals)


def _answers(models: Mapping[str, Mapping[str, _Given]]) -> list[Table]:
    rows = []
    for model, parts in models.items():
        has_empty = any(number(parts[one][0].get("empty")) for one in DIMENSIONS if one in parts)
        for metric, (title, times, decimals) in _ANSWERS.items():
            if metric.endswith("_valid") and not has_empty:
                continue
            cells = []
            for one in (*DIMENSIONS, ""):
                values, invalid = parts.get(one, ({}, False))
                name, digits = (metric, decimals) if one else (f"{PREFIX}{metric}", 2)
                cells.append(doubted(_cell(values, name, times, digits), invalid))
            rows.append(((_title(model), title), cells))
    return by_row(
        "CVRR-ES: answers by dimension",
        ("model", "metric"),
        [*HEADS.values(), "mean"],
        rows,
        "correct, score: of answers that are not empty and that the judge decided on, as published",
    )


def _judges(models: Mapping[str, Mapping[str, _Given]]) -> list[Table]:
    made = []
    for heading, metrics, note in (
        (
            "CVRR judges: quadratic weighted kappa with the reference, x100 (the paper's Tables "
            "5-7)",
            _KAPPAS,
            "all: the mean of the dimensions' means over candidates; over levels that occur: as "
            "the study's code does; pooled: over all answers at once",
        ),
        ("CVRR judges: ratings, 1 to 5 (the paper's Table 4)", _RATINGS, ""),
    ):
        rows = []
        for model, tasks in models.items():
            for task in filter(tasks.get, JUDGE_TASKS):
                values, invalid = tasks[task]
                title = f"{_title(model)} INVALID" if invalid else _title(model)
                how = JUDGE_TASKS[task].replace("first", "alone")
                for metric, (name, *form) in metrics.items():
                    of = [*(f"{metric}_{one}" for one in DIMENSIONS), metric]
                    rows.append(((title, how, name), [_cell(values, one, *form) for one in of]))
        names = ("judge", "round", "kappa" if metrics is _KAPPAS else "")
        made += by_row(heading, names, [*HEADS.values(), "all"], rows, note)
    return made
