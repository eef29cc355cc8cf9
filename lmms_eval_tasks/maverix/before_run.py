"""Before a model is built: can the selected tasks of MAVERIX run, and are their media made?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maverix import checked, data, inputs, subtitle_notes
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix.checked import Checked
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import N_OPTIONS, kind_of, length_of, mode_of
from lmms_eval_tasks.runs import cuts
from lmms_eval_tasks.utils.video_checks import LEAVE_OUT, listed

_DOCS_EACH = {"choice": 1, "open": 2, "circular": N_OPTIONS}  # of an item

Tasks = Sequence[Mapping[str, Any]]


def check(tasks: Tasks) -> None:
    """Data, videos, their sound where a mode needs it, prompts, and the judge of open answers.

    What it finds is remembered for the docs and the results of the run (checked.py).

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    checked.remember(None)
    found = look(tasks)
    inputs.task_prompts()
    sounding = [task["task"] for task in tasks if mode_of(task["task"]).sound]
    if raising := [task for task in sounding if sound(task) == "raises"]:
        why = running.sound_warning(mode_of(raising[0]).picture)
        raise DataError(f"{why} Leave out {', '.join(raising)}")
    if any_judged(tasks) and any_reference(found.items):
        judging.check()
    checked.remember(found)


def any_judged(tasks: Tasks) -> bool:
    """Whether a task has a judge."""
    return any(task["metadata"]["judged"] for task in tasks)


def any_reference(items: Sequence[Item]) -> bool:
    """Whether there is anything that a judge could compare an answer with."""
    return any(item.reference is not None for item in items)


def look(tasks: Tasks) -> Checked:
    """The data as the tasks need them.

    Raises:
        DataError: they are not there, or something in them is bad that the user did not allow.
    """
    modes = [mode_of(task["task"]) for task in tasks]
    release = data.load()
    items, left_out = data.usable(release)
    silent = data.check_sound(items) if any(mode.sound for mode in modes) else {}
    shown = {length_of(task["task"]) for task in tasks if mode_of(task["task"]).subtitles}
    rows = data.rows_of(release, items)
    notes = subtitle_notes.describe(release, rows, sorted(shown)) if shown else None
    return Checked(release, items, left_out, silent, notes)


def sound(task: str) -> str:
    """What becomes of a task's sound in the running model."""
    return running.sound(mode_of(task).picture)


# --- the cuts ---------------------------------------------------------------------------------


def make_media(tasks: Tasks, limit: float | None = None) -> None:
    """Cut every segment that the tasks will hand over; the cuts are kept, so a run finds them.

    It costs nothing that the run would not: without it the first reply would wait for the same
    cuts. But a file that is damaged in the middle shows only here, and must not end a run whose
    model is loaded. Several processes go through the segments in the same order, and one waits
    while another makes a cut (utils/media_cache.py), so that nothing is made twice.

    Args:
        tasks: YAML of the selected tasks. Modes without picture and sound need no cuts.
        limit: as the host's `--limit`; only the cuts of the docs that it leaves are made.

    Raises:
        DataError: segments cannot be cut and `--allow-bad-items` was not given, or no other ones.
    """
    found = checked.last() or look(tasks)
    checked.remember(found)
    for line in subtitle_notes.warnings(found.subtitles or {"without": {}}):
        say(f"MAVERIX: {line}")
    rows = data.rows_of(found.release, found.items)
    parts = _parts(tasks, rows, found.silent, limit)
    uncut = cuts.make(parts, lambda window: inputs.cut(*window), "MAVERIX")
    checked.remember_uncut(uncut)
    lost = cuts.lost(parts, uncut)
    if lost and not settings.allow_bad_items():
        raise DataError(
            f"{len(lost)} of {len(rows)} MAVERIX items have a segment that cannot be cut:\n"
            f"{listed(lost)}\n{LEAVE_OUT}"
        )


def _parts(
    tasks: Tasks, rows: Sequence[data.Row], silent: Mapping[str, str], limit: float | None
) -> list[cuts.Part]:
    """What each task needs; modes without picture and sound need nothing, but count for a limit."""
    names = [task["task"] for task in tasks]
    own = {
        name: [row for row in rows if not (mode_of(name).sound and row["id"] in silent)]
        for name in names
    }
    each = {name: _DOCS_EACH[kind_of(name)] for name in names}
    asked = cuts.asked([each[name] * len(own[name]) for name in names], limit)
    return [
        cuts.Part(
            name,
            [
                cuts.Needed(row["id"], checked.window_of(row, length_of(name)), each[name])
                for row in own[name]
            ],
            docs,
        )
        for name, docs in zip(names, asked, strict=True)
        if mode_of(name).picture or mode_of(name).sound
    ]
