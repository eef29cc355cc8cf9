"""MAVERIX for the shared commands: checks, provenance, data, tables; saved runs are in saved.py."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks import rescore, running, settings
from lmms_eval_tasks.benchmarks import DataStatus, of_task_name
from lmms_eval_tasks.errors import DataError, TasksError
from lmms_eval_tasks.estimate import Workload
from lmms_eval_tasks.maverix import data, inputs, schema, scores, utils
from lmms_eval_tasks.maverix import judge as judging
from lmms_eval_tasks.maverix.judge import config as judge_config
from lmms_eval_tasks.maverix.judge import prompt_name as judge_prompt
from lmms_eval_tasks.maverix.labels import DIMENSIONS, MODES
from lmms_eval_tasks.maverix.report import tables as numbers_tables
from lmms_eval_tasks.maverix.saved import kind_of, rescore_saved

if TYPE_CHECKING:
    from rich.table import Table

    from lmms_eval_tasks.maverix.labels import Mode
    from lmms_eval_tasks.utils.transcribers import Transcriber

__all__ = [
    "annotate",
    "check",
    "judge_config",
    "judge_prompt",
    "make_subtitles",
    "numbers_tables",
    "prepare",
    "rescore_saved",
    "status",
    "submission",
    "tables",
    "workload",
]

OUR_SCHEMA = "MAVERIX has published no data: the file's schema is this suite's own (README)"


def mode_of(task: str) -> Mode:
    """The input mode in a task's name."""
    return MODES[task.removeprefix("maverix_").removeprefix("long_").partition("_")[0]]


# --- before and after a run -------------------------------------------------------------------


