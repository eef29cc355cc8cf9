"""Draws and sounds the packaged movies and recaps: scenes, and the code of their seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmms_eval_tasks.movierecapsqa.sample_code import SECONDS, STRIP, Moment
from lmms_eval_tasks.movierecapsqa.sample_scenes import (
    HEIGHT,
    SKIES,
    WIDTH,
    Actor,
    Place,
    Scene,
    Story,
)
from lmms_eval_tasks.sample import second_code
from lmms_eval_tasks.sample.render import Canvas, Colour, Tone, soundtrack
from lmms_eval_tasks.sample.second_code import BAR, PALETTE, TICKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 44_100  # samples a second
CURTAIN: Colour = (66, 66, 72)  # between scenes
STAR_Y, STAR_HALF = 68, 7  # pixels


def frames(story: Story, name: str) -> Iterator[NDArray[np.uint8]]:
    """Every frame, (HEIGHT, WIDTH, 3), of the movie or of the recap; frame i is at i / TICKS s.

    Args:
        story: whose.
        name: of the video: `story.movie_id` or `story.video`.
    """
    empty = Canvas(WIDTH, HEIGHT, CURTAIN)
    skies = {scene.movie: _sky(scene) for scene in story.scenes}
    for index in range(SECONDS[name] * TICKS):
        time = index / TICKS
        canvas = empty
        for scene in story.scenes:
            start, end = scene.movie if name == story.movie_id else scene.recap
            if start <= time < end:
                canvas = skies[scene.movie].copy()
                for actor in scene.actors.values():
                    place = actor.at((time - start) / (end - start))
                    if place is not None:
                        _draw(canvas, actor, place)
        yield _coded(canvas.pixels(), Moment(name, index // TICKS), index % TICKS)


def sound(name: str) -> NDArray[np.float32]:
    """The tones of a video, (seconds * RATE,), in [-1, 1]."""
    tones = (Tone(s, 1.0, second_code.hertz(Moment(name, s).number)) for s in range(SECONDS[name]))
    return soundtrack(tones, SECONDS[name], RATE)


def _sky(scene: Scene) -> Canvas:
    canvas = Canvas(WIDTH, HEIGHT, SKIES[scene.sky])
    for number in range(scene.stars):
        x = WIDTH * (number + 1) / (scene.stars + 1)
        canvas.ellipse((x, STAR_Y), STAR_HALF, STAR_HALF, PALETTE["white"])
    return canvas


def _draw(canvas: Canvas, actor: Actor, place: Place) -> None:
    (x, y), half, fill = place, actor.half, PALETTE[actor.colour]
    if actor.shape == "circle":
        canvas.ellipse(place, half, half, fill)
    elif actor.shape == "square":
        canvas.rectangle(x - half, y - half, x + half, y + half, fill)
    else:
        canvas.polygon([(x - half, y + half), (x + half, y + half), (x, y - half)], fill)


def _coded(picture: NDArray[np.uint8], moment: Moment, tick: int) -> NDArray[np.uint8]:
    """A scene with its second's colours above it and its frame's bar below it."""
    frame: NDArray[np.uint8] = picture.copy()
    strip, bar = round(STRIP * HEIGHT), round(BAR * HEIGHT)
    left, right = second_code.colours(moment.number)
    frame[:strip, : WIDTH // 2] = PALETTE[left]
    frame[:strip, WIDTH // 2 :] = PALETTE[right]
    frame[bar:] = 0
    frame[bar:, : (tick + 1) * WIDTH // TICKS] = 255
    return frame
