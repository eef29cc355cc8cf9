"""MAIA's tables as in the paper: categories as columns, `Avg.` first."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.report.paper_tables import INVALID, by_row, fixed, number

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
JOINED = {
    "agg_acc_n_both": "both right",
    "agg_acc_n_pool_only": "only the pool",
    "agg_acc_n_answer_only": "only the answer",
    "agg_acc_n_neither": "neither",
    "agg_acc_n_joined": "joined",
}
Values = Mapping[str, Any]
Named = Sequence[tuple[str, Values]]


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task or group.
    """
    named = [
        (f"{label} {name}".strip(), values)
        for label, numbers in rows
        for name, values in numbers.items()
    ]
    made = _table(
        "averages over the categories (the paper's Tables 1, 2, 3 and 5)",
        "setting",
        {**{f"{m}_avg": f"{what}\n{m}" for m, what, _ in LAYOUT}, "failed": "failed\nitems"},
        [row for label, numbers in rows for row in _by_setting(label, numbers)],
    )
    first = "run" if any(label for label, _ in rows) else "task"
    for metric, what, place in LAYOUT:
        columns = {
            f"{metric}_avg": "Avg.",
            **{f"{metric}_{one}": title for one, title in HEADINGS.items()},
            metric: "all",
            f"{metric}_valid": "valid",
            f"{metric}_failed": "failed",
        }
        made += _table(f"{what} (`{metric}`, the paper's {place})", first, columns, named, metric)
    title = "similarity to the references (the paper's Table 4)"
    made += _table(title, "task", SIMILARITY, named, "rouge_l")
    title = "questions by pool and answer (the paper's B.3)"
    return made + _table(title, "group", JOINED, named, "agg_acc")


def _table(
    title: str, name: str, columns: Mapping[str, str], rows: Named, needs: str = ""
) -> list[Table]:
    """Metrics with their headings as columns; a row for what has the number `needs`.

    Two decimals as in the paper, none of counts; a dash where there is no number.
    """
    lines = [
        (
            (head,),
            [
                fixed(number(values.get(metric)), 0 if _COUNT.search(metric) else 2)
                for metric in columns
            ],
        )
        for head, values in rows
        if not needs or number(values.get(needs)) is not None
    ]
    return by_row(f"MAIA: {title}", [name], list(columns.values()), lines)


_COUNT = re.compile("failed$|_n_")


def _by_setting(label: str, numbers: Numbers) -> Named:
    """The `Avg.` of the paper's tables, one row a setting."""
    shares = [f"{metric}_avg" for metric, *_ in LAYOUT]
    settings: dict[str, dict[str, Any]] = {}
    invalid = set()
    for name, values in numbers.items():
        setting = _setting(name.removesuffix(f" {INVALID}"))
        invalid |= {setting} if name.endswith(INVALID) else set()
        found = settings.setdefault(setting, {"failed": 0})
        found |= {one: values[one] for one in shares if number(values.get(one)) is not None}
        found["failed"] += values.get("failed", 0)
    return [
        (f"{label} {setting} {INVALID if setting in invalid else ''}".strip(), found)
        for setting, found in settings.items()
        if found.keys() & {*shares}
    ]


def _setting(name: str) -> str:
    """A task's or group's setting: `maia_vsv_black` and `maia_black` are `black`."""
    for kind in ("maia_vsv", "maia_oevqa", "maia_unimodal", "maia"):
        if name.startswith(kind):
            end = name.removeprefix(kind).removeprefix("_")
            return end or ("no video" if kind == "maia_unimodal" else "video")
    return name
