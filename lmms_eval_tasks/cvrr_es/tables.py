"""CVRR-ES's tables: accuracy by dimension, and a judge's kappas and ratings by dimension.

Tables of several judges together, with panels and intervals, are `lmms-eval-tasks reliability`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS, HINT, JUDGE_TASKS, RATINGS
from lmms_eval_tasks.cvrr_es.metrics import OF, PREFIX
from lmms_eval_tasks.report.paper_tables import INVALID, by_row, doubted, fixed, number

if TYPE_CHECKING:
    from rich.table import Table

Numbers = Mapping[str, Mapping[str, Any]]  # task or group -> metric -> value
_OWN = f"kappa{OF}"  # before a candidate's slug
_WITH_HINT = "with hint"

# A task's or group's name, then whatever was added to it: the model where several were rescored,
# ` INVALID`.
_OF_HINT = HINT.removesuffix("_")
_STARTS = [f"{start}{one}" for start in (ANSWERS, HINT) for one in DIMENSIONS]
_NAMES = sorted((*JUDGE_TASKS, "cvrr_es", _OF_HINT, *_STARTS), key=len)
_NAME = re.compile(rf"(?P<name>{'|'.join(reversed(_NAMES))})(?P<rest> .*)?", re.DOTALL)
_ROUNDS = {
    "cvrr_judge": "alone",
    "cvrr_judge_collective": "collective",
    "cvrr_judge_mixture": "mixture",
}


@dataclass
class Model:
    """The numbers of one model."""

    label: str
    numbers: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by task or group
    invalid: set[str] = field(default_factory=set)  # of `numbers`

    @property
    def title(self) -> str:
        """The label as the first column shows it."""
        return f"this run {self.label}".strip() if self.label in ("", _WITH_HINT) else self.label

    def title_of(self, task: str) -> str:
        """The same in a row of one task alone."""
        return f"{self.title} {INVALID}" if task in self.invalid else self.title

    def cell(self, task: str, metric: str, times: float = 1, decimals: int = 2) -> str:
        """A metric in a row of several tasks."""
        return doubted(fixed(self.value(task, metric, times), decimals), task in self.invalid)

    def value(self, task: str, metric: str, times: float = 1) -> float | None:
        """A metric of a task, or None."""
        found = number(self.numbers.get(task, {}).get(metric))
        return None if found is None else times * found


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task and group.
    """
    models = _models(rows)
    return [*_answers(models), *_kappas(models), *_ratings(models), *_candidates(models)]


def _models(rows: Sequence[tuple[str, Numbers]]) -> list[Model]:
    found: dict[str, Model] = {}
    for label, numbers in rows:
        for name, values in numbers.items():
            if match := _NAME.fullmatch(name):
                # With the hint the same model is another row.
                task, hint = match["name"], match["name"].startswith(_OF_HINT)
                rest = match["rest"] or ""
                named = f"{label}{rest.removesuffix(INVALID)}".strip()
                full = f"{named} {_WITH_HINT}".strip() if hint else named
                plain = task.replace(_OF_HINT, "cvrr_es", 1) if hint else task
                model = found.setdefault(full, Model(full))
                model.numbers[plain] = values
                model.invalid |= {plain} if rest.endswith(INVALID) else set()
    return list(found.values())


_HEADS = [one.short.replace(" ", "\n", 1) for one in DIMENSIONS.values()]


_ANSWERS = (
    ("acc_skip_empty", "correct, %", 100),
    ("acc", "correct, empty and failed as wrong, %", 100),
    ("score_skip_empty", "score, 0 to 5", 1),
    ("score_authors", "score, cut to whole numbers", 1),
    ("acc_failed", "not judged", 1),
    ("empty", "empty answers", 1),
)
_WITH_EMPTY = (
    ("acc_valid", "correct, empty as wrong, %", 100),
    ("score_valid", "score, empty as 0", 1),
)


def _has_empty(model: Model) -> bool:
    return any(model.value(f"{ANSWERS}{one}", "empty") for one in DIMENSIONS)


