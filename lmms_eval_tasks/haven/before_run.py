"""Before a model is built: can HAVEN's selected tasks run, and can their frames be read?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import checked, data, inputs, options, pictures, text_scores, usability
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.checked import Checked
from lmms_eval_tasks.haven.labels import SUMMARIES, TASKS
from lmms_eval_tasks.haven.record import Record
from lmms_eval_tasks.runs import cuts
from lmms_eval_tasks.runs.cuts import Window
from lmms_eval_tasks.utils.video_checks import LEAVE_OUT, listed

Tasks = Sequence[Mapping[str, Any]]


def check(tasks: Tasks) -> None:
    """Data and videos, prompts, the judge and the metrics' models, as the tasks need them.

    What it finds is remembered for the docs and the results of the run (checked.py).

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    checked.remember(None)
    found = look(tasks)
    inputs.task_prompts()
    if any(TASKS[task["task"]].kind in SUMMARIES for task in tasks):
        judging.check()
        text_scores.check()
    checked.remember(found)


def look(tasks: Tasks) -> Checked:
    """The data as the tasks need them.

    Raises:
        DataError: they are not there, or something in them is bad that the user did not allow.
    """
    return usability.look(data.load(), options.current(), [task["task"] for task in tasks])


def make_media(tasks: Tasks, limit: float | None = None) -> None:
    """Read the frames of every video that the tasks will show; they are kept, so a run finds them.

    It costs nothing that the run would not. But a file that is damaged in the middle shows only
    here, and must not end a run whose model is loaded.

    Args:
        tasks: YAML of the selected tasks. Text proxies need no frames.
        limit: as the host's `--limit`; only the videos of the docs that it leaves are read.

    Raises:
        DataError: frames cannot be read and `--allow-bad-items` was not given, or no other ones.
    """
    found = checked.last() or look(tasks)
    checked.remember(found)
    names = [task["task"] for task in tasks]
    parts = _parts(names, found, limit)
    picks: dict[str, list[list[int]]] = {}  # two records may name one file
    for record in found.release.records:
        picks.setdefault(_path(record), []).append(record.picks)

    def read(window: Window) -> None:
        for own in picks[window[0]]:
            pictures.make(window[0], own, found.options.size)

    uncut = cuts.make(parts, read, "HAVEN", "videos read")
    checked.remember_undecoded({window[0]: why for window, why in uncut.items()})
    lost = cuts.lost(parts, uncut, "videos of {} can be read")
    if lost and not settings.allow_bad_items():
        raise DataError(
            f"the frames of {len(lost)} of {len(found.release.records)} HAVEN videos cannot be "
            f"read:\n{listed(lost)}\n{LEAVE_OUT}"
        )


def _parts(names: Sequence[str], found: Checked, limit: float | None) -> list[cuts.Part]:
    """What each task needs; a text proxy needs nothing, but counts for a limit."""
    needed: dict[str, list[cuts.Needed]] = {}
    for name in names:
        left_out = found.left_out(name)
        needed[name] = [
            cuts.Needed(record.id, (_path(record), None, None), 1)
            for record in found.release.records
            if record.id not in left_out
        ]
    # A task without items has one doc that needs nothing (items.not_run).
    asked = cuts.asked([max(1, len(own)) for own in needed.values()], limit)
    return [
        cuts.Part(name, needed[name], n)
        for name, n in zip(names, asked, strict=True)
        if not TASKS[name].text
    ]


def _path(record: Record) -> str:
    return "" if record.path is None else str(record.path.resolve())
