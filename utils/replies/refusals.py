"""Replies without an answer: refusals, replies that decline to choose, and failed requests."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lmms_eval_tasks.utils.replies import forms

LOST = "model_error"  # status of an item whose request failed
LENGTH = 600  # characters; a longer reply is no mere refusal
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u2060\ufeff]")
# Texts that lmms-eval returns as replies for failed requests: openai.py, async_openai.py and
# gemini.py write the first two forms; gemini.py the third, for every reply without a text;
# async_openai.py the "concatenate" one, for a reply without content; llava_vid.py and oryx.py the
# last; video generators the others (lmms-eval 0.7.3).
_HOST_FAILURE = re.compile(
    r"\s*(?:\[LMMS_EVAL_[A-Z_]+|\[SAFETY_BLOCKED:|\[GENERATION_FAILED\]|\[ERROR\] "
    r"|Error: can only concatenate str \(not \"NoneType\"\) to str\s*$"
    r"|Video [^\n]{1,1000} (?:can not load|generate failed), check the source\s*$)"
)


def is_model_error(text: str) -> bool:
    """Return True if a reply is lmms-eval's text for a failed request."""
    return _HOST_FAILURE.match(_INVISIBLE.sub("", text)) is not None


def model_error(why: str) -> str:
    """Return the text for a failed request, with the beginning that lmms-eval's classes use."""
    return f"[LMMS_EVAL_REQUEST_FAILED] {why}"


def is_refusal(text: str) -> bool:
    """Return True if a short reply only declines the task: refusals and courtesy, nothing else.

    To decline is to deny help, or the ability to watch videos at all. "I cannot tell from the
    video" or "non posso rispondere a questa domanda" is about the video's content: an answer.

    Args:
        text: the reply, normalised (`reply_text.normalise`).
    """
    kinds, reply = forms.guards("refusals"), text.lower()
    return bool(kinds["refusal start"].match(reply)) and _only(
        reply, kinds["refusal"], kinds["courtesy"]
    )


def declines(text: str, options: Sequence[str]) -> bool:
    """Return True if a reply to a choice only declines to choose.

    "I can't tell from the video", "Non saprei dire": at least one sentence declines, and every
    other one declines, is courtesy, or denies something ("the video does not show her"). A reply
    that goes on to an answer ("... but the man runs", "... maybe a dog") does not decline. To an
    open question such a reply is an answer, which a judge compares with the reference. To a choice
    it picks nothing and must not score: its status is `refused`, which counts as 0 in `_valid`
    metrics too, where `unparsed` is left out.

    Args:
        text: the reply, normalised (`reply_text.normalise`), without a statement of a letter.
        options: the item's, normalised; if one of them says that the answer cannot be known, no
            reply declines.
    """
    kinds = forms.guards("refusals")
    if any(kinds["unknowable"].search(option.lower()) for option in options):
        return False
    return _only(text.lower(), kinds["abstains"], kinds["courtesy"], kinds["denies"])


def _only(reply: str, pattern: re.Pattern[str], *others: re.Pattern[str]) -> bool:
    """Return True if a short reply has a sentence of the kind `pattern`, and else only `others`."""
    if len(reply) > LENGTH:
        return False
    sentences = [part for part in re.split(r"(?<=[.!?]) |\n", reply) if part]
    own = [bool(pattern.match(part)) for part in sentences]
    other = (any(kind.match(part) for kind in others) for part in sentences)
    return any(own) and all(a or b for a, b in zip(own, other, strict=True))
