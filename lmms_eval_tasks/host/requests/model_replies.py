"""What a model's class returned for a request: its text, its counts of tokens, or a failure."""

from __future__ import annotations

from collections.abc import Sequence

from lmms_eval_tasks.models.host_types import Reply, TokenCounts
from lmms_eval_tasks.utils.replies import refusals


def unwrapped(reply: Reply) -> tuple[str | None, TokenCounts | None]:
    """The text of what a class returned, and its counts of tokens if it told them."""
    from lmms_eval.api.instance import unwrap_generation_output

    text, counts = unwrap_generation_output(reply)
    return text if isinstance(text, str) else None, counts


def with_counts(text: str, tokens: object) -> Reply:
    """A kept reply as a class returns it that counts tokens; the text alone if nobody did."""
    from lmms_eval.api.instance import GenerationResult, TokenCounts

    known = isinstance(tokens, int)
    return GenerationResult(text, TokenCounts(output_tokens=tokens)) if known else text


def failure_of(text: str | None) -> str | None:
    """What went wrong with a request, in one line; None for an answer, be it empty."""
    if text is None or not refusals.is_model_error(text):
        return None
    return " ".join(text.split())[:300].rstrip(".")


def mark_lost(found: Sequence[Reply], errors: Sequence[str]) -> list[Reply]:
    """The replies; empty ones are failures if their class logged more errors than they tell.

    Each gets its own error if there is one for each, else the last.
    """
    texts = [unwrapped(one)[0] for one in found]
    empty = [place for place, text in enumerate(texts) if not (text or "").strip()]
    made = list(found)
    if len(errors) > sum(failure_of(text) is not None for text in texts):
        causes = errors if len(errors) == len(empty) else [errors[-1]] * len(empty)
        for place, why in zip(empty, causes, strict=True):
            made[place] = refusals.model_error(why)
    return made
