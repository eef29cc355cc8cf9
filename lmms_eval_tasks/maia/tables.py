"""MAIA's tables as in the paper: categories as columns, `Avg.` first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.maia.metrics import CELLS
from lmms_eval_tasks.report.paper_tables import by_row, fixed, number

if TYPE_CHECKING:
    from rich.table import Table

# Metric of ours, what it is, and the table of the paper that shows it.
LAYOUT = (
    ("pool_acc", "pools of 8 all right", "Table 1"),
    ("judge_acc", "answers judged correct", "Table 2"),
    ("agg_acc", "aggregate accuracy", "Table 3"),
    ("pair_acc", "pairs right", "Table 5"),
)
# The paper's column titles, broken and shortened so that all stand beside each other; and the two
# kinds of "Causal".
HEADINGS = {
    "causal": "Causal",
    "causal_explicit": "expli-\ncit",
    "causal_implicit": "impli-\ncit",
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
SIMILARITY = (
    ("rouge_1", "ROUGE-1"),
    ("rouge_l", "ROUGE-L"),
    ("bertscore", "BERTScore"),
    ("bleu_13a", "BLEU\n13a"),
    ("bleu", "BLEU"),
    ("meteor_wordnet", "METEOR\nWordNet"),
    ("meteor", "METEOR"),
    ("cider_ptb", "CIDEr\nPTB"),
    ("cider", "CIDEr"),
)


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task or group.
    """
    several = any(label for label, _ in rows)
    named = [
        (f"{label} {name}".strip(), values)
        for label, numbers in rows
        for name, values in numbers.items()
    ]
    made = _summary(rows)
    titles = ["Avg.", *HEADINGS.values(), "all", "valid", "failed"]
    for metric, what, place in LAYOUT:
        shares = [f"{metric}_avg", *(f"{metric}_{one}" for one in HEADINGS)]
        shares += [metric, f"{metric}_valid"]
        made += _table(
            f"{what} (`{metric}`, the paper's {place})",
            "run" if several else "task",
            titles,
            [
                (name, [*_texts(values, shares), *_texts(values, [f"{metric}_failed"], 0)])
                for name, values in named
                if _has(values, metric)
            ],
        )
    made += _table(
        "similarity to the references (the paper's Table 4)",
        "task",
        [title for _, title in SIMILARITY],
        [
            (name, _texts(values, [metric for metric, _ in SIMILARITY]))
            for name, values in named
            if _has(values, "rouge_l")
        ],
    )
    made += _table(
        "questions by pool and answer (the paper's B.3)",
        "group",
        ["both right", "only the pool", "only the answer", "neither", "joined"],
        [
            (name, _texts(values, [f"agg_acc_n_{cell}" for cell in (*CELLS.values(), "joined")], 0))
            for name, values in named
            if _has(values, "agg_acc")
        ],
    )
    return made


def _table(
    title: str, name: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]
) -> list[Table]:
    return by_row(f"MAIA: {title}", [name], columns, [((head,), cells) for head, cells in rows])


def _texts(values: Mapping[str, Any], metrics: Iterable[str], decimals: int = 2) -> list[str]:
    """Two decimals as in the paper; a dash where there is no number."""
    return [fixed(number(values.get(metric)), decimals) for metric in metrics]


_INVALID = " INVALID"  # behind the name of a task too many of whose verdicts failed


def _summary(rows: Iterable[tuple[str, Numbers]]) -> list[Table]:
    """The `Avg.` of the paper's tables, one row a setting."""
    shares, lines = [f"{metric}_avg" for metric, *_ in LAYOUT], []
    for label, numbers in rows:
        settings: dict[str, dict[str, Any]] = {}
        for name, values in numbers.items():
            found = settings.setdefault(_setting(name.removesuffix(_INVALID)), {"failed": 0})
            found["invalid"] = found.get("invalid", "") or name.endswith(_INVALID)
            found |= {share: values[share] for share in shares if _has(values, share)}
            found["failed"] += values.get("failed", 0)
        for setting, found in settings.items():
            if found.keys() & set(shares):
                name = f"{label} {setting}{_INVALID if found['invalid'] else ''}".strip()
                lines.append((name, [*_texts(found, shares), str(found["failed"])]))
    columns = [*(f"{what}\n{metric}" for metric, what, _ in LAYOUT), "failed\nitems"]
    title = "averages over the categories (the paper's Tables 1, 2, 3 and 5)"
    return _table(title, "setting", columns, lines)


def _setting(name: str) -> str:
    """A task's or group's setting: `maia_vsv_black` and `maia_black` are `black`."""
    for kind in ("maia_vsv", "maia_oevqa", "maia_unimodal", "maia"):
        if name.startswith(kind):
            end = name.removeprefix(kind).removeprefix("_")
            return end or ("no video" if kind == "maia_unimodal" else "video")
    return name


def _has(values: Mapping[str, Any], metric: str) -> bool:
    return number(values.get(metric)) is not None