def _answers(models: Sequence[Model]) -> list[Table]:
    rows = []
    for model in models:
        for metric, title, times in [*_ANSWERS, *(_WITH_EMPTY if _has_empty(model) else ())]:
            count = metric in ("acc_failed", "empty")
            cells = [
                model.cell(f"{ANSWERS}{one}", metric, times, 0 if count else 2)
                for one in DIMENSIONS
            ]
            mean = model.cell("cvrr_es", f"{PREFIX}{metric}", times)
            rows.append(((model.title, title), [*cells, mean]))
    return by_row(
        "CVRR-ES: answers by dimension",
        ("model", "metric"),
        [*_HEADS, "mean"],
        rows,
        "correct, score: of answers that are not empty and that the judge decided on, as published",
    )


def _judging(models: Sequence[Model]) -> Iterator[tuple[Model, str, str]]:
    for model in models:
        for task, title in _ROUNDS.items():
            if task in model.numbers:
                yield model, task, title


def _kappas(models: Sequence[Model]) -> list[Table]:
    rows = []
    for model, task, title in _judging(models):
        for metric, name in (
            ("kappa", "mean over candidates"),
            ("kappa_authors", "over levels that occur"),
            ("kappa_pooled", "pooled"),
        ):
            cells = [fixed(model.value(task, f"{metric}_{one}", 100)) for one in DIMENSIONS]
            rows.append(
                (
                    (model.title_of(task), title, name),
                    [*cells, fixed(model.value(task, metric, 100))],
                )
            )
    return by_row(
        "CVRR judges: quadratic weighted kappa with the reference, x100 (the paper's Tables 5-7)",
        ("judge", "round", "kappa"),
        [*_HEADS, "all"],
        rows,
        "all: the mean of the dimensions' means over candidates; over levels that occur: as the "
        "study's code does; pooled: over all answers at once",
    )


def _ratings(models: Sequence[Model]) -> list[Table]:
    rows = []
    for model, task, title in _judging(models):
        for metric, name, times, digits in (
            ("rating_valid", "mean rating", 1, 2),
            ("leniency", "minus reference", 1, 2),
            ("rating_coverage", "rated, %", 100, 0),
        ):
            ends = [*(f"_{one}" for one in DIMENSIONS), ""]
            cells = [fixed(model.value(task, f"{metric}{end}", times), digits) for end in ends]
            rows.append(((model.title_of(task), title, name), cells))
    return by_row(
        "CVRR judges: ratings, 1 to 5 (the paper's Table 4)",
        ("judge", "round", ""),
        [*_HEADS, "all"],
        rows,
    )


_EMPTY = ("rated", "failed")
_COUNTS = ("rating_failed", "no_reason", "empty_rated", "empty_failed")


def _candidates(models: Sequence[Model]) -> list[Table]:
    """Ratings by candidate, their distribution, and what they rest on."""
    rows = []
    for model, task, title in _judging(models):
        values = model.numbers[task]
        # Not every name with `_of_` in it: dimensions have it too.
        parts = {name.removeprefix(_OWN) for name in values if name.startswith(_OWN)}
        for one, suffix in [("all", ""), *((slug, f"{OF}{slug}") for slug in sorted(parts))]:
            cells = [
                fixed(model.value(task, f"kappa{suffix}", 100)),
                fixed(model.value(task, f"rating_valid{suffix}")),
                fixed(model.value(task, f"leniency{suffix}")),
            ]
            shares = [f"rating_share_{rating}{suffix}" for rating in RATINGS]
            percent = [*shares, f"rating_coverage{suffix}"]
            cells += [fixed(model.value(task, name, 100), 0) for name in percent]
            # Counts are of all answers alone: of a candidate there is no such metric.
            cells += [fixed(model.value(task, f"{name}{suffix}"), 0) for name in _COUNTS]
            rows.append(((model.title_of(task), title, one), cells))
            if not suffix and any(model.value(task, f"empty_{what}") for what in _EMPTY):
                without = fixed(model.value(task, "kappa_skip_empty", 100))
                rest = ["-"] * (len(cells) - 1)
                rows.append(((model.title_of(task), title, "without empty"), [without, *rest]))
    return by_row(
        "CVRR judges: by candidate, and how the ratings are spread",
        ("judge", "round", "candidate"),
        [
            *("kappa\nx100", "mean\nrating", "minus\nreference"),
            *(f"{rating}\n%" for rating in RATINGS),
            *("rated\n%", "failed", "without\nreason", "empty\nrated", "empty\nfailed"),
        ],
        rows,
        "empty: answers without content, which the published scripts skip",
    )
