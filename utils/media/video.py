"""The frames of a video file: their times and pixels. Everything uses PyAV (FFmpeg).

Pixels of plain 4:2:0 stay the decoder's planes (Y, U, V) and do not become RGB: a conversion to RGB
and back alone costs more than a clip may lose (43 to 44 dB left on MAIA). RGB is converted by the
file's matrix tag and range, as in decord; PyAV's `to_ndarray` ignores them.

The user's files are read only in the child process of worker.py: a broken file may hang a decoder.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media.containers import (
    APART,
    CONVERT,
    MAX_THREADS,
    JoinedContainer,
    open_video,
    pictures_of,
    sound_of,
    time_base,
    time_stamp,
)

if TYPE_CHECKING:
    import numpy as np
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    from lmms_eval_tasks.utils.media.containers import Container

T = TypeVar("T")
Number = TypeVar("Number", bound="np.generic")

PLAIN = ("yuv420p", "yuvj420p")  # 4:2:0 with 8 bits, of limited and of full range
FULL_RANGE = 2  # AVCOL_RANGE_JPEG
_ROUNDED = 1.0  # seconds that a file may be shorter than its header says
_STEP = Fraction(2, 1000)  # seconds; containers with a clock of 1 ms round every time
# Containers whose header has the length of the whole; for others FFmpeg guesses from the present
# data.
_TOLD_SECONDS, _TOLD_FRAMES = ("matroska", "flv"), "avi"
_FROM_ZERO = ("mp4", "matroska")  # their clock begins at 0, even if nothing is shown then
_SQUARE = Fraction(1, 20)  # relative difference of a pixel's width and height that needs no note
_MATRICES = (1, 4, 7, 9)  # of ITU-T H.273; all others are read as BT.601


@dataclass(frozen=True)
class FrameTable:
    """Frames in the order of presentation. Times are in units of `time_base`.

    Attributes:
        times: the start of each frame.
        end: the end of the last frame.
        sound_end: the end of the file's sound, in seconds of the same clock; None without sound.
        keys: times of the key frames, ascending; None if all frames were decoded for the list, so
            that positions count the decoder's frames, or if the file allows no jumps.
        notes: notes for users: other pictures, a picture that begins late.
    """

    times: tuple[int, ...]
    end: int
    time_base: Fraction
    sound_end: Fraction | None
    keys: tuple[int, ...] | None
    notes: tuple[str, ...] = ()

    @property
    def origin(self) -> Fraction:
        """The start of the first frame, in seconds of the file's own clock."""
        return self.times[0] * self.time_base

    @property
    def duration(self) -> float:
        """Seconds from the first frame's start to the last frame's end."""
        return float((self.end - self.times[0]) * self.time_base)

    def seconds(self, index: int) -> float:
        """Return the start of a frame, in seconds after the first frame's start."""
        return float((self.times[index] - self.times[0]) * self.time_base)


# --- frame times --------------------------------------------------------------------------------


def frame_table(path: str) -> FrameTable:
    """List the frames of a file by its packets, without decoding.

    Raises:
        MediaError: not a video, no frames, cut short, or frames without times; without the path.
    """
    shown, keys = [], []
    count = 0
    sound_end: Fraction | None = None
    last = Fraction(0)  # end of all streams so far
    with open_video(path) as (container, stream):
        sound = sound_of(container, stream)
        is_from_zero = any(form in container.format.name for form in _FROM_ZERO)
        first = Fraction(0) if is_from_zero else None  # begin of the file
        for packet in container.demux():
            if not packet.size:
                continue  # PyAV's flush packets at the end
            is_sound = sound is not None and packet.stream.index == sound.index
            stamp = packet.dts if packet.pts is None else packet.pts
            if stamp is not None and packet.time_base:
                begins = stamp * packet.time_base
                ends = begins + (packet.duration or 0) * packet.time_base
                last = max(last, ends)
                if is_sound and packet.pts is not None:
                    sound_end = max(sound_end or ends, ends)
                if (is_sound or packet.stream.index == stream.index) and not packet.is_discard:
                    first = begins if first is None else min(first, begins)
            if packet.stream.index == stream.index:
                if packet.is_corrupt:
                    raise MediaError(f"is cut short or damaged at frame {count}")
                count += 1
                if not packet.is_discard:
                    shown.append((packet.pts, packet.duration or 0))
                    keys += [packet.pts] if packet.is_keyframe and packet.pts is not None else []
        promised = stream.frames if "mp4" in container.format.name else 0
        told = _told_seconds(container, stream)
        base, length = time_base(stream), stream.duration or 0
        end = (stream.start_time or 0) + length
        notes = [*_other_pictures(container, stream), *_squeezed(stream)]
        is_joined = isinstance(container, JoinedContainer)
    if told - last > _ROUNDED:
        raise MediaError(f"is cut short: it ends at {float(last):.1f} s of {told:.1f} s")
    shown_until = max(((pts or 0) + own for pts, own in shown), default=0)
    # Frames before an edit list's first key frame are not in the file, but are not missing.
    if count < promised and end - shown_until > 2 * length / promised:
        raise MediaError(f"is cut short: {count} of {promised} frames are there")
    if all(pts is not None for pts, _ in shown):
        shown.sort()
    table = _table(shown, base, sound_end, None if is_joined else tuple(sorted(keys)))
    return replace(table, notes=(*notes, *_late(table.origin - (first or 0))))


