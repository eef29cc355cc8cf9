"""Replies to hand-made docs, scored as the host does it, and saved runs of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.haven import scores, scoring, text_scores, text_values, utils
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.text_values import Asked
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import provenance
from lmms_eval_tasks.utils.aggregate import Carrier
from lmms_eval_tasks.utils.text_scores import TextScores
from tests.haven.docs import doc

Made = dict[str, dict[str, Any]]  # metric -> item
FIRST = scores.FIRST
REFUSED = "I'm sorry, but I can't help with that."
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] timeout"


def made(task: str, reply: str, **changes: Any) -> Made:
    """What process_results gives, through JSON as in the host's log."""
    return of_doc(doc(task, **changes), reply)


def of_doc(given: Mapping[str, Any], reply: str) -> Made:
    found: Made = json.loads(json.dumps(utils.process_results(given, [reply])))
    return found


def whole(task: str, reply: str, **changes: Any) -> dict[str, Any]:
    """The whole item of a reply."""
    return made(task, reply, **changes)[FIRST]


def broken(task: str, reply: str = "[1]", **changes: Any) -> Made:
    """A reply whose scoring broke."""
    return scoring.failed_metrics(utils.identity(doc(task, **changes)), reply)


def values(task: str, all_made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Every metric that has items, as the host computes it; the carriers of joins too."""
    found: dict[str, Any] = {}
    for name, function in scores.SCORES[task].items():
        if given := [one[name] for one in all_made if name in one]:
            found[name] = function(given)
    return found


def saved_run(
    task: str, all_made: Sequence[Mapping[str, Any]], model: str | None = "m (x)"
) -> rescore.Run:
    samples = [{"doc_id": n, **one} for n, one in enumerate(all_made)]
    return rescore.Run(task, Path(f"out/1_samples_{task}.jsonl"), samples, model, {})


def no_encoder(monkeypatch: pytest.MonkeyPatch) -> None:
    """BERTScore without a model: share of the candidate's words that the reference has, doubled."""

    def fake(candidates: Sequence[str], references: Sequence[str]) -> TextScores:
        found = []
        for one, other in zip(candidates, references, strict=True):
            words = one.split()
            found.append(sum(w in other.split() for w in words) / len(words) if words else 0.0)
        return TextScores(tuple(found), "BERTScore by hand", computed=True)

    monkeypatch.setattr(text_scores, "bertscore", fake)


def clip_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """CLIPScore without a model: a quarter of each sentence, and a hundredth of frame numbers."""

    def clip(asked: Sequence[Asked]) -> list[float | None]:
        return [len(one.sentences) / 4 + sum(one.frames) / 100 for one in asked]

    monkeypatch.setattr(text_values, "clip_values", clip)
    monkeypatch.setattr(text_scores, "clip_problem", lambda: None)


def no_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known of what another test computed with."""
    monkeypatch.setattr(provenance, "_notes", {})


# --- saved runs of three replies, of which one failed ---

JOINT = "SUMMARY:\n1. In short: thing {n}.\nIMPORTANT FRAMES: [Frame {n}, Frame 7]"
REPLIES = {
    "v2t": ("In short: a thing.", "A cat. A dog runs away.", ""),
    "v2v": ("[1]", "[5, 7]", "none of these"),
    "v2vt": (JOINT.format(n=1), JOINT.format(n=5), "[Frame 1]"),
    "temporal": ("Shot 3 > Shot 1 > Shot 4 > Shot 2", "Shot 1 > Shot 2", FAILED),
    "grounding": (
        "Summary 1: Clip 2\nSummary 2: Clip 1\nSummary 3: Clip 1",
        "Summary 1: Clip 3",
        "",
    ),
    "saliency": ("Shot 4 > Shot 1 > Shot 3 > Shot 2", "Shot 2 > Shot 1", "no idea at all"),
}


def scored(task: str, **more: Any) -> list[Made]:
    """Two videos of TVSum and one of OVP."""
    name = task.removesuffix("_doc").removesuffix("_text").removeprefix("haven_")
    sources = ("tvsum", "tvsum", "ovp")
    return [
        made(task, reply, **{"id": f"{source}/video_{n}", "source": source, **more})
        for n, (reply, source) in enumerate(zip(REPLIES[name], sources, strict=True))
    ]


def runs(*tasks: str, model: str = "m (x)", **more: Any) -> list[rescore.Run]:
    return [saved_run(task, scored(task, **more), model) for task in tasks or TASKS]


def shown(found: dict[str, Any]) -> dict[str, Any]:
    """Without what is handed to the group."""
    return {name: value for name, value in found.items() if not isinstance(value, Carrier)}
