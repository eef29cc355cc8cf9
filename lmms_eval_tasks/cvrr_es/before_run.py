"""Before a model is built: can CVRR-ES's selected tasks run, and are their clips made?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es import checked, data, inputs, rating_prompt, usability
from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.cvrr_es.checked import Checked
from lmms_eval_tasks.cvrr_es.labels import ANSWERS, JUDGE_TASKS
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs import cuts
from lmms_eval_tasks.runs.cuts import Window
from lmms_eval_tasks.utils import clips
from lmms_eval_tasks.utils.video_checks import LEAVE_OUT, listed

Tasks = Sequence[Mapping[str, Any]]


def check(tasks: Tasks) -> None:
    """Data and videos, candidates and ratings, prompts, the judge, as the tasks need them.

    What it finds is remembered for the docs and the results of the run (checked.py).

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    checked.remember(None)
    found = look(tasks)
    names = [task["task"] for task in tasks]
    if any(name in JUDGE_TASKS for name in names):
        rating_prompt.prompt()
    if any(name not in JUDGE_TASKS for name in names):
        inputs.task_prompts()
        judging.check()
    checked.remember(found)


def look(tasks: Tasks) -> Checked:
    """The data as the tasks need them.

    Raises:
        DataError: they are not there, or something in them is bad that the user did not allow.
    """
    return usability.look(data.load(), [task["task"] for task in tasks])


def make_media(tasks: Tasks, limit: float | None = None) -> None:
    """Make the muted copy, or the frames, of every video that the tasks will show.

    It costs nothing that the run would not. But a file that is damaged in the middle shows only
    here, and must not end a run whose model is loaded.

    Args:
        tasks: YAML of the selected tasks.
        limit: as the host's `--limit`; only the videos of the docs that it leaves are made.

    Raises:
        DataError: videos cannot be made and `--allow-bad-items` was not given, or no other ones.
    """
    found = checked.last() or look(tasks)
    checked.remember(found)
    frames: dict[Window, set[int]] = {}
    for one in found.release.questions:
        window = _window(found, one.id)
        frames.setdefault(window, set()).add(settings.frames_for(one.video, default=0))

    def cut(window: Window) -> None:
        for n_frames in sorted(frames[window]):
            clips.make(*window, n_frames)

    parts = _parts([task["task"] for task in tasks], found, limit)
    uncut = cuts.make(parts, cut, "CVRR-ES", "videos made")
    checked.remember_uncut({window[0]: why for window, why in uncut.items()})
    lost = cuts.lost(parts, uncut, "videos of {} can be shown")
    if lost and not settings.allow_bad_items():
        raise DataError(
            f"the videos of {len(lost)} of {len(found.release.questions)} CVRR-ES questions cannot "
            f"be shown:\n{listed(lost)}\n{LEAVE_OUT}"
        )


def _parts(names: Sequence[str], found: Checked, limit: float | None) -> list[cuts.Part]:
    left_out = found.left_out()
    needed: dict[str, list[cuts.Needed]] = {}
    for name in names:
        own = "" if name in JUDGE_TASKS else name.removeprefix(ANSWERS)
        needed[name] = [
            cuts.Needed(one.id, _window(found, one.id), n)
            for one in found.release.questions
            if own in ("", one.dimension) and one.id not in left_out
            if (n := _docs(found, name, one.id))
        ]
    asked = cuts.asked([sum(item.docs for item in own) for own in needed.values()], limit)
    return [cuts.Part(name, needed[name], n) for name, n in zip(names, asked, strict=True)]


def _docs(found: Checked, task: str, question: str) -> int:
    """How many docs a task makes of a question."""
    if task not in JUDGE_TASKS:
        return 1
    return sum(question in one.answers for one in found.candidates)


def _window(found: Checked, question: str) -> Window:
    one = found.by_id[question]
    return str(found.release.video_path(one).resolve()), None, None
