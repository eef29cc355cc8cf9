"""What a reply to a doc is worth and the most that it could be, by the metrics of utils."""

from __future__ import annotations

from typing import Any, NamedTuple

from lmms_eval_tasks.utils import (
    alignment_replies,
    alignments,
    frame_replies,
    keyframes,
    order_replies,
    rankings,
    summary_replies,
)


class Worth(NamedTuple):
    """Metric -> value and the best value; status and violations as the readers tell them.

    A summary's value is 1.0 if it is word for word the reference, else 0.0.
    """

    values: dict[str, float | None]
    best: dict[str, float | None]
    status: str
    violations: dict[str, int]


def worth(doc: dict[str, Any], reply: str) -> Worth:
    """Of a reply to any doc."""
    return {
        "v2t": _summary,
        "v2v": _frames,
        "v2vt": _joint,
        "temporal": _order,
        "saliency": _order,
        "grounding": _alignment,
    }[doc["kind"]](doc, reply)


def _summary(doc: dict[str, Any], reply: str) -> Worth:
    read = summary_replies.read_summary(reply, doc["n_sentences"])
    said = " ".join(read.sentences)
    if not doc["text"]:
        said, violations = reply, {}
    else:
        violations = read.violations
    return _of_text(doc, said)._replace(status=read.status, violations=violations)


def _of_text(doc: dict[str, Any], said: str) -> Worth:
    same = float(said == " ".join(doc["summary"]))
    return Worth({"same": same}, {"same": 1.0}, "", {})


def _frames(doc: dict[str, Any], reply: str) -> Worth:
    return _of_frames(doc, frame_replies.read_frames(reply, len(doc["picks"]), doc["budget"]))


def _of_frames(doc: dict[str, Any], read: frame_replies.Frames) -> Worth:
    got = keyframes.precision_recall_f1(read.selected, set(doc["keyframes"]))
    best = keyframes.best(len(doc["keyframes"]), doc["budget"])
    return Worth(vars(got), vars(best), read.status, read.violations)


def _joint(doc: dict[str, Any], reply: str) -> Worth:
    read = summary_replies.read_joint(reply, len(doc["picks"]), doc["budget"], doc["n_sentences"])
    text = _of_text(doc, " ".join(read.summary.sentences))
    frames = _of_frames(doc, read.frames)
    return Worth(
        {**text.values, **frames.values},
        {**text.best, **frames.best},
        read.status,
        {**read.summary.violations, **read.frames.violations},
    )


def _order(doc: dict[str, Any], reply: str) -> Worth:
    n = len(doc["units"])
    unit = "Sentence" if doc["kind"] == "temporal" and doc["text"] else "Shot"
    read = order_replies.read_order(reply, n, unit)
    truth = (
        [float(1 + sorted(doc["units"]).index(unit)) for unit in doc["units"]]
        if doc["kind"] == "temporal"
        else rankings.importance_ranks([doc["importance"][unit - 1] for unit in doc["units"]])
    )
    got = rankings.correlations(rankings.predicted_ranks(read.units, n), truth)
    best = rankings.best_reachable(truth)
    return Worth(
        {"spearman": got.spearman, "kendall": got.kendall},
        {"spearman": best.spearman, "kendall": best.kendall},
        read.status,
        read.violations,
    )


def _alignment(doc: dict[str, Any], reply: str) -> Worth:
    read = alignment_replies.read_alignment(reply, len(doc["sentences"]), len(doc["units"]))
    true = [
        {1 + doc["units"].index(shot) for shot in doc["summary_shots"][sentence - 1]}
        for sentence in doc["sentences"]
    ]
    got = alignments.score(read.sets, true)
    return Worth(vars(got), dict.fromkeys(vars(got), 1.0), read.status, read.violations)
