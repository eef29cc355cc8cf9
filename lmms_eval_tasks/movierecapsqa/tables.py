"""MovieRecapsQA's tables as in the paper: mean and variance (Table 4), labels by condition (5).

Where runs of several models are shown together, Table 5's rows for open-source and for proprietary
models (5.1) are there too: means over such a group. Which model is in which is a map of pieces of
names, leaderboards/model_groups.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.benchmark import Items, Numbers
from lmms_eval_tasks.movierecapsqa.data import CONDITIONS, SOURCES, task_name
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, UNLABELLED
from lmms_eval_tasks.report.paper_tables import INVALID, NONE, by_row, fixed, number, signed
from lmms_eval_tasks.utils.metrics import aggregate

if TYPE_CHECKING:
    from rich.table import Table

# A task's name, then whatever was added to it: ` INVALID`, the model where several were rescored.
_TASK = re.compile(
    rf"movierecapsqa_(?P<source>{'|'.join(SOURCES)})(?P<condition>_frames|_dialogue)?"
    r"(?P<rest> .*)?",
    re.DOTALL,
)
# Metric -> heading, in Table 4's order; `geval_samples` is G-Eval's other mode (metrics.md).
_BASELINES = {
    "rouge_l": "ROUGE-L",
    "bertscore": "BERTScore",
    "bartscore": "BARTScore",
    "geval_logprobs": "G-Eval\nlogprobs",
    "geval_samples": "G-Eval\nsamples",
    "helmet_fluency": "HELMET\nfluency",
    "helmet_correctness": "HELMET\ncorrectn.",
}
_MODALITY = {"dialogue": "Dialogue", "vision": "Vision", "multimodal": "Multim."}
_UNLABELLED = {"modality": "no type", "category": "no categ."}


@dataclass(frozen=True)
class Entry:
    """The numbers of one task of one model."""

    label: str  # of the model; "" for a single run
    source: str
    condition: str
    values: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, str, str]:
        """Model, source and condition, as the first columns show them."""
        title = f"this run {self.label}".strip() if self.label in ("", INVALID) else self.label
        return title, SOURCES[self.source], CONDITIONS[self.condition].title

    @property
    def model(self) -> str:
        """The label without the mark."""
        return self.label.removesuffix(INVALID).strip()

    def value(self, metric: str) -> float | None:
        """A metric, or None."""
        return number(self.values.get(metric))


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task.
    """
    found = _ordered(list(_entries(rows)))
    groups = list(_groups(found))
    return [
        *_overall([*found, *groups]),
        *_labelled([*found, *groups]),
        *_coherence(found),
        *_checks(found),
    ]


def _entries(rows: Sequence[tuple[str, Numbers]]) -> Iterator[Entry]:
    for label, numbers in rows:
        for name, values in numbers.items():
            if match := _TASK.fullmatch(name):
                condition = (match["condition"] or "").removeprefix("_")
                full = f"{label}{match['rest'] or ''}".strip()
                yield Entry(full, match["source"], condition, values)


def _ordered(found: Sequence[Entry]) -> list[Entry]:
    """Models as they were given, each with sources and conditions in the paper's order."""
    models = list(dict.fromkeys(entry.model for entry in found))
    sources, conditions = list(SOURCES), list(CONDITIONS)

    def place(entry: Entry) -> tuple[int, int, int]:
        source, condition = sources.index(entry.source), conditions.index(entry.condition)
        return models.index(entry.model), source, condition

    return sorted(found, key=place)


_NAMES = ("model", "source", "input")


def _by_row(
    title: str, columns: Sequence[str], rows: Sequence[tuple[Sequence[str], list[str]]], notes: str
) -> list[Table]:
    """A table; source and input stand below it where several rows share both."""
    if len(rows) < 2 or len({tuple(names[1:]) for names, _ in rows}) > 1:
        return by_row(title, _NAMES, columns, rows, notes)
    _, source, condition = rows[0][0]
    notes = f"all rows: {source}, {condition}\n{notes}".strip()
    return by_row(title, _NAMES[:1], columns, [(names[:1], cells) for names, cells in rows], notes)


def _overall(found: Sequence[Entry]) -> list[Table]:
    metrics = {**_BASELINES, "factuality_valid": "Factuality", "relevance_valid": "Relevance"}
    used = [name for name in metrics if any(entry.value(name) is not None for entry in found)]
    rows = [(entry.names, [_with_variance(entry, name) for name in used]) for entry in found]
    return _by_row(
        "MovieRecapsQA: every metric, mean ± variance (the paper's Table 4)",
        [metrics[name] for name in used],
        rows,
        "HELMET correctness 0 to 3, factuality and relevance 0 to 5, all others 0 to 1",
    )


def _with_variance(entry: Entry, metric: str) -> str:
    # Without spaces: with them nine columns do not fit, and the last one loses a digit.
    mean = entry.value(metric)
    variance = entry.value(f"{metric.removesuffix('_valid')}_var")
    return fixed(mean) if variance is None else f"{fixed(mean)}±{fixed(variance)}"


