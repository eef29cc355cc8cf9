"""Draws HAVEN's packaged videos: each shot's scene, and below it the frame's strip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmms_eval_tasks.haven import sample_code
from lmms_eval_tasks.haven.sample_code import TOP_EDGE, Mark
from lmms_eval_tasks.haven.sample_stories import Scene, Story
from lmms_eval_tasks.sample.render import Canvas
from lmms_eval_tasks.sample.second_code import PALETTE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HALF = 0.18  # half of a shape's size, as a share of the picture's height
_MARGIN = 0.25  # of the way across where a shape starts and ends


def frames(story: Story) -> Iterator[NDArray[np.uint8]]:
    """Every frame of a video in order, (height, width, 3)."""
    for frame in range(story.n_frames):
        shot, _ = story.shown(frame)
        first, last = story.change_points[shot - 1]
        share = (frame - first) / max(last - first, 1)
        scene = _scene(story.scenes[shot - 1], share, story.size)
        yield sample_code.draw(scene, mark(story, frame))


def mark(story: Story, frame: int) -> Mark:
    """What the strip of frame `frame` of the video says."""
    shot, sampled = story.shown(frame)
    levels = [story.frames[number - 1] for number in story.shots[shot - 1]]
    return Mark(
        frame=frame,
        level=story.frames[sampled - 1],
        total=sum(levels),
        sampled=len(levels),
        scene=story.scenes[shot - 1].number,
        key=shot in story.key_shots,
    )


def _scene(scene: Scene, share: float, size: tuple[int, int]) -> NDArray[np.uint8]:
    """The shape after `share` (0 to 1) of its way from left to right."""
    width, height = size
    canvas = Canvas(width, height, PALETTE[scene.ground])
    fill, half = PALETTE[scene.colour], HALF * height
    x = width * (_MARGIN + (1 - 2 * _MARGIN) * share)
    y = height * TOP_EDGE / 2
    if scene.shape == "circle":
        canvas.ellipse((x, y), half, half, fill)
    elif scene.shape == "square":
        canvas.rectangle(x - half, y - half, x + half, y + half, fill)
    elif scene.shape == "triangle":
        canvas.polygon([(x - half, y + half), (x + half, y + half), (x, y - half)], fill)
    else:
        canvas.polygon([(x - half, y), (x, y - half), (x + half, y), (x, y + half)], fill)
    return canvas.pixels()
