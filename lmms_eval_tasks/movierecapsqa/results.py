"""What MovieRecapsQA adds to the host's results: where data, prompts and frames came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.movierecapsqa import (
    baseline_scores,
    baselines,
    before_run,
    checked,
    inputs,
    scores,
    text_scores,
)
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.before_run import Tasks
from lmms_eval_tasks.movierecapsqa.checked import Checked
from lmms_eval_tasks.movierecapsqa.labels import condition_of
from lmms_eval_tasks.movierecapsqa.report import unlike
from lmms_eval_tasks.movierecapsqa.uncertainty import details
from lmms_eval_tasks.running import frame_options
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import prompt_notes, provenance

NAMED = 20  # segments of one warning


def annotate(results: dict[str, Any], tasks: Tasks) -> None:
    """Provenance under `results["lmms_eval_tasks"]["movierecapsqa"]`.

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
        warnings += _left_out(section["left_out"])
        warnings += unlike(_asked(found, results, [task["task"] for task in tasks]))
    told: dict[str, Callable[[], Any]] = {
        "prompts": lambda: {"task": prompt_notes.note(inputs.task_prompts())},
        "frames": lambda: _frames(found, tasks),
        "judge": judging.describe,
        "baselines": lambda: _baselines([task["task"] for task in tasks]),
    }
    for name, tell in told.items():
        if (part := provenance.known(name, tell, warnings)) is not None:
            section[name] = part
    if warning := section.get("judge", {}).get("warning"):
        warnings.append(warning)
    section["warnings"] = warnings
    section["details"] = rescore.details(results, tasks, _details)
    results["lmms_eval_tasks"]["movierecapsqa"] = section


def _of_data(found: Checked, tasks: Tasks) -> dict[str, Any]:
    release = found.release
    return {
        "data": {"file": str(release.file), "hash": release.digest, **release.counts},
        "left_out": {task["task"]: found.left_out(task["task"]) for task in tasks},
    }


def _left_out(by_task: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        f"{task}: {len(segments)} segments left out: {', '.join(sorted(segments)[:NAMED])}"
        for task, segments in by_task.items()
        if segments
    ]


def _asked(found: Checked, results: Mapping[str, Any], names: Sequence[str]) -> dict[str, set[str]]:
    """Ids of the questions of each task; with --limit it has the first of its own."""
    counts = results.get("n-samples", {})
    asked = {}
    for name in names:
        left_out = found.left_out(name)
        own = [
            segment.question_id(question)
            for segment, question in found.release.questions()
            if segment.id not in left_out
        ]
        asked[name] = set(own[: counts.get(name, {}).get("effective")])
    return asked


def _frames(found: Checked | None, tasks: Tasks) -> dict[str, Any]:
    if not any(condition_of(task["task"]).picture for task in tasks):
        return {"rule": "no picture is handed over"}
    asked = settings.frames_for("", default=0)
    told: dict[str, Any] = (
        {"rule": "uniform frames in order, as images", "asked": asked}
        if asked
        else {
            "rule": "the clip is handed over as a file: the model's own maximum of frames applies",
            **frame_options.describe(running.current()),
        }
    )
    videos = {segment.video for segment in found.release.segments} if found else set()
    own = {video: settings.frames_for(video, default=0) for video in sorted(videos)}
    if others := {video: number for video, number in own.items() if number != asked}:
        told["asked_of_videos"] = others  # exceptions: so many frames, as images
    return told


def _baselines(names: Sequence[str]) -> dict[str, Any]:
    return {
        **baselines.describe(settings.judged_baselines(), judging.config()),
        "rouge_l": text_scores.ROUGE_L,
        **baseline_scores.notes_of(names),
    }


def _details(_task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return details([sample[scores.FIRST] for sample in samples])
