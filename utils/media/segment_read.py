"""Frames of a video file from a given second on, picture or sound, on one clock.

Reading starts at a key frame shortly before the wanted second, not at the beginning of the file.
Runs in the child process of media_worker.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media.segment_head import Clock
from lmms_eval_tasks.utils.media.video_source import FrameTable, open_video

# Seconds to jump before the wanted one; None reads from the beginning. The first is what sound
# decoders need to settle and what badly interleaved files are off by; the others are for files
# whose index leads to a place behind the wanted one.
_JUMPS = (1, 30, None)
_SETTLED = Fraction(1, 5)  # seconds that a sound decoder may need before it gives anything
_TAIL = 30  # seconds before a place in which sound that belongs there is found in any file
_BACK = 1  # seconds; times that step back so far are two clocks in one file


def frames(
    path: str, clock: Clock, start: Fraction, kind: str = "video"
) -> Iterator[tuple[Fraction, Any]]:
    """Decoded frames with their times in seconds, from one that begins at or before `start` on.

    If none begins so early, from the first one. Several frames may precede `start`. Times of
    pictures ascend: one that is missing or repeats the last is a tick later than the last.

    Args:
        path: the file.
        clock: its clock (`head`).
        start: seconds on the clock.
        kind: `video` or `audio`; sound is asked for only where there is some.

    Raises:
        MediaError: a frame cannot be decoded, or times step back; names the place.
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
                found = _pictures(container, stream, clock, start)
            first = next(found, None)
            if first is None or (first[0] > start and jump is not None):
                continue  # behind the wanted second, or beyond the end: from further back
            yield first
            yield from found
            return


def late_sound(path: str, clock: Clock, after: Fraction) -> Iterator[tuple[Fraction, Any]]:
    """Sound as `frames` has it, from some time before `after` to the end; none if there is none."""
    with open_video(path) as (container, stream):
        if clock.rate is None and after > _TAIL:
            _seek(container, stream, clock, after - _TAIL)
        yield from _sound(container, clock, after, settle=_JUMPS[0])


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
        rest = table.end - last
        packet.duration = rest if packet.pts == last else packet.duration or usual
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


def _pictures(
    container: Any, stream: Any, clock: Clock, start: Fraction
) -> Iterator[tuple[Fraction, Any]]:
    import av

    time: Fraction | None = None
    try:
        for number, frame in enumerate(container.decode(stream)):
            if frame.is_corrupt:
                if time is None:
                    continue  # after a jump into an open group of pictures
                raise _damaged("picture", time, start)
            own: Fraction | None = None
            if clock.rate:
                own = number / clock.rate
            elif frame.pts is not None:
                own = frame.pts * frame.time_base - clock.origin
            if time is not None and (own is None or own <= time):
                if own is not None and own < time - _BACK:
                    raise MediaError(
                        f"has time stamps that step back from {float(time):.3f} to "
                        f"{float(own):.3f} s; convert it"
                    )
                own = time + stream.time_base
            if own is None:
                continue  # right after a jump: the frame's place is not known
            time = own
            yield time, frame
    except av.error.FFmpegError as error:
        raise _damaged("picture", time, start) from error


def _sound(
    container: Any, clock: Clock, start: Fraction, settle: int | None = None
) -> Iterator[tuple[Fraction, Any]]:
    """Decoded sound; with `settle`, what ends more than so many seconds before `start` is not."""
    import av

    audio = container.streams.best("audio")
    if audio is None or audio.codec_context is None:
        raise MediaError("has sound of a kind that this FFmpeg cannot decode")
    time: Fraction | None = None  # when the next frame begins
    lost: Fraction | None = None  # the first packet of the window that could not be decoded
    early = None if settle is None else float((start - settle + clock.origin) / audio.time_base)
    passed: int | None = None  # when the last packet that is not decoded ends, in the file's units
    try:
        for packet in container.demux(audio):
            if early is not None and packet.pts is not None and packet.duration:
                if packet.pts + packet.duration < early:
                    passed = packet.pts + packet.duration
                    continue
                early = None
                time = None if passed is None else passed * audio.time_base - clock.origin
            try:
                decoded = packet.decode()
            except av.error.InvalidDataError as error:
                at, length = time, (packet.duration or 0) * (packet.time_base or 0)
                if packet.pts is not None:
                    at = packet.pts * packet.time_base - clock.origin
                if at is None or at + length <= start:
                    continue  # before the window: nobody asks for it
                if time is not None:
                    raise _damaged("sound", time, start) from error
                lost = at if lost is None else lost  # a decoder may miss what it begins with
                continue
            for frame in decoded:
                time = _heard_at(frame, clock, time)
                if lost is not None and time > lost + _SETTLED:
                    raise _damaged("sound", lost, start)
                lost = None
                yield time, frame
                time += Fraction(frame.samples, frame.sample_rate)
    except av.error.FFmpegError as error:
        raise _damaged("sound", time, start) from error
    if lost is not None:
        raise _damaged("sound", lost, start)


def _heard_at(frame: Any, clock: Clock, expected: Fraction | None) -> Fraction:
    """When a frame of sound begins: by its own time, or right after the one before."""
    if frame.pts is not None:
        return Fraction(frame.pts * frame.time_base - clock.origin)
    if expected is None and not clock.rate:
        raise MediaError("has sound that carries no times")
    return expected or Fraction(0)


def _damaged(what: str, time: Fraction | None, start: Fraction) -> MediaError:
    """The error for what cannot be decoded from `time` on; near `start` if that is not known."""
    place = f"after {float(time):.3f} s" if time is not None else f"near {float(start):.3f} s"
    return MediaError(f"is damaged: its {what} {place} cannot be decoded")
