"""MAVERIX as the host sees it: what a model is given for a doc, and what its reply is worth."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval_tasks import running
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.candidate import judge_answer, usable
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.judges.providers import NoJudge
from lmms_eval_tasks.judges.verdict import Judge, Verdict
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix import scores
from lmms_eval_tasks.maverix.inputs import (
    Doc,
    media_of,
    samples,
    sounding,
    subtitle_text,
    task_prompts,
)
from lmms_eval_tasks.maverix.labels import DIMENSIONS, LETTERS, MODES, SPLITS, Mode
from lmms_eval_tasks.utils import answers, prompts

# --- what the model is given ------------------------------------------------------------------


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """Subtitles or that there are none, instruction, question, closing cue (paper, C.1)."""
    kwargs = lmms_eval_specific_kwargs or {}
    parts = task_prompts().text
    cues = subtitle_text(doc) if MODES[doc["mode"]].subtitles else ""
    told = prompts.fill(parts["subtitles"], {"cues": cues}) if cues else parts["no_subtitles"]
    values = {"subtitles": told, "question": doc["question"]}
    if "options" in doc:
        lettered = zip(LETTERS, doc["options"], strict=False)
        values["options"] = "\n".join(f"{letter}. {option}" for letter, option in lettered)
    text = prompts.fill(parts["choice" if "options" in doc else "open"], values)
    return f"{kwargs.get('pre_prompt', '')}{text}{kwargs.get('post_prompt', '')}"


def doc_to_visual(doc: Doc) -> list[Any]:
    """For simple models: one file, or nothing where the mode is subtitles alone.

    Picture and sound travel as one mp4 with its track, since simple classes use the first visual
    only (host.md). Sound alone is the wav's path, or its samples for classes that take no path
    (models/sound.json).
    """
    mode = MODES[doc["mode"]]
    if not mode.picture and not mode.sound:
        return []
    made = media_of(doc)
    if not mode.sound:
        return [made.video]
    if mode.picture:
        return [sounding(made.video_with_sound, doc)]
    sound = sounding(made.sound, doc)
    return [samples(sound) if running.wants_samples() else sound]


def doc_to_messages(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """For chat models: the muted video, the 16 kHz wav, then the text; what the mode has of them.

    The video is muted with sound too: chat classes read sound from the audio item alone, and one
    that did not would hear it twice.
    """
    mode = MODES[doc["mode"]]
    content: list[dict[str, Any]] = []
    if mode.picture:
        content.append({"type": "video", "url": media_of(doc).video})
    if mode.sound:
        content.append({"type": "audio", "url": sounding(media_of(doc).sound, doc)})
    content.append({"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)})
    return [{"role": "user", "content": content}]


# --- what the reply is worth ------------------------------------------------------------------


def choice_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One eight-option question. A reply that cannot be read stays an item; nothing raises."""
    return _scored(functools.partial(choice_metrics, scores.CHOICE), doc, results)


def circular_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One rotation of an eight-option question."""
    return _scored(functools.partial(choice_metrics, scores.CIRCULAR), doc, results)


def open_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One open answer: four ratings of the judge."""

    def ask(item: Mapping[str, Any], reply: str) -> dict[str, dict[str, Any]]:
        # Where the reference is withheld nobody is asked, so no judge has to be usable.
        judge = NoJudge(JudgeConfig(NONE)) if item["withheld"] else usable(judging.config)
        return open_metrics(scores.OPEN, item, reply, judge=judge)

    return _scored(ask, doc, results)


def choice_metrics(
    metrics: Mapping[str, Any], item: Mapping[str, Any], reply: str
) -> dict[str, dict[str, Any]]:
    """The metrics of one choice, from its identity and the reply; also what `rescore` calls."""
    choice = answers.read_choice(reply, item["options"])
    right = int(choice.status == "ok" and choice.letter == item["answer"])
    return _spread(
        metrics,
        {
            **item,
            "letter": choice.letter,
            "file_letter": _file_letter(choice.letter, item["file_letters"]),
            "status": choice.status,
            "right": None if item["withheld"] else right,
            "words": _words(reply),
            "reply": reply,
        },
    )


