"""The picture of a segment: a muted mp4 file with exactly the frames that begin in the window.

Cuts are decoded and encoded again, never copied at key frames: H.264 (x264), 4:2:0, upright, of
even size (an odd last row or column is shown twice), a key frame at least every second and no
B-frames. Each frame keeps its time, counted from the window's start; the last is shown until the
window's end. A whole file is copied packet by packet where mp4 can hold it as it is.

A file ends with the later of its last frame and its sound. Where the picture ends first, its last
frame stays on screen, as players have it: it is shown once, for longer, in cuts and copies alike,
so that the picture lasts as long as the window whatever the sound does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import segment_head, segment_read, video_source
from lmms_eval_tasks.utils.media.segment_encoder import Encoder, open_mp4
from lmms_eval_tasks.utils.media.segment_head import Head
from lmms_eval_tasks.utils.media.video_source import FrameTable, open_video

_COPIED = ("h264", "hevc", "mpeg4", "vp9", "av1")  # what mp4 holds and readers of mp4 expect
_ROUNDED = Fraction(1, 50)  # seconds that a window may end after its file; or a frame if longer
_STEADY = Fraction(2, 1000)  # seconds; containers with a clock of 1 ms round every frame's time


@dataclass(frozen=True)
class Picture:
    """What was written: size upright, in pixels, and how many frames.

    end: of the segment, in the source's seconds; earlier than asked for only by less than a frame
        or 20 ms.
    """

    width: int
    height: int
    n_frames: int
    end: Fraction


def cut(
    path: str,
    source: Head,
    start: Fraction,
    end: Fraction | None,
    *,
    sound_end: Fraction | None,
    out: str,
) -> Picture:
    """Write the frames with start <= time < end to `out`, encoded anew.

    If no frame begins in the window, the one on screen is shown throughout. A single frame is
    written twice, at the beginning and halfway: readers of the host refuse a video of one.

    Args:
        path: a video file.
        source: its first frame and clock.
        start: seconds on the clock.
        end: the same; None is the end of the file.
        sound_end: when the file's sound ends, if it is known.
        out: file to write.

    Raises:
        MediaError: the window is not inside the file, or a frame cannot be decoded.
    """
    window = _Window(start, end, sound_end)
    encoder: Encoder | None = None
    found = window.frames(segment_read.frames(path, source.clock, start))
    with suppress(StopIteration):
        first = next(found)
        encoder = Encoder(out, first[1], source)
    if encoder is None:
        raise MediaError("has a video stream but no frame that can be decoded")
    with encoder:
        encoder.add(*first)
        for time, frame in found:
            encoder.add(time, frame)
        if len(window.times) == 1:
            window.times.append((window.end - start) / 2)
            encoder.add(window.times[-1], first[1])
        encoder.finish(window.end - start)
    look = encoder.look
    return Picture(look.width, look.height, len(window.times), window.end)


def copy(path: str, source: Head, sound_end: Fraction | None, out: str) -> Picture | None:
    """Copy the picture of a whole file to `out`, if mp4 can hold it just as it is shown.

    Args:
        path, source, sound_end, out: as in `cut`.

    Returns:
        None if it must be encoded instead: another codec, turned or unshown frames (an edit list,
        an open group of pictures at the start), no usable times, a single frame.

    Raises:
        MediaError: the file is cut short, or not readable.
    """
    import av

    table = video_source.frame_table(path, use_decord=False)
    as_shown = table.times[0] * table.time_base == source.clock.origin and not source.rotation
    timed = not (table.decoded or source.clock.rate)
    if source.codec not in _COPIED or not as_shown or not timed or len(table.times) == 1:
        return None
    if sound_end is not None:
        last = table.times[0] + math.ceil(sound_end / table.time_base)
        table = replace(table, end=max(table.end, last))
    try:
        copied = _copy_packets(path, table, out) and _is_equal(out, table, source)
    except (av.error.FFmpegError, MediaError, ValueError):
        copied = False  # mp4 cannot hold it
    if not copied:
        return None
    end = max((table.end - table.times[0]) * table.time_base, sound_end or Fraction(0))
    return Picture(source.frame.width, source.frame.height, len(table.times), end)


def _is_equal(out: str, table: FrameTable, source: Head) -> bool:
    """Whether a copy has the frames of the source, at their times, and can be decoded."""
    written = video_source.frame_table(out, use_decord=False)
    shown = segment_head.head(out).frame
    return (
        (shown.width, shown.height) == (source.frame.width, source.frame.height)
        and len(written.times) == len(table.times)
        and all(
            abs(a - b) <= _STEADY
            for a, b in zip(_from_zero(written), _from_zero(table), strict=True)
        )
    )


def _from_zero(table: FrameTable) -> tuple[Fraction, ...]:
    return tuple((time - table.times[0]) * table.time_base for time in table.times)


def _copy_packets(path: str, table: FrameTable, out: str) -> bool:
    with open_video(path) as (container, stream), open_mp4(out) as file:
        # Opaque: no encoder is opened, which would refuse a bit rate of a few hundred bits.
        copied = file.add_stream_from_template(stream, opaque=True)
        copied.time_base = stream.time_base
        for packet in segment_read.packets(container, stream, table):
            if packet.is_discard or packet.pts is None:
                return False
            packet.pts -= table.times[0]
            packet.dts -= table.times[0]
            packet.stream = copied
            file.mux(packet)
    return True


class _Window:
    """Chooses frames; knows the segment's end once they are used up."""

    def __init__(self, start: Fraction, end: Fraction | None, sound_end: Fraction | None) -> None:
        self.start, self._wanted, self._sound_end = start, end, sound_end
        self.times: list[Fraction] = []  # in the cut
        self.end = end or start

    def frames(self, found: Iterator[tuple[Fraction, Any]]) -> Iterator[tuple[Fraction, Any]]:
        """Frames of the window with their times in the cut.

        Raises:
            MediaError: the window is not inside the file.
        """
        shown: tuple[Fraction, Any] | None = None  # the last frame on screen
        length = Fraction(0)
        for time, frame in found:
            if self._wanted is not None and time >= self._wanted:
                break
            if shown is not None:
                length = time - shown[0]
            shown = (time, frame)
            if time >= self.start:
                self.times.append(time - self.start)
                yield self.times[-1], frame
        else:
            if shown is None:
                return
            self._at_the_end(*shown, length)
        if not self.times and shown is not None:
            self.times.append(Fraction(0))
            yield Fraction(0), shown[1]

    def _at_the_end(self, time: Fraction, frame: Any, before: Fraction) -> None:
        """Check the window against the file's end, known by now; sets `end`."""
        length = Fraction(frame.duration or 0) * frame.time_base or before or Fraction(1, 25)
        file_end = max(time + length, self._sound_end or Fraction(0))
        if self.start >= file_end:
            raise outside(self.start, self._wanted, file_end, "starts")
        if self._wanted is not None and self._wanted > file_end + max(length, _ROUNDED):
            raise outside(self.start, self._wanted, file_end, "ends")
        self.end = file_end if self._wanted is None else min(file_end, self._wanted)


def outside(start: Fraction, end: Fraction | None, file_end: Fraction, which: str) -> MediaError:
    """The error for a window that is not inside the file; `which` is `starts` or `ends`."""
    until = "the end" if end is None else f"{float(end):g} s"
    return MediaError(
        f"the segment from {float(start):g} s to {until} {which} after the end of the file "
        f"({float(file_end):.3f} s); correct its time stamps"
    )
