"""MovieRecapsQA's tables as in the paper: mean and variance (Table 4), labels by condition (5).

Where runs of several models are shown together, Table 5's rows for open-source and for proprietary
models (5.1) are there too: means over such a group. Which model is in which is a map of pieces of
names, leaderboards/model_groups.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

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
# By split and slug; other categories are abbreviated as in the paper.
_HEADS = {
    ("modality", "dialogue"): "Dialogue",
    ("modality", "vision"): "Vision",
    ("modality", "multimodal"): "Multim.",
    ("modality", UNLABELLED): "no type",
    ("category", UNLABELLED): "no categ.",
}


class Entry(NamedTuple):
    """The numbers of one task of one model; `label` is the model, "" for a single run."""

    label: str
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

    def with_variance(self, metric: str) -> str:
        """A mean and its variance; without spaces, or nine columns would not fit."""
        mean = fixed(self.value(metric))
        variance = self.value(f"{metric.removesuffix('_valid')}_var")
        return mean if variance is None else f"{mean}±{fixed(variance)}"


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task.
    """
    found = [
        Entry(
            f"{label}{match['rest'] or ''}".strip(),
            match["source"],
            (match["condition"] or "").removeprefix("_"),
            values,
        )
        for label, numbers in rows
        for name, values in numbers.items()
        if (match := _TASK.fullmatch(name))
    ]
    # Models as they were given, each with sources and conditions in the paper's order.
    models = list(dict.fromkeys(entry.model for entry in found))
    places = {pair: place for place, pair in enumerate(product(SOURCES, CONDITIONS))}
    found.sort(key=lambda one: (models.index(one.model), places[one.source, one.condition]))
    both = [*found, *_groups(found)]
    return [*_overall(both), *_labelled(both), *_coherence(found), *_checks(found)]


def _table(
    title: str, columns: Sequence[str], rows: Iterable[tuple[Entry, list[str]]], notes: str = ""
) -> list[Table]:
    """A table; source and input stand below it where several rows share both."""
    named = [(entry.names, cells) for entry, cells in rows]
    title, heads = f"MovieRecapsQA: {title}", ("model", "source", "input")
    if len(named) < 2 or len({names[1:] for names, _ in named}) > 1:
        return by_row(title, heads, columns, named, notes)
    _, source, condition = named[0][0]
    notes = f"all rows: {source}, {condition}\n{notes}".strip()
    return by_row(title, heads[:1], columns, [(names[:1], cells) for names, cells in named], notes)


def _overall(found: Sequence[Entry]) -> list[Table]:
    metrics = {**_BASELINES, "factuality_valid": "Factuality", "relevance_valid": "Relevance"}
    used = [name for name in metrics if any(entry.value(name) is not None for entry in found)]
    return _table(
        "every metric, mean ± variance (the paper's Table 4)",
        [metrics[name] for name in used],
        [(entry, [entry.with_variance(name) for name in used]) for entry in found],
        "HELMET correctness 0 to 3, factuality and relevance 0 to 5, all others 0 to 1",
    )


def _labelled(found: Sequence[Entry]) -> list[Table]:
    """Table 5: a model's other conditions as differences to both."""
    columns = {
        f"_{split}_{slug}": _HEADS.get((split, slug), slug.upper())
        for split, slugs in SPLITS.items()
        for slug in slugs
    }
    # By the label: with a run that is marked invalid nothing is compared.
    both = {(entry.label, entry.source): entry for entry in found if not entry.condition}
    made = []
    for name in ("relevance_valid", "factuality_valid"):
        used = {
            key: heading
            for key, heading in columns.items()
            if any(entry.value(f"{name}{key}") is not None for entry in found)
        }
        rows = []
        for entry in found:
            base = both.get((entry.label, entry.source))
            cells = [_difference(entry, base, f"{name}{key}") for key in ("", *used)]
            rows.append((entry, cells))
        dimension = name.removesuffix("_valid")
        made += _table(
            f"{dimension}, 0 to 5, by question type and category (the paper's Table 5)",
            ["all", *used.values()],
            rows,
            "with a sign: the difference to the same model with both\n"
            "no type, no categ.: questions without this label",
        )
    return made


