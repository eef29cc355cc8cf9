"""Replies that the limit of tokens cut: their number of tokens, and whether all is reasoning.

The class reports the tokens of a reply, or they are counted with the class's tokenizer. Without
both (an endpoint that reports nothing), the number is unknown. A reply that is all reasoning has an
open tag. But if the chat template opened the tag in the prompt, the reply has no tag at all, and
would be read as an answer.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from lmms_eval_tasks.models.host_types import ModelInstance, Tokenizer
from lmms_eval_tasks.utils.replies import reasoning

OPENED = "<think>\n"
_FEWEST = 3  # fewest replies with a closing tag that show the prompt's opening tag
_HOLDERS = ("tokenizer", "_tokenizer", "processor", "_processor", "_image_processor")


def tokens(lm: ModelInstance, text: str) -> int | None:
    """Return the number of a reply's tokens by the class's tokenizer; None if the class has none.

    The number may be one or two below the number of generated tokens, since special tokens are no
    text.
    """
    for holder in _holders(lm):
        encoder: Tokenizer = getattr(holder, "tokenizer", holder)
        with contextlib.suppress(Exception):  # the attribute of a class may be anything
            return len(encoder.encode(text, add_special_tokens=False))
    return None


def opened_in_prompt(lm: ModelInstance, texts: Sequence[str]) -> bool:
    """Return True if the chat template opens the reasoning in the prompt.

    A reply without a tag is then all reasoning. The template of the class's tokenizer decides.
    Without a tokenizer, the result is True if most replies close a tag that they did not open.
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
    """Return True if a class passes its media to a processor of transformers' form."""
    from transformers import ProcessorMixin

    return any(isinstance(holder, ProcessorMixin) for holder in _holders(lm))


def _holders(lm: ModelInstance) -> Iterator[Tokenizer]:
    for name in _HOLDERS:
        with contextlib.suppress(Exception):  # a property of a class that is not ready
            if (found := getattr(lm, name, None)) is not None:
                yield found
