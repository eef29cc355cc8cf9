"""What a video file holds, and when its frames are shown.

decord is asked for its list of frames, which is what most of the host's loaders count, and PyAV for
everything else. Runs in the child process of media_worker.py: a broken file may hang or crash a
decoder.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from lmms_eval_tasks.errors import MediaError

T = TypeVar("T")

_DECORD_PATIENCE = 20.0  # seconds, in case that decord hangs on a file that PyAV opens
_TOLERANCE = 1e-3  # seconds; decord's times are 32-bit floats
MAX_THREADS = 4  # several ranks may decode at the same time
_ROUNDED = 1.0  # seconds that a file may be shorter than its header says
_TEXT_CODECS = {"ansi", "bintext", "idf", "xbin"}  # FFmpeg draws plain text as if it were video
LOOK = 48  # frames that tell whether a file's times can be used; more than a second of most
_EVEN = Fraction(2, 1000)  # seconds that equal gaps may differ by, as containers round times
_STILL_FORMATS = ("_pipe", "image2", "ico", "gif_pipe")


@dataclass(frozen=True)
class FrameTable:
    """Frames in the order of presentation. Times are in units of `time_base`."""

    times: tuple[int, ...]
    end: int  # when the last frame ends
    time_base: Fraction
    has_audio: bool
    keys: tuple[int, ...] = ()  # times of the key frames, ascending
    decoded: bool = False  # made by decoding everything: positions count the decoder's frames
    ordered: bool = False  # the decoder is sure to show the frames at these times, in this order

    @property
    def duration(self) -> float:
        """Seconds from the first frame's start to the last one's end."""
        return float((self.end - self.times[0]) * self.time_base)

    def seconds(self, index: int) -> float:
        """Start of a frame, in seconds after the first frame's start."""
        return float((self.times[index] - self.times[0]) * self.time_base)


def frame_table(path: str, use_decord: bool = True) -> FrameTable:
    """List the frames of a file without decoding them.

    Where decord counts other frames than the packets say, its list is used if each of its times is
    that of a packet, since the host's loaders count with decord.

    Raises:
        MediaError: not a video, no frames, or cut short; the message says which, without the path.
    """
    table = _packet_table(path)
    if table is None:
        return decoded_table(path)
    listed = _decord_times(path) if use_decord else None
    if listed is None or len(listed) == len(table.times):
        return table
    return _as_listed(table, listed) or table


def with_table(
    path: str, use_decord: bool, take: Callable[[FrameTable], T]
) -> tuple[FrameTable, T]:
    """The list of frames that the decoder keeps to, and what `take` makes with it.

    Raises:
        MediaError: as `frame_table` and `take`, or no list is kept to.
    """
    table = frame_table(path, use_decord)
    try:
        return table, take(table)
    except LookupError:
        # The decoder shows other frames than the packets promise (hidden or damaged ones).
        table = decoded_table(path)
    try:
        return table, take(table)
    except LookupError as error:
        raise MediaError("decodes differently each time") from error


def counting_rate(
    times: Sequence[int | None], base: Fraction, average: Fraction | None
) -> Fraction | None:
    """None if a file's frames are shown at their times; else how many a second to count.

    Decided by the file's first frames, so the same for whatever part of it is read. A repeated time
    or one that is missing here and there is no reason to count (`ascending`): most of them are. Nor
    are times that go back and forth of use: AVI holds the order of decoding only. Sorted, they tell
    the true rate.

    Args:
        times: of the frames in the order in which the decoder shows them; None where there is none.
        base: their unit, in seconds.
        average: the stream's own average rate; 25 if None, as raw streams have it.

    Raises:
        MediaError: the times go back and forth, and are uneven besides.
    """
    first = times[:LOOK]
    known = [time for time in first if time is not None]
    steps = list(pairwise(known))
    if 20 * sum(b < a for a, b in steps) > len(steps):
        gaps = [b - a for a, b in pairwise(sorted(set(known)))]
        if (max(gaps) - min(gaps)) * base > _EVEN:
            raise MediaError("has frames whose times are not in order; convert it, such as to mp4")
        return len(gaps) / (sum(gaps) * base)
    bad = len(first) - len(known) + sum(b == a for a, b in steps)
    return Fraction(average or 25) if 2 * bad > len(first) else None


def ascending(times: Sequence[int | None]) -> list[int]:
    """Times of frames in order; one that is missing or repeated is a tick later than the last.

    So no frame is lost, and those around it keep their times.
    """
    made: list[int] = []
    for time in times:
        least = made[-1] + 1 if made else 0
        made.append(least if time is None or (made and time < least) else time)
    return made


def decoded_table(path: str) -> FrameTable:
    """List the frames by decoding all of them: for files whose packets do not say it.

    Raises:
        MediaError: as `frame_table`, or nothing could be decoded.
    """
    with open_video(path) as (container, stream):
        frames = [(frame.pts, frame.duration or 0) for frame in container.decode(stream)]
        rate = stream.average_rate or Fraction(25)
        base, has_audio = stream.time_base, bool(container.streams.audio)
    if not frames:
        raise MediaError("has a video stream but no frame that can be decoded")
    shown = [pts for pts, _ in frames]
    if (count := counting_rate(shown, base, rate)) is not None:
        base, times, frames = 1 / count, list(range(len(frames))), [(None, 1)]
    else:
        times = ascending(shown)
    last = frames[-1][1] or _typical_gap(times, base, rate)
    return FrameTable(tuple(times), times[-1] + last, base, has_audio, decoded=True)


