"""MAIA as the host sees it: what a model is given for a doc, and what its reply is worth."""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.candidate import judge_answer, usable
from lmms_eval_tasks.judges.verdict import Judge, Verdict
from lmms_eval_tasks.maia import judge as judging
from lmms_eval_tasks.maia import scores
from lmms_eval_tasks.sample import players
from lmms_eval_tasks.utils import answers, media, prompts, text_metrics

Doc = Mapping[str, Any]


# --- what the model is given ------------------------------------------------------------------


def doc_to_text(doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None) -> str:
    """The pair as A and B, or the question, in the task's prompt language (paper, 4.1, 4.2)."""
    kwargs = lmms_eval_specific_kwargs or {}
    prompt = task_prompts(kwargs.get("language", "it"))
    if "options" in doc:
        text = prompts.fill(prompt.text["vsv"], {"A": doc["options"][0], "B": doc["options"][1]})
    else:
        text = prompts.fill(prompt.text["oevqa"], {"question": doc["question"]})
    return f"{kwargs.get('pre_prompt', '')}{text}{kwargs.get('post_prompt', '')}"


def doc_to_visual(doc: Doc) -> list[Any]:
    """The doc's video in its setting: the path of a clip, or the first frame as an image."""
    made = media_of(doc)
    if made.kind == "video":
        return [made.path]
    from PIL import Image

    with Image.open(made.path) as image:
        return [image.convert("RGB")]


