"""`lmms-eval-tasks haven build` from videos to files: one video after the other (3.2, A).

A video that is in the files already, made the same way, keeps its texts (hand corrections too):
only those that it lacks are asked for, by the writer (judges/writer.py), so that a run that was
ended goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import files, steps, structure
from lmms_eval_tasks.haven.records.steps import WORDS, Texts
from lmms_eval_tasks.haven.records.structure import Choices, Sampled, Structure
from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.judges.writer import Written
from lmms_eval_tasks.utils.media import indexed_frames
from lmms_eval_tasks.utils.media.indexed_frames import Frames

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Job:
    """One video: what is known before anything is decoded.

    name: that of its file without the ending, by which the files know it.
    key: in the files; None: it is new.
    have: texts that are there already; None: it is new, or made again.
    missing: of these, in words.
    """

    sampled: Sampled
    name: str
    key: str | None
    have: Texts | None = None
    texts_by: tuple[Mapping[str, str], ...] = ()
    missing: tuple[str, ...] = ()

    def is_done(self, writes: bool) -> bool:
        """Whether nothing is to be done for it: no text is missing, or nobody writes."""
        return self.have is not None and not (writes and self.missing)


def plan(
    videos: Sequence[Path], choices: Choices, out: Path, source: str, *, replace_old: bool = False
) -> list[Job]:
    """Look at the videos, at what is given with them, and at the files; nothing is decoded.

    Args:
        replace_old: whether a video that was made otherwise is made again.

    Raises:
        TasksError: a video or a file cannot be used, or holds what must not be touched.
    """
    held, jobs = files.read(out, source), dict[str, Job]()
    for video in videos:
        name = video.stem.encode("utf-8", "replace").decode("utf-8")
        if name in jobs:
            raise DataError(f"two videos are called {name}: records are found by name; rename one")
        sampled, key = structure.sample(video, choices), files.find(held, name)
        if key is None or replace_old:
            jobs[name] = Job(sampled, name, key)
        else:
            place = f"{files.json_file(out, source)}, {key} ({name})"
            jobs[name] = _there(sampled, name, key, held[key], place)
    return list(jobs.values())


def _there(sampled: Sampled, name: str, key: str, video: Mapping[str, Any], place: str) -> Job:
    """A video that is in the files, made the same way."""
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
    by = tuple(build.get("texts_by", ()))
    return Job(sampled, name, key, have, by, tuple(have.missing(key_shots)))


def structured(job: Job, choices: Choices) -> tuple[Structure, Frames, Texts]:
    """A job's frames, shots and keyframes, its pictures, and the texts it has.

    Raises:
        TasksError: the video cannot be decoded, or the stored texts are of other shots.
    """
    frames = indexed_frames.frames(job.sampled.video, job.sampled.picks, choices.size)
    made = structure.structure(job.sampled, frames, choices.shots)
    have = job.have or Texts(("",) * len(job.sampled.picks), ("",) * len(made.starts))
    if (len(have.frames), len(have.shots)) != (len(made.sampled.picks), len(made.starts)):
        raise DataError(
            f"{job.name}: the stored record has {len(have.frames)} frames and {len(have.shots)} "
            f"shots, but {len(made.sampled.picks)} and {len(made.starts)} are found now: "
            "--replace makes it again"
        )
    return made, frames, have


def build(
    jobs: Sequence[Job],
    choices: Choices,
    out: Path,
    source: str,
    *,
    config: JudgeConfig | None = None,
    keep_gaps: bool = False,
) -> tuple[list[str], list[Written[Texts]]]:
    """Make the videos, each written as soon as it is complete.

    Args:
        config: the model that writes; None leaves all new texts out.
        keep_gaps: write a record also where texts failed.

    Returns:
        What is to be said of the videos, and what became of those that were asked about.

    Raises:
        TasksError: the model cannot be used, a video cannot be decoded, or nothing be written.
    """
    given = writer.load("build", steps.STEPS)
    if config is not None:
        writer.start(config, [step.criterion(given) for step in steps.STEPS], given.name)
    works = {
        job.name: (job, *structured(job, choices))
        for job in jobs
        if not job.is_done(config is not None)
    }
    told: dict[str, list[str]] = {}
    for job in jobs:
        lacks = f"; missing: {', '.join(job.missing)}" if job.missing else ""
        told[job.name] = [f"{source}/{job.key} ({job.name}): kept as it was{lacks}"]

    def each(written: Written[Texts]) -> None:
        job, made, _, _ = works[written.unit]
        by = [dict(one) for one in job.texts_by]
        if config is not None:
            mine = {"model": config.label, "prompt": given.hash}
            by += [] if mine in by else [mine]
        texts = written.made
        if texts is None or (written.failures and not keep_gaps):
            told[job.name] = [f"{source}/- ({job.name}): not written"]
            return
        missing = texts.missing(made.key_shots)
        about = {"made_from": job.sampled.made_from, "texts_by": by, "missing": missing}
        key = files.put(out, source, files.record(made, texts, job.name, about), made)
        told[job.name] = [f"{source}/{key} ({job.name}): {line}" for line in _told(made, texts)]

    if config is None:
        done = [Written(name, have, {}) for name, (_, _, _, have) in works.items()]
        for one in done:
            each(one)
    else:
        units = {
            name: steps.unit(given, made, have, frames.images)
            for name, (_, made, frames, have) in works.items()
        }
        done = writer.write(units, config, "haven build", each)
    return [line for lines in told.values() for line in lines], done


def estimate(jobs: Sequence[Job], choices: Choices, config: JudgeConfig) -> tuple[Table, list[str]]:
    """What the texts of the videos need of a model, and how the numbers came about.

    Raises:
        TasksError: a video cannot be decoded.
    """
    from lmms_eval_tasks.judges.tokens import image_tokens

    given = writer.load("build", steps.STEPS)
    works = [structured(job, choices) for job in jobs if not job.is_done(True)]
    size = max((image_tokens(frames.width, frames.height) for _, frames, _ in works), default=0)
    units = [steps.unit(given, made, have, frames.images) for made, frames, have in works]
    table, notes = writer.estimated(units, config, steps.ASSUMED, size)
    left = f"{len(works)} videos to ask about, {len(jobs) - len(works)} are complete already"
    return table, [left, *notes]


# --- what is said of a video ----------------------------------------------------------------------


def _told(made: Structure, texts: Texts) -> Iterator[str]:
    """What was made, what is missing, and what a person should look at: never changed."""
    shots, key = made.shots, made.key_shots
    inside = sum(len(shots[n]) for n in key)
    ties = f" ({made.ties} later ones are as important)" if made.ties else ""
    yield (
        f"{len(made.sampled.picks)} frames, {len(shots)} shots, {len(made.keyframes)} keyframes"
        f"{ties}, {len(key)} key shots of {inside} frames together"
    )
    if not key:
        yield (
            "no shot fits the budget of 15 % of the frames: no key shots and no summary; "
            "--shots N with more and shorter shots helps"
        )
    if missing := texts.missing(key):
        yield f"missing: {', '.join(missing)}"
    long = [n for n, text in enumerate(texts.shots, 1) if len(text.split()) > WORDS]
    if long:
        yield f"to look at: shots described in more than {WORDS} words: {_listed(long)}"
    for name, sentences, of in (
        ("document", texts.document, range(len(shots))),
        ("summary", texts.summary, key),
    ):
        told = {shot for one in sentences for shot in one.shots}
        if told and (untold := [shot + 1 for shot in of if shot not in told]):
            yield f"to look at: no sentence of the {name} tells of shots {_listed(untold)}"
        firsts = [min(one.shots, default=0) for one in sentences]
        if late := [n for n, (a, b) in enumerate(pairwise(firsts), 2) if b < a]:
            yield (
                f"to look at: sentences of the {name} that begin before the one before: "
                f"{_listed(late)}"
            )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
