"""Cuts of [start, end) out of a video: picture, sound, and both; in the child of worker.py.

- One clock: seconds count from the first frame that the decoder shows, for picture and sound,
  whatever the file's time stamps begin with.
- Only the window's part of a file is read, from a key frame shortly before it.
- The picture has exactly the frames with start <= time < end, each at its time minus `start`. It is
  encoded again, never cut at key frames: H.264, 4:2:0, upright, of even size (an odd last row or
  column is repeated), a key frame at least every second, no B-frames. The picture of a whole file
  is copied packet by packet if mp4 can hold it unchanged.
- A file ends with the later of its last frame and its sound. If the picture ends first, its last
  frame stays on screen, as in players, so that the picture lasts as long as the window.
- The sound is a wav (sounds.py); the mp4's track is made from it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypedDict, TypeVar

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import containers, mp4, sounds, video

if TYPE_CHECKING:
    from av.audio.frame import AudioFrame
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from lmms_eval_tasks.utils.media.containers import Container

T = TypeVar("T")
_COPIED = ("h264", "hevc", "mpeg4", "vp9", "av1")  # codecs that mp4 holds and its readers expect
# Seconds that a window may end after its file; or a frame, if that is longer.
_ROUNDED = Fraction(1, 50)
# Seconds to jump before the wanted second; None reads from the beginning. The first covers the
# settling of sound decoders and badly interleaved files. The others are for files whose index leads
# to a place after the wanted one.
_JUMPS = (1, 30, None)
_SETTLED = Fraction(1, 5)  # seconds that a sound decoder may need before its first output
# Two key frames are less than a second apart if each half second with frames begins with one.
_KEYS_PER_SECOND = 2


Window = tuple[Fraction, Fraction | None]  # seconds; end None: the end of the file


class Head(NamedTuple):
    """The first frame shown; `origin` is its time in seconds on the file's own clock."""

    origin: Fraction
    frame: VideoFrame
    codec: str
    has_audio: bool


class SegmentFacts(TypedDict):
    """The fields of segments.CutSegment that `encode` and `_copy` return."""

    start: float
    end: float
    duration: float
    width: int
    height: int
    n_frames: int


def write_window(
    source: str, out: str, start: str, end: str | None, *, sound: bool = True
) -> dict[str, object]:
    """Write a window's files: `out`.mp4 (muted), and .wav and .av.mp4 if there is sound.

    Args:
        source: a video file.
        out: the path to write, without endings.
        start: decimal seconds after the first frame.
        end: the same; None for the end of the file.
        sound: False omits the wav and the mp4 with both.

    Returns:
        Fields of segments.CutSegment, and the endings of the files.

    Raises:
        MediaError: the fault of the file or the window, without the file's name.
    """
    first = head(source)
    window = Fraction(start), None if end is None else Fraction(end)
    samples, sound_end = 0, None
    if first.has_audio:  # sound first, since it may end after the last frame
        heard = _from_before(source, first, window[0], _sound)
        samples, sound_end = sounds.write_wav(f"{out}.wav", heard, *window)
    facts = _copy(source, first, sound_end, f"{out}.mp4") if window == (Fraction(0), None) else None
    facts = facts or encode(source, first, window, sound_end, f"{out}.mp4")
    files = [".mp4"]
    if first.has_audio and sound:
        if not samples:
            sounds.write_silence(f"{out}.wav", facts["duration"])
        sounds.add_sound(f"{out}.mp4", f"{out}.wav", f"{out}.av.mp4")
        files += [".wav", ".av.mp4"]
    return {"files": files, **facts}


# --- reading ------------------------------------------------------------------------------------


def head(path: str) -> Head:
    """Return the first frame that is shown, decoded.

    Raises:
        MediaError: no video stream, no frame that can be decoded or has a time, or not readable.
    """
    with containers.open_video(path) as (container, stream):
        # Frames before it may depend on frames before the file's first key frame.
        first = next((one for one in container.decode(stream) if not one.is_corrupt), None)
        if first is None:
            raise MediaError("has a video stream but no frame that can be decoded")
        if (begins := containers.time_stamp(first)) is None:
            raise MediaError(f"has frames without times; {containers.CONVERT}")
        sounds = bool(container.streams.audio)
        origin = begins * containers.time_base(stream)
        return Head(origin, first, stream.codec_context.name, sounds)


