"""MAIA's packaged clips, decoded from their files: they show and sound what the scenes say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval_tasks.maia import sample
from lmms_eval_tasks.maia.sample_scene import BALL, FPS, HORIZON, SCENES, Scene

RATE = 16_000
WINDOW, GUARD = 0.02, 0.04  # seconds of sound that are looked at, and beside the ends of a tone


def decoded(path: Path) -> tuple[Any, Any]:
    """Frames (n, height, width, 3) and samples (n,)."""
    with av.open(str(path)) as clip:
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)])
    with av.open(str(path)) as clip:
        sound = np.concatenate([block.to_ndarray()[0] for block in clip.decode(audio=0)])
    return frames, sound


@pytest.fixture(scope="module", params=SCENES, ids=lambda scene: scene.mover.noun)
def clip(request, sample_root) -> tuple[Scene, Any, Any]:
    scene = request.param
    return scene, *decoded(sample_root / "maia" / "videos" / f"{scene.number}.mp4")


def where(frame: Any, colour: tuple[int, int, int]) -> tuple[Any, Any]:
    """x and y of the pixels that have about this colour."""
    ys, xs = np.nonzero(np.abs(frame.astype(int) - colour).max(axis=2) < 40)
    return xs, ys


def test_mover_is_where_the_scene_says(clip):
    scene, frames, _ = clip
    assert frames.shape == (scene.seconds * FPS, 240, 384, 3)
    vanished, reappeared = scene.hidden_from_to()
    for index, frame in enumerate(frames):
        time = index / FPS
        xs, ys = where(frame, scene.mover.colour)
        seen = xs[(ys > HORIZON - 10) & (abs(xs - scene.character_x) > 30)]
        if vanished + 0.05 < time < reappeared - 0.05:
            assert len(seen) == 0, time
        elif not vanished - 0.1 < time < reappeared + 0.1:
            assert len(seen) > 0, time
        clear = abs(scene.mover_x(time) - scene.occluder_x) - scene.mover.half_width
        if clear > scene.occluder.half_width:
            middle = (seen.min() + seen.max() + 1) / 2
            assert abs(middle - scene.mover_x(time)) < 3, time


def test_target_falls_and_face_turns_at_the_hit(clip):
    scene, frames, _ = clip
    for index, frame in enumerate(frames):
        xs, ys = where(frame, scene.target.colour)
        near = abs(xs - scene.target_x) < scene.target.half_width
        upper = near & (ys < 190 - 0.65 * scene.target.height) & (ys > 130)
        if not scene.hit < index / FPS <= scene.hit + 0.4:
            assert upper.any() == (index / FPS <= scene.hit), index
        x = int(scene.character_x)
        ys, xs = (frame[118:134, x - 12 : x + 13].max(axis=2) < 100).nonzero()  # the mouth
        sag = ys[abs(xs - 12) <= 2].mean() - ys[abs(xs - 12) >= 8].mean()
        assert (sag > 2) if scene.is_glad(index / FPS) else (sag < -2), index


def test_bird_hides_and_stays(clip):
    scene, frames, _ = clip
    hidden = scene.bird_hidden_from()
    assert (hidden > scene.hit) is (scene is BALL)
    for index, frame in enumerate(frames):
        xs, ys = where(frame, scene.bird.colour)
        free = (xs > 90) | (ys > 90) if not scene.night else ys > 0  # the sun is yellow too
        seen = int((free & (ys < 190)).sum())
        if index / FPS >= hidden:
            assert seen == 0, index
        elif index / FPS < hidden - 0.4:
            assert seen > 60, index


def test_sound_is_loud_exactly_when_the_scene_says(clip):
    scene, _, sound = clip
    assert abs(len(sound) / RATE - scene.seconds) < 0.15
    tones = [(tone.start, tone.start + tone.seconds) for tone in scene.tones()]
    assert tones[0][0] == scene.hit
    checked = {True: 0, False: 0}
    for start in np.arange(0, scene.seconds - WINDOW, WINDOW):
        end = start + WINDOW
        loudness = float(np.sqrt(np.mean(sound[round(start * RATE) : round(end * RATE)] ** 2)))
        if any(a + GUARD <= start and end <= b - GUARD for a, b in tones):
            assert loudness > 0.2, start
            checked[True] += 1
        elif all(end <= a - GUARD or start >= b + GUARD for a, b in tones):
            assert loudness < 0.01, start
            checked[False] += 1
    assert min(checked.values()) > 15


def test_two_builds_decode_to_the_same(sample_root, tmp_path):
    sample.write(tmp_path)
    for name in ("data.json", "key.json"):
        assert (tmp_path / name).read_bytes() == (sample_root / "maia" / name).read_bytes()
    for scene in SCENES:
        name = f"videos/{scene.number}.mp4"
        made = decoded(sample_root / "maia" / name), decoded(tmp_path / name)
        for one, other in zip(*made, strict=True):
            assert np.array_equal(one, other)
