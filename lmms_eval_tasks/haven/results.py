"""What HAVEN adds to the host's results: where data, prompts and pictures came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import before_run, checked, inputs, scores, text_values, usability
from lmms_eval_tasks.haven import judge as judging
from lmms_eval_tasks.haven.before_run import Tasks
from lmms_eval_tasks.haven.checked import Checked
from lmms_eval_tasks.haven.labels import LARGE_SOURCES, SUMMARIES, TASKS
from lmms_eval_tasks.haven.uncertainty import details
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import local_models, prompt_notes, provenance, rouge

NAMED = 20  # videos of one warning


def annotate(results: dict[str, Any], tasks: Tasks) -> None:
    """Provenance under `results["lmms_eval_tasks"]["haven"]`; placeholders of joins dropped.

    Tells of the data as the check before the run found them (checked.py). A file that has gone
    since is a warning: the answers are paid for, and nothing here may lose them.
    """
    warnings: list[str] = []
    if settings.is_sample():
        warnings.append("made with the packaged sample: not a benchmark result")
    section: dict[str, Any] = {}
    found = provenance.known("data", lambda: checked.last() or before_run.look(tasks), warnings)
    if found is not None:
        section |= _of_data(found, tasks)
        warnings += _left_out(found, section["left_out"])
    told: dict[str, Callable[[], Any]] = {
        "prompts": lambda: {"task": prompt_notes.note(inputs.task_prompts())}
    }
    if any(TASKS[task["task"]].kind in SUMMARIES for task in tasks):
        told["judge"] = judging.describe
        told["implementations"] = lambda: {
            "rouge": rouge.IMPLEMENTATION,
            **provenance.notes().get(text_values.NOTES, {}),
        }
    for name, tell in told.items():
        if (part := provenance.known(name, tell, warnings)) is not None:
            section[name] = part
    if warning := section.get("judge", {}).get("warning"):
        warnings.append(warning)
    warnings += doubts(section.get("implementations", {}))
    section["warnings"] = warnings
    section["details"] = rescore.details(results, tasks, _details)
    results["lmms_eval_tasks"]["haven"] = section
    rescore.drop_placeholders(results)


def _of_data(found: Checked, tasks: Tasks) -> dict[str, Any]:
    release = found.release
    subsets = {
        source: [record.video for record in release.records if record.source == source]
        for source in LARGE_SOURCES
    }
    return {
        "data": {"folder": str(release.folder), "hash": release.digest, **release.counts},
        "options": {
            **found.options.asdict(),
            "sources": list(dict.fromkeys(record.source for record in release.records)),
        },
        "subsets": {source: videos for source, videos in subsets.items() if videos},
        "left_out": {task["task"]: found.left_out(task["task"]) for task in tasks},
    }


def doubts(implementations: Mapping[str, str]) -> list[str]:
    """What was computed with that makes a number missing or not comparable."""
    marks = ("not computed", local_models.NOT_COMPARABLE)
    return [told for told in implementations.values() if any(mark in told for mark in marks)]


def _left_out(found: Checked, by_task: Mapping[str, Mapping[str, str]]) -> list[str]:
    known = {record.id for record in found.release.records}
    told = []
    for task, videos in by_task.items():
        if not known - videos.keys():
            told.append(f"{task}: not run: {usability.not_run(videos)}")
        elif videos:
            first = min(videos)
            names = ", ".join(sorted(videos)[:NAMED])
            told.append(
                f"{task}: {len(videos)} videos left out ({names}), such as {first}: {videos[first]}"
            )
    return told


def _details(task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return details(task, [sample[scores.FIRST] for sample in samples])
