"""HAVEN's tables as in the paper (Tables 3 and 4), and what the numbers are worth beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.haven.metrics import IS_GT, ORDER
from lmms_eval_tasks.haven.options import KINDS, SOURCES, TASKS
from lmms_eval_tasks.report.paper_tables import INVALID, by_row, doubted, fixed, number, signed

if TYPE_CHECKING:
    from rich.table import Table

# A task's or group's name, then whatever was added to it: the model where several were rescored,
# ` INVALID`.
_NAMES = "|".join(sorted((*TASKS, "haven", "haven_text"), key=len, reverse=True))
_NAME = re.compile(rf"(?P<name>{_NAMES})(?P<rest> .*)?", re.DOTALL)
_OVER = {"": "videos", "_sources": "sources"}  # form of a metric -> what its mean is over


class Model(NamedTuple):
    """The numbers of one model, either of its tasks with pictures or of its text proxies.

    numbers: by kind with `_doc`; those of the group are under "". invalid: kinds of them.
    """

    title: str
    numbers: dict[str, Mapping[str, Any]]
    invalid: set[str]

    def title_of(self, task: str) -> str:
        """The title in a row of one task alone."""
        return f"{self.title} {INVALID}" if task in self.invalid else self.title

    def value(self, task: str, metric: str) -> float | None:
        """A metric of a task, or None."""
        return number(self.numbers.get(task, {}).get(metric))

    def cell(self, task: str, metric: str) -> str:
        """A metric in a row of several tasks."""
        found = self.value(task, metric)
        is_gain = found is not None and metric == "joined_clip_gain"
        shown = signed(found or 0.0, 3) if is_gain else fixed(found, 3)
        return doubted(shown, task in self.invalid)


def tables(rows: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out.

    Args:
        rows: label of a model (empty for a single run) and its numbers by task and group.
    """
    models = _models(rows)
    rated = {
        metric
        for model in models
        for _, task, metric in _TABLE_4
        if model.value(task, metric) is not None
    }
    # A way of rating that no model has is no column.
    of_table4 = [one for one in _TABLE_4 if not one[2].startswith("geval") or one[2] in rated]
    return [
        *_paper(models, "every task (the paper's Table 3)", _TABLE_3, _NOTES_3),
        *_paper(models, "summaries (the paper's Table 4)", of_table4, _NOTES_4),
        *_beside(models),
    ]


def _models(rows: Sequence[tuple[str, Numbers]]) -> list[Model]:
    found: dict[tuple[str, bool], Model] = {}
    for label, numbers in rows:
        for name, values in numbers.items():
            if (match := _NAME.fullmatch(name)) is None:
                continue
            rest, text = match["rest"] or "", match["name"].endswith("_text")
            full = f"{label}{rest.removesuffix(INVALID)}".strip()
            title = (full or "this run") + (" (text proxy)" if text else "")
            model = found.setdefault((full, text), Model(title, {}, set()))
            task = match["name"].removeprefix("haven").removesuffix("_text").removeprefix("_")
            model.numbers[task] = values
            if rest.endswith(INVALID):
                model.invalid.add(task)
    return list(found.values())


# Of the paper's tables: heading of a column, task, metric.
_TABLE_3 = (
    ("V2T\nBERTSc.", "v2t", "bertscore"),
    ("V2V\nF1", "v2v", "f1"),
    ("V2VT\nBERTSc.", "v2vt", "bertscore"),
    ("V2VT\nF1", "v2vt", "f1"),
    ("temp.\nrho", "temporal", "spearman"),
    ("temp.\ntau", "temporal", "kendall"),
    ("temp.+doc\nrho", "temporal_doc", "spearman"),
    ("temp.+doc\ntau", "temporal_doc", "kendall"),
    ("ground.\nF1", "grounding", "f1"),
    ("sal.\nrho", "saliency", "spearman"),
    ("sal.\ntau", "saliency", "kendall"),
    ("sal.+doc\nrho", "saliency_doc", "spearman"),
    ("sal.+doc\ntau", "saliency_doc", "kendall"),
)
_TABLE_4 = (
    ("V2T\nG-Eval\nlogprobs", "v2t", "geval_logprobs_valid"),
    ("V2T\nG-Eval\nsamples", "v2t", "geval_samples_valid"),
    ("V2T\nROUGE", "v2t", "rouge"),
    ("V2V\nP", "v2v", "precision"),
    ("V2V\nR", "v2v", "recall"),
    ("V2VT\nG-Eval\nlogprobs", "v2vt", "geval_logprobs_valid"),
    ("V2VT\nG-Eval\nsamples", "v2vt", "geval_samples_valid"),
    ("V2VT\nROUGE", "v2vt", "rouge"),
    ("V2VT\nP", "v2vt", "precision"),
    ("V2VT\nR", "v2vt", "recall"),
    ("V2VT\nCLIPScore", "v2vt", "clipscore"),
    ("(diff.)", "", "joined_clip_gain"),
)


