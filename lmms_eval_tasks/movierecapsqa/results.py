"""What MovieRecapsQA adds to the host's results: where data, prompts and frames came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmms_eval_tasks import frame_options, prompt_notes, provenance, rescore, running, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.movierecapsqa import (
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
from lmms_eval_tasks.movierecapsqa.uncertainty import details

NAMED = 20  # segments of one warning


def annotate(results: dict[str, Any], tasks: Tasks) -> None:
    """Provenance under `results["lmms_eval_tasks"]["movierecapsqa"]`.

    Tells of the data as the check before the run found them (checked.py). A file that has gone
    since is a warning: the answers are paid for, and nothing here may lose them.
    """
    warnings = []
    if settings.is_sample():
        warnings.append("made with the packaged sample: not a benchmark result")
    section: dict[str, Any] = {}
    try:
        found = checked.last() or before_run.look(tasks)
    except TasksError as error:
        warnings.append(f"what the data were is not known any more: {error}")
    else:
        section |= _of_data(found, tasks)
        warnings += _left_out(section["left_out"])
    which = settings.judged_baselines()
    section |= {
        "prompts": {"task": prompt_notes.note(inputs.task_prompts())},
        "frames": _frames(),
        "judge": judging.describe(),
        "baselines": {
            **baselines.describe(which, judging.config()),
            "rouge_l": text_scores.ROUGE_L,
            **{
                name: note
                for name, note in provenance.notes().items()
                if name in ("bertscore", "bartscore")
            },
        },
    }
    if warning := section["judge"].get("warning"):
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


def _frames() -> dict[str, Any]:
    if asked := settings.frames_for("", default=0):
        return {"rule": "uniform frames in order, as images", "asked": asked}
    return {
        "rule": "the clip is handed over as a file: the model's own maximum of frames applies",
        **frame_options.describe(running.current()),
    }


def _details(_task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return details([sample[scores.FIRST] for sample in samples])
