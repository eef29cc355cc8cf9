"""`lmms-eval-tasks haven build`: records of a user's own videos, in the form of HAVEN's release.

    OUT/processed/own_data.json    OUT/own/h5/own.h5
    OUT/videos/own/video_N.mp4     a link to the user's file

A video is found by its name, that of its file without the ending. One that is in the files already,
with the same frames, shots and keyframes, keeps its texts (hand corrections too): only those that
it lacks are asked for, by the writer (judges/writer.py), so that a run that was ended goes on where
it stopped. Each file is written whole or not at all, the JSON file last: a video that is in it is
in both. One process writes at a time.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import OWN
from lmms_eval_tasks.haven.records import steps
from lmms_eval_tasks.haven.records.release import h5_file, json_file
from lmms_eval_tasks.haven.records.schema import read_json
from lmms_eval_tasks.haven.records.structure import Structure, structure
from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.judges.writer import Written
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import write_json
from lmms_eval_tasks.utils.media.indexed_frames import Frames

if TYPE_CHECKING:
    from rich.table import Table

BUILD = "build"  # our field of a video: how it was made
_PATIENCE = 60.0  # seconds to wait for another process that writes


class Job(NamedTuple):
    """One video.

    key: in the files; None: it is new. video: as in the JSON file, with the texts that are there.
    """

    key: str | None
    made: Structure
    frames: Frames
    video: dict[str, Any]


def plan(
    videos: Sequence[Path], out: Path, scores: Path, fps: float, shots: int | None
) -> dict[str, Job]:
    """Read the videos, and what the files have of them, by name; nothing is asked or written.

    Args:
        scores, fps, shots: as of `structure`.

    Raises:
        TasksError: a video or a file cannot be used, or holds what must not be touched.
    """
    held, jobs = read(out), dict[str, Job]()
    for file in videos:
        name = file.stem.encode("utf-8", "replace").decode("utf-8")
        if name in jobs:
            raise DataError(f"two videos are called {name}: records are found by name; rename one")
        made, frames = structure(file, scores, fps, shots)
        new, key = _without_texts(name, made), _find(held, name)
        if key is not None:
            new = _with_texts(new, held[key], f"{json_file(out, OWN)}, {key} ({name})")
        jobs[name] = Job(key, made, frames, new)
    return jobs


def build(
    jobs: Mapping[str, Job], out: Path, config: JudgeConfig | None
) -> tuple[list[str], list[Written[dict[str, Any]]]]:
    """Write the records of videos, each as soon as it was asked about.

    Args:
        config: the model that writes texts; None leaves all new ones out.

    Returns:
        What is to be said of the videos, and what became of those that were asked about.

    Raises:
        TasksError: the model cannot be used, or nothing be written.
    """
    given = writer.load("build", steps.STEPS)
    told: dict[str, list[str]] = {}
    todo: dict[str, Job] = {}
    for name, job in jobs.items():
        missing = ", ".join(steps.missing(job.video))
        told[name] = ["kept as it was" + (f"; missing: {missing}" if missing else "")]
        if job.key is None or (missing and config is not None):
            todo[name] = job
    keys = {name: job.key for name, job in jobs.items()}

    def each(written: Written[dict[str, Any]]) -> None:
        name, video = written.unit, written.made
        assert video is not None  # what it lacks is missing in it
        by = list(video.get(BUILD, {}).get("texts_by", []))
        if config is not None:
            mine = {"model": config.label, "prompt": given.hash}
            by += [] if mine in by else [mine]
        missing = steps.missing(video)
        video[BUILD] = {"texts_by": by, "missing": missing}
        keys[name] = _put(out, video, todo[name].made)
        told[name] = [_told(todo[name].made)]
        told[name] += [f"missing: {', '.join(missing)}"] if missing else []

    if config is None:
        done = [Written(name, job.video, {}) for name, job in todo.items()]
        for one in done:
            each(one)
    else:
        writer.start(config, [step.criterion(given) for step in steps.STEPS], given.name)
        units = {
            name: steps.unit(given, job.video, job.frames.images) for name, job in todo.items()
        }
        done = writer.write(units, config, "haven build", each)
    named = ((f"{OWN}/{keys[name]} ({name})", lines) for name, lines in told.items())
    return [f"{place}: {line}" for place, lines in named for line in lines], done


def _told(made: Structure) -> str:
    inside = sum(len(made.shots[n]) for n in made.key_shots)
    small = "" if made.key_shots else "; none fits 15 % of the frames: --shots N with more helps"
    return (
        f"{len(made.picks)} frames, {len(made.shots)} shots, {len(made.keyframes)} keyframes, "
        f"{len(made.key_shots)} key shots of {inside} frames together{small}"
    )


def estimate(jobs: Mapping[str, Job], config: JudgeConfig) -> tuple[Table, list[str]]:
    """What the texts of the videos need of a model, and how the numbers came about."""
    from lmms_eval_tasks.judges.prices import image_tokens

    given = writer.load("build", steps.STEPS)
    todo = [job for job in jobs.values() if steps.missing(job.video)]
    size = max((image_tokens(job.frames.width, job.frames.height) for job in todo), default=0)
    units = [steps.unit(given, job.video, job.frames.images) for job in todo]
    table, notes = writer.estimated(units, config, steps.ASSUMED, size)
    left = f"{len(todo)} videos to ask about, {len(jobs) - len(todo)} are complete already"
    return table, [left, *notes]


# --- a video as the JSON file has it --------------------------------------------------------------


def _without_texts(name: str, made: Structure) -> dict[str, Any]:
    """A new video."""
    frames = [
        {"frame_id": pick, "description": "", "is_gt": n in made.keyframes, "status": "missing"}
        for n, pick in enumerate(made.picks)
    ]
    clips = [
        {
            "clip_id": n,
            "summary": "",
            "gt": n in made.key_shots,
            "frames": [made.picks[place] for place in shot],
            "frame_count": len(shot),
            "status": "missing",
        }
        for n, shot in enumerate(made.shots)
    ]
    no_block = {"sentences": [], "alignments": [], "raw_text": ""}
    blocks = {steps.DOCUMENT_OF: no_block, steps.SUMMARY_OF: no_block}
    return {"video_name": name, "frames": frames, "clips": clips, **blocks}


def _with_texts(new: dict[str, Any], held: dict[str, Any], place: str) -> dict[str, Any]:
    """The video that is in the files.

    Raises:
        DataError: it is damaged, or has other frames or shots than are found now.
    """
    read_json(held, place)
    for what, entries, field in (
        ("frames", "frames", "frame_id"),
        ("keyframes", "frames", "is_gt"),
        ("shots", "clips", "frames"),
        ("key shots", "clips", "gt"),
    ):
        there, now = ([one.get(field) for one in video[entries]] for video in (held, new))
        if there != now:
            raise DataError(
                f"{place}: is there already, with other {what} than are found now: take it out, or "
                "name another folder"
            )
    texts = {
        name: [{**one, name_of: one.get(name_of) or ""} for one in held[name]]
        for name, name_of in (("frames", "description"), ("clips", "summary"))
    }
    blocks = {name: held.get(name) or new[name] for name in (steps.DOCUMENT_OF, steps.SUMMARY_OF)}
    return {**held, **texts, **blocks}


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


# --- the files ------------------------------------------------------------------------------------


def read(out: Path) -> dict[str, Any]:
    """The videos that are there, by key; none if there is no file.

    Raises:
        DataError: the file holds something else.
    """
    file = json_file(out, OWN)
    content = released_files.read_json(file) if file.exists() else {}
    if not isinstance(content, dict) or not all(isinstance(v, dict) for v in content.values()):
        raise DataError(f"{file}: expected an object with one object for each video")
    return content


def _find(videos: Mapping[str, Any], name: str) -> str | None:
    return next((key for key, video in videos.items() if video.get("video_name") == name), None)


def _put(out: Path, video: Mapping[str, Any], made: Structure) -> str:
    """Write a video into both files, new or in place of the one of its name, and link its file.

    Returns:
        Its key: `video_N`, of a new one N is one above the largest there is, from 1.

    Raises:
        DataError: another process has been writing for long, or nothing can be written there.
    """
    import h5py
    from filelock import FileLock, Timeout

    file, text = h5_file(out, OWN), json_file(out, OWN)
    partial = file.with_name(f".{file.name}.part")
    # Files are found by known endings; what is inside is told by the content.
    known = made.video.suffix.lower() in released_files.VIDEO_ENDINGS
    ending = made.video.suffix.lower() if known else ".mp4"
    try:
        for folder in (file.parent, text.parent, out / "videos" / OWN):
            folder.mkdir(parents=True, exist_ok=True)
        with FileLock(out / ".own.lock", timeout=_PATIENCE):
            held = read(out)  # again: another process may have added to it
            numbers = [int(key[6:]) for key in held if re.fullmatch(r"video_\d+", key)]
            name = str(video["video_name"])
            key = _find(held, name) or f"video_{max(numbers, default=0) + 1}"
            partial.unlink(missing_ok=True)  # of a process that was killed
            if file.exists():
                shutil.copyfile(file, partial)
            with h5py.File(partial, "a") as content:
                if key in content:
                    del content[key]
                group = content.create_group(key)
                for dataset, value in {**arrays(made), "video_name": name}.items():
                    group.create_dataset(dataset, data=value)
            partial.replace(file)
            link = out / "videos" / OWN / f"{key}{ending}"
            if link.is_symlink() or not link.exists():  # a copy of the user's own there stays
                released_files.put(made.video.resolve(), link, link=True)
            write_json(text, {**held, key: dict(video)})
            return key
    except Timeout:
        raise DataError(f"{out}: another process writes there; try again later") from None
    except OSError as error:
        told = " ".join(str(error).split())
        raise DataError(f"{file}: cannot be written or added to ({told})") from None
