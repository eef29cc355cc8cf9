"""What happens in the packaged movies: one truth for pictures and texts.

Two invented movies, each with its recap. A segment is one scene, acted once in the movie and again,
faster, in the recap. Between scenes the stage is empty. `words` says what is to be seen, for the
texts (sample_story_yaml); names that end in `_x` say what is false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import dist

WIDTH, HEIGHT = 320, 240
STAGE = (40, 216)  # rows of the scene; the code of the second is above and below it
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
    scenes: tuple[Scene, ...] = field(default=())


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


def _still(x: float, y: float) -> tuple[tuple[float, float, float], ...]:
    return ((0.0, x, y),)


STORIES = (
    Story(
        movie="The Lantern Bridge (invented)",
        movie_id="lantern-bridge",
        video="recap-lantern",
        movie_seconds=44,
        recap_seconds=18,
        scenes=(
            Scene(
                movie=(3.5, 13.5),
                recap=(1.3, 6.4),
                sky="bright",
                actors={
                    "ada": Actor("red", "circle", _still(80, 170)),
                    "bo": Actor("blue", "square", ((0.1, 340, 170), (0.65, 118, 170))),
                },
                goal="ada",
            ),
            Scene(
                movie=(15.0, 27.25),
                recap=(6.4, 11.85),
                sky="dark",
                stars=3,
                actors={
                    "lantern": Actor("yellow", "circle", _still(160, 170), half=10),
                    "ada": Actor("red", "circle", ((0.15, 40, 170), (0.85, 128, 170))),
                    "bo": Actor("blue", "square", ((0.15, 280, 170), (0.5, 192, 170))),
                },
                goal="lantern",
            ),
            Scene(
                movie=(30.4, 40.9),
                recap=(12.2, 17.1),
                sky="orange",
                actors={
                    "keeper": Actor("green", "triangle", ((0.25, 160, 150), (0.5, 160, 10))),
                    "ada": Actor("red", "circle", ((0.55, 75, 170), (0.95, 285, 170))),
                    "bo": Actor("blue", "square", ((0.55, 35, 170), (0.95, 245, 170))),
                },
            ),
        ),
    ),
    Story(
        movie="Three Stones (invented)",
        movie_id="three-stones",
        video="recap-stones",
        movie_seconds=34,
        recap_seconds=13,
        scenes=(
            Scene(
                movie=(4.2, 14.6),
                recap=(0.8, 6.3),
                sky="bright",
                actors={
                    "one": Actor("lime", "square", _still(70, 180), shown=(0.0, 0.35)),
                    "two": Actor("lime", "square", _still(160, 180), shown=(0.0, 0.7)),
                    "three": Actor("lime", "square", _still(250, 180)),
                    "cleo": Actor(
                        "purple",
                        "triangle",
                        (
                            (0.0, -20, 110),
                            (0.3, 70, 110),
                            (0.4, 70, 110),
                            (0.65, 160, 110),
                            (0.75, 160, 110),
                            (0.95, 345, 110),
                        ),
                    ),
                },
            ),
            Scene(
                movie=(18.35, 30.0),
                recap=(6.9, 12.4),
                sky="dark",
                stars=4,
                actors={
                    "three": Actor("lime", "square", _still(250, 180)),
                    "two": Actor("lime", "square", _still(160, 180), shown=(0.5, 2.0)),
                    "one": Actor("lime", "square", _still(70, 180), shown=(0.8, 2.0)),
                    "dov": Actor("orange", "circle", ((0.1, 110, 236), (0.4, 110, 110))),
                },
            ),
        ),
    ),
)
