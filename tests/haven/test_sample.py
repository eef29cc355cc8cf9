"""The packaged sample: the release's schema to the letter; frames and texts show what it says."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.haven import options, sample
from lmms_eval_tasks.haven import sample_stories as stories
from lmms_eval_tasks.haven.options import PAPER_COUNTS
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.sample_stories import SCENES, STORIES, TOP, Story
from tests.haven.sample_requests import annotation, arrays, build

BY_STORY = pytest.mark.parametrize("story", STORIES, ids=lambda s: f"{s.source}/{s.video}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"))


# --- files ----------------------------------------------------------------------------------------


def test_all_sources_and_nothing_else(folder: Path, tmp_path: Path) -> None:
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == {
        "key.json",
        "replay.jsonl",
        *(f"processed/{source}_data.json" for source in PAPER_COUNTS),
        *(f"{source}/h5/{source}.h5" for source in PAPER_COUNTS),
        *(f"videos/{story.source}/{story.video}.mp4" for story in STORIES),
    }
    assert len(STORIES) == 8
    assert json.loads((folder / "key.json").read_text()) == {"pictures": ["haven"]}
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 1_000_000
    again = build(tmp_path)
    for name in found:
        assert (folder / name).read_bytes() == (again / name).read_bytes(), name
    kinds = {type(annotation(folder, story)["frames"][0]["is_gt"]) for story in STORIES}
    assert kinds == {bool, int}  # the release has both


def test_the_schema_takes_it(folder: Path) -> None:
    release = released.read(folder, options.Options())
    assert not release.problems
    by_id = {record.id: record for record in release.records}
    for story in STORIES:
        record = by_id.pop(f"{story.source}/{story.video}")
        assert (record.gaps, record.picks, record.keyframes) == ({}, story.picks, story.keyframes)
        assert [list(shot.frames) for shot in record.shots] == story.shots
        assert [n for n, shot in enumerate(record.shots, 1) if shot.key] == story.key_shots
        assert record.importance == pytest.approx([float(v / TOP) for v in story.importance])
        assert record.n_frames == story.n_frames
    assert not by_id


# --- pictures -------------------------------------------------------------------------------------


def video(folder: Path, story: Story) -> Iterator[np.ndarray]:
    with av.open(str(folder / "videos" / story.source / f"{story.video}.mp4")) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


def as_jpeg(pixels: np.ndarray) -> Image.Image:
    stored = io.BytesIO()
    Image.fromarray(pixels).save(stored, "JPEG", quality=95)
    return Image.open(stored)


@BY_STORY
def test_every_picture_says_what_the_files_say(folder: Path, story: Story) -> None:
    numbers, found = arrays(folder, story), annotation(folder, story)
    frames = list(video(folder, story))
    assert len(frames) == numbers["n_frames"]
    width, height = story.size
    assert frames[0].shape[:2] == (height, width)
    shot_of = {frame: clip for clip in found["clips"] for frame in clip["frames"]}
    level = dict(zip(numbers["picks"].tolist(), numbers["gtscore"].tolist(), strict=True))
    for frame in found["frames"]:
        pick, clip = frame["frame_id"], shot_of[frame["frame_id"]]
        mark = sample.read(frames[pick])
        assert mark is not None
        importance = sum(Fraction(level[p]) for p in clip["frames"]) * TOP / len(clip["frames"])
        assert (mark.frame, mark.level) == (pick, level[pick] * TOP)
        assert (mark.importance, mark.key) == (importance, bool(clip["gt"]))
        told = stories.read_frame(frame["description"])
        assert told == (SCENES[mark.scene], mark.level, mark.key)
        assert stories.scenes_of(clip["summary"]) == [SCENES[mark.scene]]
        assert stories.read_importance(clip["summary"]) == mark.importance
        picture = Image.fromarray(frames[pick])
        for other in (
            as_jpeg(frames[pick]),
            picture.resize((width // 2, height // 2)),
            picture.resize((512, 512)),
        ):
            assert sample.read(other) == mark
    # Between the sampled frames too, so that a pick that is off by one shows.
    assert [sample.read(frame) for frame in frames] == [
        sample.mark(story, place) for place in range(len(frames))
    ]
