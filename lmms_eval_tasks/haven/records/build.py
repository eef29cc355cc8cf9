"""`lmms-eval-tasks haven build` from videos to files: one video after the other (3.2, A).

A video that is in the files already, made the same way, keeps its texts (hand corrections too):
only those that it lacks are asked for. Replies go through the judges' layer: its providers, cache,
limits, budget and ledger. So a run that was ended goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import files, steps, structure
from lmms_eval_tasks.haven.records.steps import Texts
from lmms_eval_tasks.haven.records.structure import Choices, Sampled, Structure
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.judges.writer import writer
from lmms_eval_tasks.utils.media import indexed_frames
from lmms_eval_tasks.utils.media.indexed_frames import Frames


def model(spec: str, env: Mapping[str, str]) -> JudgeConfig:
    """The model that writes the texts (judges/writer.py); the paper names none, so no default."""
    return writer(spec, env, "--judge", "one model that sees writes the texts")


@dataclass(frozen=True)
class Job:
    """One video: what is known before anything is decoded.

    have: texts that are there already; None: it is new, or made again.
    complete: nothing is to be done for it: no text is missing, or nobody writes.
    missing: of the stored texts, in words.
    """

    sampled: Sampled
    key: str | None
    have: Texts | None
    texts_by: tuple[Mapping[str, str], ...]
    complete: bool
    missing: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """By which the files know it."""
        return name_of(self.sampled.video)


def name_of(video: Path) -> str:
    """A video's name: that of its file without the ending, as UTF-8 can hold it."""
    return video.stem.encode("utf-8", "replace").decode("utf-8")


def plan(
    videos: Sequence[Path],
    choices: Choices,
    out: Path,
    source: str,
    *,
    replace_old: bool = False,
    writes: bool = False,
) -> list[Job]:
    """Look at the videos, at what is given with them, and at the files; nothing is decoded.

    Args:
        replace_old: whether a video that was made otherwise is made again.
        writes: whether a model is there that writes missing texts.

    Raises:
        TasksError: a video or a file cannot be used, or holds what must not be touched.
    """
    names = [name_of(video) for video in videos]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DataError(f"two videos are called {twice[0]}: records are found by name; rename one")
    held = files.read(out, source)
    jobs = []
    for video in videos:
        sampled = structure.sample(video, choices)
        if sampled.features is not None:
            structure.features_of(sampled)
        jobs.append(_job(sampled, held, files.json_file(out, source), replace_old, writes))
    return jobs


def _job(
    sampled: Sampled, held: Mapping[str, Any], file: Path, replace_old: bool, writes: bool
) -> Job:
    name = name_of(sampled.video)
    key = files.find(held, name)
    if key is None or replace_old:
        return Job(sampled, key, None, (), complete=False)
    video, place = held[key], f"{file}, {key} ({name})"
    build = video.get(files.BUILD)
    if not isinstance(build, dict) or not isinstance(build.get("made_from"), dict):
        raise DataError(f"{place}: not made by this command; name another folder, or --replace it")
    for what, now in sampled.made_from.items():
        if (before := build["made_from"].get(what)) != now:
            raise DataError(
                f"{place}: is there already, made with {what} {before}, not {now}: --replace makes "
                "it and its texts again, or name another folder"
            )
    have = files.texts_of(video, place)
    key_shots = [n for n, clip in enumerate(video["clips"]) if clip.get("gt")]
    missing = tuple(have.missing(key_shots))
    by = tuple(build.get("texts_by", ()))
    return Job(sampled, key, have, by, complete=not writes or not missing, missing=missing)


def structured(job: Job, choices: Choices) -> tuple[Structure, Frames, Texts]:
    """A job's frames, shots and keyframes, its pictures, and the texts it has.

    Raises:
        TasksError: the video cannot be decoded, or the stored texts are of other shots.
    """
    frames = indexed_frames.frames(job.sampled.video, job.sampled.picks, choices.size)
    made = structure.structure(job.sampled, frames, choices)
    have = steps.nothing(made) if job.have is None else job.have
    if (len(have.frames), len(have.shots)) != (len(made.sampled.picks), len(made.starts)):
        raise DataError(
            f"{job.name}: the stored record has {len(have.frames)} frames and {len(have.shots)} "
            f"shots, but {len(made.sampled.picks)} and {len(made.starts)} are found now: "
            "--replace makes it again"
        )
    return made, frames, have


@dataclass(frozen=True)
class Done:
    """What became of a video.

    key: in the file; "" if it was not written.
    made: None if it was kept as it was.
    """

    job: Job
    key: str
    made: Structure | None = None
    texts: Texts | None = None
    failures: Mapping[str, str] = field(default_factory=dict)


def build(
    jobs: Sequence[Job],
    choices: Choices,
    out: Path,
    source: str,
    *,
    config: JudgeConfig | None = None,
    keep_gaps: bool = False,
) -> Iterator[Done]:
    """Make the videos one after the other, each written as soon as it is complete.

    Args:
        config: the model that writes; None leaves all new texts out.
        keep_gaps: write a record also where texts failed.

    Raises:
        TasksError: the model cannot be used, a video cannot be decoded, or nothing be written.
    """
    judge = None
    if config is not None:
        judges.preflight(config, [steps.criterion(step) for step in steps.STEPS])
        judge = judges.make(config)
    for job in jobs:
        if job.complete and job.key is not None:
            yield Done(job, job.key)
            continue
        made, frames, have = structured(job, choices)
        texts, failures = have, dict[str, str]()
        texts_by = [dict(one) for one in job.texts_by]
        if config is not None and judge is not None:
            texts, failures = steps.write(judge, made, frames.images, have)
            by = {"model": config.label, "prompt": steps.prompt().hash}
            texts_by += [] if by in texts_by else [by]
            if failures and not keep_gaps:
                yield Done(job, "", made, texts, failures)
                continue
        about = {
            "made_from": job.sampled.made_from,
            "texts_by": texts_by,
            "missing": texts.missing(made.key_shots),
        }
        video = files.record(made, texts, job.name, about)
        with files.writing(out, source):
            held = files.read(out, source)  # again: another process may have added to it
            key = files.find(held, job.name) or files.new_key(held)
            files.put(out, source, key, video, made)
        yield Done(job, key, made, texts, failures)
