"""Before a model is built: can the selected tasks of MAVERIX run, and are their media made?"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.maverix import checked, data, inputs, subtitle_notes, usability
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix.checked import Checked, Window
from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import N_OPTIONS, kind_of, length_of, mode_of

PATIENCE = 10.0  # seconds between two lines about the cuts
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
    wanted = list(_needed(tasks, rows, found.silent, limit))
    tried: dict[Window, str] = {}
    # An item that cannot be cut makes way for the next one, which is then inside the limit.
    while new := list(dict.fromkeys(w for part in wanted for w in part.first(tried))):
        tried |= _cut(new)
    uncut = {window: why for window, why in tried.items() if why}
    checked.remember_uncut(uncut)
    lost: dict[str, str] = {}
    for part in wanted:
        own = {name: uncut[window] for name, window in part.windows if window in uncut}
        if own and len(own) == len(part.windows):
            raise DataError(
                f"none of the segments of {part.task} can be cut:\n{usability.listed(own)}"
            )
        lost |= own
    if lost and not settings.allow_bad_items():
        raise DataError(
            f"{len(lost)} of {len(rows)} MAVERIX items have a segment that cannot be cut:\n"
            f"{usability.listed(lost)}\n{usability.LEAVE_OUT}"
        )


class _Needed:
    """What one task needs: windows by item, in order, and how many items it asks."""

    def __init__(self, task: str, windows: Sequence[tuple[str, Window]], items: int) -> None:
        self.task, self.windows, self.items = task, windows, items

    def first(self, tried: Mapping[Window, str]) -> Iterator[Window]:
        """Those of its first items, not tried so far; an item that failed does not count."""
        good = 0
        for _, window in self.windows:
            if good >= self.items:
                return
            if window not in tried:
                yield window
            good += not tried.get(window)


def _needed(
    tasks: Tasks, rows: Sequence[data.Row], silent: Mapping[str, str], limit: float | None
) -> Iterator[_Needed]:
    for task in tasks:
        name = task["task"]
        mode, each = mode_of(name), _DOCS_EACH[kind_of(name)]
        own = [row for row in rows if not (mode.sound and row["id"] in silent)]
        docs = each * len(own)
        if limit is None or limit <= 0:  # the host takes 0 and -1 for all
            asked = docs
        elif limit < 1:
            # A share of the first task's docs is the number for all tasks (host's evaluator).
            limit = asked = math.ceil(docs * limit)
        else:
            asked = int(limit)
        if mode.picture or mode.sound:
            windows = [(row["id"], checked.window_of(row, length_of(name))) for row in own]
            yield _Needed(name, windows, math.ceil(asked / each))


def _cut(windows: Sequence[Window]) -> dict[Window, str]:
    """Make cuts, as many at once as there are processors; why each failed, or ""."""

    def why_not(window: Window) -> str:
        try:
            inputs.cut(*window)
        except MediaError as error:
            return str(error)
        return ""

    found: dict[Window, str] = {}
    pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1)
    try:
        futures = {pool.submit(why_not, window): window for window in windows}
        for future in _told(as_completed(futures), len(windows)):
            found[futures[future]] = future.result()
    finally:
        pool.shutdown(cancel_futures=True)  # who stops the run does not wait for all of them
    return found


def _told(things: Iterable[Any], total: int) -> Iterator[Any]:
    """`things`, with a line on stderr now and then while they take long."""
    told = time.monotonic()
    for number, thing in enumerate(things, 1):
        yield thing
        if number < total and time.monotonic() - told > PATIENCE:
            told = time.monotonic()
            say(f"MAVERIX: {number:,} of {total:,} segments cut (kept in {settings.cache_dir()})")
