"""MAVERIX for the shared commands: tables, the judge, the size of a run, submissions.

Checks are in before_run.py, provenance in results.py, the user's data in files.py, saved runs in
saved.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.maverix import before_run, data, utils
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix.before_run import check, make_media
from lmms_eval_tasks.maverix.files import make_subtitles, prepare, status
from lmms_eval_tasks.maverix.judge import prompt_name as judge_prompt
from lmms_eval_tasks.maverix.labels import kind_of, length_of, mode_of
from lmms_eval_tasks.maverix.report import tables as numbers_tables
from lmms_eval_tasks.maverix.results import annotate
from lmms_eval_tasks.maverix.saved import rescore_saved
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.runs.estimate import Workload

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.judges import Criterion

__all__ = [
    "annotate",
    "check",
    "judge_config",
    "judge_prompt",
    "make_media",
    "make_subtitles",
    "mode_of",
    "numbers_tables",
    "prepare",
    "rescore_saved",
    "status",
    "submission",
    "tables",
    "workload",
]


def judge_config(spec: str | None = None, env: Mapping[str, str] | None = None) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or the paper's; see judge.config.

    A run (neither argument) has none where every reference is withheld: there is nothing to judge.
    """
    if spec is None and env is None:
        items, _ = data.usable(data.load())
        if not before_run.any_reference(items):
            return JudgeConfig(NONE)
    return judging.config(spec, env)


def tables(results: Mapping[str, Any]) -> list[Table | str]:
    """The paper's tables for the host's results, with the warnings that belong to them."""
    numbers = rescore.shown_numbers(results, "maverix")
    section = results["lmms_eval_tasks"]["maverix"]
    hears = {f"maverix_{mode}": state for mode, state in section["hears"].items()}
    shown = numbers_tables([("", numbers)], {**hears, **section["sound"]})
    return [*shown, *(f"Note: {warning}" for warning in section["warnings"])]


def workload(task: Mapping[str, Any]) -> Workload:
    """What a run of `task` would generate and ask; reference answers stand in for the model's."""
    from datasets import Dataset

    name = task["task"]
    kind = kind_of(name)
    make = data.process_docs(kind, mode_of(name).slug, length_of(name))
    docs = list(make(Dataset.from_list(data.rows(data.load()))))
    criteria = list(judging.criteria().values()) if kind == "open" else []

    def asked(doc: Mapping[str, Any]) -> list[tuple[Criterion, Mapping[str, Any]]]:
        if not doc["reference"]:
            return []
        fields = {name: doc[name] for name in ("question", "reference")}
        stand_in = {**fields, "candidate": doc["reference"]}
        return [(criterion, stand_in) for criterion in criteria]

    return Workload(
        prompts=[utils.doc_to_text(doc) for doc in docs],
        max_reply_tokens=task["generation_kwargs"]["max_new_tokens"],
        judged=[asked(doc) for doc in docs] if criteria else [],
    )


def submission(runs: Sequence[rescore.Run]) -> dict[str, Any]:
    """The answers of saved runs for whoever holds the withheld ones (submission.py)."""
    from lmms_eval_tasks.maverix import submission as form

    return form.submission(runs)
