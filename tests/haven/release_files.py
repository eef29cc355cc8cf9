"""A small valid release of HAVEN, made anew for a test, with a hook to break any field of it.

    write(folder, "summe", change=lambda data, arrays: data["video_1"].pop("frames"))

What is read of a release, and no more: the packaged sample has all of its form. No video files:
`picks` are every 15th frame of an original video that nobody has. Importance has ties.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lmms_eval_tasks.haven.options import capacity

STEP = 15  # original frames between two picks
Data = dict[str, Any]
Change = Callable[[Data, Data], object]


def write(
    folder: Path,
    source: str = "tvsum",
    videos: int = 2,
    frames: int = 20,
    shots: int = 4,
    change: Change | None = None,
    hdf5: bool = True,
) -> Path:
    """Write one source's JSON and HDF5 below `folder` (ROOT/haven) and return `folder`.

    Args:
        change: called with what will be written, to change it in place: the JSON's content, and
            HDF5's as {video: {dataset: value}}.
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
    numbers = range(1, videos + 1)
    made = {f"video_{n}": _video(f"{source} clip {n}", n, frames, shots) for n in numbers}
    data, arrays = ({video: both[place] for video, both in made.items()} for place in (0, 1))
    return data, arrays


def _video(name: str, number: int, frames: int, shots: int) -> tuple[Data, Data]:
    spans = list(pairwise(place * frames // shots for place in range(shots + 1)))
    # Frames tie, and so do shots of one length that are three apart.
    scores = [
        ((7 * (place - first) + 4 * (shot % 3) + 3 * number) % 11 // 2) / 5
        for shot, (first, last) in enumerate(spans)
        for place in range(first, last)
    ]
    best = sorted(range(frames), key=lambda place: (-scores[place], place))
    key = [int(place in best[: max(1, capacity(frames))]) for place in range(frames)]
    picks = [STEP * place for place in range(frames)]
    entry = {
        "frames": [
            {"frame_id": pick, "description": f"A view of {pick} in {name}.", "is_gt": is_key}
            for pick, is_key in zip(picks, key, strict=True)
        ],
        "clips": [
            {"clip_id": n, "summary": f"What {n} does.", "gt": int(n == 0), "frames": picks[a:b]}
            for n, (a, b) in enumerate(spans)
        ],
        "aligned_full_document": _block(shots, 2),
        "aligned_text_summary": _block(shots, 3),
        "video_name": name,
    }
    arrays = {
        "change_points": np.array([[STEP * a, STEP * b - 1] for a, b in spans]),
        "gtframe": np.array(key, dtype=np.float32),
        "gtscore": np.array(scores),
        "n_frames": np.int64(STEP * frames),
        "picks": np.array(picks),
    }
    return entry, arrays


def _block(shots: int, each: int) -> Data:
    """Sentences of `each` shots and fewer at the end, with their alignment."""
    groups = [list(range(first, min(first + each, shots))) for first in range(0, shots, each)]
    aligned = [{"sentence_id": place, "shot_ids": group} for place, group in enumerate(groups)]
    told = [f"Thing {place} happens in {each}." for place in range(len(groups))]
    return {"sentences": told, "alignments": aligned}
