"""The files that `lmms-eval-tasks haven build` writes, in the form of HAVEN's release.

    OUT/processed/SOURCE_data.json    OUT/SOURCE/h5/SOURCE.h5
    OUT/videos/SOURCE/video_N.mp4     a link to the user's file

A video is found by its name, that of its file without the ending. Each file is written whole or not
at all, the JSON file last: a video that is in it is in both. One process writes at a time.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records.schema import Block, read_json
from lmms_eval_tasks.haven.records.steps import Said, Texts
from lmms_eval_tasks.haven.records.structure import Structure
from lmms_eval_tasks.utils import released_files
from lmms_eval_tasks.utils.json_files import write_json

BUILD = "build"  # our field of a video: how it was made
_PATIENCE = 60.0  # seconds to wait for another process that writes


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


def find(videos: Mapping[str, Any], name: str) -> str | None:
    """The key of the video with this name, if there is one."""
    return next((key for key, video in videos.items() if video.get("video_name") == name), None)


def texts_of(video: Mapping[str, Any], place: str) -> Texts:
    """The texts that a video of the file has.

    Raises:
        DataError: it is damaged.
    """
    try:
        held = read_json(video)
    except DataError as error:
        raise DataError(f"{place}: {error}; mend it, or make it again with --replace") from None

    def block(told: Block) -> tuple[Said, ...]:
        return tuple(Said(text, tuple(shots)) for text, shots in told.told())

    return Texts(
        tuple(frame.description for frame in held.frames),
        tuple(clip.summary for clip in held.clips),
        block(held.aligned_full_document),
        block(held.aligned_text_summary),
    )


def record(made: Structure, texts: Texts, name: str, build: Mapping[str, Any]) -> dict[str, Any]:
    """A video as the JSON file has it."""
    picks = made.sampled.picks

    def status(text: str) -> str:
        return "ok" if text else "missing"

    def block(sentences: tuple[Said, ...]) -> dict[str, Any]:
        shots = [{"sentence_id": n, "shot_ids": list(s.shots)} for n, s in enumerate(sentences)]
        told = [one.text for one in sentences]
        return {"sentences": told, "alignments": shots, "raw_text": " ".join(told)}

    return {
        "video_name": name,
        "frames": [
            {
                "frame_id": pick,
                "description": text,
                "is_gt": place in made.keyframes,
                "status": status(text),
            }
            for place, (pick, text) in enumerate(zip(picks, texts.frames, strict=True))
        ],
        "clips": [
            {
                "clip_id": place,
                "summary": text,
                "gt": place in made.key_shots,
                "frames": [picks[n] for n in shot],
                "frame_count": len(shot),
                "status": status(text),
            }
            for place, (shot, text) in enumerate(zip(made.shots, texts.shots, strict=True))
        ],
        "aligned_full_document": block(texts.document),
        "aligned_text_summary": block(texts.summary),
        BUILD: dict(build),
    }


def arrays(made: Structure) -> dict[str, Any]:
    """A video's group of the HDF5 file: name -> numpy array or number.

    A shot goes from its first sampled frame to the frame before the next shot's, the first one from
    0 and the last one to the video's end; both ends belong to it.
    """
    import numpy as np

    picks, n_frames = made.sampled.picks, made.sampled.n_frames
    firsts = [0, *(picks[start] for start in made.starts[1:])]
    lasts = [*(first - 1 for first in firsts[1:]), n_frames - 1]
    return {
        "change_points": np.array(list(zip(firsts, lasts, strict=True)), dtype=np.int64),
        "n_frame_per_seg": np.array(lasts, dtype=np.int64) - np.array(firsts) + 1,
        "n_frames": np.int64(n_frames),
        "n_steps": np.int64(len(picks)),
        "picks": np.array(picks, dtype=np.int64),
        "gtscore": np.array(made.sampled.importance, dtype=np.float64),
        "gtframe": np.isin(np.arange(len(picks)), made.keyframes).astype(np.int64),
        "shot_level_gt": np.isin(np.arange(len(firsts)), made.key_shots).astype(np.int64),
    }


def put(out: Path, source: str, video: Mapping[str, Any], made: Structure) -> str:
    """Write a video into both files, new or in place of the one of its name, and link its file.

    Returns:
        Its key: `video_N`, of a new one N is one above the largest there is, from 1.

    Raises:
        DataError: another process has been writing for long, or nothing can be written there.
    """
    from filelock import FileLock, Timeout

    try:
        for file in (json_file(out, source), h5_file(out, source)):
            file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(out / f".{source}.lock", timeout=_PATIENCE):
            held = read(out, source)
            numbers = [int(key[6:]) for key in held if re.fullmatch(r"video_\d+", key)]
            name = str(video["video_name"])
            key = find(held, name) or f"video_{max(numbers, default=0) + 1}"
            _put_arrays(h5_file(out, source), key, {**arrays(made), "video_name": name})
            _link(out / "videos" / source, key, made.sampled.video)
            write_json(json_file(out, source), {**held, key: dict(video)})
            return key
    except Timeout:
        raise DataError(f"{out}: another process writes {source} there; try again later") from None
    except OSError as error:
        told = " ".join(str(error).split())
        raise DataError(f"{out}: cannot be written or added to ({told})") from None


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
