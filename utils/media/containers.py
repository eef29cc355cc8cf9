"""Opened video files: the picture and the sound that players choose, and several recordings in one.

All by PyAV (FFmpeg). Reads the user's files in the child process of worker.py only: a broken one
may hang a decoder.
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

MAX_THREADS = 4  # several ranks may decode at the same time
CONVERT = "convert it, for example: ffmpeg -i FILE -c:v libx264 FILE.mp4"
_DISCONTINUOUS = 0x0200  # AVFMT_TS_DISCONT: a format whose clock may step
_TEXT_CODECS = {"ansi", "bintext", "idf", "xbin"}  # FFmpeg draws plain text as if it were video
_STILL_FORMATS = ("_pipe", "image2", "ico", "gif_pipe")
_LISTS = {"concat", "hls", "dash"}  # of other files, whose change nobody would notice
_PARSED_AHEAD = 3  # packets that a parser may hold when the next recording begins
APART = Fraction(1, 10)  # seconds between a file's begin and its picture's that are worth a line
_NEW_PART = Fraction(3600)  # seconds that a clock may jump ahead within one recording


@contextmanager
def open_video(path: str, threads: int = MAX_THREADS) -> Iterator[tuple[Container, VideoStream]]:
    """An open file and its video stream; FFmpeg's errors become MediaErrors.

    Args:
        path: of the file.
        threads: that decode; so many frames, less one, are decoded ahead.
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
    """The streams that hold a film: the cover of a song is a video stream of one picture."""
    from av.stream import Disposition

    return [
        stream
        for stream in container.streams.video
        if stream.codec_context is not None
        and stream.codec_context.name not in _TEXT_CODECS
        and not stream.disposition & Disposition.attached_pic
    ]


def _picture(container: InputContainer) -> VideoStream:
    """The film that players show: FFmpeg's choice, or the best one beside an attached picture."""
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
    """The sound that players play with a picture: FFmpeg's choice; None without any."""
    best = container.streams.best("audio", picture)
    return next((one for one in container.streams.audio if one is best), None)


def time_stamp(frame: Frame) -> int | None:
    """Return when a frame begins, in units of its time base; None if the file does not say."""
    return frame.pts


def time_base(of: Frame | Stream) -> Fraction:
    """Return the seconds of one unit of the times of a stream or frame.

    Raises:
        MediaError: its times have no unit.
    """
    if of.time_base is None:
        raise MediaError(f"has frames without times; {CONVERT}")
    return of.time_base


class JoinedContainer:
    """A container of recordings one after the other, each with a clock of its own, on one clock.

    It is read from its beginning only: a time of the one clock is no place in the file.

    Attributes:
        parts: seconds to add to the times of each recording.
        whole: numbers of packets that are called damaged only as another recording follows them.
    """

    def __init__(self, container: InputContainer, whole: frozenset[int] = frozenset()) -> None:
        self._container, self.whole = container, whole
        self.format, self.streams = container.format, container.streams
        self.duration = container.duration
        self.parts = [Fraction(0)]

    def seek(self, offset: int, *, stream: Stream, backward: bool) -> None:
        """Nowhere: the beginning lies before every place that is asked for."""

    def decode(self, stream: VideoStream) -> Iterator[VideoFrame]:
        """Decoded frames of one stream."""
        for packet in self.demux(stream):
            yield from stream.decode(packet)

    def demux(self, *streams: Stream) -> Iterator[Packet]:
        """Packets of these streams, or all, whose times go on where those of the last part end.

        Each stream comes to a new part by itself: what was read of another may be of the last one.
        """
        wanted = {stream.index for stream in streams}
        part: dict[int, int] = {}
        last: dict[int, Fraction] = {}  # by the file's own clock
        flagged: dict[int, deque[int]] = {}  # of each stream's last packets
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
    """A copy that is not called damaged, since that cannot be taken back."""
    import av

    made = av.Packet(bytes(packet))
    for name in ("stream", "time_base", "pts", "dts", "duration", "is_keyframe"):
        setattr(made, name, getattr(packet, name))
    return made


@lru_cache(maxsize=1024)
def _joins(path: str, size: int, changed: int) -> frozenset[int] | None:  # noqa: ARG001 - its state
    """The packets of `JoinedContainer.whole` of a file whose clock steps back (two broadcasts).

    None of any other. All packets are read, of formats that allow it: MPEG-TS and its kin.
    """
    import av

    steps = False
    with av.open(path) as container:  # in plain numbers first: nearly no file is one
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
