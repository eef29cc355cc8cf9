"""What one reply is worth: read, measured beside its baselines, spread over the metrics.

The same for the host's items and for saved ones (`rescore`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval_tasks.haven import joined, scores
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.labels import SUMMARIES, Task
from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.utils import (
    alignment_replies,
    alignments,
    answers,
    frame_replies,
    keyframes,
    order_replies,
    rankings,
    rouge,
    summary_replies,
)

Item = Mapping[str, Any]
Metrics = dict[str, dict[str, Any]]

V2T_SENTENCES = (3, 5)  # asked for by V2T's prompt with pictures (Appendix C)


def reply_metrics(item: Item, reply: str, *, judge: Judge, saved: Verdict | None = None) -> Metrics:
    """The metrics of one reply, by name.

    Args:
        item: a doc's identity (utils.identity).
        reply: the model's text, as the host hands it over.
        judge: who rates a summary, where no saved verdict stands.
        saved: G-Eval's verdict.
    """
    full = {**_blank(item, reply), **_READERS[item["kind"]](item, reply)}
    full["status"] = next((status for status in full["parts"].values() if status != "ok"), "ok")
    if item["kind"] in SUMMARIES:
        full["geval"] = judging.rate_summary(
            judge,
            " ".join(item["summary"]),
            " ".join(item["document"]),
            full["candidate"],
            status=full["parts"]["summary"],
            saved=saved,
        )
    return spread(full)


def failed_metrics(item: Item, reply: str) -> Metrics:
    """The metrics of a reply whose scoring broke: an item with the status `error`."""
    return spread({**_blank(item, reply), "status": "error"})


def not_run_metrics(item: Item, why: str) -> Metrics:
    """Of a task without items: its one doc is in no number, and says why."""
    return {scores.FIRST: {**_blank(item, ""), "status": scores.NOT_RUN, "not_run": why}}


def _blank(item: Item, reply: str) -> dict[str, Any]:
    """An item without scores; what only some kinds have is empty."""
    return {
        **item,
        "reply": reply,
        "parts": {},  # part of the reply -> its status
        "violations": {},  # kind -> how often
        "undefined": "",  # why no reply can have a score
        "scores": {},
        "baselines": {},
        "candidate": "",
        "sentences": [],
        "frames": [],
        "ranked": [],
        "clips": [],
        "geval": None,
    }


# --- one reader per kind of task ----------------------------------------------------------------


def _v2t(item: Item, reply: str) -> dict[str, Any]:
    """A free text, or numbered sentences of a text proxy."""
    if item["text"]:
        read = summary_replies.read_summary(reply, item["n_sentences"])
        return _summary(item, read, read.text, read.violations)
    read = summary_replies.read_summary(reply)
    (least, most), found = V2T_SENTENCES, len(read.sentences)
    broken = {
        "too_few_sentences": max(0, least - found),
        "too_many_sentences": max(0, found - most),
    }
    whole = answers.strip_reasoning(reply)[0].strip() if read.status == "ok" else ""
    counted = {kind: n for kind, n in broken.items() if n} if read.status == "ok" else {}
    return _summary(item, read, whole, counted)


def _summary(
    item: Item, read: summary_replies.Summary, candidate: str, violations: Mapping[str, int]
) -> dict[str, Any]:
    found = rouge.rouge(candidate, " ".join(item["summary"]))
    return {
        "parts": {"summary": read.status},
        "candidate": candidate,
        "sentences": list(read.sentences),
        "violations": dict(violations),
        "scores": {
            "rouge": found.rouge,
            "rouge1": found.rouge1,
            "rouge2": found.rouge2,
            "rougeL": found.rougeL,
        },
    }


def _v2v(item: Item, reply: str) -> dict[str, Any]:
    return _frames(item, frame_replies.read_frames(reply, item["n_frames"], item["budget"]))


def _frames(item: Item, read: frame_replies.Frames) -> dict[str, Any]:
    n_frames, k, true = item["n_frames"], item["budget"], item["keyframes"]
    baselines = {
        "random": keyframes.chance(n_frames, len(true), k),
        "uniform": keyframes.precision_recall_f1(keyframes.uniform(n_frames, k), true),
        "first": keyframes.precision_recall_f1(keyframes.first(n_frames, k), true),
        "all": keyframes.precision_recall_f1(range(1, n_frames + 1), true),
        "best": keyframes.best(len(true), k),
    }
    return {
        "parts": {"frames": read.status},
        "frames": list(read.frames),
        "violations": dict(read.violations),
        "scores": vars(keyframes.precision_recall_f1(read.selected, true)),
        "baselines": _flat({name: vars(found) for name, found in baselines.items()}),
    }


def _v2vt(item: Item, reply: str) -> dict[str, Any]:
    read = summary_replies.read_joint(reply, item["n_frames"], item["budget"], item["n_sentences"])
    text = _summary(item, read.summary, read.summary.text, read.summary.violations)
    frames = _frames(item, read.frames)
    both = ("parts", "scores", "baselines")
    merged = {name: {**text.get(name, {}), **frames.get(name, {})} for name in both}
    counts = {
        f"{part}_{kind}": n
        for part, made in (("summary", text), ("frames", frames))
        for kind, n in made["violations"].items()
    }
    return {**text, **frames, **merged, "violations": counts}


def _temporal(item: Item, reply: str) -> dict[str, Any]:
    """Units are named by place shown; the unit with the lowest number comes first in time."""
    by_number = sorted(item["units"])
    truth = [float(1 + by_number.index(unit)) for unit in item["units"]]
    return _order(item, reply, truth, "Sentence" if item["text"] else "Shot")


def _saliency(item: Item, reply: str) -> dict[str, Any]:
    importance = [item["importance"][unit - 1] for unit in item["units"]]
    return _order(item, reply, rankings.importance_ranks(importance), "Shot")


def _order(item: Item, reply: str, truth: list[float], unit: str) -> dict[str, Any]:
    n = len(truth)
    read = order_replies.read_order(reply, n, unit)
    best = rankings.best_reachable(truth)
    found = rankings.correlations(rankings.predicted_ranks(read.units, n), truth)
    baselines = {
        "random": rankings.chance(truth),
        "identity": rankings.identity(truth),
        "best": best,
    }
    made: dict[str, Any] = {
        "parts": {"reply": read.status},
        "ranked": [item["units"][place - 1] for place in read.units],
        "violations": dict(read.violations),
        "undefined": best.reason,
        # An order of which fewer than two units could be read is worth 0 (metrics.md).
        "scores": {name: getattr(found, name) or 0.0 for name in scores.ORDER},
        "baselines": _flat(
            {
                name: {metric: getattr(one, metric) for metric in scores.ORDER}
                for name, one in baselines.items()
            }
        ),
    }
    if best.reason:
        made["scores"] = dict.fromkeys(scores.ORDER)
    elif len(read.units) < 2:
        made["scores"] = dict.fromkeys(scores.ORDER, 0.0)
    return made


def _grounding(item: Item, reply: str) -> dict[str, Any]:
    """Sentences by place shown; clips are the shots, by number."""
    n = len(item["units"])
    true = [item["summary_shots"][sentence - 1] for sentence in item["asked"]]
    read = alignment_replies.read_alignment(reply, len(true), n)
    baselines = {
        "random": alignments.baseline(alignments.one_at_random, true, n),
        "all": alignments.baseline(alignments.all_clips, true, n),
        "best": alignments.BEST,
    }
    return {
        "parts": {"reply": read.status},
        "clips": [sorted(clips) for clips in read.sets],
        "violations": dict(read.violations),
        "scores": _hit1(alignments.score(read.sets, true)),
        "baselines": _flat({name: _hit1(one) for name, one in baselines.items()}),
    }


def _hit1(found: alignments.SetScores) -> dict[str, float]:
    return {"f1": found.f1, "iou": found.iou, "hit1": found.hit}


def _flat(by_baseline: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """`{"random": {"f1": x}}` as `{"f1_random": x}`."""
    return {
        f"{metric}_{name}": value
        for name, values in by_baseline.items()
        for metric, value in values.items()
    }


_READERS: dict[str, Callable[[Item, str], dict[str, Any]]] = {
    "v2t": _v2t,
    "v2v": _v2v,
    "v2vt": _v2vt,
    "temporal": _temporal,
    "grounding": _grounding,
    "saliency": _saliency,
}

# --- from the whole item to those of the metrics -------------------------------------------------


def spread(full: Item) -> Metrics:
    """The item under each of its metrics: whole under the first, elsewhere what that one needs."""
    task = Task(full["kind"], document=full["with_document"], text=full["text"]).name
    made = {name: _needed(name, full) for name in scores.SCORES[task] if scores.of_item(name, full)}
    return {**made, scores.FIRST: dict(full)}


def _needed(metric: str, full: Item) -> dict[str, Any]:
    item = {name: full[name] for name in ("id", "video", "source", "status")}
    return {**item, **_own(metric, scores.plain_name(metric), full)}


def _own(metric: str, name: str, full: Item) -> dict[str, Any]:
    """What a metric needs beside the names; `name` is the metric's without source and form."""
    if name in scores.MEASURED[full["kind"]]:
        status = scores.part_status(full, scores.part_of(name))
        return {"status": status, "value": full["scores"].get(name, 0.0)}
    if metric.startswith(joined.PREFIX):
        return {"payload": joined.payload(full["kind"], full)}
    if name in scores.GEVAL:
        return {"geval": _light(full["geval"])}
    if name in _OTHERS:
        return _OTHERS[name](full)
    return {"value": full["baselines"].get(name)}  # none of a reply whose scoring broke


def _light(rated: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if rated is None:
        return None
    return {name: rated.get(name) for name in ("score", "status", "mode")}


def _clips_value(full: Item) -> dict[str, Any]:
    return {"value": alignments.clips_predicted(full["clips"]) if full["clips"] else None}


def _texts(full: Item) -> dict[str, Any]:
    return {
        "status": scores.part_status(full, "summary"),
        "candidate": full["candidate"],
        "reference": " ".join(full["summary"]),
    }


_OTHERS: dict[str, Callable[[Item], dict[str, Any]]] = {
    "bertscore": _texts,
    "clipscore": joined.pictured,
    **{f"clipscore_{name}": joined.pictured for name in scores.CLIP_BASELINES},
    "videos": lambda _: {},
    "violations": lambda full: {"violations": full["violations"]},
    "undefined": lambda full: {"undefined": full["undefined"]},
    "clips_predicted": _clips_value,
    "summary_failed": lambda full: {"status": scores.part_status(full, "summary")},
    "frames_failed": lambda full: {"status": scores.part_status(full, "frames")},
}
