"""Which prompt was used, as results and the line before a run say it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmms_eval_tasks.judges import JudgeConfig
    from lmms_eval_tasks.utils.prompts import Prompt


def note(prompt: Prompt) -> dict[str, str]:
    """A prompt's hash and file, for results."""
    return {"hash": prompt.hash, "source": prompt.source}


def name(prompt: Prompt) -> str:
    """A prompt's file and hash, for people."""
    return f"{prompt.source} ({prompt.hash})"


def judge(config: JudgeConfig, prompt: Prompt) -> dict[str, Any]:
    """A judge and its prompt for a run's results, as plain types; no secrets."""
    from lmms_eval_tasks import judges

    return judges.describe(config) | {"prompt": note(prompt)}
