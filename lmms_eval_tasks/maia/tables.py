"""MAIA's tables as in the paper: categories as columns, `Avg.` first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.maia.categories import CATEGORIES
from lmms_eval_tasks.maia.metrics import CELLS

if TYPE_CHECKING:
    from rich.table import Table

Numbers = Mapping[str, Mapping[str, Any]]  # task or group -> metric -> value

# Metric of ours, what it is, and the table of the paper that shows it.
LAYOUT = (
    ("pool_acc", "pools of 8 all right", "Table 1"),
    ("judge_acc", "answers judged correct", "Table 2"),
    ("agg_acc", "aggregate accuracy", "Table 3"),
    ("pair_acc", "pairs right", "Table 5"),
)
# The paper's column titles, broken and shortened so that all twelve stand beside each other.
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
SIMILARITY = (
    ("rouge_l", "ROUGE-L"),
    ("bertscore", "BERTScore"),
    ("bleu", "BLEU"),
    ("meteor", "METEOR"),
    ("cider", "CIDEr"),
)


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task or group.
    """
    made = _summary(rows)
    for metric, what, number in LAYOUT:
        shown = [
            (label, name, values)
            for label, numbers in rows
            for name, values in numbers.items()
            if _has(values, metric)
        ]
        if not shown:
            continue
        table = _table(f"{what} (`{metric}`, the paper's {number})")
        table.add_column("run" if any(label for label, *_ in shown) else "task", overflow="fold")
        for title in ("Avg.", *(HEADINGS[c.slug] for c in CATEGORIES), "all", "valid", "failed"):
            width = max(map(len, title.splitlines()))
            table.add_column(title, justify="right", no_wrap=True, min_width=width)
        for label, name, values in shown:
            cells = [values.get(f"{metric}_avg")]
            cells += [values.get(f"{metric}_{category.slug}") for category in CATEGORIES]
            cells += [values.get(metric), values.get(f"{metric}_valid")]
            failed = values.get(f"{metric}_failed")
            table.add_row(
                f"{label} {name}".strip(),
                *(number_text(cell) for cell in cells),
                "-" if failed is None else str(int(failed)),
            )
        made.append(table)
    made += _similarity(rows)
    made += _cells(rows)
    return made


_INVALID = " INVALID"  # behind the name of a task too many of whose verdicts failed


def _summary(rows: Iterable[tuple[str, Numbers]]) -> list[Table]:
    """The `Avg.` of the paper's tables, one row a setting."""
    table = _table("averages over the categories (the paper's Tables 1, 2, 3 and 5)")
    table.add_column("setting", overflow="fold")
    for metric, what, _ in LAYOUT:
        table.add_column(f"{what}\n{metric}", justify="right")
    table.add_column("failed\nitems", justify="right")
    for label, numbers in rows:
        settings: dict[str, dict[str, Any]] = {}
        for name, values in numbers.items():
            found = settings.setdefault(_setting(name.removesuffix(_INVALID)), {"failed": 0})
            found["invalid"] = found.get("invalid", "") or name.endswith(_INVALID)
            found |= {m: values[f"{m}_avg"] for m, *_ in LAYOUT if _has(values, f"{m}_avg")}
            found["failed"] += values.get("failed", 0)
        for setting, found in settings.items():
            if found.keys() - {"failed", "invalid"}:
                cells = (number_text(found.get(metric)) for metric, *_ in LAYOUT)
                name = f"{label} {setting}{_INVALID if found['invalid'] else ''}".strip()
                table.add_row(name, *cells, str(found["failed"]))
    return [table] if table.rows else []


def _setting(name: str) -> str:
    """A task's or group's setting: `maia_vsv_black` and `maia_black` are `black`."""
    for kind in ("maia_vsv", "maia_oevqa", "maia_unimodal", "maia"):
        if name.startswith(kind):
            end = name.removeprefix(kind).removeprefix("_")
            return end or ("no video" if kind == "maia_unimodal" else "32 frames")
    return name


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(
        title=f"MAIA: {title}", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )


def _has(values: Mapping[str, Any], metric: str) -> bool:
    value = values.get(metric)
    return isinstance(value, int | float) and not math.isnan(value)


def number_text(value: Any) -> str:
    """Two decimals as in the paper; a dash where there is no number."""
    if not isinstance(value, int | float) or math.isnan(value):
        return "-"
    return f"{value:.2f}"


def _similarity(rows: Iterable[tuple[str, Numbers]]) -> list[Table]:
    table = _table("similarity to the references (the paper's Table 4)")
    table.add_column("task", overflow="fold")
    for _, title in SIMILARITY:
        table.add_column(title, justify="right")
    for label, numbers in rows:
        for name, values in numbers.items():
            if _has(values, "rouge_l"):
                cells = (number_text(values.get(metric)) for metric, _ in SIMILARITY)
                table.add_row(f"{label} {name}".strip(), *cells)
    return [table] if table.rows else []


def _cells(rows: Iterable[tuple[str, Numbers]]) -> list[Table]:
    table = _table("questions by pool and answer (the paper's B.3)")
    table.add_column("group", overflow="fold")
    titles = ("both right", "only the pool", "only the answer", "neither", "joined")
    for title in titles:
        table.add_column(title, justify="right")
    for label, numbers in rows:
        for name, values in numbers.items():
            if _has(values, "agg_acc"):
                counts = [values.get(f"agg_acc_n_{cell}") for cell in (*CELLS.values(), "joined")]
                table.add_row(
                    f"{label} {name}".strip(), *("-" if c is None else str(int(c)) for c in counts)
                )
    return [table] if table.rows else []
