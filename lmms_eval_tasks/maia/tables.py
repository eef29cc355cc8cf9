"""MAIA's tables as in the paper: categories as columns, `Avg.` first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.benchmark import Row
from lmms_eval_tasks.tables.paper_tables import by_row, fixed, number

if TYPE_CHECKING:
    from rich.table import Table

# Metric of ours, what it is, and the table of the paper that shows it.
LAYOUT = (
    ("pool_acc", "pools of 8 all right", "Table 1"),
    ("judge_acc", "answers judged correct", "Table 2"),
    ("agg_acc", "aggregate accuracy", "Table 3"),
    ("pair_acc", "pairs right", "Table 5"),
)
# The paper's column titles, broken and shortened so that all stand beside each other.
HEADINGS = {
    "causal": "Causal",
    "counterfactual": "Counter-\nfactual",
    "out_of_scope": "Out-of-\nScope",
    "planning": "Plan-\nning",
    "sentiment": "Senti-\nment",
    "uncertainty": "Uncer-\ntainty",
    "implicit_partial": "Impl.\nPartial",
    "implicit_total": "Impl.\nTotal",
    "spatial_partial": "Spat.\nPartial",
    "spatial_total": "Spat.\nTotal",
    "temporal_duration": "Temp.\nDuration",
    "temporal_partial": "Temp.\nPartial",
}
SIMILARITY = {
    "rouge_1": "ROUGE-1",
    "rouge_l": "ROUGE-L",
    "bertscore": "BERTScore",
    "bleu_13a": "BLEU\n13a",
    "bleu": "BLEU",
    "meteor_wordnet": "METEOR\nWordNet",
    "meteor": "METEOR",
    "cider_ptb": "CIDEr\nPTB",
    "cider": "CIDEr",
}
Named = Sequence[tuple[str, Mapping[str, Any]]]


def tables(rows: Sequence[Row]) -> list[Table]:
    """The averages, then each of the paper's tables; two decimals as there."""
    named = [(row.title, row.values) for row in rows]
    averages = {f"{m}_avg": f"{what}\n{m}" for m, what, _ in LAYOUT} | {"failed": "failed\nitems"}
    title = "averages over the categories (the paper's Tables 1, 2, 3 and 5)"
    made = _table(title, "setting", averages, list(_by_setting(rows)))
    for metric, what, place in LAYOUT:
        columns = {
            f"{metric}_avg": "Avg.",
            **{f"{metric}_{one}": title for one, title in HEADINGS.items()},
            metric: "all",
            f"{metric}_valid": "valid",
            f"{metric}_failed": "failed",
        }
        made += _table(f"{what} (`{metric}`, the paper's {place})", "task", columns, named, metric)
    title = "similarity to the references (the paper's Table 4)"
    return made + _table(title, "task", SIMILARITY, named, "rouge_l")


def _table(
    title: str, name: str, columns: Mapping[str, str], rows: Named, needs: str = ""
) -> list[Table]:
    """Metrics with their headings as columns; a row for what has the number `needs`."""
    lines = [
        ((head,), [fixed(number(values.get(one)), 0 if "failed" in one else 2) for one in columns])
        for head, values in rows
        if not needs or number(values.get(needs)) is not None
    ]
    return by_row(f"MAIA: {title}", [name], list(columns.values()), lines)


def _by_setting(rows: Sequence[Row]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The `Avg.` of the paper's tables, one row a setting: of its tasks and their group."""
    shares = [f"{metric}_avg" for metric, *_ in LAYOUT]
    settings: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        end = re.sub("^maia(_vsv|_oevqa)?_?", "", row.task).replace("unimodal", "no video")
        settings.setdefault((row.model, end or "video"), []).append(row)
    for (model, setting), own in settings.items():
        found = {one: row.values[one] for row in own for one in shares if one in row.values}
        if any(number(value) is not None for value in found.values()):
            failed = sum(row.values.get("failed", 0) for row in own)
            title = Row(setting, {}, model, any(row.invalid for row in own)).title
            yield title, {**found, "failed": failed}
