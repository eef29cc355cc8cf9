"""What a video file holds: when its frames are shown, and their pixels. All by PyAV (FFmpeg).

Pixels of plain 4:2:0 are taken as the decoder's planes (Y, U, V) and not as RGB: the way to RGB and
back alone costs more than a clip may lose (43 to 44 dB left on MAIA). RGB is converted by the
file's matrix tag and range, as decord does and PyAV's `to_ndarray` does not.

Reads the user's files in the child process of worker.py only: a broken one may hang a decoder.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lmms_eval_tasks.errors import MediaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

MAX_THREADS = 4  # several ranks may decode at the same time
PLAIN = ("yuv420p", "yuvj420p")  # 4:2:0 with 8 bits, of limited and of full range
FULL_RANGE = 2  # AVCOL_RANGE_JPEG
CONVERT = "convert it, for example: ffmpeg -i FILE -c:v libx264 FILE.mp4"
_ROUNDED = 1.0  # seconds that a file may be shorter than its header says
_STEP = Fraction(2, 1000)  # seconds; containers with a clock of 1 ms round every time
_TEXT_CODECS = {"ansi", "bintext", "idf", "xbin"}  # FFmpeg draws plain text as if it were video
_STILL_FORMATS = ("_pipe", "image2", "ico", "gif_pipe")
_MATRICES = (1, 4, 7, 9)  # of ITU-T H.273, all others are read as BT.601


@dataclass(frozen=True)
class FrameTable:
    """Frames in the order of presentation. Times are in units of `time_base`.

    Attributes:
        end: when the last frame ends.
        sound_end: when the file's sound ends, in seconds of the same clock; None without any.
        keys: times of the key frames, ascending; None if the list was made by decoding everything,
            so that positions count the decoder's frames.
    """

    times: tuple[int, ...]
    end: int
    time_base: Fraction
    sound_end: Fraction | None
    keys: tuple[int, ...] | None

    @property
    def origin(self) -> Fraction:
        """When the first frame is shown, in seconds of the file's own clock."""
        return self.times[0] * self.time_base

    @property
    def duration(self) -> float:
        """Seconds from the first frame's start to the last one's end."""
        return float((self.end - self.times[0]) * self.time_base)

    def seconds(self, index: int) -> float:
        """Start of a frame, in seconds after the first frame's start."""
        return float((self.times[index] - self.times[0]) * self.time_base)


@contextmanager
def open_video(path: str, threads: int = MAX_THREADS) -> Iterator[tuple[Any, Any]]:
    """An open file and its video stream; FFmpeg's errors become MediaErrors.

    Args:
        path: of the file.
        threads: that decode; so many frames, less one, are decoded ahead.
    """
    import av
    from av.stream import Disposition

    if Path(path).stat().st_size == 0:
        raise MediaError("the file is empty")
    try:
        with av.open(path) as container:
            found = [
                stream
                for stream in container.streams.video
                if stream.codec_context is not None
                and stream.codec_context.name not in _TEXT_CODECS
                # The cover of a song is a video stream of one picture.
                and not stream.disposition & Disposition.attached_pic
            ]
            form = container.format.name
            if not found or any(mark in form for mark in _STILL_FORMATS):
                raise MediaError(f"holds no video that FFmpeg can decode (its format: {form})")
            found[0].thread_type = "AUTO"
            found[0].codec_context.thread_count = threads
            yield container, found[0]
    except av.error.FFmpegError as error:
        raise MediaError(f"not a readable video ({error.strerror or error})") from error


# --- when frames are shown ----------------------------------------------------------------------


def frame_table(path: str) -> FrameTable:
    """List the frames of a file by its packets, without decoding.

    Raises:
        MediaError: not a video, no frames, cut short, or frames without times; without the path.
    """
    shown, keys = [], []
    count = 0
    sound_end: Fraction | None = None
    last = Fraction(0)  # when anything in the file ends
    with open_video(path) as (container, stream):
        for packet in container.demux():
            if not packet.size:
                continue  # PyAV's flush packets at the end
            if packet.pts is not None and packet.time_base:
                ends = (packet.pts + (packet.duration or 0)) * packet.time_base
                last = max(last, ends)
                if packet.stream.type == "audio":
                    sound_end = max(sound_end or ends, ends)
            if packet.stream.index == stream.index:
                if packet.is_corrupt:
                    raise MediaError(f"is cut short or damaged at frame {count}")
                count += 1
                if not packet.is_discard:
                    shown.append((packet.pts, packet.duration or 0))
                    keys += [packet.pts] if packet.is_keyframe and packet.pts is not None else []
        promised = stream.frames if "mp4" in container.format.name else 0
        # Of other formats FFmpeg tells a last packet that is not whole, or guesses the length.
        told = container.duration / 1e6 if "matroska" in container.format.name else 0.0
        base, length = stream.time_base, stream.duration or 0
        end = (stream.start_time or 0) + length
    if told - last > _ROUNDED:
        raise MediaError(f"is cut short: it ends at {float(last):.1f} s of {told:.1f} s")
    shown_until = max(((pts or 0) + own for pts, own in shown), default=0)
    # What lies before an edit list's first key frame is not there either, but does not lack.
    if count < promised and end - shown_until > 2 * length / promised:
        raise MediaError(f"is cut short: {count} of {promised} frames are there")
    if all(pts is not None for pts, _ in shown):
        shown.sort()
    return _table(shown, base, sound_end, tuple(sorted(keys)))


