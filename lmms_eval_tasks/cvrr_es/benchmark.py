"""CVRR-ES for the shared commands: tables, the judge, the size of a run.

Checks are in before_run.py, provenance in results.py, the user's data in files.py, saved runs in
saved.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es import data, inputs
from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.cvrr_es.before_run import check, make_media
from lmms_eval_tasks.cvrr_es.files import prepare, status
from lmms_eval_tasks.cvrr_es.judge import config as judge_config
from lmms_eval_tasks.cvrr_es.judge import prompt_name as judge_prompt
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.report import tables as numbers_tables
from lmms_eval_tasks.cvrr_es.results import annotate
from lmms_eval_tasks.cvrr_es.saved import rescore_saved
from lmms_eval_tasks.errors import DataError
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
    """The tables for the host's results, with the warnings that belong to them."""
    numbers = rescore.shown_numbers(results, "cvrr_es")
    warnings = results["lmms_eval_tasks"]["cvrr_es"]["warnings"]
    return [*numbers_tables([("", numbers)]), *(f"Note: {warning}" for warning in warnings)]


def workload(task: Mapping[str, Any]) -> Workload:
    """What a run of `task` would generate and ask; the reference stands in for an answer."""
    from datasets import Dataset

    name = task["task"]
    rows = data.rows(data.load())
    if name not in JUDGE_TASKS:
        docs = [row for row in rows if row["dimension"] == name.removeprefix(ANSWERS)]
    else:
        docs = list(data.process_docs(name)(Dataset.from_list(rows)))
    asked = [] if name in JUDGE_TASKS else docs
    fields = [
        {**{n: doc[n] for n in ("question", "reference", "id")}, "candidate": doc["reference"]}
        for doc in asked
    ]
    return Workload(
        prompts=[inputs.text(doc) for doc in docs],
        max_reply_tokens=task["generation_kwargs"]["max_new_tokens"],
        judged=[[(judging.criterion(), own)] for own in fields],
    )


def submission(runs: Sequence[rescore.Run]) -> None:
    """None: the annotations are public."""


def make_subtitles(root: Path, transcriber: Transcriber) -> int:  # noqa: ARG001
    """CVRR-ES shows its models no subtitles.

    Raises:
        DataError: always.
    """
    raise DataError("CVRR-ES's models see no subtitles: none are needed")