def _labelled(found: Sequence[Entry]) -> list[Table]:
    """Table 5: a model's other conditions as differences to both."""
    columns = [
        (f"{split}_{slug}", _heading(split, slug))
        for split, slugs in SPLITS.items()
        for slug in slugs
    ]
    # By the label: with a run that is marked invalid nothing is compared.
    both = {(entry.label, entry.source): entry for entry in found if not entry.condition}
    made = []
    for dimension in ("relevance", "factuality"):
        rows = []
        used = [
            (key, heading)
            for key, heading in columns
            if any(entry.value(f"{dimension}_valid_{key}") is not None for entry in found)
        ]
        for entry in found:
            base = both.get((entry.label, entry.source))
            cells = [
                _difference(entry, base, f"{dimension}_valid{key}")
                for key in ["", *(f"_{key}" for key, _ in used)]
            ]
            rows.append((entry.names, cells))
        made += _by_row(
            f"MovieRecapsQA: {dimension}, 0 to 5, by question type and category (the paper's "
            "Table 5)",
            ["all", *(heading for _, heading in used)],
            rows,
            "with a sign: the difference to the same model with both\n"
            "no type, no categ.: questions without this label",
        )
    return made


def _heading(split: str, slug: str) -> str:
    """Of a column; categories are abbreviated as in the paper."""
    if slug == UNLABELLED:
        return _UNLABELLED[split]
    return _MODALITY.get(slug, slug.upper())


def _difference(entry: Entry, base: Entry | None, metric: str) -> str:
    value = entry.value(metric)
    if value is None or base is None or base is entry:
        return fixed(value)
    before = base.value(metric)
    return NONE if before is None else signed(value - before, 2)


def _coherence(found: Sequence[Entry]) -> list[Table]:
    """Apart, as in the paper (4.2), which publishes no figures in its main part."""
    rows = [(entry.names, [_with_variance(entry, "coherence_valid")]) for entry in found]
    return _by_row(
        "MovieRecapsQA: coherence, 0 to 5, mean ± variance (no published figures)",
        ["Coherence"],
        rows,
        "",
    )


def _checks(found: Sequence[Entry]) -> list[Table]:
    """What the judge's scores rest on: how many there are, and whether they fit their labels."""
    rows = []
    for entry in found:
        if all(entry.value(f"{name}_valid") is None for name in DIMENSIONS):
            continue
        cells = []
        for name in DIMENSIONS:
            low, high = entry.value(f"{name}_low"), entry.value(f"{name}_high")
            cells += [
                fixed(entry.value(f"{name}_failed"), 0),
                fixed(entry.value(f"{name}_inconsistent"), 0),
                NONE if low is None else f"{low:.2f}-{fixed(high)}",
            ]
        cells += [fixed(entry.value(name), 0) for name in ("empty", "no_claims")]
        cells.append(fixed(entry.value("claims_mean"), 1))
        rows.append((entry.names, cells))
    heads = [f"{name[:4]}.\n{what}" for name in DIMENSIONS for what in ("failed", "off", "bounds")]
    return _by_row(
        "MovieRecapsQA: the judge's scores beside the bounds that their own labels set",
        [*heads, "empty", "without\nclaims", "claims"],
        rows,
        "failed: answers without a score: empty, or through the judge or the host\n"
        "off: scores that break the published rules for their own labels\n"
        "bounds: means of the lowest and of the highest score that the labels allow\n"
        "claims: mean number, of the answers that have some",
    )


# --- rows for groups of models (5.1) -----------------------------------------------------------

LEAST = 2  # models that make a group's row
_NO_MEANS = (
    *("_var", "_failed", "_inconsistent", "_low", "_high", "_coverage", "claims"),
    *("empty", "refusals"),
)


def _groups(found: Sequence[Entry]) -> Iterator[Entry]:
    """A row for the open-source and for the proprietary models, where there are several (5.1)."""
    for group, models in grouped(entry.model for entry in found).items():
        label = f"mean of {len(models)} {group} models"
        for source in SOURCES:
            for condition in CONDITIONS:
                own = [
                    entry.values
                    for entry in found
                    if (entry.source, entry.condition) == (source, condition)
                    and entry.model in models
                ]
                if len(own) == len(models):
                    yield Entry(label, source, condition, mean_of(own))


def grouped(models: Iterable[str]) -> dict[str, list[str]]:
    """Group -> its models, of those groups that have two or more; by name or arguments."""
    found: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        own = (group for group, names in _patterns().items() if names.search(model.lower()))
        if group := next(own, None):
            found.setdefault(group, []).append(model)
    return {group: own for group, own in sorted(found.items()) if len(own) >= LEAST}


def mean_of(values: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The mean of every metric over some models' numbers; None where one of them has none.

    A mean of variances, or of counts, is nothing that the paper has: only means are taken.
    """
    names = {name for own in values for name in own if not name.endswith(_NO_MEANS)}
    made: dict[str, float | None] = {}
    for name in sorted(names):
        found = [number(own.get(name)) for own in values]
        known = [one for one in found if one is not None]
        made[name] = aggregate.mean(known) if len(known) == len(found) else None
    return made


@lru_cache(maxsize=1)
def _patterns() -> dict[str, re.Pattern[str]]:
    file = resources.files("lmms_eval_tasks.leaderboards") / "model_groups.json"
    groups = json.loads(file.read_text(encoding="utf-8"))["groups"]
    # At the beginning of a word: `aria` is no part of `variant`.
    return {
        group: re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, pieces))})")
        for group, pieces in groups.items()
    }


# --- what stands beside the tables --------------------------------------------------------------


def unlike(asked: Mapping[str, Items]) -> list[str]:
    """What to say if a source's conditions were not asked the same questions.

    Table 5's differences are then between other questions, as where clips are missing.

    Args:
        asked: task of one model -> its items.
    """
    notes = []
    for source, title in SOURCES.items():
        own = {
            condition.title: asked[task]
            for slug, condition in CONDITIONS.items()
            if (task := task_name(source, slug)) in asked
        }
        if counts := aggregate.unlike(own):
            notes.append(
                f"{title}: the conditions were not asked the same questions ({counts}): their "
                "differences are not those of the paper's Table 5"
            )
    return notes
