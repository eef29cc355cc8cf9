"""MovieRecapsQA's tables as in the paper: mean and variance (Table 4), labels by condition (5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.benchmark import Items, Row
from lmms_eval_tasks.movierecapsqa.data import CONDITIONS, SOURCES, task_name
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, UNLABELLED
from lmms_eval_tasks.tables.paper_tables import NONE, by_row, fixed, marked, number, signed
from lmms_eval_tasks.utils.metrics import aggregate

if TYPE_CHECKING:
    from rich.table import Table

# Metric -> heading, in Table 4's order; `geval_samples` is G-Eval's other mode (docs/metrics.md).
_TABLE_4 = {
    "rouge_l": "ROUGE-L",
    "bertscore": "BERTScore",
    "bartscore": "BARTScore",
    "geval_logprobs": "G-Eval\nlogprobs",
    "geval_samples": "G-Eval\nsamples",
    "helmet_fluency": "HELMET\nfluency",
    "helmet_correctness": "HELMET\ncorrectn.",
    "factuality_valid": "Factuality",
    "relevance_valid": "Relevance",
}
_COHERENCE = {"coherence_valid": "Coherence"}
# By split and slug; other categories are abbreviated as in the paper.
_HEADS = {
    ("modality", "dialogue"): "Dialogue",
    ("modality", "vision"): "Vision",
    ("modality", "multimodal"): "Multim.",
    ("modality", UNLABELLED): "no type",
    ("category", UNLABELLED): "no categ.",
}


class Entry(NamedTuple):
    """The numbers of one task of one model."""

    row: Row
    source: str
    condition: str

    @property
    def names(self) -> tuple[str, str, str]:
        """Model, source and condition, as the first columns show them."""
        title = self.row._replace(task=self.row.model or "this run", model="").title
        return title, SOURCES[self.source], CONDITIONS[self.condition].title

    def value(self, metric: str) -> float | None:
        """A metric, or None."""
        return number(self.row.values.get(metric))

    def with_variance(self, metric: str) -> str:
        """A mean and its variance; without spaces, or nine columns would not fit."""
        mean = fixed(self.value(metric))
        variance = self.value(f"{metric.removesuffix('_valid')}_var")
        return mean if variance is None else marked(mean, f"±{fixed(variance)}")


def tables(rows: Sequence[Row]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out."""
    # Models as they were given, each with sources and conditions in the paper's order.
    found = [
        Entry(row, source, condition)
        for model in dict.fromkeys(row.model for row in rows)
        for source, condition in product(SOURCES, CONDITIONS)
        for row in rows
        if (row.model, row.task) == (model, task_name(source, condition))
    ]
    scales = "HELMET correctness 0 to 3, factuality and relevance 0 to 5, all others 0 to 1"
    return [
        *_table("every metric, mean ± variance (the paper's Table 4)", _TABLE_4, found, scales),
        *_labelled(found),
        # Apart, as in the paper (4.2), which publishes no figures in its main part.
        *_table("coherence, 0 to 5, mean ± variance (no published figures)", _COHERENCE, found),
    ]


def _table(
    title: str,
    metrics: Mapping[str, str],
    found: Sequence[Entry],
    notes: str = "",
    cell: Callable[[Entry, str], str] = Entry.with_variance,
) -> list[Table]:
    """The metrics that anyone has; source and input stand below where several rows share both."""
    used = [name for name in metrics if any(entry.value(name) is not None for entry in found)]
    named = [(entry.names, [cell(entry, name) for name in used]) for entry in found]
    columns = [metrics[name] for name in used]
    title, heads = f"MovieRecapsQA: {title}", ("model", "source", "input")
    if len(named) < 2 or len({names[1:] for names, _ in named}) > 1:
        return by_row(title, heads, columns, named, notes)
    _, source, condition = named[0][0]
    notes = f"all rows: {source}, {condition}\n{notes}".strip()
    return by_row(title, heads[:1], columns, [(names[:1], cells) for names, cells in named], notes)


def _labelled(found: Sequence[Entry]) -> list[Table]:
    """Table 5: a model's other conditions as differences to both."""
    columns = {"": "all"} | {
        f"_{split}_{slug}": _HEADS.get((split, slug), slug.upper())
        for split, slugs in SPLITS.items()
        for slug in slugs
    }
    # With what is marked invalid nothing is compared.
    both = {(*entry.names[:1], entry.source): entry for entry in found if not entry.condition}

    def difference(entry: Entry, metric: str) -> str:
        base = both.get((*entry.names[:1], entry.source), entry)
        value, before = entry.value(metric), base.value(metric)
        if value is None or base is entry:
            return fixed(value)
        return NONE if before is None else signed(value - before, 2)

    return [
        table
        for dimension in ("relevance", "factuality")
        for table in _table(
            f"{dimension}, 0 to 5, by question type and category (the paper's Table 5)",
            {f"{dimension}_valid{key}": heading for key, heading in columns.items()},
            found,
            "with a sign: the difference to the same model with both\n"
            "no type, no categ.: questions without this label",
            difference,
        )
    ]


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
