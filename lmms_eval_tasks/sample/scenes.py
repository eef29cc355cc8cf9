"""Scenes as plain data (actors on paths), drawn frame by frame.

The sample of a benchmark describes its videos in a YAML file: a ground and actors, each a coloured
shape on a path. Positions and sizes are pixels (y grows downwards), times are seconds.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.sample.render import Canvas, Clip, Colour, Point, Tone, soundtrack
from lmms_eval_tasks.utils import json_files
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.media.second_code import AAC, PALETTE, X264

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Corners as shares of half the width and height.
_CORNERS: Mapping[str, Sequence[Point]] = {
    "triangle": ((-1, 1), (1, 1), (0, -1)),
    "diamond": ((-1, 0), (0, -1), (1, 0), (0, 1)),
    "square": ((-1, -1), (1, -1), (1, 1), (-1, 1)),
}
_FALL = 0.4  # seconds from upright to flat
_BEND = 5  # pixels between the middle of a mouth and its corners
_ALTERNATIVES = re.compile(r"\[([^][|]*)\|([^][|]*)\]")


@dataclass(frozen=True)
class Actor:
    """A coloured shape on a path."""

    shape: str  # circle, square, triangle, diamond, or face (a circle with eyes and a mouth)
    colour: str | Colour  # a name of second_code.PALETTE, or red, green, blue
    # (second, x, y) of the shape's middle: at rest before the first and after the last, in a
    # straight line with constant speed between two of them.
    path: Sequence[Sequence[float]]
    half: float | tuple[float, float] = 14  # half its width and height, or half of both
    shown: tuple[float, float] = (0.0, math.inf)  # visible from this second until that one
    # From when to when a face smiles; else its mouth turns down.
    glad: tuple[float, float] = (0.0, 0.0)
    # When, and over which foot, the shape tips over: -1 left, 1 right, 0 never.
    falls: tuple[float, int] = (0.0, 0)
    beside: Point = (0.0, 0.0)  # offset from the path, for a part of a larger thing

    def at(self, second: float) -> Point:
        """Return the position of the shape's middle at a second."""
        # The points of the path are in the order of time.
        before = next((p for p in reversed(self.path) if p[0] <= second), self.path[0])
        after = next((p for p in self.path if p[0] > second), before)
        gone = (second - before[0]) / (after[0] - before[0]) if after[0] > before[0] else 0.0
        share = max(gone, 0.0)
        return (
            before[1] + share * (after[1] - before[1]) + self.beside[0],
            before[2] + share * (after[2] - before[2]) + self.beside[1],
        )

    def draw(self, canvas: Canvas, second: float) -> None:
        """Draw the shape at its place and angle at a second; nothing while it is hidden."""
        if not self.shown[0] <= second < self.shown[1]:
            return
        (x, y), fill = self.at(second), colour(self.colour)
        wide, high = self.half if isinstance(self.half, Sequence) else (self.half, self.half)
        leaning = 90 * self.falls[1] * min(max((second - self.falls[0]) / _FALL, 0.0), 1.0)
        if self.shape in ("circle", "face"):
            canvas.ellipse((x, y), wide, high, fill)
        elif self.shape == "square" and not leaning:
            canvas.rectangle(x - wide, y - high, x + wide, y + high, fill)
        else:
            corners = [(x + wide * a, y + high * b) for a, b in _CORNERS[self.shape]]
            foot = (x + self.falls[1] * wide, y + high)
            canvas.polygon(_turned(corners, foot, leaning) if leaning else corners, fill)
        if self.shape == "face":
            black = PALETTE["black"]
            for side in (-1, 1):
                canvas.ellipse((x + side * wide / 3, y - high / 3), 4, 4, black)
            bend = _BEND if self.glad[0] <= second < self.glad[1] else -_BEND
            mouth = y + high / 3
            corners = [(x - wide / 2, mouth - bend), (x + wide / 2, mouth - bend)]
            canvas.line([corners[0], (x, mouth + bend), corners[1]], 4, black)


def colour(name: str | Iterable[int]) -> Colour:
    """Return the colour (red, green, blue) of a name, or of three numbers."""
    red, green, blue = PALETTE[name] if isinstance(name, str) else name
    return red, green, blue


def actor(entry: Mapping[str, Json]) -> Actor:
    """Make an actor of an entry of a YAML file; a `path` of two numbers is a fixed place."""
    path = entry["path"]
    return Actor(**{**entry, "path": path if isinstance(path[0], list) else [[0.0, *path]]})


def draw_frames(
    actors: Sequence[Actor], size: tuple[int, int], ground: Colour, fps: int, seconds: float
) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames in order, uint8 (height, width, 3); frame i is at i / fps seconds."""
    for index in range(round(seconds * fps)):
        canvas = Canvas(*size, ground)
        for one in actors:
            one.draw(canvas, index / fps)
        yield canvas.pixels()


def clip(
    actors: Sequence[Actor],
    size: tuple[int, int],
    ground: Colour,
    fps: int,
    seconds: float,
    *,
    tones: Sequence[Tone] = (),
    rate: int = 0,
) -> Clip:
    """Return the clip of a scene; without tones it has no sound track."""
    sound = functools.partial(soundtrack, tones, seconds, rate) if tones else None
    shown = functools.partial(draw_frames, actors, size, ground, fps, seconds)
    return Clip(shown, fps, sound, rate, X264, AAC)


def load_scenes(module_file: str, name: str) -> Json:
    """Return the content of a YAML file beside a module (`__file__`).

    The file's name must end in _yaml: lmms-eval would read a .yaml as a task.
    """
    return json_files.package_yaml(Path(module_file).with_name(name).read_text(encoding="utf-8"))


def both(text: str) -> tuple[str, str]:
    """Return the true and the false version of a text with exactly one `[true|false]`.

    Raises:
        ValueError: the text has none, or several.
    """
    if len(_ALTERNATIVES.findall(text)) != 1:
        raise ValueError(f"expected exactly one [true|false] in: {text}")
    return _ALTERNATIVES.sub(r"\1", text), _ALTERNATIVES.sub(r"\2", text)


def true_and_false(texts: Sequence[str]) -> tuple[list[str], str]:
    """Return the texts with `[true|false]` resolved, of which exactly one has it.

    Returns:
        All texts in their true version, and the false version of the one.
    """
    (place,) = (n for n, text in enumerate(texts) if _ALTERNATIVES.search(text))
    true, false = both(texts[place])
    return [*texts[:place], true, *texts[place + 1 :]], false


def _turned(points: Iterable[Point], pivot: Point, degrees: float) -> list[Point]:
    """Return points turned clockwise (on the screen) around a pivot."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    px, py = pivot
    return [
        (px + (x - px) * cos - (y - py) * sin, py + (x - px) * sin + (y - py) * cos)
        for x, y in points
    ]