def _late(seconds: Fraction) -> list[str]:
    if seconds <= APART:
        return []
    begins = f"its picture begins {float(seconds):.3f} s after the file: times here are counted"
    return [f"{begins} from the first picture, but in many players from the start of the file"]


def _told_seconds(container: Container, stream: VideoStream) -> float:
    """Return the length in seconds in a file's header; 0 if it has none."""
    form = container.format.name
    if any(name in form for name in _TOLD_SECONDS):
        return (container.duration or 0) / 1e6  # a recorder that wrote into a pipe left none
    if form == _TOLD_FRAMES:
        return float(stream.frames * time_base(stream))
    return 0.0


def _other_pictures(container: Container, stream: VideoStream) -> list[str]:
    found = [f"{one.width}x{one.height}" for one in pictures_of(container) if one is not stream]
    if not found:
        return []
    shown = f"{stream.width}x{stream.height}"
    return [f"holds {1 + len(found)} pictures: players show {shown}, not {', '.join(found)}"]


def _squeezed(stream: VideoStream) -> list[str]:
    ratio = stream.sample_aspect_ratio
    if not ratio or abs(ratio - 1) <= _SQUARE:
        return []
    shape = f"{ratio.numerator}:{ratio.denominator}"
    return [
        f"its pixels are not square ({shape}): models see square pixels, players "
        "stretch the picture"
    ]


def _table(
    frame_times: Sequence[tuple[int | None, int]],
    base: Fraction,
    sound_end: Fraction | None,
    keys: tuple[int, ...] | None,
) -> FrameTable:
    """Return the table of frames, from their times and lengths in the order shown.

    A missing or repeated time becomes the last one plus a tick: so no frame is lost, and its
    neighbours keep their times. A last frame of unknown length lasts as long as the one before it.

    Raises:
        MediaError: there are no frames, most have no times, or times step back.
    """
    if not frame_times:
        raise MediaError("has a video stream but no frame that can be decoded")
    if 2 * len({time for time, _ in frame_times if time is not None}) < len(frame_times):
        raise MediaError(f"has frames without times; {CONVERT}")
    times: list[int] = []
    for time, _ in frame_times:
        if times and time is not None:
            check_order(times[-1] * base, time * base)
        least = times[-1] + 1 if times else 0
        times.append(least if time is None or (times and time < least) else time)
    usual = times[-1] - times[-2] if len(times) > 1 else max(1, round(Fraction(1, 25) / base))
    return FrameTable(
        tuple(times), times[-1] + (frame_times[-1][1] or usual), base, sound_end, keys
    )


def check_order(before: Fraction, after: Fraction) -> None:
    """Check that times do not step back, with tolerance for containers that round times.

    Raises:
        MediaError: a frame is shown before its predecessor, as in AVI files with B-frames.
    """
    if after < before - _STEP:
        raise MediaError(
            f"has time stamps that step back from {float(before):.3f} to {float(after):.3f} s; "
            f"{CONVERT}"
        )


# --- pixels -------------------------------------------------------------------------------------


def pick(
    path: str, choose: Callable[[int], Sequence[int]], take: Callable[[VideoFrame], T]
) -> tuple[FrameTable, list[T]]:
    """Return the results of `take` for some frames, in one pass through the file.

    Args:
        path: the file.
        choose: returns the positions of the wanted frames, ascending, for a number of frames.
        take: gets each av.VideoFrame; all have the first one's size and format.

    Returns:
        The table of the frames that the decoder really shows, and the results.

    Raises:
        MediaError: see `frame_table`; or one of the frames cannot be decoded.
    """
    table = frame_table(path)
    for _ in range(2):
        indices = choose(len(table.times))
        made = [take(frame) for frame in _decode(path, table, indices)]
        if len(made) == len(indices):
            return table, made
        # The decoder shows other frames than the packets announce (hidden or damaged ones).
        with open_video(path) as (container, stream):
            shown = [(time_stamp(frame), frame.duration or 0) for frame in container.decode(stream)]
            again = _table(shown, time_base(stream), table.sound_end, None)
            table = replace(again, notes=table.notes)
    raise MediaError("decodes differently each time")


