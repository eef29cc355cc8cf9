"""What a video file holds: when its frames are shown, and the pixels of some of them.

Pixels are taken as the decoder's planes (Y, U, V) and never as RGB. Readers disagree about the
conversion (decord follows the BT.709 tag, PyAV's `to_ndarray` does not), and the way to RGB and
back alone costs more than the clip may lose (43 to 44 dB left on MAIA). decord hands out RGB only,
so it is asked for its list of frames, which is what most of the host's loaders count, and PyAV for
the pixels of exactly those frames (decord's own are wrong after a jump into an open group of
pictures, and in MPEG-TS).

Runs in the child process of media_worker.py: a broken file may hang or crash a decoder.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.colours import from_rgb, to_rgb

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.colours import Planes

_DECORD_PATIENCE = 20.0  # seconds; decord has been seen to hang on files that PyAV opens
_MAX_THREADS = 4  # several ranks may decode at the same time
_UNSPECIFIED = 2  # ITU-T H.273: matrix, primaries and transfer unknown
_FULL_RANGE = 2  # AVCOL_RANGE_JPEG
_KEPT = ("yuv420p", "yuvj420p")  # formats whose planes go into the clip as they are
_TEXT_CODECS = {"ansi", "bintext", "idf", "xbin"}  # FFmpeg draws plain text as if it were video
_STILL_FORMATS = ("_pipe", "image2", "ico", "gif_pipe")


@dataclass(frozen=True)
class Look:
    """Size in pixels and colour description (H.273 numbers) that all pictures of a clip share."""

    width: int
    height: int
    full_chroma: bool = False  # 4:4:4 instead of 4:2:0
    full_range: bool = False
    matrix: int = _UNSPECIFIED
    primaries: int = _UNSPECIFIED
    transfer: int = _UNSPECIFIED


@dataclass(frozen=True)
class FrameTable:
    """Frames in the order of presentation. Times are in units of `time_base`."""

    times: tuple[int, ...]
    end: int  # when the last frame ends
    time_base: Fraction
    has_audio: bool
    keys: tuple[int, ...] = ()  # times of the key frames, ascending
    decoded: bool = False  # made by decoding everything: positions count the decoder's frames

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


def decoded_table(path: str) -> FrameTable:
    """List the frames by decoding all of them: for files whose packets do not say it.

    Raises:
        MediaError: as `frame_table`, or nothing could be decoded.
    """
    with _open(path) as (container, stream):
        frames = [(frame.pts, frame.duration or 0) for frame in container.decode(stream)]
        rate = stream.average_rate or Fraction(25)
        base, has_audio = stream.time_base, bool(container.streams.audio)
    if not frames:
        raise MediaError("has a video stream but no frame that can be decoded")
    times = [pts for pts, _ in frames]
    if None in times or any(b <= a for a, b in pairwise(times)):
        # No usable times (raw streams, some AVI): frames follow each other at the average rate.
        base, times = 1 / Fraction(rate), list(range(len(frames)))
        frames = [(pts, 1) for pts in times]
    last = frames[-1][1] or _typical_gap(times, base, rate)
    return FrameTable(tuple(times), times[-1] + last, base, has_audio, decoded=True)


def pictures(path: str, table: FrameTable, indices: Sequence[int]) -> tuple[list[Planes], Look]:
    """The upright planes of the frames at `indices` (ascending positions in the table).

    A rotation in the file (phones) is applied, as decord does. 4:2:0 with 8 bits stays as it is, bit
    for bit; any other format, and odd sizes, which H.264 cannot hold as 4:2:0, become 4:4:4.

    Raises:
        MediaError: one of the frames cannot be decoded.
        LookupError: the decoder shows other frames than the table lists; ask `decoded_table`.
    """
    import numpy as np

    found = []
    look: Look | None = None
    for frame, colours in _decode(path, table, indices):
        if look is None:
            size, look = (frame.width, frame.height), _look(frame, *colours)
            turns = round(frame.rotation / 90) % 4  # counterclockwise, as numpy's rot90
        elif (frame.width, frame.height) != size:
            frame = frame.reformat(width=size[0], height=size[1])  # noqa: PLW2901
        planes = planes_of(frame, look)
        found.append(tuple(np.ascontiguousarray(np.rot90(plane, turns)) for plane in planes))
    if look is None or len(found) != len(indices):
        raise LookupError(f"{len(found)} of {len(indices)} frames found")
    if turns % 2:
        look = replace(look, width=look.height, height=look.width)
    return found, look  # type: ignore[return-value]


@contextmanager
def _open(path: str) -> Iterator[tuple[Any, Any]]:
    """An open file and its video stream; FFmpeg's errors become MediaErrors."""
    import av

    if Path(path).stat().st_size == 0:
        raise MediaError("the file is empty")
    try:
        with av.open(path) as container:
            stream = _video_stream(container)
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = _MAX_THREADS
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


