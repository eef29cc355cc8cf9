"""What MAVERIX adds to the host's results: where data, prompts, sound and frames came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.maverix import (
    before_run,
    checked,
    data,
    inputs,
    scores,
    subtitle_notes,
    table3,
)
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix.before_run import Tasks
from lmms_eval_tasks.maverix.checked import Checked
from lmms_eval_tasks.maverix.labels import MODES, kind_of, length_of, mode_of
from lmms_eval_tasks.running import frame_options
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import prompt_notes

OUR_SCHEMA = "MAVERIX has published no data: the file's schema is this suite's own (README)"
NAMED = 20  # items of one warning


def annotate(results: dict[str, Any], tasks: Tasks) -> None:
    """Provenance under `results["lmms_eval_tasks"]["maverix"]`; placeholders of joins dropped.

    Tells of the data as the check before the run found them (checked.py). A file that has gone
    since is a warning: the answers are paid for, and nothing here may lose them.
    """
    warnings = [OUR_SCHEMA]
    if settings.is_sample():
        warnings = ["made with the packaged sample: not a benchmark result"]
    section: dict[str, Any] = {}
    judged = before_run.any_judged(tasks)
    try:
        found = checked.last() or before_run.look(tasks)
    except TasksError as error:
        warnings.append(f"what the data were is not known any more: {error}")
    else:
        section |= _of_data(found, tasks)
        warnings += _about_data(found, section, results, tasks)
        judged = judged and before_run.any_reference(found.items)
    names = [task["task"] for task in tasks if mode_of(task["task"]).sound]
    heard = {mode_of(name).picture: running.sound_warning(mode_of(name).picture) for name in names}
    warnings += dict.fromkeys(warning for warning in heard.values() if warning)
    section |= {
        "prompts": {"task": prompt_notes.note(inputs.task_prompts())},
        "sound": {name: before_run.sound(name) for name in names},
        "hears": running.hears(),  # also of modes that were not run: S may stand in for A
        "frames": {
            "rule": "the whole segment is handed over: the model's own maximum of frames applies",
            **frame_options.describe(running.current()),
        },
    }
    if judged:
        section["judge"] = judging.describe()
        if warning := section["judge"].get("warning"):
            warnings.append(warning)
    section["warnings"] = warnings
    section["details"] = rescore.details(results, tasks, _details)
    results["lmms_eval_tasks"]["maverix"] = section
    rescore.drop_placeholders(results)


def _of_data(found: Checked, tasks: Tasks) -> dict[str, Any]:
    release = found.release
    section: dict[str, Any] = {
        "data": {
            "file": str(release.file),
            "hash": release.digest,
            "version": release.version,
            "items": len(found.items),
            "withheld": release.withheld,
            "ignored": list(release.ignored),
        },
        "left_out": dict(found.left_out),
        "without_sound": dict(found.silent),  # left out where the mode has sound
        "not_cut": _not_cut(found, tasks),  # left out where it has picture or sound
    }
    if found.subtitles is not None:
        section["subtitles"] = dict(found.subtitles)
    return section


def _not_cut(found: Checked, tasks: Tasks) -> dict[str, str]:
    """Items of these tasks that could not be cut; the full length is said."""
    if not found.uncut:
        return {}
    told = {}
    for length in sorted({length_of(task["task"]) for task in tasks}):
        for row in data.rows_of(found.release, found.items):
            if why := found.uncut.get(checked.window_of(row, length)):
                told[row["id"] + (" (full length)" if length == "long" else "")] = why
    return told


def _about_data(
    found: Checked, section: Mapping[str, Any], results: Mapping[str, Any], tasks: Tasks
) -> list[str]:
    warnings = []
    if left_out := sorted(found.left_out):
        warnings.append(f"{len(left_out)} items left out: {', '.join(left_out[:NAMED])}")
    if found.silent:
        warnings.append(f"{len(found.silent)} items without sound left out of A and V+A")
    if uncut := sorted(section["not_cut"]):
        warnings.append(
            f"{len(uncut)} items that cannot be cut left out of all modes but S: "
            f"{', '.join(uncut[:NAMED])}"
        )
    if found.subtitles is not None:
        warnings += subtitle_notes.warnings(found.subtitles)
    if found.release.ignored:
        warnings.append(f"fields of the data that are not read: {', '.join(found.release.ignored)}")
    used = {item.video for item in found.items}
    if gone := sorted(used & data.video_problems(found.release).keys()):
        warnings.append(
            f"{len(gone)} videos went missing or broke during the run: {', '.join(gone[:NAMED])}"
        )
    return warnings + _unlike(found, results, [task["task"] for task in tasks])


def _unlike(found: Checked, results: Mapping[str, Any], tasks: Sequence[str]) -> list[str]:
    """Notes where the best of several modes compares unlike items, as `rescore` has them."""
    counts = results.get("n-samples", {})  # with --limit each task has the first of its own items
    rows = data.rows_of(found.release, found.items)
    notes = []
    for prefix, name in (("maverix_", "maverix_table3"), ("maverix_long_", "maverix_long")):
        asked = {}
        for slug in MODES:
            if (task := prefix + slug) in tasks:
                own = [row["id"] for row in rows if found.asks(row, MODES[slug], length_of(task))]
                asked[slug] = own[: counts.get(task, {}).get("effective")]
        if unlike := table3.unlike(asked):
            notes.append(f"{name}: {unlike}")
    return notes


def _details(task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kind = kind_of(task)
    return scores.details(kind, [sample[scores.FIRST[kind]] for sample in samples])
