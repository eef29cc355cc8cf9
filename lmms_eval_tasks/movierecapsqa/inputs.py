"""What a MovieRecapsQA doc brings along: the prompts around its clip (5.2; clips.py has the clip).

Recap videos are narrated: their sound says what the answers are, and clips are muted.
"""

from __future__ import annotations

import functools
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.utils import prompts


def task_prompts() -> prompts.Prompt:
    """The task prompts, ours or the user's.

    Raises:
        PromptError: the user's file lacks a text or a placeholder.
    """
    return _task_prompts(settings.prompts_dir())


@functools.lru_cache(maxsize=8)
def _task_prompts(override: Path | None) -> prompts.Prompt:
    required = {
        "dialogue": {"lines"},
        "no_dialogue": set(),
        "both": {"dialogue", "question"},
        "only_frames": {"question"},
        "only_dialogue": {"dialogue", "question"},
    }
    return prompts.load("movierecapsqa", "task", required=required, override_dir=override)