def check(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Data, videos, their sound where a mode needs it, prompts, and the judge of open answers.

    Raises:
        TasksError: the first thing that is missing, with what to do.
    """
    items, _ = data.usable(data.load())
    inputs.task_prompts()
    sounding = [task["task"] for task in tasks if mode_of(task["task"]).sound]
    if sounding:
        data.check_sound(items)
    if raising := [task for task in sounding if _sound(task) == "raises"]:
        why = running.sound_warning(mode_of(raising[0]).picture)
        raise DataError(f"{why} Leave out {', '.join(raising)}")
    if any(task["metadata"]["judged"] for task in tasks):
        judging.check()


def annotate(results: dict[str, Any], tasks: Sequence[Mapping[str, Any]]) -> None:
    """Provenance under `results["lmms_eval_tasks"]["maverix"]`; placeholders of joins dropped."""
    release = data.load()
    items, left_out = data.usable(release)
    warnings = [OUR_SCHEMA]
    if settings.is_sample():
        warnings = ["made with the packaged sample: not a benchmark result"]
    if left_out:
        warnings.append(f"{len(left_out)} items left out: {', '.join(sorted(left_out)[:20])}")
    prompt = inputs.task_prompts()
    silent: Mapping[str, str] = {}
    if any(mode_of(task["task"]).sound for task in tasks):
        silent = data.check_sound(items)
    if silent:
        warnings.append(f"{len(silent)} items without sound left out of A and V+A")
    sound = {task["task"]: _sound(task["task"]) for task in tasks if mode_of(task["task"]).sound}
    heard = {mode_of(name).picture: running.sound_warning(mode_of(name).picture) for name in sound}
    warnings += dict.fromkeys(warning for warning in heard.values() if warning)
    section: dict[str, Any] = {
        "data": {"file": str(release.file), "hash": release.digest, "items": len(items)},
        "left_out": left_out,
        "without_sound": silent,  # left out where the mode has sound
        "prompts": {"task": {"hash": prompt.hash, "source": prompt.source}},
        "sound": sound,
        "frames": "the whole segment is handed over: the model's own maximum applies",
    }
    if any(task["metadata"]["judged"] for task in tasks):
        section["judge"] = judging.describe()
        if warning := section["judge"].get("warning"):
            warnings.append(warning)
    section["warnings"] = warnings
    samples = results.get("samples") or {}
    section["details"] = {
        task["task"]: _details(task["task"], samples[task["task"]])
        for task in tasks
        if samples.get(task["task"])
    }
    results["lmms_eval_tasks"]["maverix"] = section
    rescore.drop_placeholders(results)


def _details(task: str, samples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kind = kind_of(task)
    return scores.details(kind, [sample[scores.FIRST[kind]] for sample in samples])


def _sound(task: str) -> str:
    return running.sound(mode_of(task).picture)


def tables(results: Mapping[str, Any]) -> list[Table | str]:
    """The paper's tables for the host's results, with the warnings that belong to them."""
    invalid = rescore.invalid_names(results)
    numbers = {
        f"{name} INVALID" if name in invalid else name: values
        for name, values in sorted(rescore.numbers(results).items())
        if of_task_name(name) == "maverix"
    }
    section = results["lmms_eval_tasks"]["maverix"]
    shown = numbers_tables([("", numbers)], section["sound"])
    return [*shown, *(f"Note: {warning}" for warning in section["warnings"])]


def workload(task: Mapping[str, Any]) -> Workload:
    """What a run of `task` would generate and ask; reference answers stand in for the model's."""
    from datasets import Dataset

    kind, mode = kind_of(task["task"]), mode_of(task["task"]).slug
    make = getattr(data, f"{kind}_{'long_' if '_long_' in task['task'] else ''}{mode}")
    docs = list(make(Dataset.from_list(data.rows(data.load()))))
    judged = [
        (
            criterion,
            {"question": d["question"], "reference": d["reference"], "candidate": d["reference"]},
        )
        for d in (docs if kind == "open" else ())
        if d["reference"]
        for criterion in judging.criteria().values()
    ]
    return Workload(
        prompts=[utils.doc_to_text(doc) for doc in docs],
        max_reply_tokens=task["generation_kwargs"]["max_new_tokens"],
        judged=judged,
        verdicts_each=len(DIMENSIONS),
    )


def submission(runs: Sequence[rescore.Run]) -> dict[str, Any]:
    """The answers of saved runs for whoever holds the withheld ones (submission.py)."""
    from lmms_eval_tasks.maverix import submission as form

    return form.submission(runs)


def make_subtitles(root: Path, transcriber: Transcriber) -> int:
    """Subtitles for every video under the data root that has none; returns how many failed.

    Raises:
        DataError: no data, or nothing can be written there.
    """
    from lmms_eval_tasks.utils import segments, transcription

    release = schema.read(schema.find_file(root / "maverix"))
    folder = release.file.parent / "subtitles"
    missing = data.video_problems(release)
    names = {item.video for item in release.items} - missing.keys()
    # Named as what is there, or a released talk.srt of "talk.mp4" would get a talk.mp4.json.
    there = {name: release.subtitles_of(name) for name in sorted(names)}
    videos = {_subtitled(name, path, folder): release.path_of(name) for name, path in there.items()}

    def sound_of(path: Path) -> Path | None:
        made = segments.segment(path).sound
        return None if made is None else Path(made)

    return len(transcription.make(videos, folder, transcriber, sound_of=sound_of).failed)


def _subtitled(video: str, there: Path | None, folder: Path) -> str:
    """The video's name among subtitles: that of its file, where there is one."""
    return video if there is None else there.relative_to(folder).with_suffix("").as_posix()


# --- the user's data --------------------------------------------------------------------------


def status(root: Path) -> DataStatus:
    """Look at MAVERIX's data under a data root, without raising."""
    place = root / "maverix"
    if not place.is_dir():
        return DataStatus("maverix", place, found=False, problem=data.HOW_TO_GET)
    try:
        release = schema.read(schema.find_file(place))
    except TasksError as error:
        return DataStatus("maverix", place, found=False, problem=str(error))
    problems = data.video_problems(release)
    bad = tuple(f"{name}: {why}" for name, why in release.problems.items())
    return DataStatus(
        benchmark="maverix",
        where=release.file,
        found=True,
        version=release.digest,
        counts={"questions": len(release.items)},
        videos=len({item.video for item in release.items}) - len(problems),
        missing={v: why for v, why in problems.items() if why.startswith("missing")},
        unreadable={v: why for v, why in problems.items() if why.startswith("unreadable")},
        notes=(OUR_SCHEMA, *bad),
    )


def prepare(source: Path, root: Path, link: bool) -> str:
    """Validate a data file of our schema and put it, its videos and subtitles under the data root.

    Raises:
        DataError: the source is not there, does not fit the schema, or other data is in the way.
    """
    source = source.expanduser().resolve()
    if not source.exists():
        raise DataError(f"{source}: no such file or folder")
    folder = source if source.is_dir() else source.parent
    release = schema.read(schema.find_file(source) if source.is_dir() else source)
    target = root / "maverix"
    if (target / "data.json").exists() and not _same(target / "data.json", release.file):
        raise DataError(f"{target}: holds data.json already; remove it first")
    put = 0
    for path in [release.file, *_beside(folder)]:
        place = target / ("data.json" if path == release.file else path.relative_to(folder))
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.resolve() != path.resolve():
            _put(path, place, link)
        put += 1
    return (
        f"{'linked' if link else 'copied'} {put} files to {target}: {len(release.items)} items, "
        f"{len(release.problems)} with problems. {OUR_SCHEMA}"
    )


def _same(there: Path, source: Path) -> bool:
    """Whether data that is in the way is that of the source: `prepare` may be run again."""
    return there.resolve() == source.resolve() or there.read_bytes() == source.read_bytes()


def _beside(folder: Path) -> list[Path]:
    names = [folder / "columns.yml"]
    names += [path for part in ("videos", "subtitles") for path in sorted(folder.glob(f"{part}/*"))]
    return [path for path in names if path.is_file()]


def _put(source: Path, target: Path, link: bool) -> None:
    temporary = target.with_name(f".{target.name}.part")
    temporary.unlink(missing_ok=True)
    if link:
        temporary.symlink_to(source)
    else:
        shutil.copyfile(source, temporary)
    temporary.replace(target)
