"""The submission file for data whose answers are withheld: a model's answers and no score."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import scores
from lmms_eval_tasks.maverix.labels import kind_of
from lmms_eval_tasks.runs.rescore import Run

FORMAT = "maverix-submission-1"


def submission(runs: Sequence[Run]) -> dict[str, Any]:
    """Answers of one model, from the samples of one or more tasks.

    The form, which is ours since the benchmark has published none:

        {"format": "maverix-submission-1", "data": hash, "model": ..., "answers": [
            {"task": "maverix_av", "id": ..., "letter": "C" or null, "status": ...},
            {"task": "maverix_av_oe", "id": ..., "version": "original", "answer": "...",
             "status": ...}]}

    Letters are those of the user's own file, not of the order that the model saw. `status` says
    why a letter is null or an answer empty. Circular tasks are not submitted.

    Raises:
        DataError: nothing to submit, a question answered twice, or samples of several models or
            data files.
    """
    answers: list[dict[str, Any]] = []
    origins = set()
    for run in sorted(runs, key=lambda run: run.task):
        kind = kind_of(run.task)
        if kind == "circular":
            continue
        for number, sample in enumerate(run.samples, 1):
            item = sample.get(scores.FIRST[kind])
            if not isinstance(item, dict) or "reply" not in item:
                raise DataError(f"{run.file}, line {number}: no item of this suite")
            origins.add((run.model, item["data"]))
            one = {"task": run.task, "id": item["question_id"]}
            if kind == "choice":
                one |= {"letter": item["file_letter"], "status": item["status"]}
            else:
                one |= {"version": item["version"], "answer": item["candidate"]}
                one["status"] = item["status"]
            answers.append(one)
    if not answers:
        raise DataError("no answers of maverix tasks to submit")
    if len(origins) > 1:
        shown = ", ".join(f"{model} on {data}" for model, data in sorted(origins, key=str))
        raise DataError(f"one model and one data file in a submission, not {shown}")
    ((model, data),) = origins
    answers.sort(key=_place)
    for one, other in itertools.pairwise(answers):
        if _place(one) == _place(other):
            named = " ".join(part for part in _place(one) if part)
            raise DataError(f"{named} is answered twice: submit one run of each task")
    return {"format": FORMAT, "data": data, "model": model, "answers": answers}


def _place(answer: Mapping[str, Any]) -> tuple[str, str, str]:
    return answer["task"], answer["id"], answer.get("version", "")