def _table(
    shown: Sequence[tuple[int | None, int]],
    base: Fraction,
    sound_end: Fraction | None,
    keys: tuple[int, ...] | None,
) -> FrameTable:
    """From the frames' times and lengths, in the order shown.

    A time that is missing or repeated is a tick later than the last: so no frame is lost, and those
    around it keep their times. A last frame of unknown length lasts as long as the one before it.
    """
    if not shown:
        raise MediaError("has a video stream but no frame that can be decoded")
    if 2 * len({time for time, _ in shown if time is not None}) < len(shown):
        raise MediaError(f"has frames without times; {CONVERT}")
    times: list[int] = []
    for time, _ in shown:
        if times and time is not None:
            check_order(times[-1] * base, time * base)
        least = times[-1] + 1 if times else 0
        times.append(least if time is None or (times and time < least) else time)
    usual = times[-1] - times[-2] if len(times) > 1 else max(1, round(Fraction(1, 25) / base))
    return FrameTable(tuple(times), times[-1] + (shown[-1][1] or usual), base, sound_end, keys)


def check_order(before: Fraction, after: Fraction) -> None:
    """Containers with a coarse clock round times, and players pass over a repeated one.

    Raises:
        MediaError: a frame is shown before the one that it follows, as in AVI files with B-frames
            and in two recordings in one file.
    """
    if after < before - _STEP:
        raise MediaError(
            f"has time stamps that step back from {float(before):.3f} to {float(after):.3f} s; "
            f"{CONVERT}"
        )


# --- their pixels -------------------------------------------------------------------------------


def pick(
    path: str, choose: Callable[[int], Sequence[int]], take: Callable[[Any], T]
) -> tuple[FrameTable, list[T]]:
    """What `take` makes of some frames, in one pass through the file, a frame at a time.

    Args:
        path: of the file.
        choose: positions of the wanted frames, ascending, from how many there are.
        take: is given each av.VideoFrame; all are of the first one's size and format.

    Returns:
        The list of frames that the decoder keeps to, and what was made.

    Raises:
        MediaError: as `frame_table`, or one of the frames cannot be decoded.
    """
    table = frame_table(path)
    for _ in range(2):
        indices = choose(len(table.times))
        made = [take(frame) for frame in _decode(path, table, indices)]
        if len(made) == len(indices):
            return table, made
        # The decoder shows other frames than the packets promise (hidden or damaged ones).
        with open_video(path) as (container, stream):
            shown = [(frame.pts, frame.duration or 0) for frame in container.decode(stream)]
            table = _table(shown, stream.time_base, table.sound_end, None)
    raise MediaError("decodes differently each time")


def _decode(path: str, table: FrameTable, indices: Sequence[int]) -> Iterator[Any]:
    """Frames at `indices`; fewer where the decoder shows other frames than the table lists."""
    threads = 1 if list(indices) == [0] else MAX_THREADS  # the first frame waits for no other
    form: tuple[int, int, str] | None = None
    with open_video(path, threads) as (container, stream):
        find = _by_position if table.keys is None else _by_time
        for frame in find(container, stream, table, indices):
            form = form or (frame.width, frame.height, frame.format.name)
            same = form == (frame.width, frame.height, frame.format.name)
            yield frame if same else frame.reformat(*form)


def _by_position(
    container: Any, stream: Any, table: FrameTable, indices: Sequence[int]
) -> Iterator[Any]:
    wanted = set(indices)
    for position, frame in enumerate(container.decode(stream)):
        if frame.is_corrupt:
            at = table.seconds(min(position, len(table.times) - 1))
            raise MediaError(f"the frame at {at:.3f} s cannot be decoded")
        if position in wanted:
            yield frame


def _by_time(
    container: Any, stream: Any, table: FrameTable, indices: Sequence[int]
) -> Iterator[Any]:
    frames: Iterator[Any] = iter(())
    position: int | None = None
    keys = table.keys or ()
    for target in (table.times[index] for index in indices):
        # Jump only where a key frame lies between here and there; else decoding on is shorter.
        key = bisect_right(keys, target)
        if position is None or (key and keys[key - 1] > position):
            container.seek(target, stream=stream, backward=True)
            frames = container.decode(stream)
        for frame in frames:
            # A frame that leans on a damaged one is damaged: so each one on the way is looked at.
            # After a jump this may only mean an open group of pictures: decoding everything tells.
            if frame.is_corrupt or frame.pts is None or frame.pts > target:
                return
            if frame.pts == target:
                position = target
                yield frame
                break
        else:
            return


def quarter_turns(frame: Any) -> int:
    """By how many quarters a frame is to be turned counterclockwise (numpy's rot90), as decord."""
    return int(round(frame.rotation / 90) % 4)


def is_full_range(frame: Any) -> bool:
    """Whether the frame's luma covers 0 to 255, not 16 to 235."""
    return bool(frame.color_range == FULL_RANGE or frame.format.name.startswith("yuvj"))


def rgb(frame: Any) -> NDArray[np.uint8]:
    """A frame of any format as RGB (height, width, 3), by its matrix tag and range as decord."""
    changes: dict[str, int] = {}
    if not frame.format.is_rgb:
        if int(frame.colorspace) in _MATRICES:
            # PyAV's names are swscale's numbers, which are those of H.273.
            changes["src_colorspace"] = int(frame.colorspace)
            changes["dst_colorspace"] = 5  # swscale's default; PyAV acts only if the two differ
        if is_full_range(frame):
            changes["src_color_range"] = FULL_RANGE
    made: NDArray[np.uint8] = frame.to_ndarray(format="rgb24", **changes)
    return made


def planes(frame: Any) -> list[NDArray[np.uint8]]:
    """Y, U and V of a frame with 8 bits, as views of what the decoder wrote."""
    import numpy as np

    return [
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width]
        for plane in frame.planes
    ]