def decode_frames(path: str, first: Head, start: Fraction) -> Iterator[tuple[Fraction, VideoFrame]]:
    """Yield decoded pictures with their times in seconds, from one at or before `start` on.

    If none begins so early, from the first one. Several may precede `start`. Times ascend: a
    missing or repeated time becomes the last one plus a tick.

    Args:
        path: the file.
        first: the file's head.
        start: seconds on the file's clock after the first frame.

    Raises:
        MediaError: a frame cannot be decoded, or times step back; names the place.
    """
    return _from_before(path, first, start, _pictures)


def _from_before(
    path: str,
    first: Head,
    start: Fraction,
    decode: Callable[[Container, VideoStream, Head, Fraction], Iterator[tuple[Fraction, T]]],
) -> Iterator[tuple[Fraction, T]]:
    """Yield what `decode` decodes, as `decode_frames` does; for sound only if the file has some."""
    import av

    for jump in _JUMPS:
        if jump is not None and jump >= start:
            continue
        with containers.open_video(path) as (container, stream):
            if jump is not None:
                try:
                    _seek(container, stream, first.origin + start - jump)
                except av.error.FFmpegError:
                    continue
            found = decode(container, stream, first, start)
            one = next(found, None)
            if one is None or (one[0] > start and jump is not None):
                continue  # after the wanted second, or after the end: jump further back
            yield one
            yield from found
            return


def _seek(container: Container, stream: VideoStream, seconds: Fraction) -> None:
    """Jump to a key frame of the picture at or before `seconds` of the file's clock."""
    container.seek(int(seconds / containers.time_base(stream)), stream=stream, backward=True)


def _pictures(
    container: Container, stream: VideoStream, first: Head, start: Fraction
) -> Iterator[tuple[Fraction, VideoFrame]]:
    import av

    time: Fraction | None = None
    base = containers.time_base(stream)
    try:
        for frame in container.decode(stream):
            if frame.is_corrupt:
                if time is None:
                    continue  # after a jump into an open group of pictures
                raise _damaged("picture", start if time is None else time)
            if (begins := containers.time_stamp(frame)) is not None:
                own = begins * containers.time_base(frame) - first.origin
                if time is not None:
                    video.check_order(time, own)
                    own = max(own, time + base)
                time = own
            elif time is None:
                continue  # right after a jump: the frame's time is not known
            else:
                time += base
            yield time, frame
    except av.error.FFmpegError as error:
        raise _damaged("picture", start if time is None else time) from error


def _sound(
    container: Container, stream: VideoStream, first: Head, start: Fraction
) -> Iterator[tuple[Fraction, AudioFrame]]:
    import av

    audio = containers.sound_of(container, stream)
    if audio is None or audio.codec_context is None:
        raise MediaError("has sound in a format that this FFmpeg cannot decode")
    time: Fraction | None = None  # start of the next frame
    begun: Fraction | None = None
    try:
        for packet in container.demux(audio):
            at = time if packet.pts is None else packet.pts * packet.time_base - first.origin
            begun = at if begun is None else begun
            try:
                decoded = audio.decode(packet)
            except av.error.InvalidDataError as error:
                if at is None or at + (packet.duration or 0) * packet.time_base <= start:
                    continue  # before the window: not needed
                if time is None and begun is not None and at < begun + _SETTLED:
                    continue  # a decoder may fail at its beginning
                raise _damaged("sound", at) from error
            for frame in decoded:
                if frame.pts is not None:
                    time = frame.pts * containers.time_base(frame) - first.origin
                elif time is None:
                    raise MediaError("has sound without times")
                yield time, frame
                time += Fraction(frame.samples, frame.sample_rate)
    except av.error.FFmpegError as error:
        raise _damaged("sound", start if time is None else time) from error


def _damaged(medium: str, time: Fraction) -> MediaError:
    return MediaError(f"is damaged: its {medium} near {float(time):.3f} s cannot be decoded")


# --- the picture --------------------------------------------------------------------------------


