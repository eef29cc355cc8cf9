"""Opened video files: the picture and sound that players choose; several recordings in one file.

Everything uses PyAV (FFmpeg). The user's files are read only in the child process of worker.py: a
broken file may hang a decoder.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.json_files import strange

if TYPE_CHECKING:
    from av.audio.stream import AudioStream
    from av.container import InputContainer
    from av.frame import Frame
    from av.packet import Packet
    from av.stream import Stream
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    Container: TypeAlias = "InputContainer | JoinedContainer"

MAX_THREADS = 4  # several processes may decode at the same time
CONVERT = "convert it, for example: ffmpeg -i FILE -c:v libx264 FILE.mp4"
_DISCONTINUOUS = 0x0200  # AVFMT_TS_DISCONT: a format whose clock may step
_TEXT_CODECS = {"ansi", "bintext", "idf", "xbin"}  # FFmpeg draws plain text as if it were video
_STILL_FORMATS = ("_pipe", "image2", "ico", "gif_pipe")
# Containers of references to other files, whose changes would go unnoticed.
_LISTS = {"concat", "hls", "dash"}
_PARSED_AHEAD = 3  # packets that a parser may still hold when the next recording begins
APART = Fraction(1, 10)  # seconds from a file's start to its picture's start that are worth a note
_NEW_PART = Fraction(3600)  # a larger jump of a clock, in seconds, begins another recording


@contextmanager
def open_video(path: str, threads: int = MAX_THREADS) -> Iterator[tuple[Container, VideoStream]]:
    """Context manager with an open file and its video stream.

    Args:
        path: the file.
        threads: decoder threads; that many frames, less one, are decoded ahead.

    Raises:
        MediaError: the file is empty, no video, a list of other files, or FFmpeg fails within the
            context.
    """
    import av

    if not (state := Path(path).stat()).st_size:
        raise MediaError("the file is empty")
    with Path(path).open("rb") as file:
        if said := strange(file.read(1024)):
            raise MediaError(f"is {said}")
    try:
        with av.open(path) as container:
            if container.format.name in _LISTS:
                one = "make one file of them: ffmpeg -i FILE -c copy FILE.mkv"
                raise MediaError(f"is a list of other files ({container.format.name}); {one}")
            stream = _picture(container)
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = threads
            may = container.format.flags & _DISCONTINUOUS
            cut = _joins(path, state.st_size, state.st_mtime_ns) if may else None
            yield container if cut is None else JoinedContainer(container, cut), stream
    except av.error.FFmpegError as error:
        raise MediaError(f"not a readable video ({error.strerror or error})") from error


def pictures_of(container: Container) -> list[VideoStream]:
    """Return the video streams that are films, without attached pictures (covers of songs)."""
    from av.stream import Disposition

    return [
        stream
        for stream in container.streams.video
        if stream.codec_context is not None
        and stream.codec_context.name not in _TEXT_CODECS
        and not stream.disposition & Disposition.attached_pic
    ]


def _picture(container: InputContainer) -> VideoStream:
    """Return the film that players show: FFmpeg's choice, or else the best one.

    Raises:
        MediaError: the file has none.
    """
    from av.stream import Disposition

    found, form = pictures_of(container), container.format.name
    if not found or any(mark in form for mark in _STILL_FORMATS):
        covers = container.streams.video and container.streams.audio
        what = ", only sound and a cover picture" if covers else ""
        what = what or (", only sound" if container.streams.audio else "")
        raise MediaError(f"holds no video that FFmpeg can decode{what} (its format: {form})")
    best = container.streams.best("video")
    return next(
        (one for one in found if best is not None and one.index == best.index),
        max(found, key=lambda one: (bool(one.disposition & Disposition.default), _area(one))),
    )


def _area(stream: VideoStream) -> int:
    return stream.width * stream.height


def sound_of(container: Container, picture: VideoStream) -> AudioStream | None:
    """Return the sound that players play with a picture, FFmpeg's choice; None without sound."""
    best = container.streams.best("audio", picture)
    return next((one for one in container.streams.audio if one is best), None)


