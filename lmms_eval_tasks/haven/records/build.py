"""`lmms-eval-tasks haven build`: records of a user's own videos, in the form of HAVEN's release.

    OUT/processed/own_data.json    OUT/own/h5/own.h5
    OUT/videos/own/video_N.mp4     a link to the user's file

Texts are asked for by the writer (judges/writer.py), whose replies are kept: the same command again
pays for nothing twice and writes the files anew, the JSON file last. One that was changed by hand
is left alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.options import OWN
from lmms_eval_tasks.haven.records import steps
from lmms_eval_tasks.haven.records.release import h5_file, json_file
from lmms_eval_tasks.haven.records.structure import Structure, structure
from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.judges.writer import Written
from lmms_eval_tasks.media.indexed_frames import FrameArchive
from lmms_eval_tasks.utils import extras, released_files
from lmms_eval_tasks.utils.json_files import write_json

if TYPE_CHECKING:
    from rich.table import Table

BUILD = "build"  # our field of a video: how it was made


class Job(NamedTuple):
    """One video; `video` as in the JSON file, without texts."""

    made: Structure
    frames: FrameArchive
    video: dict[str, Any]


def plan(
    videos: Sequence[Path], out: Path, scores: Path, fps: float, shots: int | None
) -> dict[str, Job]:
    """Read the videos, by name, as `structure` does; nothing is asked or written.

    Raises:
        TasksError: a video cannot be used, there are files that must not be touched, or packages
            are not installed.
    """
    extras.require("haven", "haven build")
    jobs: dict[str, Job] = {}
    for file in videos:
        name = file.stem.encode("utf-8", "replace").decode("utf-8")
        if name in jobs:
            raise DataError(f"two videos have the name {name}: rename one")
        made, frames = structure(file, scores, fps, shots)
        jobs[name] = Job(made, frames, _without_texts(name, made))
    there = json_file(out, OWN)
    held = released_files.read_json(there) if there.exists() else {}
    for video in held.values() if isinstance(held, dict) else [held]:
        ours = video.get(BUILD, {}).get("digest") if isinstance(video, dict) else None
        if ours != _digest(video) or video["video_name"] not in jobs:
            told = "was changed by hand, or holds another video than these"
            raise DataError(f"{there}: {told}: name another folder")
    return jobs


def _digest(video: Mapping[str, Any]) -> str:
    """Of what we wrote."""
    kept = {name: value for name, value in video.items() if name != BUILD}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def build(
    jobs: Mapping[str, Job], out: Path, config: JudgeConfig | None
) -> tuple[list[str], list[Written[dict[str, Any]]]]:
    """Ask for the texts of videos, if there is a model, and write their records.

    Returned is what is to be said of the videos, and what became of the requests about them.

    Raises:
        TasksError: the model cannot be used, or nothing be written.
    """
    given = writer.load("build", steps.STEPS)
    done = [Written(name, job.video, {}) for name, job in jobs.items()]
    if config is not None:
        writer.start(config, [step.criterion(given) for step in steps.STEPS], given.name)
        units = {n: steps.unit(given, job.video, job.frames.images) for n, job in jobs.items()}
        done = writer.write(units, config, "haven build")
    by = [{"model": config.label, "prompt": given.hash}] if config is not None else []
    told: list[str] = []
    content: dict[str, Any] = {}
    for number, one in enumerate(done, 1):
        video = one.made
        assert video is not None  # what it lacks is missing in it
        missing = steps.missing(video)
        content[f"video_{number}"] = {
            **video,
            BUILD: {"texts_by": by, "missing": missing, "digest": _digest(video)},
        }
        place = f"{OWN}/video_{number} ({one.unit})"
        told.append(f"{place}: {_told(jobs[one.unit].made)}")
        told += [f"{place}: missing: {', '.join(missing)}"] if missing else []
    _write(out, content, [job.made for job in jobs.values()])
    return told, done


def _told(made: Structure) -> str:
    inside = sum(len(made.shots[n]) for n in made.key_shots)
    small = (
        "" if made.key_shots else "; no shot fits into 15 % of the frames: pass a larger --shots N"
    )
    return (
        f"{len(made.picks)} frames, {len(made.shots)} shots, {len(made.keyframes)} keyframes, "
        f"{len(made.key_shots)} key shots of {inside} frames together{small}"
    )


def estimate(jobs: Mapping[str, Job], config: JudgeConfig) -> tuple[Table, list[str]]:
    """What the texts of the videos need of a model, and how the numbers came about."""
    from lmms_eval_tasks.judges.prices import image_tokens

    given = writer.load("build", steps.STEPS)
    todo = jobs.values()
    size = max(image_tokens(job.frames.width, job.frames.height) for job in todo)
    units = [steps.unit(given, job.video, job.frames.images) for job in todo]
    return writer.estimated(units, config, steps.ASSUMED, size)


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


def _write(out: Path, content: Mapping[str, Any], videos: Sequence[Structure]) -> None:
    """Write both files, each whole or not at all, and link the videos, which are in their order."""
    import h5py

    file, text = h5_file(out, OWN), json_file(out, OWN)
    partial = file.with_name(f".{file.name}.part")
    try:
        for folder in (file.parent, text.parent, out / "videos" / OWN):
            folder.mkdir(parents=True, exist_ok=True)
        with h5py.File(partial, "w") as store:
            for (key, video), made in zip(content.items(), videos, strict=True):
                group = store.create_group(key)
                for dataset, value in {**arrays(made), "video_name": video["video_name"]}.items():
                    group.create_dataset(dataset, data=value)
                # Files are found by known endings; what is inside is told by the content.
                known = made.video.suffix.lower() in released_files.VIDEO_ENDINGS
                ending = made.video.suffix.lower() if known else ".mp4"
                link = out / "videos" / OWN / f"{key}{ending}"
                if link.is_symlink() or not link.exists():  # a copy of the user's own there stays
                    released_files.put(made.video.resolve(), link, link=True)
        partial.replace(file)
        write_json(text, dict(content))
    except OSError as error:
        told = " ".join(str(error).split())
        raise DataError(f"{file}: cannot be written ({told})") from None
