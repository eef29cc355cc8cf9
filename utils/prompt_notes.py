"""Which prompt was used, as results and the line before a run say it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.prompts import Prompt


def note(prompt: Prompt) -> dict[str, str]:
    """A prompt's hash and file, for results."""
    return {"hash": prompt.hash, "source": prompt.source}


def name(prompt: Prompt) -> str:
    """A prompt's file and hash, for people."""
    return f"{prompt.source} ({prompt.hash})"
