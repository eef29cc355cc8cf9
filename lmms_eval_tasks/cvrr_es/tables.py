"""CVRR-ES's tables: accuracy by dimension, and a judge's kappas and ratings by dimension.

Tables of several judges together, with panels and intervals, are `lmms-eval-tasks reliability`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.benchmark import Row
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, JUDGE_TASKS, RATINGS
from lmms_eval_tasks.cvrr_es.metrics import OF, PREFIX
from lmms_eval_tasks.report.paper_tables import by_row, doubted, fixed, number

if TYPE_CHECKING:
    from rich.table import Table

_Row = tuple[tuple[str, ...], list[str]]
_WITH_HINT = "with hint"
_ONES = "|".join(DIMENSIONS)
_NAME = re.compile(
    rf"(?:cvrr_judge(?:_collective|_mixture)?|cvrr_es(?P<hint>_hint)?(?P<of>_(?:{_ONES}))?)"
)
_HEADS = [one.replace(" ", "\n", 1) for one in DIMENSIONS.values()]
_ALL = "all"
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
# Metric of a candidate -> heading, factor, decimals. Counts are of all answers alone.
_OF_CANDIDATE = {
    "kappa": ("kappa\nx100", 100, 2),
    "rating_valid": ("mean\nrating", 1, 2),
    "leniency": ("minus\nreference", 1, 2),
    **{f"rating_share_{one}": (f"{one}\n%", 100, 0) for one in RATINGS},
    "rating_coverage": ("rated\n%", 100, 0),
    "rating_failed": ("failed", 1, 0),
    "no_reason": ("without\nreason", 1, 0),
    "empty_rated": ("empty\nrated", 1, 0),
    "empty_failed": ("empty\nfailed", 1, 0),
}


def tables(rows: Sequence[Row]) -> list[Table]:
    """The tables for one or more models; those without a number are left out."""
    answers: dict[str, dict[str, tuple[Mapping[str, Any], bool]]] = {}  # model -> task
    judges: dict[tuple[str, str], tuple[Mapping[str, Any], bool]] = {}  # (model, task)
    for name, values, model, invalid in rows:
        if (match := _NAME.fullmatch(name)) is None:
            continue
        if name in JUDGE_TASKS:
            judges[model, name] = values, invalid
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


def _answers(
    models: Mapping[str, Mapping[str, tuple[Mapping[str, Any], bool]]],
) -> list[Table]:
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
        [*_HEADS, "mean"],
        rows,
        "correct, score: of answers that are not empty and that the judge decided on, as published",
    )


def _judges(judges: Mapping[tuple[str, str], tuple[Mapping[str, Any], bool]]) -> list[Table]:
    kappas: list[_Row] = []
    ratings: list[_Row] = []
    candidates: list[_Row] = []
    order = list(JUDGE_TASKS)
    models = list(dict.fromkeys(model for model, _ in judges))
    for model, task in sorted(judges, key=lambda one: (models.index(one[0]), order.index(one[1]))):
        values, invalid = judges[model, task]
        title = f"{_title(model)} INVALID" if invalid else _title(model)
        how = {"first": "alone"}.get(JUDGE_TASKS[task], JUDGE_TASKS[task])
        for rows, metrics in ((kappas, _KAPPAS), (ratings, _RATINGS)):
            for metric, (name, *form) in metrics.items():
                names = [*(f"{metric}_{one}" for one in DIMENSIONS), metric]
                cells = [_cell(values, one, *form) for one in names]
                rows.append(((title, how, name), cells))
        # Not every name with `_of_` in it: dimensions have it too.
        start = f"kappa{OF}"
        parts = sorted(name.removeprefix(start) for name in values if name.startswith(start))
        for one in (_ALL, *parts):
            end = "" if one == _ALL else f"{OF}{one}"
            cells = [_cell(values, f"{m}{end}", *form) for m, (_, *form) in _OF_CANDIDATE.items()]
            candidates.append(((title, how, one), cells))
            if not end and (
                number(values.get("empty_rated")) or number(values.get("empty_failed"))
            ):
                without = [_cell(values, "kappa_skip_empty", 100, 2), *["-"] * (len(cells) - 1)]
                candidates.append(((title, how, "without empty"), without))
    return [
        *by_row(
            "CVRR judges: quadratic weighted kappa with the reference, x100 (the paper's Tables "
            "5-7)",
            ("judge", "round", "kappa"),
            [*_HEADS, _ALL],
            kappas,
            "all: the mean of the dimensions' means over candidates; over levels that occur: as "
            "the study's code does; pooled: over all answers at once",
        ),
        *by_row(
            "CVRR judges: ratings, 1 to 5 (the paper's Table 4)",
            ("judge", "round", ""),
            [*_HEADS, _ALL],
            ratings,
        ),
        *by_row(
            "CVRR judges: by candidate, and how the ratings are spread",
            ("judge", "round", "candidate"),
            [heading for heading, *_ in _OF_CANDIDATE.values()],
            candidates,
            "empty: answers without content, which the published scripts skip",
        ),
    ]
