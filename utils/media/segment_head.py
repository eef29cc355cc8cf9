"""What a video file says at its beginning: its first frame, and the clock of its segments.

The clock starts at the first frame that the decoder shows, as in video_source.py, for the picture
and for the sound: second 3 of the sound is what is heard 3 s after the first picture, whatever the
file's own time stamps start with. Runs in the child process of media_worker.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media.video_source import LOOK, counting_rate, open_video


@dataclass(frozen=True)
class Clock:
    """When a file's frames are shown.

    origin: time of the first frame shown, in the file's own seconds.
    rate: None, or the frames a second of a file whose frames carry no usable times
        (video_source.counting_rate); they then follow each other evenly, and reading starts at the
        beginning of the file.
    """

    origin: Fraction
    rate: Fraction | None = None


@dataclass(frozen=True)
class Head:
    """The first frame shown, and what the file says about itself.

    primaries, transfer: numbers of ITU-T H.273.
    rotation: degrees clockwise by which the file asks players to turn the picture.
    declared: seconds by the file's header, None where it holds none.
    """

    clock: Clock
    frame: Any
    codec: str
    primaries: int
    transfer: int
    rotation: int
    has_audio: bool
    declared: float | None


def head(path: str) -> Head:
    """Decode the first frame, and a few more for their times.

    Raises:
        MediaError: no video stream, no frame that can be decoded, not readable at all, or times
            that are of no use.
    """
    import av

    with open_video(path) as (container, stream):
        first: Any = None
        times: list[int | None] = []
        try:
            for frame in container.decode(stream):
                if frame.is_corrupt and first is None:
                    continue  # leans on frames before the file's first key frame: not shown
                first = first or frame
                times.append(frame.pts)
                if len(times) == LOOK:
                    break
        except av.error.FFmpegError:
            if first is None:
                raise
            # Damage after the first frame concerns only whoever reads that part.
        if first is None:
            raise MediaError("has a video stream but no frame that can be decoded")
        context = stream.codec_context
        return Head(
            clock=_clock(stream, times),
            frame=first,
            codec=context.name,
            primaries=int(context.color_primaries),
            transfer=int(context.color_trc),
            rotation=round(-first.rotation / 90) % 4 * 90,
            has_audio=bool(container.streams.audio),
            declared=container.duration / 1e6 if container.duration else None,
        )


def _clock(stream: Any, times: list[int | None]) -> Clock:
    base = stream.time_base
    rate = counting_rate(times, base, stream.average_rate)
    known = [time for time in times if time is not None]
    begin = min(known, default=stream.start_time or 0)
    return Clock(Fraction(begin * base), rate)
