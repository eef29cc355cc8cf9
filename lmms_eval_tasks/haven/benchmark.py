"""HAVEN for the shared commands: tables, the judge, the size of a run.

Checks are in before_run.py, provenance in results.py, the user's data in files.py, saved runs in
saved.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import data, utils
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.before_run import check, make_media
from lmms_eval_tasks.haven.files import prepare, status
from lmms_eval_tasks.haven.judge import config as judge_config
from lmms_eval_tasks.haven.judge import prompt_name as judge_prompt
from lmms_eval_tasks.haven.labels import SUMMARIES
from lmms_eval_tasks.haven.report import tables as numbers_tables
from lmms_eval_tasks.haven.results import annotate
from lmms_eval_tasks.haven.saved import rescore_saved
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.runs.estimate import Workload

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.utils.transcribers import Transcriber

__all__ = [
    "annotate",
    "check",
    "judge_config",
    "judge_prompt",
    "make_media",
    "make_subtitles",
    "numbers_tables",
    "prepare",
    "rescore_saved",
    "status",
    "submission",
    "tables",
    "workload",
]


def tables(results: Mapping[str, Any]) -> list[Table | str]:
    """The paper's tables for the host's results, with the warnings that belong to them."""
    numbers = rescore.shown_numbers(results, "haven")
    warnings = results["lmms_eval_tasks"]["haven"]["warnings"]
    return [*numbers_tables([("", numbers)]), *(f"Note: {warning}" for warning in warnings)]


def workload(task: Mapping[str, Any]) -> Workload:
    """What a run of `task` would generate and ask; the reference summary stands in for a reply.

    Prompts are texts: what a model counts for pictures is its own.
    """
    from datasets import Dataset

    make = data.process_docs(task["task"])
    made = make(Dataset.from_list(data.rows(data.load())))
    docs = [doc for doc in made if not doc["not_run"]]
    return Workload(
        prompts=[utils.doc_to_text(doc) for doc in docs],
        max_reply_tokens=task["generation_kwargs"]["max_new_tokens"],
        judged=[
            [(judging.criterion(), judging.fields(doc, " ".join(doc["summary"])))]
            for doc in docs
            if doc["kind"] in SUMMARIES
        ],
    )


def submission(runs: Sequence[rescore.Run]) -> None:
    """None: the annotations are public."""


def make_subtitles(root: Path, transcriber: Transcriber) -> int:  # noqa: ARG001
    """HAVEN has no sound.

    Raises:
        DataError: always.
    """
    raise DataError("HAVEN's tasks use no sound: no subtitles are to be made")
