"""Which second of which packaged video is shown or heard (sample/second_code.py).

The seconds of all movies and recaps are numbered through, so that a recap that leaks into a movie's
clip, or a second outside of a segment's window, shows:

    >>> moment_of_frame(frame)              # what a picture shows
    Moment(video='lantern-bridge', second=17)
    >>> moment_of_sound(samples, 16_000)    # what a piece of sound plays; recaps have none
    Moment(video='lantern-bridge', second=17)

The colours stand in a strip above the scene, the bar of the frame below it. What cannot be told, or
is no such code, is None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.movierecapsqa.sample_scenes import STORIES
from lmms_eval_tasks.sample import second_code
from lmms_eval_tasks.sample.second_code import TICKS

if TYPE_CHECKING:
    from numpy.typing import NDArray

STRIP = 1 / 6  # the strip's lower edge, as a share of the frame's height
_READ = (0.03, 0.13)  # rows of it that are read: coded colours run into the scene's at the edge

# Seconds of each video, recaps and movies in turn.
SECONDS: dict[str, int] = {
    name: seconds
    for story in STORIES
    for name, seconds in (
        (story.video, story.recap_seconds),
        (story.movie_id, story.movie_seconds),
    )
}


class Moment(NamedTuple):
    """A second of a video of the sample: `second` s to `second` + 1 s."""

    video: str  # name of its file, without the ending
    second: int  # from 0 on

    @property
    def number(self) -> int:
        """Its place among all seconds of the sample, from 0 on."""
        names = list(SECONDS)
        return sum(SECONDS[name] for name in names[: names.index(self.video)]) + self.second


MOMENTS = tuple(
    Moment(name, second) for name, length in SECONDS.items() for second in range(length)
)


def moment_of_frame(frame: NDArray[Any]) -> Moment | None:
    """The second that a picture was taken from; None for any other picture.

    Args:
        frame: red, green and blue from 0 to 255, (height, width, 3), of any size.
    """
    return _moment(second_code.number_of_frame(frame, *_READ))


def time_of_frame(frame: NDArray[Any]) -> float | None:
    """When its video shows a picture, in seconds: exact to a frame, by second and bar."""
    moment, tick = moment_of_frame(frame), second_code.tick_of_frame(frame)
    return None if moment is None or tick is None else round(moment.second + tick / TICKS, 3)


def moment_of_sound(samples: NDArray[Any], rate: int) -> Moment | None:
    """The second that a piece of sound was taken from; None for silence, noise or two seconds.

    Args:
        samples: (n,) or (channels, n), floats of full scale 1 or integers; at least 0.08 s.
        rate: samples a second, 8,000 or more.
    """
    return _moment(second_code.number_of_sound(samples, rate))


def _moment(number: int | None) -> Moment | None:
    return MOMENTS[number] if number is not None and number < len(MOMENTS) else None
