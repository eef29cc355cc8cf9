"""Which items of a run can be asked: what the files beside the data show, and what a model takes.

A text proxy needs no video. What a record lacks for one task only (record.Record.gaps), and what
does not fit the model's limit of images, is left out of that task without asking, and counted; a
video that is missing or bad is left out where the user allows it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import items, video_match
from lmms_eval_tasks.haven.checked import Checked
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.schema import Release
from lmms_eval_tasks.utils.video_checks import ALLOW_MISSING, LEAVE_OUT, listed

MISSING = "missing"  # a reason of video_match.troubles starts so where there is no file


def look(
    release: Release, options: Options, tasks: Sequence[str], *, may_be_empty: bool = False
) -> Checked:
    """What each of the tasks can ask.

    Args:
        release: the user's data, of the chosen sources.
        options: how items are made.
        tasks: names.
        may_be_empty: not one of the tasks needs to have an item: others may, of which nothing is
            known here.

    Raises:
        DataError: videos are bad and `--allow-bad-items` was not given, or are missing and
            `--allow-missing-videos` was not given, or nothing is left of any task; says all of it.
    """
    told = []
    if release.problems and not settings.allow_bad_items():
        total = len(release.records) + len(release.problems)
        told.append(
            f"{len(release.problems)} of {total} HAVEN videos cannot be used:\n"
            f"{listed(release.problems)}\n{LEAVE_OUT}"
        )
    shown = [task for task in tasks if not TASKS[task].text]
    troubles = video_match.troubles(release.records) if shown else {}
    told += _complaints(troubles, shown, len(release.records))
    reasons = {
        task: {
            **release.problems,
            **_reasons(release, options, task, {} if TASKS[task].text else troubles),
        }
        for task in tasks
    }
    if not told and not may_be_empty:
        told += _nothing_left(release, reasons)
    if told:
        raise DataError(f"{release.folder}: " + "\n".join(told))
    return Checked(release, options, reasons)


def _complaints(troubles: Mapping[str, str], shown: Sequence[str], total: int) -> list[str]:
    """What the user has to mend, or to allow, before the tasks that show pictures can run."""
    missing = {name: why for name, why in troubles.items() if why.startswith(MISSING)}
    bad = {name: why for name, why in troubles.items() if name not in missing}
    needed = f"(tasks that end in _text need none; {', '.join(shown)} do)"
    told = []
    if missing and not settings.allow_missing_videos():
        told.append(
            f"{len(missing)} of {total} HAVEN videos are not there {needed}:\n{listed(missing)}\n"
            f"Put them there, or leave them out (they are counted in the results) with "
            f"{ALLOW_MISSING}"
        )
    if bad and not settings.allow_bad_items():
        told.append(
            f"{len(bad)} of {total} HAVEN videos do not fit their record {needed}:\n"
            f"{listed(bad)}\n{LEAVE_OUT}"
        )
    return told


def _reasons(
    release: Release, options: Options, task: str, troubles: Mapping[str, str]
) -> dict[str, str]:
    """Why the items of good records are left out of one task."""
    of_task = TASKS[task]
    gap = task.removeprefix("haven_")
    found = dict(troubles)
    for record in release.records:
        if record.id in found:
            continue
        if why := record.gaps.get(gap):
            found[record.id] = why
        elif options.max_images and not of_task.text:
            n_images = items.n_images(items.doc(items.row(record, ""), of_task, options))
            if n_images > options.max_images:
                found[record.id] = (
                    f"not run: needs {n_images} images, the model's limit is {options.max_images} "
                    "(max_images)"
                )
    return found


def _nothing_left(release: Release, reasons: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What to say if not one task has an item; a single one of several is reported as not run."""
    if any(record.id not in own for own in reasons.values() for record in release.records):
        return []
    return [
        f"{task}: not one of {len(own)} items can be run:\n{listed(own)}"
        for task, own in reasons.items()
    ]


def not_run(left_out: Mapping[str, str]) -> str:
    """Why a task has no item, in one line."""
    first = min(left_out)
    return f"not one of {len(left_out)} items can be run, such as {first}: {left_out[first]}"