def encode(
    path: str, first: Head, window: Window, sound_end: Fraction | None, out: str
) -> SegmentFacts:
    """Write the frames of a window to `out`; return fields of segments.CutSegment.

    If no frame begins in the window, the frame on screen is shown throughout. A single frame is
    written twice, at the beginning and halfway: lmms-eval's readers refuse a video of a single
    frame.

    Raises:
        MediaError: the window is not inside the file, or a frame cannot be decoded.
    """
    start, end = window
    turn = video.turn(first.frame)
    width, height = (length + length % 2 for length in (first.frame.width, first.frame.height))
    look = mp4.Look(*turn.size(width, height))
    if not first.frame.format.is_rgb and len(first.frame.format.components) >= 3:
        full = video.is_full_range(first.frame)
        look = replace(look, full_range=full, matrix=int(first.frame.colorspace))
    slot, n_frames = -1, 0
    on_screen: tuple[Fraction, VideoFrame] | None = None  # the last frame on screen
    until, length = end or start, Fraction(0)

    def picture(time: Fraction, frame: VideoFrame) -> tuple[Fraction, mp4.Planes, bool]:
        nonlocal slot, n_frames
        before, slot = slot, int(time * _KEYS_PER_SECOND)
        n_frames += 1
        return time, _planes(frame, first.frame, turn), slot > before

    def pictures() -> Iterator[tuple[Fraction, mp4.Planes | None, bool]]:
        nonlocal on_screen, until, length
        for time, frame in decode_frames(path, first, start):
            if end is not None and time >= end:
                break
            length = time - on_screen[0] if on_screen else length
            on_screen = time, frame
            if time >= start:
                yield picture(time - start, frame)
        else:
            begins, last = on_screen or (Fraction(0), first.frame)
            length = (last.duration or 0) * containers.time_base(last) or length or Fraction(1, 25)
            file_end = max(begins + length, sound_end or Fraction(0))
            is_late = end is not None and end > file_end + max(length, _ROUNDED)
            if start >= file_end or is_late:
                end_text = "the end" if end is None else f"{float(end):g} s"
                what = "starts" if start >= file_end else "ends"
                raise MediaError(
                    f"the segment from {float(start):g} s to {end_text} {what} "
                    f"after the end of the file ({float(file_end):.3f} s); "
                    "correct the segment's times"
                )
            until = file_end if end is None else min(file_end, end)
        _, last = on_screen or (start, first.frame)
        if not n_frames:
            yield picture(Fraction(0), last)
        if n_frames == 1:
            yield picture((until - start) / 2, last)
        yield until - start, None, False

    mp4.write_encoded(out, look, mp4.CUT, pictures())
    return _facts(start, until, (look.width, look.height), n_frames)


def _facts(start: Fraction, end: Fraction, size: tuple[int, int], n: int) -> SegmentFacts:
    duration = float(end - start)
    width, height = size
    return SegmentFacts(
        start=float(start),
        end=float(end),
        duration=duration,
        width=width,
        height=height,
        n_frames=n,
    )


def _planes(frame: VideoFrame, first: VideoFrame, turn: video.Rotation) -> mp4.Planes:
    """Return upright planes in 4:2:0 with 8 bits, of the first frame's size made even."""
    import numpy as np

    if (frame.width, frame.height) != (first.width, first.height):
        frame = frame.reformat(width=first.width, height=first.height)
    if frame.format.name not in video.PLAIN:
        full = frame.format.name.startswith("yuvj")  # otherwise swscale would change the range
        frame = frame.reformat(format=video.PLAIN[full])
    y, u, v = video.planes(frame)
    y = np.pad(y, [(0, y.shape[0] % 2), (0, y.shape[1] % 2)], mode="edge")
    return [turn(plane) for plane in (y, u, v)]


def _copy(path: str, first: Head, sound_end: Fraction | None, out: str) -> SegmentFacts | None:
    """Copy the picture of a whole file to `out`, if mp4 can hold it exactly as it is shown.

    Returns:
        Fields of segments.CutSegment; None if the picture must be encoded instead: another codec,
        turned or hidden frames (an edit list, an open group of pictures at the start), a single
        frame.
    """
    import av

    table = video.frame_table(path)
    if (
        first.codec not in _COPIED
        or video.turn(first.frame) != video.Rotation()
        or table.origin != first.origin
        or len(table.times) == 1
    ):
        return None
    length = (table.end - table.times[0]) * table.time_base
    if sound_end is not None and sound_end > length:
        length = sound_end
        table = replace(table, end=table.times[0] + math.ceil(sound_end / table.time_base))
    try:
        mp4.mux(out, path, frame_table=table)
        if len(video.frame_table(out).times) != len(table.times):
            return None
    except (av.error.FFmpegError, MediaError, ValueError):
        return None  # mp4 cannot hold it
    size = (first.frame.width, first.frame.height)
    return _facts(Fraction(0), length, size, len(table.times))
