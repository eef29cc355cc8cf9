"""Answers with known verdicts, to check a judge with (`lmms-eval-tasks agreement`).

    judge_results/MODEL/DIMENSION.json    the published judgements: a list of
                                          [{pred, score, reason}, {q, a, pred}]

The packaged sample has no judgements: there the reference answer is right, and the reference answer
of the next question is wrong. For other data no verdict is known: an answer to another question may
be right by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lmms_eval_tasks import sample
from lmms_eval_tasks.benchmark import KnownAnswer, KnownAnswers, Task
from lmms_eval_tasks.cvrr_es import candidates, data, release
from lmms_eval_tasks.cvrr_es.judge import Judgement
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, DIMENSIONS
from lmms_eval_tasks.utils import released_files

FOLDER = "judge_results"


def known_answers(place: Path, tasks: Mapping[str, Task]) -> KnownAnswers | None:
    """The published judgements in a folder, or the known verdicts of the packaged sample.

    Args:
        place: a folder with FOLDER, or that folder.
        tasks: all tasks, by name.

    Returns:
        None if the folder has neither.

    Raises:
        DataError: a file cannot be read.
    """
    folder = place / FOLDER if (place / FOLDER).is_dir() else place
    if answers := list(_judged(folder)):
        models = {one.doc["candidate"] for one in answers}
        told = f"{folder}: {len(answers):,} published judgements on {len(models)} models"
        return KnownAnswers(answers, [told], scale=(0, 1), clusters="questions")
    if not sample.is_current(place):
        return None
    told = f"{place}: references, and those of other questions as wrong answers"
    return KnownAnswers(list(_of_sample(place, tasks)), [told], scale=(0, 1))


def _judged(folder: Path) -> Iterator[KnownAnswer]:
    """Yield the judgements that have a label, without empty answers, which no judge gets.

    The files do not name the video: question and reference together stand for it.
    """
    for dimension in DIMENSIONS:
        for file in sorted(folder.glob(f"*/{dimension}.json")):
            for number, row in enumerate(released_files.read_table(file), 1):
                parts = [part for part in row if isinstance(part, dict)] if row else []
                fields: dict[str, Any] = next((part for part in parts if "q" in part), {})
                judgement = next((part for part in parts if "score" in part), None)
                question = candidates.plain_question(fields.get("q"))
                reference, answer = map(
                    candidates.plain_answer, (fields.get("a"), fields.get("pred"))
                )
                try:
                    label = Judgement.model_validate(judgement).pred
                except ValidationError:  # one label is "partially correct"
                    continue
                if question and reference and answer:
                    doc = {
                        "id": f"{file.parent.name}/{dimension}/{number:03d}",
                        "dimension": dimension,
                        "video": f"{question} {reference}",
                        "question": question,
                        "reference": reference,
                        "candidate": file.parent.name,
                    }
                    right_verdicts = {"correct": float(label == "correct")}
                    yield KnownAnswer(f"{ANSWERS}{dimension}", doc, answer, right_verdicts)


def _of_sample(place: Path, tasks: Mapping[str, Task]) -> Iterator[KnownAnswer]:
    found = data.CvrrData(release.read_cvrr(place))
    for name in (f"{ANSWERS}{dimension}" for dimension in DIMENSIONS):
        for doc in data.questions(found, name):
            kept = tasks[name].log_fields(doc)
            yield KnownAnswer(name, kept, doc["reference"], {"correct": 1.0})
            if doc["lure"] != doc["reference"]:
                yield KnownAnswer(name, kept, doc["lure"], {"correct": 0.0})
