"""Scores, picks and features of the user's: what they mean, and every line about bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven.records import given
from tests.checks import refused, table

PICKS = [0, 5, 10, 15]  # of 20 frames


def write(folder: Path, name: str, content: Any) -> Path:
    file = folder / name
    if isinstance(content, np.ndarray):
        np.save(file, content)
    else:
        text = content if isinstance(content, str) else json.dumps(content)
        file.write_text(text, encoding="utf-8")
    return file


def test_scores_of_sampled_or_of_original_frames(tmp_path: Path) -> None:
    every = [float(n) for n in range(20)]
    for values, found in (([1, 0, 2.5, 3], [1, 0, 2.5, 3]), (every, [0, 5, 10, 15])):
        for name, content in (("s.json", values), ("s.npy", np.array(values))):
            assert given.scores(write(tmp_path, name, content), PICKS, 20) == found


@table(
    "name, content, why",
    [
        ("s.json", [1, 2, 3], "3 scores, but the video has 4 sampled and 20 original frames"),
        ("s.json", [1, 2, -1, 3], "score 2 is -1: expected a number from 0 to 1e"),
        ("s.json", "[1, 2, NaN, 3]", "score 2 is nan"),
        ("s.json", [1, 2, "3", 4], "expected a list of numbers"),
        ("s.json", [1, 2, True, 4], "expected a list of numbers"),
        ("s.npy", "text", "not a readable NPY file"),
        ("s.npy", np.ones((4, 1)), r"an array of shape \(4, 1\): expected \(frames,\)"),
        ("s.npy", np.array([1, np.nan, 0, 0]), "score 1 is nan"),
        ("s.npy", np.array([None]), "not a readable NPY file"),
        ("p.json", [[20]], "annotator 1 picked 20: expected a frame number from 0 to 19"),
        ("p.json", [[0], [-1]], "annotator 2 picked -1"),
        ("p.json", [[1.5]], "annotator 1 picked 1.5"),
        ("p.json", [1, 2], "one list of frame numbers per annotator"),
        ("p.json", [], "nobody picked a frame"),
        ("f.npy", np.ones((3, 2)), r"an array of shape \(3, 2\): expected \(4, d\)"),
        ("f.npy", np.ones((4, 0)), r"expected \(4, d\)"),
        ("f.npy", np.array([[1.0], [2.0], [np.inf], [3.0]]), "row 2 holds a number that is not f"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: Any, why: str) -> None:
    file = write(tmp_path, name, content)
    if name[0] == "f":
        told = refused(DataError, why, given.features, file, 4)
    else:
        read = given.scores if name[0] == "s" else given.shares
        told = refused(DataError, why, read, file, PICKS, 20)
    assert str(file) in told


def test_picks_are_shares_of_annotators(tmp_path: Path) -> None:
    # The first picked 0 three times over (0, 1, and 2 is nearer to 0 than to 5) and 15 (19);
    # the second 5 (3, and 7, which is nearer to 5); the third nothing.
    file = write(tmp_path, "p.json", [[0, 1, 2, 19], [3, 7], []])
    assert given.shares(file, PICKS, 20) == [1 / 3, 1 / 3, 0, 1 / 3]
    both = write(tmp_path, "p.json", [[5], [5, 10]])
    assert given.shares(both, PICKS, 20) == [0, 1, 0.5, 0]


def test_a_file_or_a_folder_of_files(tmp_path: Path) -> None:
    video = Path("/somewhere/holiday.mp4")
    file = write(tmp_path, "holiday.json", [])
    assert given.file_of(file, video, given.SCORES, "--scores") == file
    assert given.file_of(tmp_path, video, given.SCORES, "--scores") == file
    for place, endings, told in (
        (tmp_path, given.FEATURES, r"--option .*: has no holiday\.npy for /somewhere"),
        (tmp_path / "x.npy", given.SCORES, "no such file"),
        (write(tmp_path, "p.txt", []), given.PICKS, r"expected a file that ends in \.json"),
    ):
        refused(DataError, told, given.file_of, place, video, endings, "--option")