@contextmanager
def open_video(path: str, threads: int = MAX_THREADS) -> Iterator[tuple[Any, Any]]:
    """An open file and its video stream; FFmpeg's errors become MediaErrors.

    Args:
        path: of the file.
        threads: that decode; so many frames, less one, are decoded ahead.
    """
    import av

    if Path(path).stat().st_size == 0:
        raise MediaError("the file is empty")
    try:
        with av.open(path) as container:
            stream = _video_stream(container)
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = threads
            yield container, stream
    except av.error.FFmpegError as error:
        raise MediaError(f"not a readable video ({error.strerror or error})") from error


def _video_stream(container: Any) -> Any:
    from av.stream import Disposition

    if any(mark in container.format.name for mark in _STILL_FORMATS):
        raise MediaError("is a still image, not a video")
    for stream in container.streams.video:
        # The cover of a song is a video stream of one picture: not a video.
        if not stream.disposition & Disposition.attached_pic:
            if stream.codec_context is None:
                raise MediaError("holds a video stream of a kind that this FFmpeg cannot decode")
            if stream.codec_context.name not in _TEXT_CODECS:
                return stream
    if container.streams.audio:
        raise MediaError("holds only sound, no video")
    raise MediaError("holds no video")


def _check_length(path: str, container: Any, end: float) -> None:
    """Is the file as long as its header says?

    Args:
        path: of the file.
        container: opened.
        end: of its picture, in seconds; its sound may go on.

    Raises:
        MediaError: it is cut short.
    """
    import av

    # Of other formats FFmpeg tells a last packet that is not whole, or guesses the length itself.
    told = (container.duration or 0) / av.time_base if "matroska" in container.format.name else 0
    if told - end > _ROUNDED:
        with av.open(path) as again:
            times = (
                float((one.pts + (one.duration or 0)) * one.time_base)
                for one in again.demux()
                if one.pts is not None and one.size
            )
            end = max(times, default=0.0)
    if told - end > _ROUNDED:
        raise MediaError(f"is cut short: it ends at {end:.1f} s of {told:.1f} s")


def _packet_table(path: str) -> FrameTable | None:
    """Times of all packets; None if packets do not carry usable times."""
    shown, keys = [], []
    count = 0
    with open_video(path) as (container, stream):
        for packet in container.demux(stream):
            if packet.size == 0:
                continue  # PyAV's flush packet at the end
            if packet.is_corrupt:
                raise MediaError(f"is cut short or damaged at frame {count}")
            count += 1
            if not packet.is_discard:
                shown.append((packet.pts, packet.duration or 0))
                if packet.is_keyframe:
                    keys.append(packet.pts)
        promised = stream.frames if "mp4" in container.format.name else 0
        rate = stream.average_rate or Fraction(25)
        base, has_audio = stream.time_base, bool(container.streams.audio)
        reorders = bool(stream.codec_context.has_b_frames)
        last_shown = max((t + length for t, length in shown if t is not None), default=0)
        _check_length(path, container, float(last_shown * (base or 0)))
    if count < promised:
        raise MediaError(f"is cut short: {count} of {promised} frames are there")
    if not shown:
        raise MediaError("has a video stream but no frames")
    if any(pts is None for pts, _ in shown):
        return None
    # A container that holds the order of decoding as if it were that of showing gives itself away:
    # the decoder reorders frames where the container does not.
    ordered = reorders == any(b < a for a, b in pairwise(pts for pts, _ in shown))
    shown.sort()
    times = [pts for pts, _ in shown]
    if counting_rate(times, base, rate) is not None:
        return None  # many are equal: decoding tells more
    times = ascending(times)
    last = shown[-1][1] or _typical_gap(times, base, rate)
    end = times[-1] + last
    return FrameTable(tuple(times), end, base, has_audio, tuple(sorted(keys)), ordered=ordered)


def _typical_gap(times: Sequence[int], base: Fraction, rate: Fraction) -> int:
    """A last frame of unknown length lasts as long as the one before it."""
    return times[-1] - times[-2] if len(times) > 1 else max(1, round(1 / (rate * base)))


def _decord_times(path: str) -> list[float] | None:
    """Start of each frame in seconds as decord lists it; None if it cannot or takes too long."""
    answer: list[list[float]] = []

    def ask() -> None:
        try:
            import decord

            reader = decord.VideoReader(path, num_threads=1)
            answer.append(reader.get_frame_timestamp(range(len(reader)))[:, 0].tolist())
        except Exception:  # decord is absent or fails in its own ways; PyAV has read the file
            return

    # A thread can be left behind in a hanging decord: media_worker ends without waiting for it.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_DECORD_PATIENCE)
    return answer[0] if answer else None


def _as_listed(table: FrameTable, listed: Sequence[float]) -> FrameTable | None:
    """The part of the table that decord lists; None if decord lists a frame that is not there."""
    starts = [float(time * table.time_base) for time in table.times]
    kept = []
    for time in listed:
        index = bisect_left(starts, time - _TOLERANCE)
        if index == len(starts) or starts[index] > time + _TOLERANCE:
            return None
        kept.append(index)
    if not kept or any(b <= a for a, b in pairwise(kept)):
        return None
    after = kept[-1] + 1
    end = table.end if after == len(starts) else table.times[after]
    times = tuple(table.times[index] for index in kept)
    return replace(table, times=times, end=end, ordered=False)
