"""What CVRR-ES adds to the host's results: where data, candidates and prompts came from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.cvrr_es import (
    before_run,
    checked,
    inputs,
    naming,
    rating_files,
    rating_prompt,
    rating_scores,
    scores,
    selection,
)
from lmms_eval_tasks.cvrr_es import judge as judging
from lmms_eval_tasks.cvrr_es.before_run import Tasks
from lmms_eval_tasks.cvrr_es.checked import Checked
from lmms_eval_tasks.cvrr_es.judge_items import Rated
from lmms_eval_tasks.cvrr_es.labels import JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.uncertainty import details
from lmms_eval_tasks.running import frame_options
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.utils import prompt_notes, provenance

NAMED = 20  # questions of one warning
NO_REFERENCE = (
    f"no reference ratings were named ({settings.CVRR_REFERENCE}): kappa and leniency are missing; "
    "make some with lmms-eval-tasks debate, and add them to these ratings with "
    f"{settings.CVRR_REFERENCE}=FILE lmms-eval-tasks rescore RUN"
)


def annotate(results: dict[str, Any], tasks: Tasks) -> None:
    """Provenance under `results["lmms_eval_tasks"]["cvrr_es"]`; placeholders of means dropped.

    Tells of the data as the check before the run found them (checked.py). A file that has gone
    since is a warning: the answers are paid for, and nothing here may lose them.
    """
    names = [task["task"] for task in tasks]
    warnings: list[str] = []
    if settings.is_sample():
        warnings.append("made with the packaged sample: not a benchmark result")
    section: dict[str, Any] = {"model": naming.running_model()}
    found = provenance.known("data", lambda: checked.last() or before_run.look(tasks), warnings)
    if found is not None:
        section |= _of_data(found)
        if section["left_out"]:
            first = ", ".join(sorted(section["left_out"])[:NAMED])
            warnings.append(f"{len(section['left_out'])} questions left out: {first}")
        if found.rated and not any(one.reference for one in found.rated.values()):
            warnings.append(NO_REFERENCE)
        warnings += _fell_back(found)
    for name, tell in _parts(names).items():
        if (part := provenance.known(name, tell, warnings)) is not None:
            section[name] = part
    if warning := section.get("judge", {}).get("warning"):
        warnings.append(warning)
    section["warnings"] = warnings
    section["details"] = rescore.details(results, tasks, _details)
    results["lmms_eval_tasks"]["cvrr_es"] = section
    rescore.drop_placeholders(results)


def _fell_back(found: Checked) -> Iterator[str]:
    """Where the mixture's rule left nobody, and what was shown instead."""
    for task, one in found.rated.items():
        chosen = (one.chosen or {}).values()
        if one.rule and (often := sum(choice.fell_back for choice in chosen)):
            yield (
                f"{task}: no judge passed in {often} of {len(chosen)} choices (one for each fold "
                f"and dimension; {one.rule}), and there it was shown "
                f"{selection.FALLBACKS[one.rule.fallback]}"
            )


def _parts(names: Sequence[str]) -> dict[str, Callable[[], Any]]:
    """What is told of a run, by the name under which it is."""
    told: dict[str, Callable[[], Any]] = {"frames": _frames}
    if any(name not in JUDGE_TASKS for name in names):
        told["prompts"] = lambda: {"task": prompt_notes.note(inputs.task_prompts())}
        told["judge"] = judging.describe
    if any(name in JUDGE_TASKS for name in names):
        told["rating_prompt"] = lambda: prompt_notes.note(rating_prompt.prompt())
    return told


def _of_data(found: Checked) -> dict[str, Any]:
    release = found.release
    told: dict[str, Any] = {
        "data": {"folder": str(release.folder), "hash": release.digest, **release.counts},
        "left_out": found.left_out(),
    }
    if found.candidates:
        told["candidates"] = {
            one.candidate: {
                "answers": len(one.answers),
                "empty": len(one.empty),
                "image_tokens_taken_off": one.tokens,
                "ends_taken_off": one.ends,
                "joined": dict(one.ways),
                "problems": list(one.problems),
                "notes": list(one.notes),
            }
            for one in found.candidates
        }
    if shown := {task: _shown(one) for task, one in found.rated.items() if one.first}:
        told["first_ratings"] = shown
    if rules := [str(one.rule) for one in found.rated.values() if one.rule]:
        told["selection"] = rules[0]
    chosen = {task: one.chosen for task, one in found.rated.items() if one.chosen is not None}
    if chosen:
        told["selected"] = {
            task: {
                f"{'all' if fold is None else f'fold {fold}'}, {dimension}": {
                    "judges": list(choice.judges),
                    "fell_back": choice.fell_back,
                    "kappa": dict(choice.kappas),
                }
                for (fold, dimension), choice in by_part.items()
            }
            for task, by_part in chosen.items()
        }
    return told


def _shown(rated: Rated) -> dict[str, Any]:
    """Whose first ratings there are to show, and what to know of them."""
    rows = [row for own in rated.first.values() for row in own]
    asked = {Item(question, one.candidate) for one in rated.candidates for question in one.answers}
    return {
        "judges": dict(sorted(Counter(row.judge for row in rows).items())),
        "own_not_shown": rated.own,
        "of_other_answers": rated.elsewhere,
        "notes": rating_files.notes(rows, asked),
    }


def _frames() -> dict[str, Any]:
    asked = settings.frames_for("", default=0)
    if asked:
        return {"rule": "uniform frames in order, as images", "asked": asked}
    return {
        "rule": "the video is handed over as a file: the model's own maximum of frames applies",
        **frame_options.describe(running.current()),
    }


def _details(task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    first = rating_scores.FIRST if task in JUDGE_TASKS else scores.FIRST
    return details(task, [sample[first] for sample in samples])
