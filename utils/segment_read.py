"""Frames of a video file from a given second on, picture or sound, on one clock.

The clock of a segment starts at the first frame that the decoder shows, as in video_source.py, for
the picture and for the sound: second 3 of the sound is what is heard 3 s after the first picture,
whatever the file's own time stamps start with. Reading starts at a key frame shortly before the
wanted second, not at the beginning of the file. Runs in the child process of media_worker.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.video_source import FrameTable, open_video

# Seconds to jump before the wanted one; None reads from the beginning. The first is what sound
# decoders need to settle and what badly interleaved files are off by; the others are for files
# whose index leads to a place behind the wanted one.
_JUMPS = (1, 30, None)


class NoTimesError(Exception):
    """The frames carry no times, or times that do not ascend: count frames instead (`counting`)."""


@dataclass(frozen=True)
class Clock:
    """When a file's frames are shown.

    origin: time of the first frame shown, in the file's own seconds.
    rate: None, or the frames a second of a file whose frames carry no usable times; they then
        follow each other evenly, and reading starts at the beginning of the file.
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
    """Decode the first frame.

    Raises:
        MediaError: no video stream, no frame that can be decoded, or not readable at all.
    """
    with open_video(path) as (container, stream):
        for frame in container.decode(stream):
            if frame.is_corrupt:
                continue  # leans on frames before the file's first key frame: not shown
            timed = frame.pts is not None
            rate = None if timed else Fraction(stream.average_rate or 25)
            origin = frame.pts * frame.time_base if timed else Fraction(0)
            context = stream.codec_context
            return Head(
                clock=Clock(origin, rate),
                frame=frame,
                codec=context.name,
                primaries=int(context.color_primaries),
                transfer=int(context.color_trc),
                rotation=round(-frame.rotation / 90) % 4 * 90,
                has_audio=bool(container.streams.audio),
                declared=container.duration / 1e6 if container.duration else None,
            )
    raise MediaError("has a video stream but no frame that can be decoded")


def counting(path: str) -> Clock:
    """The clock for a file whose frames have no usable times."""
    with open_video(path) as (_, stream):
        start = stream.start_time * stream.time_base if stream.start_time else Fraction(0)
        return Clock(start, Fraction(stream.average_rate or 25))


def frames(
    path: str, clock: Clock, start: Fraction, kind: str = "video"
) -> Iterator[tuple[Fraction, Any]]:
    """Decoded frames with their times in seconds, from one that begins at or before `start` on.

    If none begins so early, from the first one. Several frames may precede `start`.

    Args:
        path: the file.
        clock: its clock (`head`).
        start: seconds on the clock.
        kind: `video` or `audio`; sound is asked for only where there is some.

    Raises:
        MediaError: a frame cannot be decoded; names its time.
        NoTimesError: pictures without usable times.
    """
    for jump in _JUMPS:
        if jump is not None and (jump >= start or clock.rate):
            continue
        with open_video(path) as (container, stream):
            if jump is not None and not _seek(container, stream, clock, start - jump):
                continue
            if kind == "audio":
                found = _sound(container, clock, start)
            else:
                found = _pictures(container, stream, clock)
            first = next(found, None)
            if first is None or (first[0] > start and jump is not None):
                continue  # behind the wanted second, or beyond the end: from further back
            yield first
            yield from found
            return


def packets(container: Any, stream: Any, table: FrameTable) -> Iterator[Any]:
    """A picture's packets, each with a decoding time and a duration, until `table.end`.

    FFmpeg reads no duration of frames that are reordered, nor of an mp4's last one; without it the
    last frame would be shown for no time, and an edit list would leave it out. Matroska's first
    packets have no decoding time.
    """
    last = table.times[-1]
    usual = last - table.times[-2] if len(table.times) > 1 else table.end - last
    waiting: list[Any] = []  # packets before the first one with a decoding time
    for packet in container.demux(stream):
        if not packet.size:
            continue  # PyAV's last packet
        rest = table.end - last if packet.pts == last else usual
        packet.duration = packet.duration or rest
        waiting.append(packet)
        if packet.dts is not None:
            for before, packet_before in enumerate(reversed(waiting[:-1]), start=1):
                packet_before.dts = packet.dts - before * usual
            yield from waiting
            waiting = []


def _seek(container: Any, stream: Any, clock: Clock, seconds: Fraction) -> bool:
    """Jump to a key frame of the picture at or before `seconds`; False if the file cannot."""
    import av

    try:
        target = int((clock.origin + seconds) / stream.time_base)
        container.seek(target, stream=stream, backward=True)
    except av.error.FFmpegError:
        return False
    return True


def _pictures(container: Any, stream: Any, clock: Clock) -> Iterator[tuple[Fraction, Any]]:
    time: Fraction | None = None
    for number, frame in enumerate(container.decode(stream)):
        if frame.is_corrupt:
            if time is None:
                continue  # after a jump into an open group of pictures
            raise MediaError(f"the frame after {float(time):.3f} s cannot be decoded")
        before = time
        if clock.rate:
            time = number / clock.rate
        elif frame.pts is None:
            raise NoTimesError
        else:
            time = frame.pts * frame.time_base - clock.origin
        if before is not None and time <= before:
            raise NoTimesError
        yield time, frame


def _sound(container: Any, clock: Clock, start: Fraction) -> Iterator[tuple[Fraction, Any]]:
    import av

    audio = container.streams.best("audio")
    if audio is None or audio.codec_context is None:
        raise MediaError("has sound of a kind that this FFmpeg cannot decode")
    time: Fraction | None = None
    for packet in container.demux(audio):
        try:
            decoded = packet.decode()
        except av.error.InvalidDataError as error:
            if time is None or time < start:
                continue  # after a jump a decoder may miss what came before
            raise MediaError(f"the sound after {float(time):.3f} s cannot be decoded") from error
        for frame in decoded:
            if frame.pts is not None:
                time = frame.pts * frame.time_base - clock.origin
            elif time is None:
                time = Fraction(0) if clock.rate else None
            if time is None:
                raise MediaError("has sound that carries no times")
            yield time, frame
            time += Fraction(frame.samples, frame.sample_rate)