def _decode(path: str, table: FrameTable, indices: Sequence[int]) -> Iterator[VideoFrame]:
    """Yield the frames at `indices`; fewer if the decoder shows other frames than the table has."""
    # The first frame needs no frames decoded ahead.
    threads = 1 if list(indices) == [0] else MAX_THREADS
    form: tuple[int, int, str] | None = None
    with open_video(path, threads) as (container, stream):
        find = _by_position if table.keys is None else _by_time
        for frame in find(container, stream, table, indices):
            form = form or (frame.width, frame.height, frame.format.name)
            same = form == (frame.width, frame.height, frame.format.name)
            yield frame if same else frame.reformat(*form)


def _by_position(
    container: Container, stream: VideoStream, table: FrameTable, indices: Sequence[int]
) -> Iterator[VideoFrame]:
    wanted = set(indices)
    for position, frame in enumerate(container.decode(stream)):
        if frame.is_corrupt:
            at = table.seconds(min(position, len(table.times) - 1))
            raise MediaError(f"the frame at {at:.3f} s cannot be decoded")
        if position in wanted:
            yield frame


def _by_time(
    container: Container, stream: VideoStream, table: FrameTable, indices: Sequence[int]
) -> Iterator[VideoFrame]:
    frames: Iterator[VideoFrame] = iter(())
    position: int | None = None
    keys = table.keys or ()
    for target in (table.times[index] for index in indices):
        # Jump only if a key frame lies between here and there; else it is shorter to decode on.
        key = bisect_right(keys, target)
        if position is None or (key and keys[key - 1] > position):
            container.seek(target, stream=stream, backward=True)
            frames = container.decode(stream)
        for frame in frames:
            # A frame that depends on a damaged frame is damaged, so each one on the way is checked.
            # After a jump a mark of damage may only mean an open group of pictures; then all frames
            # are decoded.
            begins = time_stamp(frame)
            if frame.is_corrupt or begins is None or begins > target:
                return
            if begins == target:
                position = target
                yield frame
                break
        else:
            return


class Rotation(NamedTuple):
    """The steps to make a frame upright: swap rows and columns, flip vertically, mirror."""

    swapped: bool = False
    down: bool = False
    mirrored: bool = False

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Return width and height of the upright frame."""
        return (height, width) if self.swapped else (width, height)

    def __call__(self, plane: NDArray[Number]) -> NDArray[Number]:
        """Return a plane or picture (height, width, ...) upright, as a contiguous array."""
        import numpy as np

        made = plane.swapaxes(0, 1) if self.swapped else plane
        rows = made[::-1] if self.down else made
        return np.ascontiguousarray(rows[:, ::-1] if self.mirrored else rows)


def turn(frame: VideoFrame) -> Rotation:
    """Return how players turn a frame, by its file's matrix, to the nearest right angle."""
    import numpy as np
    from av.buffer import Buffer

    data = frame.side_data.get("DISPLAYMATRIX")
    if not isinstance(data, Buffer):
        return Rotation()
    # A point of the stored picture is shown at (a x + c y, b x + d y).
    a, b, _, c, d = np.frombuffer(memoryview(data), np.int32)[:5].tolist()
    if abs(b) + abs(c) > abs(a) + abs(d):
        return Rotation(True, b < 0, c < 0)
    return Rotation(False, d < 0, a < 0)


def is_full_range(frame: VideoFrame) -> bool:
    """Return True if the frame's luma covers 0 to 255, not 16 to 235."""
    return bool(frame.color_range == FULL_RANGE or frame.format.name.startswith("yuvj"))


def rgb(frame: VideoFrame) -> NDArray[np.uint8]:
    """Return a frame as RGB (height, width, 3), by its matrix tag and range, as decord does."""
    import numpy as np

    changes: dict[str, int] = {}
    if not frame.format.is_rgb:
        if int(frame.colorspace) in _MATRICES:
            # PyAV's names are swscale's numbers, which are those of H.273.
            changes["src_colorspace"] = int(frame.colorspace)
            changes["dst_colorspace"] = 5  # swscale's default; PyAV acts only if the two differ
        if is_full_range(frame):
            changes["src_color_range"] = FULL_RANGE
    return np.asarray(frame.reformat(format="rgb24", **changes).to_ndarray(), np.uint8)


def planes(frame: VideoFrame) -> list[NDArray[np.uint8]]:
    """Return Y, U and V of a frame with 8 bits, as views of the decoder's memory."""
    import numpy as np

    return [
        np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[
            : plane.height, : plane.width
        ]
        for plane in frame.planes
    ]
