"""CVRR-ES as the host sees it: what a model is given for a doc, and what its reply is worth.

Two kinds of tasks share it: those of the benchmark, whose answers a judge compares with the
reference, and those of the judge study, in which the model under test is the judge. A doc of the
latter has a `candidate` and no reference answer.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.console import say
from lmms_eval_tasks.cvrr_es import inputs, naming, rating_scores, scores, scoring
from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.candidate import usable
from lmms_eval_tasks.utils import clips

Doc = Mapping[str, Any]


# --- what the model is given ------------------------------------------------------------------


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The question about the video, or the judge's task with question and answer (3.1, 3.2)."""
    kwargs = lmms_eval_specific_kwargs or {}
    return f"{kwargs.get('pre_prompt', '')}{inputs.text(doc)}{kwargs.get('post_prompt', '')}"


def doc_to_visual(doc: Doc) -> list[Any]:
    """For simple models: the muted video's path, or its frames as images."""
    return list(clips.visuals(doc))


def doc_to_messages(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For chat models: the video, then the text."""
    text = {"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)}
    return [{"role": "user", "content": [*clips.content(doc), text]}]


# --- what the reply is worth ------------------------------------------------------------------

# What the sample log keeps of a doc: all that `rescore`, `reliability` and the judge tasks need.
_ANSWER = ("id", "dimension", "video", "question", "reference", "data")
_RATING = (
    *("id", "dimension", "video", "candidate", "answer", "empty", "others", "fell_back", "round"),
    *("reference_rating", "data"),
)


def answer_identity(doc: Doc) -> dict[str, Any]:
    """What the log keeps of a question, and who answered."""
    kept = {name: doc[name] for name in _ANSWER}
    return {**kept, "candidate": naming.running_model(), "media": _media(doc)}


def rating_identity(doc: Doc) -> dict[str, Any]:
    """What the log keeps of an answer that is rated; `question` is the question's id there."""
    kept = {name: doc[name] for name in _RATING}
    named = {"question": doc["question_id"], "asked": doc["question"]}
    return {**kept, **named, "judge": naming.running_model(), "media": _media(doc)}


def _media(doc: Doc) -> dict[str, Any] | None:
    """What was handed over; None where a file is gone by now: the reply still counts."""
    try:
        return clips.log(doc)
    except (TasksError, OSError):
        return None


def process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One answer, judged; an exception becomes an item with status `error`: nothing is lost."""
    reply = _reply(results)
    item = answer_identity(doc)
    try:
        return scoring.reply_metrics(item, reply, judge=usable(judging.config))
    except Exception:
        _told(doc)
        return scores.spread(scoring.broken(item, reply))


def judge_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One rating by the model under test; an unreadable one is a failure, never a middle rating."""
    reply = _reply(results)
    item = rating_identity(doc)
    try:
        return rating_scores.reply_metrics(item, reply)
    except Exception:
        _told(doc)
        return rating_scores.spread(rating_scores.broken(item, reply))


def _reply(results: list[str]) -> str:
    return results[0] if results and isinstance(results[0], str) else ""


def _told(doc: Doc) -> None:
    say(f"scoring {doc['id']} failed; kept as status error")
    traceback.print_exc()
