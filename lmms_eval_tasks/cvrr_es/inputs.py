"""The texts that a CVRR-ES doc brings along; clips.py has its video."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import rating_prompt
from lmms_eval_tasks.cvrr_es.rating_rows import Item, RatingRow
from lmms_eval_tasks.utils import prompts

Doc = Mapping[str, Any]


def text(doc: Doc) -> str:
    """The question, or what a judge is asked about an answer to it.

    Raises:
        PromptError: the user's prompt file lacks a text or a placeholder.
    """
    if "candidate" not in doc:
        return prompts.fill(task_prompts().text["question"], {"question": doc["question"]})
    item = Item(doc["question_id"], doc["candidate"])
    others = [RatingRow(**row) for row in doc["others"]]
    return rating_prompt.request(doc["question"], doc["answer"], item, others)


def task_prompts() -> prompts.Prompt:
    """The candidates' prompt, ours or the user's.

    Raises:
        PromptError: the user's file lacks a text or a placeholder.
    """
    return _task_prompts(settings.prompts_dir())


@functools.lru_cache(maxsize=8)
def _task_prompts(override: Path | None) -> prompts.Prompt:
    required = {"question": {"question"}}
    return prompts.load("cvrr_es", "task", required=required, override_dir=override)
