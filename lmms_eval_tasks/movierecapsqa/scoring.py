"""What one reply is worth: judged, compared with the dataset's answer, spread over the metrics.

The same for the host's items and for saved ones (`rescore`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lmms_eval_tasks.judges import Judge, Verdict
from lmms_eval_tasks.movierecapsqa import baseline_scores, baselines, scores, text_scores
from lmms_eval_tasks.movierecapsqa.answer_judging import Context, judge_reply
from lmms_eval_tasks.movierecapsqa.baseline_scores import TEXT_METRICS
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS

_OF_RATING = ("score", "status", "low", "high", "consistent")


def reply_metrics(
    item: Mapping[str, Any],
    reply: str,
    *,
    judge: Judge,
    which: Collection[str],
    saved: Mapping[str, Verdict | None] | None = None,
) -> dict[str, dict[str, Any]]:
    """The metrics of one reply, by name.

    Args:
        item: a doc's identity (utils.identity).
        reply: the model's text, as the host hands it over.
        judge: who is asked, where no saved verdict stands.
        which: judged baselines to ask for (settings.judged_baselines).
        saved: verdicts under `claims`, the dimensions' and the baselines' names.
    """
    context = Context(item["segment"], tuple(item["facts"]), item["dialogue"])
    done = judge_reply(judge, context, item["question"], reply, saved)
    fields = {name: item[name] for name in ("question", "reference")}
    full = {
        **item,
        "candidate": done.candidate,
        "status": done.status,
        "claims": done.claims,
        "n_claims": len(done.claims),
        "claims_verdict": done.claims_verdict,
        "dimensions": done.dimensions,
        "baselines": baselines.judge_baselines(judge, which, fields, reply, saved),
        "rouge_l": text_scores.rouge_l(done.candidate, item["reference"]),
        "reply": reply,
    }
    return spread(full)


def failed_metrics(item: Mapping[str, Any], reply: str) -> dict[str, dict[str, Any]]:
    """The metrics of a reply whose scoring broke: an item with the status `error`."""
    return spread(
        {
            **item,
            "candidate": "",
            "status": "error",
            "claims": [],
            "n_claims": 0,
            "claims_verdict": None,
            "dimensions": {},
            "baselines": {},
            "rouge_l": None,
            "reply": reply,
        }
    )


def spread(full: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The item under each of its metrics: whole under the first, elsewhere what that one needs.

    A log has an answer under some fifty names, so the rest would be most of it.
    """
    made = {name: _needed(name, full) for name in scores.SCORES if scores.of_item(name, full)}
    return {**made, scores.FIRST: dict(full)}


def _needed(metric: str, full: Mapping[str, Any]) -> dict[str, Any]:
    item = {name: full[name] for name in ("id", "status")}
    first = metric.partition("_")[0]
    if metric in TEXT_METRICS:
        texts = ("candidate", "reference", "source", "condition")
        return {**item, **{name: full[name] for name in texts}}
    if first in DIMENSIONS:
        rated = full["dimensions"].get(first, {})
        kept = {first: {key: rated[key] for key in _OF_RATING}} if rated else {}
        return {**item, "dimensions": kept}
    if metric in baseline_scores.RATED:
        judged = {
            name: {key: one[key] for key in ("score", "status", "mode") if key in one}
            for name, one in full["baselines"].items()
            if name.partition("_")[0] == first
        }
        return {**item, "baselines": judged}
    return {**item, "n_claims": full["n_claims"], "rouge_l": full["rouge_l"]}