def time_stamp(frame: Frame) -> int | None:
    """Return the start time of a frame in units of its time base; None if the file has none."""
    return frame.pts


def time_base(of: Frame | Stream) -> Fraction:
    """Return the length in seconds of a time unit of a stream or frame.

    Raises:
        MediaError: its times have no unit.
    """
    if of.time_base is None:
        raise MediaError(f"has frames without times; {CONVERT}")
    return of.time_base


class JoinedContainer:
    """Several recordings in one file, each with its own clock, joined on one clock.

    It can only be read from the beginning: a time on the joined clock is no place in the file.

    Attributes:
        parts: seconds to add to the times of each recording.
        whole: numbers of packets that FFmpeg marks as damaged only because another recording
            follows.
    """

    def __init__(self, container: InputContainer, whole: frozenset[int] = frozenset()) -> None:
        self._container, self.whole = container, whole
        self.format, self.streams = container.format, container.streams
        self.duration = container.duration
        self.parts = [Fraction(0)]

    def seek(self, offset: int, *, stream: Stream, backward: bool) -> None:
        """Do nothing: the beginning lies before every requested place."""

    def decode(self, stream: VideoStream) -> Iterator[VideoFrame]:
        """Yield the decoded frames of a stream."""
        for packet in self.demux(stream):
            yield from stream.decode(packet)

    def demux(self, *streams: Stream) -> Iterator[Packet]:
        """Yield the packets of these streams, or all, with continuous times across recordings.

        Each stream comes to a new recording by itself: packets of another stream may still belong
        to the last recording.
        """
        wanted = {stream.index for stream in streams}
        part: dict[int, int] = {}
        last: dict[int, Fraction] = {}  # on the file's own clock
        flagged: dict[int, deque[int]] = {}  # for each stream, its last packets
        end = Fraction(0)
        for number, packet in enumerate(self._container.demux()):
            index = packet.stream.index
            recent = flagged.setdefault(index, deque(maxlen=_PARSED_AHEAD))
            if packet.dts is not None:
                own = packet.dts * packet.time_base
                shown = own if packet.pts is None else packet.pts * packet.time_base
                step = own - last.get(index, own)
                if step < -APART or step > _NEW_PART:
                    part[index] = part.get(index, 0) + 1
                    if part[index] == len(self.parts):
                        self.parts.append(end - shown)
                    self.whole |= {one for one in recent if one >= 0}
                last[index] = own
                more = self.parts[part.get(index, 0)]
                end = max(end, shown + more + (packet.duration or 0) * packet.time_base)
                packet.dts += round(more / packet.time_base)
                if packet.pts is not None:
                    packet.pts += round(more / packet.time_base)
            recent.append(number if packet.is_corrupt else -1)
            if not wanted or index in wanted:
                yield _unflagged(packet) if number in self.whole else packet


def _unflagged(packet: Packet) -> Packet:
    """Return a copy of a packet without the damage mark, which cannot be removed in place."""
    import av

    made = av.Packet(bytes(packet))
    for name in ("stream", "time_base", "pts", "dts", "duration", "is_keyframe"):
        setattr(made, name, getattr(packet, name))
    return made


@lru_cache(maxsize=1024)
def _joins(path: str, size: int, changed: int) -> frozenset[int] | None:  # noqa: ARG001 - its state
    """Return `JoinedContainer.whole` for a file whose clock jumps (two broadcasts); else None.

    Reads all packets, only of formats with such clocks: MPEG-TS and its relatives.
    """
    import av

    steps = False
    # First a quick pass in plain numbers: nearly no file is a joined one.
    with av.open(path) as container:
        bases = {one.index: float(one.time_base or 0) for one in container.streams}
        last: dict[int, int] = {}
        for packet in container.demux():
            index, now = packet.stream_index, packet.dts
            if now is not None:
                step = (now - last.get(index, now)) * bases.get(index, 0.0)
                if steps := step < -APART or step > _NEW_PART:
                    break
                last[index] = now
    if not steps:
        return None
    with av.open(path) as container:
        joined = JoinedContainer(container)
        for _ in joined.demux():
            pass
    return joined.whole