def _packet_table(path: str) -> FrameTable | None:
    """Times of all packets; None if packets do not carry usable times."""
    shown, keys = [], []
    count = 0
    with _open(path) as (container, stream):
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
    if count < promised:
        raise MediaError(f"is cut short: {count} of {promised} frames are there")
    if not shown:
        raise MediaError("has a video stream but no frames")
    if any(pts is None for pts, _ in shown):
        return None
    shown.sort()
    times = [pts for pts, _ in shown]
    if len(set(times)) < len(times):
        return None
    last = shown[-1][1] or _typical_gap(times, base, rate)
    return FrameTable(tuple(times), times[-1] + last, base, has_audio, tuple(sorted(keys)))


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
    import numpy as np

    if not listed:
        return None
    starts = np.array([float(time * table.time_base) for time in table.times])
    nearest = np.abs(np.array(listed)[:, None] - starts[None, :]).argmin(axis=1)
    near = np.abs(np.array(listed) - starts[nearest]) < 1e-3  # decord's times are 32-bit floats
    if not near.all() or (np.diff(nearest) <= 0).any():
        return None
    kept = tuple(table.times[index] for index in nearest)
    end = table.end if kept[-1] == table.times[-1] else table.times[nearest[-1] + 1]
    return replace(table, times=kept, end=end)


def _decode(
    path: str, table: FrameTable, indices: Sequence[int]
) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Frames at `indices` in order, with the stream's primaries and transfer (H.273 numbers).

    Ends early if the decoder does not show a frame that the table lists.
    """
    with _open(path) as (container, stream):
        context = stream.codec_context
        find = _by_position if table.decoded else _by_time
        for frame in find(container, stream, table, indices):
            yield frame, (context.color_primaries, context.color_trc)


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
    for target in (table.times[index] for index in indices):
        # Jump only where a key frame lies between here and there; else decoding on is shorter.
        key = bisect_right(table.keys, target)
        if position is None or (key and table.keys[key - 1] > position):
            container.seek(target, stream=stream, backward=True)
            frames = container.decode(stream)
        for frame in frames:
            # A frame that leans on a damaged one is damaged: so each one on the way is looked at.
            # After a jump this may only mean an open group of pictures: `decoded_table` decides.
            if frame.is_corrupt or frame.pts is None or frame.pts > target:
                return
            if frame.pts == target:
                position = target
                yield frame
                break
        else:
            return


def _look(frame: Any, primaries: int, transfer: int) -> Look:
    """Size and colours of a frame, before any rotation."""
    size = (frame.width, frame.height)
    if len(frame.format.components) < 3 or frame.format.is_rgb:
        return Look(*size, full_chroma=True)
    kept = frame.format.name in _KEPT and not (size[0] % 2 or size[1] % 2)
    return Look(
        *size,
        full_chroma=not kept,
        full_range=kept and _is_full_range(frame),
        matrix=int(frame.colorspace),
        primaries=primaries,
        transfer=transfer,
    )


def _is_full_range(frame: Any) -> bool:
    return frame.color_range == _FULL_RANGE or frame.format.name.startswith("yuvj")


def planes_of(frame: Any, look: Look) -> Planes:
    """Y, U, V as uint8 arrays: the decoder's own where they have the look's format.

    Others go through the RGB that readers make of them: how chroma is brought to full size differs
    with format and size, so nothing else would give the same RGB again.
    """
    import numpy as np

    if look.full_chroma and frame.format.name != "yuv444p":
        return from_rgb(to_rgb(frame, look.matrix, _is_full_range(frame)), look.matrix)
    y, u, v = (
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width]
        for plane in frame.planes
    )
    return y, u, v
