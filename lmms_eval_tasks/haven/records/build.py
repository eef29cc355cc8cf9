"""`lmms-eval-tasks haven build`: records of a user's own videos, in the form of HAVEN's release.

    OUT/processed/SOURCE_data.json    OUT/SOURCE/h5/SOURCE.h5
    OUT/videos/SOURCE/video_N.mp4     a link to the user's file

A video is found by its name, that of its file without the ending. One that is in the files already,
with the same frames, shots and keyframes, keeps its texts (hand corrections too): only those that
it lacks are asked for, by the writer (judges/writer.py), so that a run that was ended goes on where
it stopped. Each file is written whole or not at all, the JSON file last: a video that is in it is
in both. One process writes at a time.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import steps
from lmms_eval_tasks.haven.records.schema import read_json
from lmms_eval_tasks.haven.records.steps import WORDS, Said, Texts
from lmms_eval_tasks.haven.records.structure import Choices, Structure, structure
from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.judges.writer import Unit, Written
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import write_json
from lmms_eval_tasks.utils.media.indexed_frames import Frames
from lmms_eval_tasks.utils.prompts import Prompt

if TYPE_CHECKING:
    from rich.table import Table

BUILD = "build"  # our field of a video: how it was made
_PATIENCE = 60.0  # seconds to wait for another process that writes


@dataclass(frozen=True)
class Job:
    """One video.

    name: that of its file without the ending, by which the files know it.
    key: in the files; None: it is new.
    have: the texts that are there already; None: it is new, or made again.
    """

    name: str
    key: str | None
    made: Structure
    frames: Frames
    have: Texts | None
    texts_by: tuple[Mapping[str, str], ...] = ()

    @property
    def texts(self) -> Texts:
        """What is there, or nothing."""
        made = self.made
        return self.have or Texts(("",) * len(made.picks), ("",) * len(made.starts))

    def missing(self) -> list[str]:
        """The texts that are not there, in words."""
        return self.texts.missing(self.made.key_shots)


def plan(
    videos: Sequence[Path], choices: Choices, out: Path, source: str, *, replace_old: bool = False
) -> list[Job]:
    """Read the videos, and what the files have of them; nothing is asked or written.

    Args:
        replace_old: whether a video that was made otherwise is made again.

    Raises:
        TasksError: a video or a file cannot be used, or holds what must not be touched.
    """
    held, jobs = read(out, source), dict[str, Job]()
    for video in videos:
        name = video.stem.encode("utf-8", "replace").decode("utf-8")
        if name in jobs:
            raise DataError(f"two videos are called {name}: records are found by name; rename one")
        made, frames = structure(video, choices)
        key = _find(held, name)
        if key is None or replace_old:
            jobs[name] = Job(name, key, made, frames, None)
        else:
            place = f"{json_file(out, source)}, {key} ({name})"
            have = _texts(held[key], made, place)
            by = held[key].get(BUILD, {}).get("texts_by", ())
            jobs[name] = Job(name, key, made, frames, have, tuple(by))
    return list(jobs.values())


def _texts(video: Mapping[str, Any], made: Structure, place: str) -> Texts:
    """The texts of a video that is in the files.

    Raises:
        DataError: it is damaged, or has other frames or shots.
    """
    try:
        held = read_json(video)
    except DataError as error:
        raise DataError(f"{place}: {error}; mend it, or make it again with --replace") from None
    picks = made.picks
    for what, there, now in (
        ("frames", [one.frame_id for one in held.frames], picks),
        ("keyframes", [n for n, one in enumerate(held.frames) if one.is_gt], made.keyframes),
        ("shots", [len(one.frames) for one in held.clips], [len(shot) for shot in made.shots]),
        ("key shots", [n for n, one in enumerate(held.clips) if one.gt], made.key_shots),
    ):
        if there != now:
            raise DataError(
                f"{place}: is there already, with other {what} than are found now: --replace makes "
                "it and its texts again, or name another folder"
            )
    document, summary = (
        tuple(Said(text, tuple(shots)) for text, shots in block.told())
        for block in (held.aligned_full_document, held.aligned_text_summary)
    )
    frames = tuple(one.description for one in held.frames)
    return Texts(frames, tuple(one.summary for one in held.clips), document, summary)


def build(
    jobs: Sequence[Job],
    out: Path,
    source: str,
    *,
    config: JudgeConfig | None = None,
    keep_gaps: bool = False,
) -> tuple[list[str], list[Written[Texts]]]:
    """Write the records of videos, each as soon as it is complete.

    Args:
        config: the model that writes texts; None leaves all new ones out.
        keep_gaps: write a record also where texts failed.

    Returns:
        What is to be said of the videos, and what became of those that were asked about.

    Raises:
        TasksError: the model cannot be used, or nothing be written.
    """
    given = writer.load("build", steps.STEPS)
    told: dict[str, list[str]] = {}
    todo: dict[str, Job] = {}
    for job in jobs:
        missing = job.missing()
        lacks = f"; missing: {', '.join(missing)}" if missing else ""
        told[job.name] = [f"{source}/{job.key} ({job.name}): kept as it was{lacks}"]
        if job.have is None or (missing and config is not None):
            todo[job.name] = job

    def each(written: Written[Texts]) -> None:
        job, texts = todo[written.unit], written.made
        if texts is None or (written.failures and not keep_gaps):
            told[job.name] = [f"{source}/- ({job.name}): not written"]
            return
        by = [dict(one) for one in job.texts_by]
        if config is not None:
            mine = {"model": config.label, "prompt": given.hash}
            by += [] if mine in by else [mine]
        key = _put(out, source, _record(job, texts, by), job.made)
        lines = _told(job.made, texts)
        told[job.name] = [f"{source}/{key} ({job.name}): {line}" for line in lines]

    if config is None:
        done = [Written(name, job.texts, {}) for name, job in todo.items()]
        for one in done:
            each(one)
    else:
        writer.start(config, [step.criterion(given) for step in steps.STEPS], given.name)
        units = {name: _unit(given, job) for name, job in todo.items()}
        done = writer.write(units, config, "haven build", each)
    return [line for lines in told.values() for line in lines], done


def _unit(given: Prompt, job: Job) -> Unit[Texts]:
    return steps.unit(given, job.made, job.texts, job.frames.images)


def estimate(jobs: Sequence[Job], config: JudgeConfig) -> tuple[Table, list[str]]:
    """What the texts of the videos need of a model, and how the numbers came about."""
    from lmms_eval_tasks.judges.prices import image_tokens

    given = writer.load("build", steps.STEPS)
    todo = [job for job in jobs if job.missing()]
    size = max((image_tokens(job.frames.width, job.frames.height) for job in todo), default=0)
    units = [_unit(given, job) for job in todo]
    table, notes = writer.estimated(units, config, steps.ASSUMED, size)
    left = f"{len(todo)} videos to ask about, {len(jobs) - len(todo)} are complete already"
    return table, [left, *notes]


# --- what is said of a video ----------------------------------------------------------------------


def _told(made: Structure, texts: Texts) -> Iterator[str]:
    """What was made, what is missing, and what a person should look at: never changed."""
    shots, key = made.shots, made.key_shots
    inside = sum(len(shots[n]) for n in key)
    ties = f" ({made.ties} later ones are as important)" if made.ties else ""
    yield (
        f"{len(made.picks)} frames, {len(shots)} shots, {len(made.keyframes)} keyframes{ties}, "
        f"{len(key)} key shots of {inside} frames together"
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
            what = f"sentences of the {name} that begin before the one before"
            yield f"to look at: {what}: {_listed(late)}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


# --- the files ------------------------------------------------------------------------------------


def json_file(out: Path, source: str) -> Path:
    """Of a source's records."""
    return out / "processed" / f"{source}_data.json"


