"""What `lmms-eval-tasks agreement` compares: a release's answers, their published scores, a judge.

MovieRecapsQA's release is the one that has such scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.movierecapsqa import published
from lmms_eval_tasks.movierecapsqa.published import Data, Released
from lmms_eval_tasks.utils.score_agreement import Pair


class Task(NamedTuple):
    """What is compared."""

    data: Data
    models: list[str]  # whose answers are judged, people not among them
    asked: list[Released]  # the answers to judge: those with published scores

    def numbers(
        self, judged: Sequence[tuple[Released, Any]], dimension: str
    ) -> tuple[list[Pair], list[Pair]]:
        """The pairs of the answers that were judged, and of all answers of the release."""
        ours = {_key(one): published.ours(found, dimension) for one, found in judged}
        pairs = {
            _key(one): Pair(
                one.by, one.question_id, one.video, ours.get(_key(one)), one.scores[dimension]
            )
            for one in self.data.answers
        }
        return [one for key, one in pairs.items() if key in ours], list(pairs.values())


def _key(answer: Released) -> tuple[str, str, int]:
    return answer.question_id, answer.by, answer.number


def load(source: Path, models: str | None) -> Task:
    """Read a release, and find the answers to judge.

    Args:
        source: the data file or its folder.
        models: names, separated by commas; people may be one. None: all.

    Raises:
        TasksError: the data cannot be used, or `models` names one that is not in them.
    """
    data = published.read(source)
    there = [*data.models, published.PEOPLE]
    forms = {name.lower(): name for name in there}
    named = there if models is None else [name.strip() for name in models.split(",")]
    if unknown := [name for name in named if name.lower() not in forms]:
        raise TasksError(
            f"--models: {data.file} has no answers of {', '.join(map(repr, unknown))}; it has "
            f"some of: {', '.join(there)}"
        )
    wanted = {forms[name.lower()] for name in named}
    asked = [answer for answer in data.answers if answer.is_scored and answer.by in wanted]
    if not asked:
        raise TasksError(f"{data.file}: no answer of {', '.join(sorted(wanted))} has a score")
    return Task(data, [m for m in data.models if m in wanted], asked)


def coverage(task: Task) -> list[str]:
    """Which answers there are, and which have no published scores, and why."""
    from lmms_eval_tasks.utils.answers import reply_status

    whole = task.data.answers
    questions, videos = ({getattr(one, name) for one in whole} for name in ("question_id", "video"))
    lines = [
        f"{task.data.file} (data {task.data.digest}): {len(questions)} questions on {len(videos)} "
        f"videos, answers of {len(task.data.models)} models"
    ]
    if task.data.left_out:
        lines.append(f"left out: {len(task.data.left_out)} segments that do not fit the schema")
    for name in [*task.data.models, published.PEOPLE]:
        own = [one for one in whole if one.by == name]
        without = Counter(reply_status(one.text) for one in own if not one.is_scored)
        why = [
            f"{n} {'with a text' if status == 'ok' else status}" for status, n in without.items()
        ]
        line = f"{name}: {sum(one.is_scored for one in own)} of {len(own)} answers have scores"
        lines.append(line + (f"; without: {', '.join(why)}" if why else ""))
    return lines
