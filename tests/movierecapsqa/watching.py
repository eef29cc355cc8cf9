"""Finds out from decoded frames whether a sentence about a packaged scene is true.

It knows the colours and the rows of the stage, and nothing of the plan that the scenes were drawn
from: a shape is where its colour is, and its kind is how much of its box it fills.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import av
import numpy as np

from lmms_eval_tasks.movierecapsqa import sample_code
from lmms_eval_tasks.sample.second_code import PALETTE, TICKS

TOP, BOTTOM = 42, 214  # rows that are looked at
WIDTH = 320
SKIES = {"bright": (190, 210, 225), "dark": (20, 24, 70), "orange": (252, 200, 150)}
NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
FILLED = {"circle": 0.785, "square": 1.0, "triangle": 0.5}
GAP = 14  # pixels between two that stand next to each other


class Blob(NamedTuple):
    """A patch of one colour: its box, right and bottom lie outside, and its number of pixels."""

    left: int
    top: int
    right: int
    bottom: int
    size: int

    @property
    def x(self) -> float:
        return (self.left + self.right) / 2


def decoded(path: Path) -> list[Any]:
    with av.open(str(path)) as clip:
        return [frame.to_ndarray(format="rgb24") for frame in clip.decode(video=0)]


def window(frames: Sequence[Any], start: float, end: float) -> list[Any]:
    """The frames of a window, by the time that the first of them shows."""
    times = [n / TICKS + (sample_code.time_of_frame(frames[0]) or 0) for n in range(len(frames))]
    return [frame for frame, time in zip(frames, times, strict=True) if start <= time < end]


def near(frame: Any, colour: tuple[int, int, int], limit: float = 45) -> Any:
    far = frame[TOP:BOTTOM].astype(np.int32) - np.array(colour, np.int32)
    return (far**2).sum(axis=2) < limit**2


def blobs(frame: Any, colour: str) -> list[Blob]:
    """Patches of a colour from left to right; they never stand above each other here."""
    hit = near(frame, PALETTE[colour])
    columns = np.flatnonzero(hit.any(axis=0))
    found = []
    for run in np.split(columns, np.flatnonzero(np.diff(columns) > 1) + 1):
        rows = np.flatnonzero(hit[:, run].any(axis=1))
        if hit[:, run].sum() > 40:
            size = int(hit[:, run].sum())
            found.append(Blob(run[0], rows[0] + TOP, run[-1] + 1, rows[-1] + 1 + TOP, size))
    return found


def shape(blob: Blob) -> str:
    share = blob.size / ((blob.right - blob.left) * (blob.bottom - blob.top))
    return min(FILLED, key=lambda name: abs(FILLED[name] - share))


def place(x: float) -> str:
    if abs(x - WIDTH / 2) < WIDTH / 10:
        return "middle"
    return "left" if x < WIDTH / 2 else "right"


class Scene:
    """The frames of a segment and what they show."""

    def __init__(self, frames: Sequence[Any]) -> None:
        self.frames = frames
        self._tracks: dict[str, list[Blob | None]] = {}
        self._stones: list[list[str]] = []

    def track(self, seen: str) -> list[Blob | None]:
        """Where "red circle" is in every frame; its shape is checked where it is whole."""
        if seen not in self._tracks:
            self._tracks[seen] = self._track(seen)
        return self._tracks[seen]

    def _track(self, seen: str) -> list[Blob | None]:
        colour, kind = seen.split()
        found = [blobs(frame, colour) for frame in self.frames]
        assert all(len(each) <= 1 for each in found), seen
        whole = [b for each in found for b in each if b.right - b.left == b.bottom - b.top]
        kinds = [shape(blob) for blob in whole if blob.left > 0 and blob.right < WIDTH]
        assert kinds
        assert max(set(kinds), key=kinds.count) == kind
        return [each[0] if each else None for each in found]

    def stones(self) -> list[list[str]]:
        """Places of the lime squares in every frame."""
        if not self._stones:
            found = (blobs(frame, "lime") for frame in self.frames)
            self._stones = [[place(blob.x) for blob in each] for each in found]
        return self._stones

    def changes(self) -> list[str]:
        """Places where a stone went or came, in order."""
        every = self.stones()
        return [spot for before, after in pairwise(every) for spot in set(before) ^ set(after)]

    def when_next_to(self, one: str, other: str) -> int | None:
        pairs = zip(self.track(one), self.track(other), strict=True)
        return next((n for n, (a, b) in enumerate(pairs) if a and b and gap(a, b) <= GAP), None)


def gap(a: Blob, b: Blob) -> int:
    return max(a.left, b.left) - min(a.right, b.right)


def first(track: Sequence[Blob | None]) -> Blob:
    return next(blob for blob in track if blob)


def last(track: Sequence[Blob | None]) -> Blob:
    return next(blob for blob in reversed(track) if blob)


def edge(blob: Blob) -> str:
    """The edge of the stage that a shape is at."""
    sides = {
        "left": blob.left,
        "right": WIDTH - blob.right,
        "top": blob.top - TOP,
        "bottom": BOTTOM - blob.bottom,
    }
    return min(sides, key=lambda side: sides[side]) if min(sides.values()) < 12 else ""


def moves(track: Sequence[Blob | None]) -> bool:
    places = [blob.x for blob in track if blob]
    return max(places) - min(places) > 10


# --- sentences ----------------------------------------------------------------------------------

SEEN = r"([a-z]+ (?:circle|square|triangle))"


def _stands(s: Scene, seen: str, side: str) -> bool:
    track = s.track(seen)
    return track[0] is not None and place(track[0].x) == side and not moves(track)


def _stands_at_first(s: Scene, seen: str, side: str) -> bool:
    begin = s.track(seen)[0]
    return begin is not None and place(begin.x) == side


def _comes(s: Scene, seen: str, side: str) -> bool:
    return edge(first(s.track(seen))) == side


def _leaves(s: Scene, seen: str, side: str) -> bool:
    track = s.track(seen)
    return track[-1] is None and edge(last(track)) == side


def _stops(s: Scene, seen: str, other: str) -> bool:
    met = s.when_next_to(seen, other)
    return met is not None and moves(s.track(seen)) and not moves(s.track(seen)[met + 2 :])


def _reaches(s: Scene, seen: str, order: int) -> bool:
    when = {one: s.when_next_to(one, "yellow circle") for one in ("red circle", "blue square")}
    assert None not in when.values()
    return sorted(when, key=lambda one: when[one] or 0)[order] == seen


def _wait(s: Scene, one: str, other: str, side: str, gone: str) -> bool:
    left = next(n for n, blob in enumerate(s.track(gone)) if blob is None)
    waits = [s.track(seen)[:left] for seen in (one, other)]
    later = [s.track(seen)[left:] for seen in (one, other)]
    there = all(place(blob.x) == side for track in waits for blob in track if blob)
    return there and not any(map(moves, waits)) and all(map(moves, later))


def _together(s: Scene, one: str, other: str) -> bool:
    pairs = zip(s.track(one), s.track(other), strict=True)
    return all(a is not None and b is not None and gap(a, b) <= GAP for a, b in pairs)


def _cross(s: Scene, one: str, other: str, side: str) -> bool:
    ends = [place(last(s.track(seen)).x) for seen in (one, other)]
    return ends == [side, side] and _together(s, one, other)


def _sky(s: Scene, sky: str) -> bool:
    return all(near(frame, SKIES[sky], 20).mean() > 0.8 for frame in s.frames[1:-1])


def _stars(s: Scene, number: str) -> bool:
    return all(len(blobs(frame, "white")) == NUMBERS[number.lower()] for frame in s.frames)


def _from_the_beginning(s: Scene, number: str, seen: str) -> bool:
    colour, kind = seen.split()
    found = [shape(blob) for blob in blobs(s.frames[0], colour)]
    return found == [kind] * NUMBERS[number.lower()]


def _row(s: Scene, number: str, seen: str) -> bool:
    found = blobs(s.frames[0], seen.partition(" ")[0])
    return _from_the_beginning(s, number, seen) and len({blob.top for blob in found}) == 1


def _change(s: Scene, side: str, order: int, came: bool) -> bool:
    every = s.stones()
    assert (len(every[-1]) > len(every[0])) is came
    return s.changes()[order] == side


SENTENCES: tuple[tuple[str, Callable[..., bool]], ...] = (
    (rf"The {SEEN} stands on the (\w+) from the beginning\.", _stands),
    (rf"The {SEEN} stands in the (\w+) at first\.", _stands_at_first),
    (rf"The lantern is a {SEEN} in the (\w+)\.", _stands),
    (rf"The {SEEN} comes in from the (\w+)\.", _comes),
    (rf"The {SEEN} rises from the (\w+)\.", _comes),
    (rf"The {SEEN} leaves (?:to|through) the (\w+)\.", _leaves),
    (rf"The {SEEN} stops next to the {SEEN}\.", _stops),
    (rf"The {SEEN} reaches the lantern first\.", lambda s, seen: _reaches(s, seen, 0)),
    (rf"The {SEEN} reaches the lantern after it\.", lambda s, seen: _reaches(s, seen, 1)),
    (rf"The {SEEN} reaches the lantern last\.", lambda s, seen: _reaches(s, seen, -1)),
    (rf"The {SEEN} and the {SEEN} wait on the (\w+) until the {SEEN} has left\.", _wait),
    (rf"The {SEEN} and the {SEEN} cross to the (\w+) together\.", _cross),
    (rf"The {SEEN} and the {SEEN} stay close (?:to each other )?all the way\.", _together),
    (r"The sky is (\w+)\.", _sky),
    (r"There are (\w+) (?:white )?stars in the sky\.", _stars),
    (rf"(\w+) {SEEN}s stand in a row\.", _row),
    (rf"(\w+) {SEEN} is there from the beginning\.", _from_the_beginning),
    (r"The stone (?:on|in) the (\w+) is taken first\.", lambda s, p: _change(s, p, 0, False)),
    (r"The stone (?:on|in) the (\w+) is taken second\.", lambda s, p: _change(s, p, 1, False)),
    (r"The stone (?:on|in) the (\w+) is taken last\.", lambda s, p: _change(s, p, -1, False)),
    (r"The stone on the (\w+) is not taken\.", lambda s, p: s.stones()[-1] == [p]),
    (r"The stone (?:on|in) the (\w+) comes back first\.", lambda s, p: _change(s, p, 0, True)),
    (r"The stone (?:on|in) the (\w+) comes back last\.", lambda s, p: _change(s, p, -1, True)),
    (r"Two stones come back\.", lambda s: len(s.stones()[-1]) - len(s.stones()[0]) == 2),
)


def is_true(sentence: str, scene: Scene) -> bool | None:
    """Whether the frames show it; None for a sentence of another kind."""
    for pattern, check in SENTENCES:
        if match := re.fullmatch(pattern, sentence):
            return check(scene, *match.groups())
    return None
