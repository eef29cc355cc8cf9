"""MovieRecapsQA for the shared commands: tables, the judge, the size of a run.

Checks are in before_run.py, provenance in results.py, the user's data in files.py, saved runs in
saved.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import answer_judging, baselines, data, utils
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.before_run import check, make_media
from lmms_eval_tasks.movierecapsqa.files import prepare, status
from lmms_eval_tasks.movierecapsqa.judge import config as judge_config
from lmms_eval_tasks.movierecapsqa.judge import prompt_name as judge_prompt
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS, condition_of, source_of
from lmms_eval_tasks.movierecapsqa.report import tables as numbers_tables
from lmms_eval_tasks.movierecapsqa.results import annotate
from lmms_eval_tasks.movierecapsqa.saved import rescore_saved
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.runs.estimate import Workload

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.judges import Criterion
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
    numbers = rescore.shown_numbers(results, "movierecapsqa")
    warnings = results["lmms_eval_tasks"]["movierecapsqa"]["warnings"]
    return [*numbers_tables([("", numbers)]), *(f"Note: {warning}" for warning in warnings)]


def workload(task: Mapping[str, Any]) -> Workload:
    """What a run of `task` would generate and ask; the dataset's answers stand in for the model's.

    An answer's claims are not known before: it stands in as one claim for each of its sentences.
    """
    from datasets import Dataset

    name = task["task"]
    make = data.process_docs(source_of(name), condition_of(name).slug)
    docs = list(make(Dataset.from_list(data.rows(data.load()))))
    return Workload(
        prompts=[utils.doc_to_text(doc) for doc in docs],
        max_reply_tokens=task["generation_kwargs"]["max_new_tokens"],
        judged=[_asked(doc) for doc in docs],
    )


def _asked(doc: Mapping[str, Any]) -> list[tuple[Criterion, Mapping[str, Any]]]:
    answer = doc["reference"] or doc["question"]
    claims = [part.strip() for part in answer.split(". ") if part.strip()]
    context = answer_judging.Context(doc["segment"], tuple(doc["facts"]), doc["dialogue"])
    found: list[tuple[Criterion, Mapping[str, Any]]] = [
        (judging.claims_criterion(), {"question": doc["question"], "candidate": answer})
    ]
    for name in DIMENSIONS:
        fields = answer_judging.asked(context, name, doc["question"], claims)
        found.append((judging.dimension_criterion(name, len(claims)), fields))
    if doc["reference"]:
        fields = {"question": doc["question"], "reference": doc["reference"], "candidate": answer}
        found += [(one, fields) for one in baselines.criteria(settings.judged_baselines()).values()]
    return found


def submission(runs: Sequence[rescore.Run]) -> None:
    """None: facts and answers are public."""


def make_subtitles(root: Path, transcriber: Transcriber) -> int:  # noqa: ARG001
    """Dialogue is in the data file, and a recap's sound is its narration.

    Raises:
        DataError: always.
    """
    raise DataError("MovieRecapsQA's dialogue is part of its data file: none is to be made")
