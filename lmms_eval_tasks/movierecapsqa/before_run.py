"""Before a model is built: can MovieRecapsQA's selected tasks run, and are their clips made?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import (
    baselines,
    checked,
    data,
    inputs,
    text_scores,
    usability,
)
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.checked import Checked
from lmms_eval_tasks.movierecapsqa.labels import condition_of, source_of
from lmms_eval_tasks.runs import cuts
from lmms_eval_tasks.runs.cuts import Window
from lmms_eval_tasks.utils import clips
from lmms_eval_tasks.utils.video_checks import LEAVE_OUT, listed

Tasks = Sequence[Mapping[str, Any]]


def check(tasks: Tasks) -> None:
    """Data, the videos of the sources that the tasks show, prompts, the judge, metrics' models.

    What it finds is remembered for the docs and the results of the run (checked.py).

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    checked.remember(None)
    found = look(tasks)
    inputs.task_prompts()
    judging.check(more=baselines.criteria(settings.judged_baselines()).values())
    text_scores.check()
    checked.remember(found)


def look(tasks: Tasks) -> Checked:
    """The data as the tasks need them.

    Raises:
        DataError: they are not there, or something in them is bad that the user did not allow.
    """
    release = data.load()
    return Checked(release, data.usable(release, [task["task"] for task in tasks]))


def make_media(tasks: Tasks, limit: float | None = None) -> None:
    """Make every clip that the tasks will hand over; the clips are kept, so a run finds them.

    It costs nothing that the run would not. But a file that is damaged in the middle shows only
    here, and must not end a run whose model is loaded.

    Args:
        tasks: YAML of the selected tasks. Those with dialogue alone need no clips.
        limit: as the host's `--limit`; only the clips of the docs that it leaves are made.

    Raises:
        DataError: clips cannot be made and `--allow-bad-items` was not given, or no other ones.
    """
    found = checked.last() or look(tasks)
    checked.remember(found)
    videos = {segment.id: segment.video for segment in found.release.segments}
    # Segments that share a window show the same clip, unless their videos have other numbers.
    frames: dict[Window, set[int]] = {}
    for held in found.held.values():
        for name, window in held.windows.items():
            n_frames = settings.frames_for(videos[name], default=0)
            frames.setdefault(window, set()).add(n_frames)

    def cut(window: Window) -> None:
        for n_frames in sorted(frames[window]):
            clips.make(*window, n_frames)

    parts = _parts([task["task"] for task in tasks], found, limit)
    uncut = cuts.make(parts, cut, "MovieRecapsQA")
    checked.remember_uncut(uncut)
    lost = cuts.lost(parts, uncut)
    if lost and not settings.allow_bad_items():
        raise DataError(
            f"{len(lost)} of {len(usability.asked(found.release))} MovieRecapsQA segments cannot "
            f"be cut:\n{listed(lost)}\n{LEAVE_OUT}"
        )


def _parts(names: Sequence[str], found: Checked, limit: float | None) -> list[cuts.Part]:
    """What each task needs; dialogue alone needs nothing, but counts for a limit."""
    questions = Counter(segment.id for segment, _ in found.release.questions())
    needed = {
        name: [
            cuts.Needed(segment, window, questions[segment])
            for segment, window in found.held[source_of(name)].windows.items()
        ]
        for name in names
        if condition_of(name).picture
    }
    docs = [
        sum(item.docs for item in needed[name]) if name in needed else questions.total()
        for name in names
    ]
    asked = dict(zip(names, cuts.asked(docs, limit), strict=True))
    return [cuts.Part(name, items, asked[name]) for name, items in needed.items()]