_NOTES_3 = (
    "temp.: temporal order; sal.: saliency; +doc: with the document\n"
    "rho: Spearman's; tau: Kendall's tau-b; the paper prints one and does not say which"
)
_NOTES_4 = (
    "ROUGE: mean of the F1 of ROUGE-1, 2 and L. G-Eval: 1 to 5, of what could be rated\n"
    "(diff.): joint replies minus V2T's text with V2V's frames, over the videos with all three"
)


def _paper(
    models: Sequence[Model], title: str, columns: Sequence[tuple[str, str, str]], notes: str
) -> list[Table]:
    rows = [
        ((model.title, over), [model.cell(task, name + form) for _, task, name in columns])
        for model in models
        for form, over in _OVER.items()
    ]
    heads = [heading for heading, _, _ in columns]
    return by_row(f"HAVEN: {title}", ("model", "mean over"), heads, rows, notes)


# Task kind -> its main metric, whose baselines stand in the table of what a number is worth.
_MAIN = {
    "v2t": ("rouge",),
    "v2v": ("f1", f"f1{IS_GT}"),
    "v2vt": ("rouge", "f1", f"f1{IS_GT}", "clipscore"),
    "temporal": ORDER,
    "grounding": ("f1", "iou", "hit1"),
    "saliency": ORDER,
}
_BASELINES = ("random", "identity", "all")
_NOTES_WORTH = (
    "random: expected, in closed form; identity: the order as shown; all: every frame, or\n"
    "each clip for each sentence\n"
    "f1_is_gt: against the frames that is_gt marks, not those of the key shots\n"
    "failed: replies that could not be read in full; what could be read of them counts\n"
    "rules broken: replies with a wrong number of frames, an unknown shot and so on\n"
    "undef.: all shots equally important"
)


def _beside(models: Sequence[Model]) -> list[Table]:
    """What the numbers are worth, and the same by source: a row for each main metric."""
    measured = [
        (model, task, metric)
        for model in models
        for task in [name for kind in KINDS for name in (kind, f"{kind}_doc")]
        for metric in _MAIN[task.removesuffix("_doc")]
        if model.value(task, metric) is not None
    ]
    used = [
        source
        for source in SOURCES
        if any(model.value(task, f"{name}_{source}") is not None for model, task, name in measured)
    ]
    worth, by_source = [], []
    for model, task, metric in measured:
        head = (model.title_of(task), task, metric)
        # A joint reply has two parts, and CLIPScore needs both.
        parts = {"rouge": "summary_", "f1": "frames_"} if task == "v2vt" else {}
        part = parts.get(metric.removesuffix(IS_GT), "")
        forms = ("", "_valid", *(f"_{name}" for name in _BASELINES))
        counts = (f"{part}failed", "violations", "undefined")
        worth.append(
            (
                head,
                [
                    fixed(model.value(task, "videos"), 0),
                    *(fixed(model.value(task, metric + form), 3) for form in forms),
                    *(fixed(model.value(task, name), 0) for name in counts),
                ],
            )
        )
        own = [fixed(model.value(task, f"{metric}_{source}"), 3) for source in used]
        by_source.append((head, own))
    names = ("model", "task", "metric")
    heads = ["videos", "value", "valid", *_BASELINES, "failed", "rules\nbroken", "undef."]
    return [
        *by_row("HAVEN: what the numbers are worth", names, heads, worth, _NOTES_WORTH),
        *by_row("HAVEN: by source", names, [SOURCES[source] for source in used], by_source),
    ]
