"""Replies in the form in which a model's class returns them: a text, token counts, or a failure."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval_tasks.models.host_types import Reply, TokenCounts
from lmms_eval_tasks.utils.replies import refusals


def unwrapped(reply: Reply) -> tuple[str | None, TokenCounts | None]:
    """Return the text of a class's reply, and its counts of tokens if it has them."""
    from lmms_eval.api.instance import unwrap_generation_output

    text, counts = unwrap_generation_output(reply)
    return text if isinstance(text, str) else None, counts


def with_counts(text: str, tokens: object) -> Reply:
    """Return a kept reply in the form of a class that counts tokens.

    Without a count, this is the text alone.
    """
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    known = isinstance(tokens, int)
    return GenerationResult(text, TokenCounts(output_tokens=tokens)) if known else text


def failure_of(text: str | None) -> str | None:
    """Return the failure of a request, in one line of up to 300 characters; None for an answer."""
    if text is None or not refusals.is_model_error(text):
        return None
    return " ".join(text.split())[:300].rstrip(".")


def mark_lost(replies: Sequence[Reply], errors: Sequence[str]) -> list[Reply]:
    """Return the replies; empty ones become failures if the class logged further errors.

    That is so if there are more logged errors than failures among the replies. If there is one
    error for each empty reply, each reply gets its own; otherwise all get the last error.
    """
    texts = [unwrapped(one)[0] for one in replies]
    empty = [place for place, text in enumerate(texts) if not (text or "").strip()]
    made = list(replies)
    if len(errors) > sum(failure_of(text) is not None for text in texts):
        causes = errors if len(errors) == len(empty) else [errors[-1]] * len(empty)
        for place, why in zip(empty, causes, strict=True):
            made[place] = refusals.model_error(why)
    return made