def _difference(entry: Entry, base: Entry | None, metric: str) -> str:
    value = entry.value(metric)
    if value is None or base is None or base is entry:
        return fixed(value)
    before = base.value(metric)
    return NONE if before is None else signed(value - before, 2)


def _coherence(found: Sequence[Entry]) -> list[Table]:
    """Apart, as in the paper (4.2), which publishes no figures in its main part."""
    rows = [(entry, [entry.with_variance("coherence_valid")]) for entry in found]
    title = "coherence, 0 to 5, mean ± variance (no published figures)"
    return _table(title, ["Coherence"], rows)


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
                fixed(entry.value(f"{name}_{what}"), 0) for what in ("failed", "inconsistent")
            ]
            cells.append(NONE if low is None else f"{low:.2f}-{fixed(high)}")
        cells += [fixed(entry.value(name), 0) for name in ("empty", "no_claims")]
        rows.append((entry, [*cells, fixed(entry.value("claims_mean"), 1)]))
    heads = [f"{name[:4]}.\n{what}" for name in DIMENSIONS for what in ("failed", "off", "bounds")]
    return _table(
        "the judge's scores beside the bounds that their own labels set",
        [*heads, "empty", "without\nclaims", "claims"],
        rows,
        "failed: answers without a score: empty, or through the judge or the host\n"
        "off: scores that break the published rules for their own labels\n"
        "bounds: means of the lowest and of the highest score that the labels allow\n"
        "claims: mean number, of the answers that have some",
    )


# --- rows for groups of models (5.1) -----------------------------------------------------------

LEAST = 2  # models that make a group's row
# A mean of variances, or of counts, is nothing that the paper has.
_NO_MEANS = (
    *("_var", "_failed", "_inconsistent", "_low", "_high", "_coverage", "claims"),
    *("empty", "refusals"),
)


def _groups(found: Sequence[Entry]) -> Iterator[Entry]:
    """A row for the open-source and for the proprietary models, where there are several (5.1)."""
    for group, models in grouped(entry.model for entry in found).items():
        for place in product(SOURCES, CONDITIONS):
            rows = [one for one in found if one[1:3] == place and one.model in models]
            if len(rows) == len(models):
                means = mean_of([one.values for one in rows])
                yield Entry(f"mean of {len(models)} {group} models", *place, means)


def grouped(models: Iterable[str]) -> dict[str, list[str]]:
    """Group -> its models, of those groups that have two or more; by name or arguments."""
    found: dict[str, list[str]] = {}
    for model in dict.fromkeys(models):
        own = (group for group, names in _patterns().items() if names.search(model.lower()))
        if group := next(own, None):
            found.setdefault(group, []).append(model)
    return {group: own for group, own in sorted(found.items()) if len(own) >= LEAST}


def mean_of(values: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """The mean of every metric over some models' numbers; None where one of them has none."""
    names = {name for own in values for name in own if not name.endswith(_NO_MEANS)}
    made: dict[str, float | None] = {}
    for name in sorted(names):
        known = [one for own in values if (one := number(own.get(name))) is not None]
        made[name] = aggregate.mean(known) if len(known) == len(values) else None
    return made


@lru_cache(maxsize=1)
def _patterns() -> dict[str, re.Pattern[str]]:
    file = resources.files("lmms_eval_tasks.leaderboards") / "model_groups.json"
    groups = json.loads(file.read_text(encoding="utf-8"))["groups"].items()
    # At the beginning of a word: `aria` is no part of `variant`.
    return {
        name: re.compile(rf"(?<![a-z])(?:{'|'.join(map(re.escape, own))})") for name, own in groups
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
        tasks = {condition.title: task_name(source, slug) for slug, condition in CONDITIONS.items()}
        own = {name: asked[task] for name, task in tasks.items() if task in asked}
        if counts := aggregate.unlike(own):
            notes.append(
                f"{title}: the conditions were not asked the same questions ({counts}): their "
                "differences are not those of the paper's Table 5"
            )
    return notes
