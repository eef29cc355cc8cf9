"""A small valid release of HAVEN, made anew for a test, with a hook to break any field of it.

    write(root / "haven")                                two videos of TVSum, JSON and HDF5
    write(folder, "summe", change=lambda data, arrays: data["video_1"].pop("frames"))

No video files: `picks` are every 15th frame of an original video that nobody has. The same call
writes the same bytes. Importance has ties; no text tells the number of its frame or shot.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lmms_eval_tasks.haven.options import budget

STEP = 15  # original frames between two picks
Data = dict[str, Any]
Change = Callable[[Data, Data], object]

_WHO = ("a gardener", "a child", "an old sailor", "a cook", "the postman", "a grey cat")
_DOES = ("opens", "carries", "paints", "drops", "looks for", "repairs", "sells")
_WHAT = ("a red kite", "a wooden box", "the green door", "a bicycle", "an empty boat")
_WHERE = ("in the yard", "by the river", "on the stairs", "under a lamp")


def write(
    folder: Path,
    source: str = "tvsum",
    videos: int = 2,
    frames: int = 20,
    shots: int = 4,
    change: Change | None = None,
    hdf5: bool = True,
) -> Path:
    """Write one source's JSON and HDF5 below `folder` and return `folder`.

    Args:
        folder: ROOT/haven, or the release's `data` folder.
        source: a slug of options.SOURCES.
        videos: how many: video_1, video_2, ...
        frames: sampled frames of each video, at least `shots`.
        shots: of each video.
        change: called with what will be written, to change it in place: the JSON's content, and
            HDF5's as {video: {dataset: value}}.
        hdf5: whether to write the HDF5 file.
    """
    data, arrays = content(source, videos, frames, shots)
    if change is not None:
        change(data, arrays)
    text = folder / "processed" / f"{source}_data.json"
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_text(json.dumps(data), encoding="utf-8")
    if hdf5:
        write_hdf5(folder / source / "h5" / f"{source}.h5", arrays)
    return folder


def write_hdf5(file: Path, arrays: Data) -> Path:
    """Write {video: {dataset: value}} as one HDF5 file, a group per video."""
    import h5py

    file.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(file, "w") as store:
        for video, datasets in arrays.items():
            group = store.create_group(video)
            for name, value in datasets.items():
                group.create_dataset(name, data=value)
    return file


def content(
    source: str = "tvsum", videos: int = 2, frames: int = 20, shots: int = 4
) -> tuple[Data, Data]:
    """What `write` writes: the JSON's content, and HDF5's as {video: {dataset: value}}."""
    names = [f"video_{number}" for number in range(1, videos + 1)]
    made = {name: _video(source, place, frames, shots) for place, name in enumerate(names)}
    return {name: made[name][0] for name in names}, {name: made[name][1] for name in names}


def _video(source: str, video: int, frames: int, shots: int) -> tuple[Data, Data]:
    picks = [STEP * place for place in range(frames)]
    starts = [place * frames // shots for place in range(shots + 1)]  # of shots, in sampled frames
    # Frames tie, and so do shots of one length that are three apart.
    scores = [
        ((7 * (place - first) + 4 * (shot % 3) + 3 * video) % 11 // 2) / 5
        for shot, (first, last) in enumerate(pairwise(starts))
        for place in range(first, last)
    ]
    best = sorted(range(frames), key=lambda place: (-scores[place], place))[: budget(frames)]
    key = [place in best for place in range(frames)]
    inside = [picks[first:last] for first, last in pairwise(starts)]
    means = [float(np.mean(scores[a:b])) for a, b in pairwise(starts)]
    key_shot = int(np.argmax(means))
    entry = {
        "frames": [
            {
                "frame_id": pick,
                "description": _sentence(video * 31 + place),
                "is_gt": int(key[place]),
                "status": "success",
            }
            for place, pick in enumerate(picks)
        ],
        "clips": [
            {
                "clip_id": number,
                "summary": _sentence(video * 17 + number * 5 + 3),
                "gt": int(number == key_shot),
                "frames": own,
                "frame_count": len(own),
                "status": "success",
            }
            for number, own in enumerate(inside)
        ],
        "aligned_full_document": _block(shots, video * 13 + 1, 2),
        "aligned_text_summary": _block(shots, video * 7 + 2, 3),
        "video_name": f"{source} clip {video + 1}",
    }
    arrays = {
        "change_points": np.array([[STEP * a, STEP * b - 1] for a, b in pairwise(starts)]),
        "gtframe": np.array(key, dtype=np.float32),
        "gtscore": np.array(scores),
        "n_frame_per_seg": np.array([STEP * (b - a) for a, b in pairwise(starts)]),
        "n_frames": np.int64(STEP * frames),
        "n_steps": np.int64(frames),
        "picks": np.array(picks),
        "shot_level_gt": np.array([number == key_shot for number in range(shots)], dtype=np.int32),
    }
    return entry, arrays


def _block(shots: int, seed: int, each: int) -> Data:
    """Sentences of `each` shots and fewer at the end, with their alignment."""
    groups = [list(range(first, min(first + each, shots))) for first in range(0, shots, each)]
    sentences = [_sentence(seed + 11 * place) for place in range(len(groups))]
    return {
        "sentences": sentences,
        "alignments": [
            {"sentence_id": place, "shot_ids": group} for place, group in enumerate(groups)
        ],
        "raw_text": " ".join(sentences),
    }


def _sentence(number: int) -> str:
    """One of 420 sentences; neighbours differ in every word."""
    parts = (bank[number % len(bank)] for bank in (_WHO, _DOES, _WHAT, _WHERE))
    return f"{' '.join(parts).capitalize()}."