def h5_file(out: Path, source: str) -> Path:
    """Of a source's arrays."""
    return out / source / "h5" / f"{source}.h5"


def read(out: Path, source: str) -> dict[str, Any]:
    """The videos of a source, by key; none if there is no file.

    Raises:
        DataError: the file holds something else.
    """
    file = json_file(out, source)
    content = released_files.read_json(file) if file.exists() else {}
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise DataError(f"{file}: expected an object with one object for each video")
    return content


def _find(videos: Mapping[str, Any], name: str) -> str | None:
    """The key of the video with this name, if there is one."""
    return next((key for key, video in videos.items() if video.get("video_name") == name), None)


def _record(job: Job, texts: Texts, by: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A video as the JSON file has it."""
    made = job.made

    def status(text: str) -> str:
        return "ok" if text else "missing"

    def block(sentences: tuple[Said, ...]) -> dict[str, Any]:
        shots = [{"sentence_id": n, "shot_ids": list(s.shots)} for n, s in enumerate(sentences)]
        told = [one.text for one in sentences]
        return {"sentences": told, "alignments": shots, "raw_text": " ".join(told)}

    frames = [
        {
            "frame_id": pick,
            "description": text,
            "is_gt": n in made.keyframes,
            "status": status(text),
        }
        for n, (pick, text) in enumerate(zip(made.picks, texts.frames, strict=True))
    ]
    clips = [
        {
            "clip_id": n,
            "summary": text,
            "gt": n in made.key_shots,
            "frames": [made.picks[place] for place in shot],
            "frame_count": len(shot),
            "status": status(text),
        }
        for n, (shot, text) in enumerate(zip(made.shots, texts.shots, strict=True))
    ]
    return {
        "video_name": job.name,
        "frames": frames,
        "clips": clips,
        "aligned_full_document": block(texts.document),
        "aligned_text_summary": block(texts.summary),
        BUILD: {"texts_by": list(by), "missing": texts.missing(made.key_shots)},
    }


def arrays(made: Structure) -> dict[str, Any]:
    """A video's group of the HDF5 file: name -> numpy array or number.

    A shot goes from its first sampled frame to the frame before the next shot's, the first one from
    0 and the last one to the video's end; both ends belong to it.
    """
    import numpy as np

    firsts = [0, *(made.picks[start] for start in made.starts[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), made.n_frames - 1]
    return {
        "change_points": np.array(list(zip(firsts, lasts, strict=True)), dtype=np.int64),
        "n_frame_per_seg": np.array(lasts, dtype=np.int64) - np.array(firsts) + 1,
        "n_frames": np.int64(made.n_frames),
        "n_steps": np.int64(len(made.picks)),
        "picks": np.array(made.picks, dtype=np.int64),
        "gtscore": np.array(made.importance, dtype=np.float64),
        "gtframe": np.isin(np.arange(len(made.picks)), made.keyframes).astype(np.int64),
        "shot_level_gt": np.isin(np.arange(len(firsts)), made.key_shots).astype(np.int64),
    }


def _put(out: Path, source: str, video: Mapping[str, Any], made: Structure) -> str:
    """Write a video into both files, new or in place of the one of its name, and link its file.

    Returns:
        Its key: `video_N`, of a new one N is one above the largest there is, from 1.

    Raises:
        DataError: another process has been writing for long, or nothing can be written there.
    """
    from filelock import FileLock, Timeout

    file = h5_file(out, source)
    try:
        for folder in (file.parent, json_file(out, source).parent):
            folder.mkdir(parents=True, exist_ok=True)
        with FileLock(out / f".{source}.lock", timeout=_PATIENCE):
            held = read(out, source)  # again: another process may have added to it
            numbers = [int(key[6:]) for key in held if re.fullmatch(r"video_\d+", key)]
            name = str(video["video_name"])
            key = _find(held, name) or f"video_{max(numbers, default=0) + 1}"
            _put_arrays(file, key, {**arrays(made), "video_name": name})
            _link(out / "videos" / source, key, made.video)
            write_json(json_file(out, source), {**held, key: dict(video)})
            return key
    except Timeout:
        raise DataError(f"{out}: another process writes {source} there; try again later") from None
    except OSError as error:
        told = " ".join(str(error).split())
        raise DataError(f"{file}: cannot be written or added to ({told})") from None


def _link(folder: Path, key: str, video: Path) -> None:
    """Put the video where the tasks look for it; a copy of the user's own there stays."""
    folder.mkdir(parents=True, exist_ok=True)
    for there in folder.glob(f"{key}.*"):
        if not there.is_symlink():
            return
        there.unlink()
    known = video.suffix.lower() in released_files.VIDEO_ENDINGS
    # Files are found by known endings; what is inside is told by the content.
    name = f"{key}{video.suffix.lower() if known else '.mp4'}"
    released_files.put(video.resolve(), folder / name, link=True)


def _put_arrays(file: Path, key: str, values: Mapping[str, Any]) -> None:
    import h5py

    partial = file.with_name(f".{file.name}.part")
    try:
        if file.exists():
            shutil.copyfile(file, partial)
        with h5py.File(partial, "a" if file.exists() else "w") as content:
            if key in content:
                del content[key]
            group = content.create_group(key)
            for name, value in values.items():
                group.create_dataset(name, data=value)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
