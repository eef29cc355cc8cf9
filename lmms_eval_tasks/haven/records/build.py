"""The command `lmms-eval-tasks haven build`: records of a user's own videos, in the release's form.

    OUT/processed/own_data.json  OUT/own/h5/own.h5
    OUT/videos/own/video_N.mp4   a link to the user's file

The writer (judges/writer.py) requests the texts and keeps the replies. The same command, run again,
pays for no reply twice. It writes all files anew, the JSON file last. It stops if the user changed
the JSON file by hand.
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

BUILD = "build"  # field of a video that only we write: model, prompt and hash


class Job(NamedTuple):
    """One video to build; `video` has the form of the JSON file, without texts."""

    structure: Structure
    frames: FrameArchive
    video: dict[str, Any]


def plan(
    videos: Sequence[Path], out: Path, scores: Path, fps: float, shots: int | None
) -> dict[str, Job]:
    """Read the videos and return a job for each, by name; no request is sent, no file is written.

    Raises:
        TasksError: a video cannot be used, existing files must not be overwritten, or packages are
            not installed.
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
    """Return the hash of a video's entry as this command wrote it."""
    kept = {name: value for name, value in video.items() if name != BUILD}
    return hashlib.sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()[:12]


def build_records(
    jobs: Mapping[str, Job], out: Path, config: JudgeConfig | None
) -> tuple[list[str], list[Written[dict[str, Any]]]]:
    """Request the texts of the videos, if there is a model, and write the records.

    Returns:
        Lines for the user about the videos, and the outcome of the requests for each video.

    Raises:
        TasksError: the model cannot be used, or the files cannot be written.
    """
    prompt = writer.load_step_prompt("build", steps.STEPS)
    written = [Written(name, job.video, {}) for name, job in jobs.items()]
    if config is not None:
        writer.start(config, [step.criterion(prompt) for step in steps.STEPS], prompt.name)
        units = {n: steps.unit(prompt, job.video, job.frames.images) for n, job in jobs.items()}
        written = writer.run_units(units, config, "haven build")
    by = [{"model": config.label, "prompt": prompt.hash}] if config is not None else []
    lines: list[str] = []
    content: dict[str, Any] = {}
    for number, outcome in enumerate(written, 1):
        video = outcome.result
        assert video is not None  # a failed request leaves its text missing in the video
        missing = steps.missing(video)
        content[f"video_{number}"] = {
            **video,
            BUILD: {"texts_by": by, "missing": missing, "digest": _digest(video)},
        }
        place = f"{OWN}/video_{number} ({outcome.unit})"
        lines.append(f"{place}: {_told(jobs[outcome.unit].structure)}")
        lines += [f"{place}: missing: {', '.join(missing)}"] if missing else []
    _write(out, content, [job.structure for job in jobs.values()])
    return lines, written


def _told(structure: Structure) -> str:
    inside = sum(len(structure.shots[n]) for n in structure.key_shots)
    small = (
        ""
        if structure.key_shots
        else "; no shot fits into 15 % of the frames: pass a larger --shots N"
    )
    return (
        f"{len(structure.picks)} frames, {len(structure.shots)} shots, "
        f"{len(structure.keyframes)} keyframes, "
        f"{len(structure.key_shots)} key shots of {inside} frames together{small}"
    )


def estimate(jobs: Mapping[str, Job], config: JudgeConfig) -> tuple[Table, list[str]]:
    """Return a table of the tokens and costs of the videos' texts, and lines that explain it."""
    from lmms_eval_tasks.judges.prices import image_tokens

    given = writer.load_step_prompt("build", steps.STEPS)
    todo = jobs.values()
    size = max(image_tokens(job.frames.width, job.frames.height) for job in todo)
    units = [steps.unit(given, job.video, job.frames.images) for job in todo]
    return writer.estimated(units, config, steps.ASSUMED, size)


# --- a video in the form of the JSON file -------------------------------------------------------


def _without_texts(name: str, structure: Structure) -> dict[str, Any]:
    """Return a video's entry for the JSON file, with all texts missing."""
    frames = [
        {
            "frame_id": pick,
            "description": "",
            "is_gt": n in structure.keyframes,
            "status": "missing",
        }
        for n, pick in enumerate(structure.picks)
    ]
    clips = [
        {
            "clip_id": n,
            "summary": "",
            "gt": n in structure.key_shots,
            "frames": [structure.picks[place] for place in shot],
            "frame_count": len(shot),
            "status": "missing",
        }
        for n, shot in enumerate(structure.shots)
    ]
    no_block = {"sentences": [], "alignments": [], "raw_text": ""}
    blocks = {steps.DOCUMENT_OF: no_block, steps.SUMMARY_OF: no_block}
    return {"video_name": name, "frames": frames, "clips": clips, **blocks}


def arrays(structure: Structure) -> dict[str, Any]:
    """Return a video's group of the HDF5 file: name -> numpy array or number.

    A shot reaches from its first sampled frame to the frame before the next shot's first one. The
    first shot begins at 0, and the last shot ends with the video. Both ends belong to the shot.
    """
    import numpy as np

    firsts = [0, *(structure.picks[start] for start in structure.starts[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), structure.n_frames - 1]
    return {
        "change_points": np.array(list(zip(firsts, lasts, strict=True)), dtype=np.int64),
        "n_frame_per_seg": np.array(lasts, dtype=np.int64) - np.array(firsts) + 1,
        "n_frames": np.int64(structure.n_frames),
        "n_steps": np.int64(len(structure.picks)),
        "picks": np.array(structure.picks, dtype=np.int64),
        "gtscore": np.array(structure.importance, dtype=np.float64),
        "gtframe": np.isin(np.arange(len(structure.picks)), structure.keyframes).astype(np.int64),
        "shot_level_gt": np.isin(np.arange(len(firsts)), structure.key_shots).astype(np.int64),
    }


def _write(out: Path, content: Mapping[str, Any], videos: Sequence[Structure]) -> None:
    """Write both files, each completely or not at all, and link the videos in their order."""
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
                # The link keeps a known ending, by which files are found; readers look at the
                # content.
                known = made.video.suffix.lower() in released_files.VIDEO_ENDINGS
                ending = made.video.suffix.lower() if known else ".mp4"
                link = out / "videos" / OWN / f"{key}{ending}"
                if link.is_symlink() or not link.exists():  # a user's own copy stays
                    released_files.put(made.video.resolve(), link, link=True)
        partial.replace(file)
        write_json(text, dict(content))
    except OSError as error:
        told = " ".join(str(error).split())
        raise DataError(f"{file}: cannot be written ({told})") from None
