"""Content and ground truth of HAVEN's packaged videos; the files of the sample follow from these.

A video is a sequence of shots. A shot is a scene (a shape of a colour on a ground) and the
importance of each of its sampled frames, a level of 0 to 8. Everything else is computed from the
levels. The levels were chosen so that every video has ties: between frames at the limit of the
keyframes, in different shots, and between shots of different length. The best key shots are unique.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from lmms_eval_tasks.haven.options import capacity
from lmms_eval_tasks.haven.records import structure

SHAPES = ("circle", "square", "triangle", "diamond")
COLOURS = ("red", "yellow", "green", "cyan", "blue", "purple", "pink")
GROUNDS = ("white", "grey", "brown", "black")
TOP = 8  # the highest level of importance
PLACES = ("First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh", "Eighth")
GROUPS = (2, 1, 1)  # number of shots of the document's sentences, in turn


class Scene(NamedTuple):
    """The content of a shot: a coloured shape on a ground."""

    shape: str
    colour: str
    ground: str

    def __str__(self) -> str:
        return f"a {self.colour} {self.shape} on a {self.ground} ground"


SCENES = tuple(
    Scene(shape, colour, ground) for shape in SHAPES for colour in COLOURS for ground in GROUNDS
)


class _Told(NamedTuple):
    source: str
    number: int
    fps: int  # frames a second of the video
    step: int  # frames of the video between two sampled ones
    tail: int  # frames of the video after the last sampled one, fewer than step - 1
    late: int  # frames of a shot after its last sampled one, except in the last shot
    size: tuple[int, int]  # width and height in pixels
    levels: tuple[str, ...]  # levels of each shot's sampled frames, a digit each


class Story(_Told):
    """A video of the sample. Frames and shots are numbered from 1, frames of the video from 0."""

    @property
    def video(self) -> str:
        """The video's key in the release."""
        return f"video_{self.number}"

    @property
    def name(self) -> str:
        """The name of the original video, which does not exist."""
        return f"Moving shapes {STORIES.index(self) + 1}"

    @cached_property
    def frames(self) -> list[int]:
        """The level of every sampled frame, (F,)."""
        return [int(digit) for digit in "".join(self.levels)]

    @cached_property
    def shots(self) -> list[list[int]]:
        """The sampled frames of every shot, by their numbers from 1."""
        ends = [0, *accumulate(map(len, self.levels))]
        return [list(range(start + 1, end + 1)) for start, end in pairwise(ends)]

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scene of every shot; all scenes of a video differ."""
        first = STORIES.index(self)
        return [
            Scene(
                SHAPES[(first + place) % len(SHAPES)],
                COLOURS[(first + 3 * place) % len(COLOURS)],
                GROUNDS[(2 * first + place // 2) % len(GROUNDS)],
            )
            for place in range(len(self.levels))
        ]

    @property
    def picks(self) -> list[int]:
        """The indices of the sampled frames in the video, from 0."""
        return [place * self.step for place in range(len(self.frames))]

    @property
    def n_frames(self) -> int:
        """The number of frames of the video, which is not a multiple of `step`."""
        return self.picks[-1] + 1 + self.tail

    @cached_property
    def change_points(self) -> list[tuple[int, int]]:
        """The first and last frame of every shot in the video, without gaps between the shots."""
        lasts = [self.picks[shot[-1] - 1] + self.late for shot in self.shots[:-1]]
        firsts = [0, *(last + 1 for last in lasts)]
        return list(zip(firsts, [*lasts, self.n_frames - 1], strict=True))

    def shot_and_level(self, frame: int) -> tuple[int, int]:
        """Return the shot that a frame of the video shows, and the sampled frame for its level.

        That is the last sampled frame of the shot up to this frame, or the shot's first sampled
        frame if there is none.
        """
        shot = next(n for n, (_, last) in enumerate(self.change_points, 1) if frame <= last)
        own = self.shots[shot - 1]
        return shot, max((n for n in own if self.picks[n - 1] <= frame), default=own[0])

    @cached_property
    def keyframes(self) -> list[int]:
        """The 15 % of sampled frames with the highest levels, of equal ones the earlier ones
        (3.2).
        """
        places = structure.top(self.frames, max(1, capacity(len(self.frames))))
        return [place + 1 for place in places]

    @cached_property
    def key_shots(self) -> list[int]:
        """The shots of the highest total importance within 15 % of the frames (3.2)."""
        starts = [shot[0] - 1 for shot in self.shots]
        return [place + 1 for place in structure.key_shots(self.frames, starts)]

    @property
    def key_scenes(self) -> list[Scene]:
        """The scenes of the key shots."""
        return [self.scenes[number - 1] for number in self.key_shots]

    @property
    def document_shots(self) -> list[list[int]]:
        """The shots of every sentence of the document, in order."""
        groups: list[list[int]] = []
        shots = iter(range(1, len(self.shots) + 1))
        while group := list(islice(shots, GROUPS[len(groups) % len(GROUPS)])):
            groups.append(group)
        return groups


_WIDE, _WIDER, _SQUARE = (160, 128), (192, 112), (128, 128)
# fmt: off
STORIES: tuple[Story, ...] = (
    Story("summe", 1, 6, 3, 1, 0, _WIDE,
          ("1311", "54", "132111", "87", "10001", "57556", "564")),
    Story("tvsum", 1, 10, 5, 2, 2, _WIDE,
          ("67665", "566", "3233312", "43", "576565", "2022", "33333", "77")),
    Story("tvsum", 2, 5, 5, 3, 4, _WIDER,
          ("0121", "554646", "224", "4435", "534")),
    Story("ovp", 1, 8, 4, 0, 1, _SQUARE,
          ("445545", "57", "32333223", "56", "57667", "2101002", "45", "66546546")),
    Story("youtube", 1, 6, 6, 4, 0, _WIDE,
          ("42243", "66", "1002", "343422", "22", "1311", "68886")),
    Story("videoxum", 1, 5, 5, 1, 3, _WIDE,
          ("110", "33443", "2121", "010210", "333")),
    Story("mrhisum", 1, 6, 6, 2, 5, _WIDER,
          ("0022", "44", "665777", "77876", "86", "3212232", "777", "4355")),
    Story("mrhisum", 2, 10, 5, 0, 1, _WIDE,
          ("5766", "786", "566454", "555", "76776", "56667")),
)
# fmt: on


def document(story: Story) -> list[str]:
    """Return the sentences of a video's document."""
    return [
        f"{PLACES[place]}, {_joined([story.scenes[number - 1] for number in shots])} "
        f"{'moves' if len(shots) == 1 else 'move'} across the picture."
        for place, shots in enumerate(story.document_shots)
    ]


def summary(scenes: Sequence[Scene]) -> list[str]:
    """Return the four sentences of a summary, given the scenes of the key shots in order."""
    first, last = scenes[0], scenes[-1]
    return [
        f"The highlights open with {first}.",
        f"All that counts in this video is {_joined(scenes)}.",
        f"The last highlight is {last}.",
        f"One remembers {_joined(dict.fromkeys((first, last)))}.",
    ]


def _joined(scenes: Iterable[Scene]) -> str:
    *before, last = map(str, scenes)
    return f"{', '.join(before)} and {last}" if before else last
