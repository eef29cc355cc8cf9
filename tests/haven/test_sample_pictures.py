"""What the packaged sample's pictures and texts say is what its files say, and can be read back."""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.haven import sample_code, sample_draw, sample_texts
from lmms_eval_tasks.haven.sample_code import Mark
from lmms_eval_tasks.haven.sample_stories import SCENES, STORIES, TOP, Story
from tests.haven.sample_requests import annotation, arrays, build

BY_STORY = pytest.mark.parametrize("story", STORIES, ids=lambda s: f"{s.source}/{s.video}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sample"))


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
    assert frames[0].shape[:2] == story.size[::-1]
    shot_of = {frame: clip for clip in found["clips"] for frame in clip["frames"]}
    level = dict(zip(numbers["picks"].tolist(), numbers["gtscore"].tolist(), strict=True))
    for frame in found["frames"]:
        pick, clip = frame["frame_id"], shot_of[frame["frame_id"]]
        mark = sample_code.read(frames[pick])
        assert mark is not None
        assert mark.frame == pick
        assert mark.level == level[pick] * TOP
        assert mark.importance == sum(Fraction(level[p]) for p in clip["frames"]) * TOP / len(
            clip["frames"]
        )
        assert mark.key == bool(clip["gt"])
        told = sample_texts.read_frame(frame["description"])
        assert told == (SCENES[mark.scene], mark.level, mark.key)
        assert sample_texts.scenes_of(clip["summary"]) == [SCENES[mark.scene]]
        assert sample_texts.read_importance(clip["summary"]) == mark.importance
        for other in (
            as_jpeg(frames[pick]),
            Image.fromarray(frames[pick]).resize((story.size[0] // 2, story.size[1] // 2)),
            Image.fromarray(frames[pick]).resize((512, 512)),
        ):
            assert sample_code.read(other) == mark
    # Between the sampled frames too, so that a pick that is off by one shows.
    assert [sample_code.read(frame) for frame in frames] == [
        sample_draw.mark(story, place) for place in range(len(frames))
    ]


@BY_STORY
def test_scenes_are_drawn_as_they_are_described(folder: Path, story: Story) -> None:
    frames = list(video(folder, story))
    width, height = story.size
    for scene, (first, last) in zip(story.scenes, story.change_points, strict=True):
        middle = frames[(first + last) // 2]
        corner = middle[4, 4].astype(int)
        centre = middle[round(height * sample_code.TOP_EDGE / 2), width // 2].astype(int)
        for pixel, name in ((corner, scene.ground), (centre, scene.colour)):
            near = min(
                sample_draw.PALETTE, key=lambda c: np.abs(pixel - sample_draw.PALETTE[c]).sum()
            )
            assert near == name
    assert len(set(story.scenes)) == len(story.scenes)


@pytest.mark.parametrize("shade", [0, 60, 127, 128, 200, 255])
def test_a_plain_picture_says_nothing(shade: int) -> None:
    assert sample_code.read(np.full((128, 160, 3), shade, dtype=np.uint8)) is None


def test_other_pictures_say_nothing() -> None:
    draw = np.random.default_rng(0)
    for _ in range(200):
        cells = draw.integers(0, 2, (128 // 8, 160 // 8)) * 255
        picture = np.kron(cells, np.ones((8, 8)))[..., None].repeat(3, axis=2).astype(np.uint8)
        assert sample_code.read(draw.integers(0, 256, (128, 160, 3), dtype=np.uint8)) is None
        read = sample_code.read(picture)
        # Any strip of clean cells passes the check sum once in 512.
        assert read is None or sample_code.draw(picture, read).tolist() == picture.tolist()
    frame = next(sample_draw.frames(STORIES[0]))
    assert sample_code.read(frame) == sample_draw.mark(STORIES[0], 0)
    assert sample_code.read(frame[::-1]) is None
    assert sample_code.read(frame[:, ::-1]) is None
    assert sample_code.read(frame[:100]) is None
    assert sample_code.read(np.zeros((1, 1, 3), dtype=np.uint8)) is None


def test_one_flipped_cell_is_noticed() -> None:
    mark = Mark(frame=35, level=6, total=34, sampled=6, scene=17, key=True)
    picture = sample_code.draw(np.zeros((128, 160, 3), dtype=np.uint8), mark)
    assert sample_code.read(picture) == mark
    for row in range(sample_code.ROWS):
        for column in range(sample_code.COLUMNS):
            damaged = picture.copy()
            cell = damaged[112 + 8 * row : 120 + 8 * row, 8 * column : 8 * column + 8]
            cell[:] = 255 - cell
            assert sample_code.read(damaged) is None


def test_a_mark_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="frame=256 does not fit into 8 bits"):
        sample_code.bits(Mark(256, 1, 1, 1, 1, False))


# --- texts ------------------------------------------------------------------------------------


def test_texts_are_read_back() -> None:
    scene = SCENES[17]
    for key in (False, True):
        assert sample_texts.read_frame(sample_texts.frame(scene, 7, key)) == (scene, 7, key)
    assert sample_texts.read_importance(sample_texts.shot(scene, [1, 2, 4])) == Fraction(7, 3)
    for story in STORIES:
        sentences = sample_texts.document(story)
        assert [sample_texts.read_place(one) for one in sentences] == list(range(len(sentences)))
        for texts, shots in (
            (sentences, story.document_shots),
            (
                sample_texts.summary([story.scenes[n - 1] for n in story.key_shots]),
                sample_texts.summary_shots(story.key_shots),
            ),
        ):
            for text, own in zip(texts, shots, strict=True):
                assert sample_texts.scenes_of(text) == [story.scenes[n - 1] for n in own]


@pytest.mark.parametrize("text", ["", "A man walks.", "First a man walks.", "for 0 sampled frames"])
def test_other_texts_tell_nothing(text: str) -> None:
    assert sample_texts.read_frame(text) is None
    assert sample_texts.read_importance(text) is None
    assert sample_texts.read_place(text) is None
    assert sample_texts.scenes_of(text) == []