def open_metrics(
    metrics: Mapping[str, Any],
    item: Mapping[str, Any],
    reply: str,
    *,
    judge: Judge,
    saved: Mapping[str, Verdict | None] | None = None,
) -> dict[str, dict[str, Any]]:
    """The metrics of one open answer; also what `rescore` calls, with saved verdicts.

    Args:
        metrics: the task's metrics (scores.OPEN).
        item: `id`, `question`, `reference` ("" if withheld), labels and provenance.
        reply: the model's text.
        judge: who is asked, unless the reply itself is no answer.
        saved: verdicts by dimension that stand in place of the judge's.
    """
    status = answers.reply_status(reply)
    candidate = answers.strip_reasoning(reply)[0] if status == "ok" else ""
    dimensions: dict[str, dict[str, Any]] = {}
    if not item["withheld"]:
        fields = {"question": item["question"], "reference": item["reference"]}
        for name, criterion in judging.criteria().items():
            kept = (saved or {}).get(name)
            done = judge_answer(judge, criterion, fields, reply, kept)
            dimensions[name] = {
                "score": None if done.score is None else int(done.score),
                "status": done.status,
                "verdict": None if done.verdict is None else done.verdict.as_dict(),
            }
        statuses = [dimensions[name]["status"] for name in DIMENSIONS]
        status = next((found for found in statuses if found != "ok"), "ok")
    full = {
        **item,
        "candidate": candidate,
        "status": status,
        "dimensions": dimensions,
        "words": _words(reply),
        "reply": reply,
    }
    return _spread(metrics, full)


def identity(doc: Doc) -> dict[str, Any]:
    """What the sample log keeps of a doc: all that `rescore` and `submit` need, in plain types."""
    mode = MODES[doc["mode"]]
    # In modes without sound too: whether S stands in for A is up to the model, not to what was run.
    hears = running.hears()
    return {
        **_of_doc(doc),
        "hears": hears,
        "sound": hears[mode.slug] if mode.sound else "",
        "media": _media_log(doc, mode),
    }


def _of_doc(doc: Doc) -> dict[str, Any]:
    """The part of it that stands in the doc; nothing is known of the run's sound and media."""
    item = {name: doc[name] for name in (*_IDENTITY, *SPLITS)}
    if "options" in doc:
        item |= {name: doc[name] for name in ("options", "answer", "file_letters")}
        item["withheld"] = not doc["answer"]
    else:
        item |= {name: doc[name] for name in ("question", "version", "reference")}
        item["withheld"] = not doc["reference"]
    if "rotation" in doc:
        item["rotation"] = doc["rotation"]
    item["sound"] = "unknown" if MODES[doc["mode"]].sound else ""
    item["hears"] = {slug: "unknown" for slug, mode in MODES.items() if mode.sound}
    item["media"] = None
    return item


def _words(reply: str) -> int:
    """Length of a reply without its reasoning, which is no part of the answer."""
    return len(answers.strip_reasoning(reply)[0].split())


_IDENTITY = ("id", "question_id", "video", "mode", "length", "start", "end", "data")
_LEFT_OUT = ("options", "reference", "question", "reply", "candidate", "media", "file_letters")


def _file_letter(letter: str | None, file_letters: str) -> str | None:
    """The letter that a shown letter has in the user's file."""
    return None if letter is None else file_letters[LETTERS.index(letter)]


def _spread(metrics: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The item under each of its metrics: whole under the first, without its texts elsewhere.

    The key `score` brings the host's clustered standard error: only under means of right or wrong.
    """
    slim = {name: value for name, value in full.items() if name not in _LEFT_OUT}
    if "dimensions" in slim:
        slim["dimensions"] = {
            name: {key: value[key] for key in ("score", "status")}
            for name, value in full["dimensions"].items()
        }
    score = {} if full.get("right") is None else {"score": full["right"]}
    first = next(iter(metrics))
    spread = {
        name: {**slim, **score} if scores.is_mean(name) else slim
        for name in metrics
        if scores.of_item(name, full)
    }
    spread[first] = {**full, **(score if scores.is_mean(first) else {})}
    return spread


def _scored(
    score: Callable[[Mapping[str, Any], str], dict[str, Any]], doc: Doc, results: list[str]
) -> dict[str, Any]:
    """`score`, but an exception becomes an item with status `error`: else the run is lost."""
    item = _of_doc(doc)
    reply = results[0] if results and isinstance(results[0], str) else ""
    try:
        item = identity(doc)
        return score(item, reply)
    except Exception:
        sys.stderr.write(f"lmms-eval-tasks: scoring {doc['id']} failed; kept as status error\n")
        traceback.print_exc()
        failed = {**item, "status": "error", "right": None, "letter": None, "file_letter": None}
        metrics = scores.metrics_of(item)
        nothing = {"candidate": "", "dimensions": {}, "words": 0, "reply": reply}
        return _spread(metrics, {**failed, **nothing})


def _media_log(doc: Doc, mode: Mode) -> dict[str, Any] | None:
    """What was handed over; None where a file is gone by now: the answer still counts."""
    try:
        shown = mode.subtitles and bool(subtitle_text(doc))
        if not mode.picture and not mode.sound:
            return {"subtitles": shown}
        made = media_of(doc)
    except (TasksError, OSError):
        return None
    return {
        "start": made.start,
        "end": made.end,
        "duration": made.duration,
        "n_frames": made.n_frames if mode.picture else 0,
        "size": [made.width, made.height] if mode.picture else None,
        "sound": "16 kHz mono" if mode.sound else None,
        "subtitles": shown,
    }
