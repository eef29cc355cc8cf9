"""CVRR-ES's packaged sample in the original release's form, with answers, ratings and a key.

    cvrr_es/DIMENSION/annotations_DIMENSION.json  two or three questions in each of the eleven
    cvrr_es/DIMENSION/CLIP.mp4                    the two clips of these: 192 x 144, 4 s, no sound
    cvrr_es/predictions/MODEL/DIMENSION.json      three invented candidates in the released form;
                                                  one with image tokens, "</s>" and an empty answer
    cvrr_es/ratings/first.jsonl                   three invented judges' ratings of these answers
    cvrr_es/ratings/reference.jsonl               what the answers are worth by construction
    cvrr_es/key.json                              {"answers": {question: reference},
                                                   "lures": {question: false answer}}
    cvrr_es/replay.jsonl                          what the benchmark's judge would reply that sees
                                                  how answers were built, for `--judge replay:FILE`

Clips and texts are ours (sample_questions_yaml, sample_answers.py); nothing is taken from the
release. The key is for the demo's oracle and for tests; no task reads it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es import sample_answers
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.sample.render import Canvas, Colour
from lmms_eval_tasks.sample.second_code import PALETTE
from lmms_eval_tasks.utils.json_files import write_json, write_lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALSO = ("labels.py", "study/ratings.py")  # they decide the sample too
FIRST, REFERENCE = "ratings/first.jsonl", "ratings/reference.jsonl"  # below the folder
PREDICTIONS, REPLAY = "predictions", "replay.jsonl"
# For render.write_mp4: one key frame; no macroblock trees (sample/second_code.py says why).
X264 = {"g": "40", "sc_threshold": "0", "mbtree": "0"}


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    drawn: dict[str, Path] = {}
    for dimension, questions in sample_answers.questions().items():
        place = folder / dimension
        place.mkdir()
        rows = [{"Q": o.question, "A": o.reference, "VideoID": o.video} for o in questions]
        write_json(place / f"annotations_{dimension}.json", rows)
        for name in dict.fromkeys(one.video for one in questions):
            if name in drawn:
                shutil.copyfile(drawn[name], place / name)
            else:
                drawn[name] = place / name
                write_video(name, place / name)
    for candidate in sample_answers.MODELS:
        place = folder / PREDICTIONS / candidate
        place.mkdir(parents=True)
        for dimension, answers in sample_answers.predictions(candidate).items():
            write_json(place / f"{dimension}.json", answers)
    (folder / "ratings").mkdir()
    write_lines(folder / FIRST, (row.as_dict() for row in sample_answers.first_ratings()))
    write_lines(folder / REFERENCE, (row.as_dict() for row in sample_answers.reference_ratings()))
    write_json(folder / "key.json", key())
    write_lines(folder / REPLAY, sample_answers.recordings())


def write_video(name: str, path: Path) -> None:
    """Draw and encode a clip."""
    render.write_mp4(path, frames(CLIPS[name]), FPS, None, 0, picture_options=X264)


def key() -> dict[str, dict[str, str]]:
    """What is right and what looks right, by question; where one repeats it is the same."""
    asked = [one for questions in sample_answers.questions().values() for one in questions]
    return {
        "answers": {one.question: one.reference for one in asked},
        "lures": {one.question: one.lure for one in asked},
    }


# --- the clips: six small scenes of coloured shapes; tests check them on decoded frames -----------

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
