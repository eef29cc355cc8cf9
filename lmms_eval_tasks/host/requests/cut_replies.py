"""Replies that the token limit cut: what can be known of them beside their text.

How many tokens a reply has is told by its class, or counted with the tokenizer that the class
holds; where neither is there (an endpoint that reports nothing), nobody knows. A reply that is all
reasoning shows it by a tag left open, unless the chat template opened it in the prompt: then the
reply has no tag at all, and would be read as an answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from lmms_eval_tasks.models.host_types import ModelInstance, Tokenizer
from lmms_eval_tasks.utils.replies import reasoning

OPENED = "<think>\n"
_FEWEST = 3  # replies that must close a tag before they tell what stood in the prompt
_HOLDERS = ("tokenizer", "_tokenizer", "processor", "_processor", "_image_processor")


def tokens(lm: ModelInstance, text: str) -> int | None:
    """Tokens of a reply as the class's tokenizer counts them; None if it holds none.

    It may be one or two short of what was generated: special tokens are no text.
    """
    for holder in _holders(lm):
        encoder: Tokenizer = getattr(holder, "tokenizer", holder)
        with contextlib.suppress(Exception):  # whatever a class holds under that name
            return len(encoder.encode(text, add_special_tokens=False))
    return None


def opened_in_prompt(lm: ModelInstance, texts: Sequence[str]) -> bool:
    """Whether the chat template opens the reasoning, so that a reply without a tag is all of it.

    The template of the tokenizer that the class holds says it; else the replies do, if most of them
    close what they did not open.
    """
    for holder in _holders(lm):
        for content in ("x", [{"type": "text", "text": "x"}]):
            with contextlib.suppress(Exception):  # no template, or one for another form
                turn = {"role": "user", "content": content}
                shown = holder.apply_chat_template(
                    [turn], add_generation_prompt=True, tokenize=False
                )
                return reasoning.strip_reasoning(str(shown))[1]
    closing = sum(map(reasoning.closes_only, texts))
    return closing >= _FEWEST and 2 * closing > len(texts)


def has_processor(lm: ModelInstance) -> bool:
    """Whether a class gives its media to a processor of transformers' form."""
    from transformers import ProcessorMixin

    return any(isinstance(holder, ProcessorMixin) for holder in _holders(lm))


def _holders(lm: ModelInstance) -> Iterator[Tokenizer]:
    for name in _HOLDERS:
        with contextlib.suppress(Exception):  # a property of a class that is not ready
            if (found := getattr(lm, name, None)) is not None:
                yield found
