"""What happens in the packaged movies, drawn and heard: one truth for pictures and texts.

Two invented movies, each with its recap. A segment is one scene, acted once in the movie and again,
faster, in the recap. Between scenes the stage is empty. `words` says what is to be seen, for the
texts (sample_story_yaml); names that end in `_x` say what is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import dist
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.sample.render import Canvas, Colour
from lmms_eval_tasks.sample.second_code import PALETTE, TICKS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH, HEIGHT = 320, 240
STAGE = (40, 216)  # rows between which one is seen
SKIES = {"bright": (190, 210, 225), "dark": (20, 24, 70), "orange": (252, 200, 150)}
NUMBERS = ("no", "one", "two", "three", "four", "five", "six")
_OPPOSITE = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
_OTHER_SKY = {"bright": "dark", "dark": "bright", "orange": "dark"}
_STEPS = 400  # in which a scene is looked through for what happens when
_GAP = 12.0  # pixels between two that stand next to each other, at most

Window = tuple[float, float]  # seconds
Place = tuple[float, float]  # pixels


@dataclass(frozen=True)
class Actor:
    """A coloured shape; times are shares of its scene, 0 to 1.

    `path` has (time, x, y): it stays where it is before the first and after the last, and goes
    straight and evenly between two of them.
    """

    colour: str  # of second_code.PALETTE
    shape: str  # circle, square, triangle
    path: tuple[tuple[float, float, float], ...]
    half: int = 16  # half its width, pixels
    shown: Window = (0.0, 2.0)  # not seen before and after

    @property
    def seen(self) -> str:
        """What it looks like."""
        return f"{self.colour} {self.shape}"

    def at(self, time: float) -> Place | None:
        """Its middle, or None while it is not seen."""
        if not self.shown[0] <= time < self.shown[1]:
            return None
        before = max((p for p in self.path if p[0] <= time), default=self.path[0])
        after = min((p for p in self.path if p[0] > time), default=before)
        share = 0.0 if after[0] <= before[0] else (time - before[0]) / (after[0] - before[0])
        share = max(share, 0.0)
        return (
            before[1] + share * (after[1] - before[1]),
            before[2] + share * (after[2] - before[2]),
        )


@dataclass(frozen=True)
class Scene:
    """A segment: where it is in movie and recap, and who is in it."""

    movie: Window
    recap: Window
    sky: str  # of SKIES
    actors: Mapping[str, Actor]  # by role, drawn in this order
    stars: int = 0
    goal: str = ""  # the role that others make for

    def words(self) -> dict[str, str]:
        """Every word about the picture that a text can ask for."""
        told = {
            "sky": self.sky,
            "sky_x": _OTHER_SKY[self.sky],
            "stars": NUMBERS[self.stars],
            "stars_x": NUMBERS[self.stars + 2],
        }
        for role, actor in self.actors.items():
            comes, goes = side(_first(actor)), side(_last(actor))
            told |= {
                role: actor.seen,
                f"{role}_from": comes,
                f"{role}_from_x": _OPPOSITE.get(comes, "left"),
                f"{role}_to": goes,
                f"{role}_to_x": _OPPOSITE.get(goes, "left"),
            }
        if self.goal:
            order = [self.actors[role].seen for role in self.arrivals()]
            told |= {"first": order[0], "last": order[-1]}
        gone = [side(_first(self.actors[role])) for role in self.vanishing()]
        told |= {f"gone_{number}": place for number, place in enumerate(gone, 1)}
        return told

    def arrivals(self) -> list[str]:
        """Roles in the order in which they come next to the goal."""
        when = {
            role: next((t for t in _times() if self.next_to(role, self.goal, t)), None)
            for role in self.actors
            if role != self.goal
        }
        return sorted((r for r, t in when.items() if t is not None), key=lambda r: when[r] or 0.0)

    def next_to(self, one: str, other: str, time: float) -> bool:
        """Whether two stand next to each other."""
        here, there = self.actors[one].at(time), self.actors[other].at(time)
        if here is None or there is None:
            return False
        reach = self.actors[one].half + self.actors[other].half + _GAP
        return dist(here, there) <= reach

    def vanishing(self) -> list[str]:
        """Roles that are no longer seen at the end, in the order in which they go."""
        gone = [role for role, actor in self.actors.items() if actor.shown[1] <= 1]
        return sorted(gone, key=lambda role: self.actors[role].shown[1])


@dataclass(frozen=True)
class Story:
    """A movie and its recap."""

    movie: str  # title
    movie_id: str  # of the movie's file
    video: str  # of the recap's file
    movie_seconds: int
    recap_seconds: int
    scenes: tuple[Scene, ...]
    texts: tuple[dict[str, Any], ...]  # of each scene: dialogue, facts, questions


def side(place: Place) -> str:
    """Where on the stage, or beyond which edge of it, a place is."""
    x, y = place
    if y > STAGE[1] or y < STAGE[0]:
        return "bottom" if y > STAGE[1] else "top"
    if abs(x - WIDTH / 2) < WIDTH / 10:
        return "middle"
    return "left" if x < WIDTH / 2 else "right"


def _times() -> list[float]:
    return [step / _STEPS for step in range(_STEPS + 1)]


def _first(actor: Actor) -> Place:
    return actor.path[0][1:]


def _last(actor: Actor) -> Place:
    return actor.path[-1][1:]


@lru_cache(maxsize=1)
def stories() -> tuple[Story, ...]:
    """Both movies (sample_story_yaml)."""
    import yaml

    file = Path(__file__).with_name("sample_story_yaml")
    given = yaml.safe_load(file.read_text(encoding="utf-8"))
    return tuple(_story(name, one) for name, one in given.items())


def _story(name: str, given: dict[str, Any]) -> Story:
    scenes, texts = [], []
    for one in given.pop("scenes"):
        texts.append({part: one.pop(part) for part in ("dialogue", "facts", "questions")})
        windows: dict[str, Any] = {part: tuple(one.pop(part)) for part in ("movie", "recap")}
        actors = {role: Actor(**_frozen(actor)) for role, actor in one.pop("actors").items()}
        scenes.append(Scene(**windows, **one, actors=actors))
    return Story(movie_id=name, scenes=tuple(scenes), texts=tuple(texts), **given)


def _frozen(actor: dict[str, Any]) -> dict[str, Any]:
    return {**actor, "path": tuple(map(tuple, actor["path"]))}


# --- drawing ------------------------------------------------------------------------------------

CURTAIN: Colour = (66, 66, 72)  # between scenes
STAR_Y, STAR_HALF = 68, 7  # pixels


def frames(story: Story, name: str) -> Iterator[NDArray[np.uint8]]:
    """Every frame, (HEIGHT, WIDTH, 3), of the movie or of the recap; frame i is at i / TICKS s.

    Args:
        story: whose.
        name: of the video: `story.movie_id` or `story.video`.
    """
    in_movie = name == story.movie_id
    empty = Canvas(WIDTH, HEIGHT, CURTAIN)
    skies = {scene.movie: _sky(scene) for scene in story.scenes}
    for index in range((story.movie_seconds if in_movie else story.recap_seconds) * TICKS):
        time = index / TICKS
        canvas = empty
        for scene in story.scenes:
            start, end = scene.movie if in_movie else scene.recap
            if start <= time < end:
                canvas = skies[scene.movie].copy()
                for actor in scene.actors.values():
                    place = actor.at((time - start) / (end - start))
                    if place is not None:
                        _draw(canvas, actor, place)
        yield canvas.pixels()


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
