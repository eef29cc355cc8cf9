"""HAVEN's tables as in the paper (Tables 3 and 4), and what the numbers are worth beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.benchmark import Row
from lmms_eval_tasks.haven.metrics import IS_GT, ORDER
from lmms_eval_tasks.haven.options import KINDS
from lmms_eval_tasks.tables.paper_tables import by_row, doubted, fixed, number, signed

if TYPE_CHECKING:
    from rich.table import Table

_OVER = {"": "videos", "_sources": "sources"}  # form of a metric -> what its mean is over


class Model(NamedTuple):
    """The rows of one model, either of its tasks with pictures or of its text proxies.

    rows: by kind with `_doc`; that of the group is under "".
    """

    title: str
    rows: dict[str, Row]

    def value(self, task: str, metric: str) -> float | None:
        """A metric of a task, or None."""
        return number(self.rows[task].values.get(metric)) if task in self.rows else None

    def cell(self, task: str, metric: str) -> str:
        """A metric in a row of several tasks."""
        found = self.value(task, metric)
        is_gain = found is not None and metric == "joined_clip_gain"
        shown = signed(found or 0.0, 3) if is_gain else fixed(found, 3)
        return doubted(shown, task in self.rows and self.rows[task].invalid)


def tables(rows: Sequence[Row]) -> list[Table]:
    """The paper's tables for one or more models; those without a number are left out."""
    found: dict[str, Model] = {}
    for row in rows:
        task = row.task.removesuffix("_text")
        title = (row.model or "this run") + (" (text proxy)" if task != row.task else "")
        own = found.setdefault(title, Model(title, {})).rows
        own[task.removeprefix("haven").removeprefix("_")] = row
    models = list(found.values())
    # A way of rating that no model has is no column.
    known = {n for _, t, n in _TABLE_4 for model in models if model.value(t, n) is not None}
    of_table4 = [one for one in _TABLE_4 if not one[2].startswith("geval") or one[2] in known]
    return [
        *_paper(models, "every task (the paper's Table 3)", _TABLE_3, _NOTES_3),
        *_paper(models, "summaries (the paper's Table 4)", of_table4, _NOTES_4),
        *_beside(models),
    ]


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
    """What the numbers are worth: a row for each main metric."""
    rows = []
    for model in models:
        for task in [name for kind in KINDS for name in (kind, f"{kind}_doc")]:
            for metric in _MAIN[task.removesuffix("_doc")] if task in model.rows else ():
                # A joint reply has two parts, and CLIPScore needs both.
                parts = {"rouge": "summary_", "f1": "frames_"} if task == "v2vt" else {}
                part = parts.get(metric.removesuffix(IS_GT), "")
                forms = (metric, f"{metric}_valid", *(f"{metric}_{one}" for one in _BASELINES))
                counts = (f"{part}failed", "violations", "undefined")
                cells = [
                    fixed(model.value(task, "videos"), 0),
                    *(fixed(model.value(task, name), 3) for name in forms),
                    *(fixed(model.value(task, name), 0) for name in counts),
                ]
                title = f"{model.title} INVALID" if model.rows[task].invalid else model.title
                if model.value(task, metric) is not None:
                    rows.append(((title, task, metric), cells))
    names = ("model", "task", "metric")
    heads = ["videos", "value", "valid", *_BASELINES, "failed", "rules\nbroken", "undef."]
    return by_row("HAVEN: what the numbers are worth", names, heads, rows, _NOTES_WORTH)
