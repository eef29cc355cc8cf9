"""MAIA's packaged clips, decoded from their files: they show and sound what the scenes say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maia import sample
from lmms_eval_tasks.maia.sample_scene import BALL, CAR, FPS, HORIZON, SCENES, Scene


def decoded(path: Path) -> tuple[Any, Any]:
    """Frames (n, height, width, 3) and samples (n,)."""
    import av
    import numpy as np

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
    import numpy as np

    ys, xs = np.nonzero(np.abs(frame.astype(int) - colour).max(axis=2) < 40)
    return xs, ys


def mover_pixels(scene: Scene, frame: Any) -> Any:
    xs, ys = where(frame, scene.mover.colour)
    return xs[(ys > HORIZON - 10) & (abs(xs - scene.character_x) > 30)]


def test_length_and_streams(clip, sample_root):
    import av

    scene, frames, sound = clip
    assert len(frames) == scene.seconds * FPS
    assert frames.shape[1:] == (240, 384, 3)
    assert abs(len(sound) / 16_000 - scene.seconds) < 0.15
    with av.open(str(sample_root / "maia" / "videos" / f"{scene.number}.mp4")) as file:
        video, audio = file.streams.video[0], file.streams.audio[0]
        assert video.codec_context.name == "h264"
        assert video.codec_context.pix_fmt == "yuv420p"
        assert video.average_rate == FPS
        assert audio.codec_context.name == "aac"


def test_mover_is_where_the_scene_says(clip):
    scene, frames, _ = clip
    vanished, reappeared = scene.hidden_from_to()
    for index, frame in enumerate(frames):
        time = index / FPS
        seen = mover_pixels(scene, frame)
        if vanished + 0.05 < time < reappeared - 0.05:
            assert len(seen) == 0, time
        elif not vanished - 0.1 < time < reappeared + 0.1:
            assert len(seen) > 0, time
        clear = abs(scene.mover_x(time) - scene.occluder_x) - scene.mover.half_width
        if clear > scene.occluder.half_width:
            middle = (seen.min() + seen.max() + 1) / 2
            assert abs(middle - scene.mover_x(time)) < 3, time
    first, last = (mover_pixels(scene, frame).mean() for frame in (frames[0], frames[-1]))
    assert (first < 192 < last) if scene is BALL else (last < 192 < first)


def test_target_falls_at_the_hit(clip):
    scene, frames, _ = clip
    for index, frame in enumerate(frames):
        xs, ys = where(frame, scene.target.colour)
        near = abs(xs - scene.target_x) < scene.target.half_width
        upper = near & (ys < 190 - 0.65 * scene.target.height) & (ys > 130)
        if index / FPS <= scene.hit:
            assert upper.any(), index
        elif index / FPS > scene.hit + 0.4:
            assert not upper.any(), index


def test_face_turns_with_the_fall(clip):
    scene, frames, _ = clip
    for index, frame in enumerate(frames):
        x = int(scene.character_x)
        mouth = frame[118:134, x - 12 : x + 13].max(axis=2) < 100
        ys, xs = mouth.nonzero()
        sag = ys[abs(xs - 12) <= 2].mean() - ys[abs(xs - 12) >= 8].mean()
        assert (sag > 2) if scene.is_glad(index / FPS) else (sag < -2), index
    assert scene.is_glad(0) is (scene is CAR)
    assert scene.is_glad(scene.seconds) is (scene is BALL)


def test_bird_hides_and_stays(clip):
    scene, frames, _ = clip
    hidden = scene.bird_hidden_from()
    for index, frame in enumerate(frames):
        xs, ys = where(frame, scene.bird.colour)
        free = (xs > 90) | (ys > 90) if not scene.night else ys > 0  # the sun is yellow too
        seen = int((free & (ys < 190)).sum())
        if index / FPS >= hidden:
            assert seen == 0, index
        elif index / FPS < hidden - 0.4:
            assert seen > 60, index
    assert (hidden > scene.hit) is (scene is BALL)


def test_day_and_season(clip):
    scene, frames, _ = clip
    sky, ground = frames[0][4:20, 180:220].mean(), frames[0][222:238, 100:140].mean(axis=(0, 1))
    assert (sky < 80) if scene.night else (sky > 150)
    assert (ground.min() > 200) if scene.winter else (ground[1] > ground[0] + 40)


def test_sound_is_loud_exactly_when_the_scene_says(clip):
    import numpy as np

    scene, _, sound = clip
    tones = scene.tones()
    assert len(tones) == 1 + scene.beeps
    assert tones[0].start == scene.hit
    window, guard = 0.02, 0.04
    checked = {True: 0, False: 0}
    for start in np.arange(0, scene.seconds - window, window):
        block = sound[round(start * 16_000) : round((start + window) * 16_000)]
        loudness = float(np.sqrt(np.mean(block**2)))
        inside = any(
            t.start + guard <= start and start + window <= t.start + t.seconds - guard
            for t in tones
        )
        outside = all(
            start + window <= t.start - guard or start >= t.start + t.seconds + guard for t in tones
        )
        if inside:
            assert loudness > 0.2, start
        elif outside:
            assert loudness < 0.01, start
        checked[True] += inside
        checked[False] += outside
    assert min(checked.values()) > 15


def test_two_builds_decode_to_the_same(sample_root, tmp_path):
    import numpy as np

    sample.write(tmp_path)
    for name in ("data.json", "key.json"):
        assert (tmp_path / name).read_bytes() == (sample_root / "maia" / name).read_bytes()
    for scene in SCENES:
        name = f"videos/{scene.number}.mp4"
        made = decoded(sample_root / "maia" / name), decoded(tmp_path / name)
        for one, other in zip(*made, strict=True):
            assert np.array_equal(one, other)
