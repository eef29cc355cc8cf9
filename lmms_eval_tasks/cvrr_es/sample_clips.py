"""The packaged clips of CVRR-ES: six small scenes of coloured shapes, and how they are drawn.

What is asked about them is in sample_questions.py; tests check it on decoded frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmms_eval_tasks.sample.render import Canvas, Colour
from lmms_eval_tasks.sample.second_code import PALETTE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH, HEIGHT = 192, 144  # pixels
FPS = 10
SECONDS = 4
NIGHT: Colour = (12, 14, 60)
FLOOR = 128  # row at which what stands on the floor ends
_SMILE, _FROWN = 5, -5  # pixels by which the corners of the mouth lie above its middle


@dataclass(frozen=True)
class Actor:
    """A coloured shape.

    `path` has (second, x, y) of its middle: it stays where it is before the first and after the
    last, and goes straight and evenly between two of them.
    """

    colour: str  # of second_code.PALETTE
    shape: str  # circle, square, triangle, face
    path: tuple[tuple[float, float, float], ...]
    half: int = 14  # half its width, pixels
    since: float = 0.0  # seconds; not there before
    glad_until: float = 0.0  # seconds; of a face, whose mouth turns down then

    def at(self, second: float) -> tuple[float, float]:
        """Its middle in pixels."""
        before = max((p for p in self.path if p[0] <= second), default=self.path[0])
        after = min((p for p in self.path if p[0] > second), default=before)
        gone = (second - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        share = max(gone, 0.0)
        return (
            before[1] + share * (after[1] - before[1]),
            before[2] + share * (after[2] - before[2]),
        )


@dataclass(frozen=True)
class Clip:
    """A video: its ground, and who is in it, drawn in this order."""

    ground: Colour
    actors: tuple[Actor, ...]


def _still(x: float, y: float) -> tuple[tuple[float, float, float], ...]:
    return ((0.0, x, y),)


_STARS = tuple(
    Actor("white", "circle", _still(x, y), half=3)
    for x, y in ((30, 24), (66, 44), (104, 20), (176, 60))
)

# By the name of the file.
CLIPS: dict[str, Clip] = {
    "box.mp4": Clip(
        PALETTE["grey"],
        (
            Actor("white", "square", _still(156, FLOOR - 14)),
            Actor("red", "circle", ((0.0, 20, FLOOR - 14), (2.5, 104, FLOOR - 14))),
        ),
    ),
    "swap.mp4": Clip(
        PALETTE["white"],
        (
            Actor("blue", "square", ((0.3, 30, 110), (1.6, 110, 110))),
            Actor("yellow", "triangle", ((2.0, 160, 30), (3.4, 160, 100))),
        ),
    ),
    "float.mp4": Clip(
        PALETTE["cyan"],
        (
            Actor("brown", "square", _still(30, FLOOR - 14)),
            Actor("orange", "circle", ((0.4, 110, FLOOR - 14), (2.4, 110, 40))),
        ),
    ),
    "pair.mp4": Clip(
        PALETTE["black"],
        (
            Actor("purple", "circle", ((2.0, 90, 90), (3.6, 160, 90))),
            Actor("pink", "circle", ((0.0, 20, 90), (1.6, 58, 90), (2.0, 58, 90), (3.6, 128, 90))),
        ),
    ),
    "face.mp4": Clip(
        PALETTE["brown"],
        (
            Actor("yellow", "face", _still(60, 72), half=36, glad_until=2.4),
            Actor("green", "circle", ((1.0, 130, 100), (2.4, 210, 100))),
        ),
    ),
    "night.mp4": Clip(
        NIGHT,
        (
            Actor("white", "circle", _still(140, 34), half=16),
            *_STARS,
            Actor("black", "square", _still(60, 112), half=28),
            Actor("yellow", "square", _still(60, 110), half=8, since=2.0),
        ),
    ),
}


def frames(clip: Clip) -> Iterator[NDArray[np.uint8]]:
    """Every frame in order, (HEIGHT, WIDTH, 3); frame i is at i / FPS seconds."""
    for index in range(SECONDS * FPS):
        second = index / FPS
        canvas = Canvas(WIDTH, HEIGHT, clip.ground)
        for actor in clip.actors:
            if actor.since <= second:
                _draw(canvas, actor, second)
        yield canvas.pixels()


def _draw(canvas: Canvas, actor: Actor, second: float) -> None:
    (x, y), half, fill = actor.at(second), actor.half, PALETTE[actor.colour]
    if actor.shape == "square":
        canvas.rectangle(x - half, y - half, x + half, y + half, fill)
    elif actor.shape == "triangle":
        canvas.polygon([(x - half, y + half), (x + half, y + half), (x, y - half)], fill)
    else:
        canvas.ellipse((x, y), half, half, fill)
    if actor.shape == "face":
        black = PALETTE["black"]
        for side in (-1, 1):
            canvas.ellipse((x + side * half / 3, y - half / 3), 4, 4, black)
        bend = _SMILE if second < actor.glad_until else _FROWN
        mouth = y + half / 3
        corners = [(x - half / 2, mouth - bend), (x + half / 2, mouth - bend)]
        canvas.line([corners[0], (x, mouth + bend), corners[1]], 4, black)