def doc_to_messages(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One user turn: the video in the doc's setting, then the text."""
    kind = media_of(doc).kind
    content = [{"type": kind, "url": visual} for visual in doc_to_visual(doc)]
    content.append({"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)})
    return [{"role": "user", "content": content}]


def text_messages(
    doc: Doc, lmms_eval_specific_kwargs: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """One user turn without any picture: the unimodal task (paper, 4.3)."""
    text = {"type": "text", "text": doc_to_text(doc, lmms_eval_specific_kwargs)}
    return [{"role": "user", "content": [text]}]


def media_of(doc: Doc) -> media.Media:
    """The clip or image of a doc, made once per video and setting (architecture.md, decision 4).

    Raises:
        MediaError: the video cannot be read; the message names it.
    """
    return _made(doc["video_path"], doc["setting"], doc["n_frames"], settings.still_clip())


@functools.lru_cache(maxsize=4096)
def _made(path: str, setting: str, n_frames: int, still: bool) -> media.Media:
    return media.make(path, recipe(setting, n_frames, still))


def recipe(setting: str, n_frames: int, still: bool = False) -> media.Recipe:
    """The media recipe of one of the paper's three settings (4.3, 4.4)."""
    if setting == "1frame":
        return media.Recipe("first_frame", n_frames=1, still=still)
    return media.Recipe({"32frames": "uniform", "black": "black"}[setting], n_frames=n_frames)


def task_prompts(language: str) -> prompts.Prompt:
    """The task prompts in a language, ours or the user's.

    Raises:
        PromptError: the user's file lacks a text or a placeholder.
    """
    return _task_prompts(language, settings.prompts_dir())


@functools.lru_cache(maxsize=16)
def _task_prompts(language: str, override: Path | None) -> prompts.Prompt:
    return prompts.load(
        "maia",
        language,
        required={"vsv": {"A", "B"}, "oevqa": {"question"}},
        override_dir=override,
    )


# --- what the reply is worth ------------------------------------------------------------------


def vsv_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One TS-FS pair. A reply that cannot be read stays an item with its status; nothing raises."""
    return _scored(pair_metrics, scores.VSV, doc, results)


def unimodal_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One TS-FS pair without a video: scores of language models (`lm_pairs`), or a letter."""
    return _scored(pair_metrics, scores.UNIMODAL, doc, results)


def oevqa_process_results(doc: Doc, results: list[str]) -> dict[str, Any]:
    """One open answer: the judge's verdict and the similarity to the eight references."""
    score = functools.partial(answer_metrics, judge=usable(judging.config))
    return _scored(score, scores.OEVQA, doc, results)


def pair_metrics(
    metrics: Mapping[str, Any], item: Mapping[str, Any], reply: str
) -> dict[str, dict[str, Any]]:
    """The metrics of one pair, from its identity and the reply; also what `rescore` calls.

    Args:
        metrics: the task's metrics (scores.VSV or scores.UNIMODAL).
        item: `id`, `question_id`, `video`, `category`, `options`, `answer` and provenance.
        reply: the model's text.
    """
    scored = players.read_lm_pairs(reply)
    if scored is not None:
        letter, lm_scores = scored
        item = {**item, "lm_scores": lm_scores}
        status = "ok" if letter in ("A", "B") else "unparsed"
    else:
        choice = answers.read_choice(reply, item["options"])
        letter, status = choice.letter, choice.status
    right = int(status == "ok" and letter == item["answer"])
    return _spread(
        metrics, {**item, "letter": letter, "status": status, "right": right, "reply": reply}
    )


def answer_metrics(
    metrics: Mapping[str, Any],
    item: Mapping[str, Any],
    reply: str,
    *,
    judge: Judge,
    verdict: Verdict | None = None,
) -> dict[str, dict[str, Any]]:
    """The metrics of one open answer; also what `rescore` calls, with a saved verdict.

    Args:
        metrics: the task's metrics (scores.OEVQA).
        item: `id`, `question`, `references`, `category` and provenance.
        reply: the model's text.
        judge: who is asked, unless the reply itself is no answer.
        verdict: a saved verdict, which stands in place of the judge's.
    """
    fields = {"question": item["question"], "references": item["references"]}
    candidate, status, score, verdict = judge_answer(
        judge, judging.criterion(), fields, reply, verdict
    )
    right = None if score is None else int(score)
    full = {
        **item,
        "candidate": candidate,
        "status": status,
        "right": right,
        "verdict": None if verdict is None else verdict.as_dict(),
        "reply": reply,
    }
    spread = _spread(metrics, full)
    text = {**_slim(full), "candidate": candidate, "references": item["references"]}
    for name in ("bleu", "cider", "bertscore"):
        spread[name] = text
    for name, similarity in (("rouge_l", text_metrics.rouge_l), ("meteor", text_metrics.meteor)):
        value = similarity(candidate, item["references"])
        spread[name] = {**_slim(full), "value": value, "score": value}
    return spread


def identity(doc: Doc) -> dict[str, Any]:
    """What the sample log keeps of a doc: all that `rescore` needs, in plain types."""
    item = {name: doc[name] for name in _IDENTITY}
    if "options" in doc:
        item |= {"options": list(doc["options"]), "answer": doc["answer"], "index": doc["index"]}
    else:
        item |= {"question": doc["question"], "references": list(doc["references"])}
    item["media"] = _media_log(doc)
    return item


_IDENTITY = ("id", "question_id", "video", "category", "setting", "n_frames", "data")
_SLIM = ("id", "question_id", "video", "category", "status", "right")


def _slim(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key: item[key] for key in _SLIM}


def _spread(metrics: Mapping[str, Any], full: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The item under every metric of verdicts: whole under the first, short under the others.

    The key `score` brings the host's clustered standard error. It stands where that is right: under
    a mean of items and its categories, never under pools or joined scores (host.md); and it is
    absent, not None, where there is no number.
    """
    slim = _slim(full)
    score = {} if full["right"] is None else {"score": full["right"]}
    first = next(iter(metrics))
    means = {first, f"{first}_{full['category']}"}
    spread = {
        name: {**slim, **score} if name in means else slim
        for name in metrics
        if name not in scores.SIMILARITY and scores.of_category(name, full["category"])
    }
    spread[first] = {**full, **score}
    return spread


def _scored(
    score: Callable[..., dict[str, Any]],
    metrics: Mapping[str, Any],
    doc: Doc,
    results: list[str],
) -> dict[str, Any]:
    """`score`, but an exception becomes an item with status `error`: else the run is lost."""
    item = identity(doc)
    reply = results[0] if results and isinstance(results[0], str) else ""
    try:
        return score(metrics, item, reply)
    except Exception:
        sys.stderr.write(f"lmms-eval-tasks: scoring {doc['id']} failed; kept as status error\n")
        traceback.print_exc()
        return _spread(metrics, {**item, "status": "error", "right": None, "reply": reply})


def _media_log(doc: Doc) -> dict[str, Any] | None:
    """What was handed over for the doc; None without a video, or where the clip is gone by now."""
    if doc["setting"] == "text":
        return None
    try:
        made = media_of(doc).as_dict()
    except TasksError:
        return None
    kept = ("kind", "n_frames", "width", "height", "duration", "recipe")
    return {key: made[key] for key in kept}
