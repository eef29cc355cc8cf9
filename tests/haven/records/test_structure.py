"""Sampling, keyframes and key shots, by hand."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from lmms_eval_tasks.errors import DataError, MediaError, TasksError
from lmms_eval_tasks.haven.records import structure
from tests.checks import refused, table
from tests.haven.records.desk import SCORES, STARTS, F

PICKS = [0, 5, 10, 15]  # of 20 frames
VIDEO = Path("holiday.mp4")
NPY = (
    b"\x93NUMPY\x01\x00"
    + b"\x46\x00"
    + b"{'descr': '<f8', 'fortran_order': False, 'shape': (4,)}".ljust(69)
    + b"\n"
    + bytes(32)
)


def write(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    if isinstance(content, np.ndarray):
        np.save(file, content)
    elif isinstance(content, bytes):
        file.write_bytes(content)
    else:
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


# --- what a user gives ----------------------------------------------------------------------------


def test_scores_of_sampled_or_of_original_frames(tmp_path: Path) -> None:
    every = [float(n) for n in range(20)]
    for values, found in (([1, 0, 2.5, 3], [1, 0, 2.5, 3]), (every, [0, 5, 10, 15])):
        for name, content in (("holiday.json", values), ("holiday.npy", np.array(values))):
            file = write(tmp_path, name, content)
            for given in (file, tmp_path):
                assert structure.read_scores(given, VIDEO, PICKS, 20) == found
            file.unlink()


@table(
    "name, content, why",
    [
        ("s.json", [1, 2, 3], r"shape \(3,\), but holiday.mp4 has 4 sampled and 20 original fr"),
        ("s.json", [1, 2, -1, 3], "expected finite numbers from 0 to 1e"),
        ("s.json", "[1, 2, NaN, 3]", "expected finite numbers from 0"),
        ("s.json", [1, 2, "3", 4], "not an array of numbers"),
        ("s.json", [True, False, True, True], "not an array of numbers"),
        ("s.json", [[1], [1, 2]], "not an array of numbers"),
        ("s.npy", "text", "not an array of numbers"),
        ("s.npy", np.ones((4, 1)), r"shape \(4, 1\), but"),
        ("s.npy", np.array([None]), "not an array of numbers"),
        (
            "s.npy",
            NPY.replace(b"(4,)", b"(99999999999999,)"),
            "not an array of numbers .Unable to alloc",
        ),
        ("s.npy", NPY.replace(b"(4,)", b"(4, "), "not an array of numbers"),
        ("s.npy", b"PK\x03\x04", "compressed: unpack it first"),
        ("gone.npy", None, "--scores .*gone.npy: no such file"),
    ],
)
def test_bad_numbers_are_one_line(tmp_path: Path, name: str, content: Any, why: str) -> None:
    file = tmp_path / name if content is None else write(tmp_path, name, content)
    refused(DataError, why, structure.read_scores, file, VIDEO, PICKS, 20)


# --- from a video to its structure ----------------------------------------------------------------


@table(
    "n_frames, rate, fps, found",
    [
        (150, 10.0, 2.0, list(range(0, 150, 5))),
        (150, 10.0, 1.0, list(range(0, 150, 10))),
        (10, 3.0, 2.0, [0, 1, 3, 4, 6, 7, 9]),  # floor(k * 1.5)
        (31, 29.97, 1.0, [0, 29]),  # the frame that is on screen at 1 s began at 29 / 29.97
        (5, 1.0, 2.0, [0, 1, 2, 3, 4]),  # a slow video: every frame, none twice
        (1, 25.0, 2.0, [0]),
        (30, 14.999999999 * 2, 2.0, [0, 15]),
    ],
)
def test_frames_are_uniform_in_time(
    n_frames: int, rate: float, fps: float, found: list[int]
) -> None:
    assert structure.indices(n_frames, rate, fps) == found


def test_of_equals_the_earlier_frames_are_keyframes() -> None:
    assert structure.top([1, 3, 2, 3, 2, 2], 3) == [1, 2, 3]
    assert structure.top([0, 0, 0, 0], 1) == [0]


def key_shots(values: list[float], lengths: list[int]) -> list[int]:
    """Of shots whose frames are all equally important."""
    importance = [value for value, n in zip(values, lengths, strict=True) for _ in range(n)]
    starts = [0, *itertools.accumulate(lengths)][:-1]
    return structure.key_shots(importance, starts)


def test_a_shot_is_worth_the_mean_of_its_frames() -> None:
    # 40 frames: 6 at most, so one of the first two; by sums it would be the first, 6 to 4.
    assert key_shots([1.0, 2.0, 0.0], [6, 2, 32]) == [1]
    assert structure.key_shots([1, 1, 1, 1, 1, 1, 0, 3.5] + [0] * 32, [0, 6, 8]) == [1]
    assert structure.key_shots([1, 1, 1, 1, 1, 1, 0, 1.5] + [0] * 32, [0, 6, 8]) == [0]


def test_key_shots_are_the_best_within_the_budget() -> None:
    # 20 frames: 3 of them at most.
    assert key_shots([1.0, 9.0, 5.0], [1, 17, 2]) == [0, 2]
    assert key_shots([1.0, 9.0], [10, 10]) == []  # none fits
    assert key_shots([0.0, 0.0], [1, 19]) == []  # worth nothing


def test_the_structure_of_a_video(tmp_path: Path, holiday: Path) -> None:
    scores = write(tmp_path, "scores.npy", np.array(SCORES))
    made, frames = structure.structure(holiday, scores, 2.0, 4)
    assert (made.n_frames, made.picks, frames.n_frames) == (150, list(range(0, 150, 5)), 150)
    assert made.starts == STARTS
    # 5, 4, 5 and the first of the fourth scene's 3s.
    assert made.keyframes == [12, 13, 14, 25]
    assert made.key_shots == [1]
    assert [len(shot) for shot in made.shots] == [12, 3, 10, 5]
    assert len(structure.structure(holiday, scores)[0].starts) == 3
    told = f"has {F} sampled frames only"
    refused(TasksError, told, structure.structure, holiday, scores, 2.0, 31)
    broken = write(tmp_path, "holiday.mp4", "no video")
    refused(MediaError, r"holiday\.mp4", structure.structure, broken, scores)
