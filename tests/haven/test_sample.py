"""The packaged sample: the release's schema to the letter; frames and texts show what it says."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import sample as samples
from lmms_eval_tasks.haven import options, sample
from lmms_eval_tasks.haven import sample_stories as stories
from lmms_eval_tasks.haven.options import PAPER_COUNTS, budget
from lmms_eval_tasks.haven.records import release as released
from lmms_eval_tasks.haven.sample import Mark
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
    assert samples.BENCHMARKS["haven"] == sample.__name__
    for name in sample.ALSO:
        assert (Path(sample.__file__).parent / name).is_file()
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


# --- truth, computed again from the files alone ---------------------------------------------------


@BY_STORY
def test_keyframes_are_the_highest_and_the_earlier_of_a_tie(folder: Path, story: Story) -> None:
    numbers = arrays(folder, story)
    scores = numbers["gtscore"].tolist()
    k = budget(len(scores))
    cut = sorted(scores, reverse=True)[k - 1]
    above = [place for place, score in enumerate(scores) if score > cut]
    tied = [place for place, score in enumerate(scores) if score == cut]
    assert len(above) < k < len(above) + len(tied), "no tie at the cut"
    chosen = sorted(above + tied[: k - len(above)])
    assert np.flatnonzero(numbers["gtframe"]).tolist() == chosen
    shots = {
        next(n for n, (first, last) in enumerate(story.change_points) if first <= pick <= last)
        for pick in (story.picks[place] for place in tied)
    }
    assert len(shots) > 1, "the tie is inside one shot"


def best_sets(values: list[Fraction], weights: list[int], capacity: int) -> list[tuple[int, ...]]:
    """All sets of places within the capacity whose values add up highest, by trying them all."""
    places = range(len(values))
    worth = {
        chosen: sum((values[place] for place in chosen), Fraction())
        for size in range(len(values) + 1)
        for chosen in combinations(places, size)
        if sum(weights[place] for place in chosen) <= capacity
    }
    return [chosen for chosen, value in worth.items() if value == max(worth.values())]


@BY_STORY
def test_key_shots_are_the_only_best_and_shots_tie(folder: Path, story: Story) -> None:
    numbers, clips = arrays(folder, story), annotation(folder, story)["clips"]
    level = dict(zip(numbers["picks"].tolist(), numbers["gtscore"].tolist(), strict=True))
    scores = [[Fraction(level[frame]) for frame in clip["frames"]] for clip in clips]
    means = [sum(own, Fraction()) / len(own) for own in scores]
    weights = [len(own) for own in scores]
    chosen = tuple(np.flatnonzero(numbers["shot_level_gt"]).tolist())
    for values in (means, [sum(own, Fraction()) for own in scores]):  # the paper names no way
        assert best_sets(values, weights, len(level) * 15 // 100) == [chosen]
    assert any(
        one == other and weights[a] != weights[b]
        for (a, one), (b, other) in combinations(enumerate(means), 2)
    )


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
    for scene, (first, last) in zip(story.scenes, story.change_points, strict=True):
        middle = frames[(first + last) // 2]
        corner = middle[4, 4].astype(int)
        centre = middle[round(height * sample.TOP_EDGE / 2), width // 2].astype(int)
        for pixel, name in ((corner, scene.ground), (centre, scene.colour)):
            near = min(sample.PALETTE, key=lambda c: np.abs(pixel - sample.PALETTE[c]).sum())
            assert near == name
    assert len(set(story.scenes)) == len(story.scenes)


def test_other_pictures_say_nothing() -> None:
    for shade in (0, 60, 127, 128, 200, 255):
        assert sample.read(np.full((128, 160, 3), shade, dtype=np.uint8)) is None
    draw = np.random.default_rng(0)
    for _ in range(200):
        cells = draw.integers(0, 2, (128 // 8, 160 // 8)) * 255
        picture = np.kron(cells, np.ones((8, 8)))[..., None].repeat(3, axis=2).astype(np.uint8)
        assert sample.read(draw.integers(0, 256, (128, 160, 3), dtype=np.uint8)) is None
        read = sample.read(picture)
        # Any strip of clean cells passes the check sum once in 512.
        assert read is None or sample.striped(picture, read).tolist() == picture.tolist()
    frame = next(sample.frames(STORIES[0]))
    assert sample.read(frame) == sample.mark(STORIES[0], 0)
    for other in (frame[::-1], frame[:, ::-1], frame[:100], np.zeros((1, 1, 3), dtype=np.uint8)):
        assert sample.read(other) is None
    # One flipped cell is noticed.
    mark = Mark(frame=35, level=6, total=34, sampled=6, scene=17, key=True)
    picture = sample.striped(np.zeros((128, 160, 3), dtype=np.uint8), mark)
    assert sample.read(picture) == mark
    for row in range(sample.ROWS):
        for column in range(sample.COLUMNS):
            damaged = picture.copy()
            cell = damaged[112 + 8 * row : 120 + 8 * row, 8 * column : 8 * column + 8]
            cell[:] = 255 - cell
            assert sample.read(damaged) is None
    with pytest.raises(ValueError, match="frame=256 does not fit into 8 bits"):
        sample.bits(Mark(256, 1, 1, 1, 1, False))
