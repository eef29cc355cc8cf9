"""Replies that the token limit cut: what can be known of them beside their text.

How many tokens a reply has is told by its class, or counted with the tokenizer that the class
holds; where neither is there (an endpoint that reports nothing), nobody knows. A reply that is all
reasoning shows it by a tag left open, unless the chat template opened it in the prompt: then the
reply has no tag at all, and would be read as an answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval_tasks.utils.replies import answers

_FEWEST = 3  # replies that must close a tag before they tell what stood in the prompt
_HOLDERS = ("tokenizer", "_tokenizer", "processor", "_processor", "_image_processor")
_OPENED = "<think>\n"


def tokens(lm: Any, reply: Any) -> int | None:
    """Tokens of a reply as its class reports them, or as the class's tokenizer counts them.

    The latter may be one or two short of what was generated: special tokens are no text.
    """
    from lmms_eval.api.instance import unwrap_generation_output

    text, counts = unwrap_generation_output(reply)
    if counts is not None and counts.output_tokens is not None:
        return int(counts.output_tokens)
    if not isinstance(text, str):
        return None
    for holder in _holders(lm):
        encoder = getattr(holder, "tokenizer", holder)
        with contextlib.suppress(Exception):  # whatever a class holds under that name
            return len(encoder.encode(text, add_special_tokens=False))
    return None


def opened_in_prompt(lm: Any, texts: Sequence[str | None]) -> bool:
    """Whether the chat template opens the reasoning, so that a reply without a tag is all of it.

    The template of the tokenizer that the class holds says it; else the replies do, if most of them
    close what they did not open.
    """
    for holder in _holders(lm):
        for content in ("x", [{"type": "text", "text": "x"}]):
            with contextlib.suppress(Exception):  # no template, or one for another form
                shown = holder.apply_chat_template(
                    [{"role": "user", "content": content}],
                    add_generation_prompt=True,
                    tokenize=False,
                )
                return answers.strip_reasoning(str(shown))[1]
    there = [text for text in texts if text and text.strip()]
    closing = sum(answers.closes_only(text) for text in there)
    return closing >= _FEWEST and 2 * closing > len(there)


def with_opening(reply: Any, text: str | None) -> Any:
    """A reply with the tag that stood in the prompt, if it neither opens nor closes one itself."""
    if not text or not text.strip() or answers.has_reasoning_tag(text):
        return reply
    if isinstance(reply, str):
        return _OPENED + reply
    if hasattr(reply, "token_counts"):
        return replace(reply, text=_OPENED + text)
    if isinstance(reply, tuple):
        return (_OPENED + text, *reply[1:])
    return reply


def has_processor(lm: Any) -> bool:
    """Whether a class gives its media to a processor of transformers' form."""
    from transformers import ProcessorMixin

    return any(isinstance(holder, ProcessorMixin) for holder in _holders(lm))


def _holders(lm: Any) -> Iterator[Any]:
    for name in _HOLDERS:
        with contextlib.suppress(Exception):  # a property of a class that is not ready
            if (found := getattr(lm, name, None)) is not None:
                yield found
