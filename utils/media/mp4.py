"""The mp4 files of this package: pictures encoded by x264, copied packets, and sound.

Times are in units of 1 / `TICKS` seconds, in edit lists too.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import containers, video

if TYPE_CHECKING:
    import numpy as np
    from av.container import OutputContainer
    from av.packet import Packet
    from av.stream import Stream
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream
    from numpy.typing import NDArray

    Planes = Sequence[NDArray[np.uint8]]

TICKS = 90_000
_UNSPECIFIED = 2  # ITU-T H.273: matrix, primaries or transfer unknown
# No option that trades PSNR for looks; finer chroma, since an error of chroma counts in four
# pixels. The macroblock tree runs in C: x264's code for AVX gives other bits than its code for SSE,
# and its code for AVX-512 was seen to give other bits in each encoding on a busy machine.
PARAMS = "no-psy=1:aq-mode=0:chroma-qp-offset=-4:cpu-independent=1"
THREADS = 4  # fixed, so that the bytes are the same on every machine
# For consecutive frames; a requested I frame is a key frame. On MAIA's videos 47 to 50 dB PSNR over
# the planes (44 to 46 in RGB), at about 5 times their size.
CUT = {"preset": "veryfast", "crf": "14", "forced-idr": "1", "x264-params": PARAMS}
# For key frames alone, cheap to decode: no CABAC, no deblocking. In RGB 48 dB on MAIA's videos, 47
# on noise.
CLIP = {
    "preset": "veryfast",
    "qp": "14",
    "x264-params": f"keyint=1:cabac=0:no-deblock=1:{PARAMS}",
}
# The same without loss. x264's lossless mode is High 4:4:4 Predictive, which decoders of graphics
# cards may refuse; models' readers decode with FFmpeg.
LOSSLESS = {**CLIP, "qp": "0"}


@dataclass(frozen=True)
class Look:
    """Size in pixels, range and matrix (H.273) of all pictures of a file.

    Pictures are planes of uint8: Y, U, V in 4:2:0, or G, B, R if `rgb`.
    """

    width: int
    height: int
    rgb: bool = False
    full_range: bool = False
    matrix: int = _UNSPECIFIED


def frame_of(planes: Planes, look: Look) -> VideoFrame:
    """Return a frame with these planes: rgb24 or yuv420p."""
    import av
    import numpy as np

    if look.rgb:
        green, blue, red = planes
        return av.VideoFrame.from_ndarray(np.dstack((red, green, blue)), format="rgb24")
    stacked = np.concatenate([plane.reshape(-1) for plane in planes])
    frame = av.VideoFrame.from_ndarray(stacked.reshape(-1, look.width), format=video.PLAIN[0])
    frame.colorspace, frame.color_range = look.matrix, 1 + look.full_range
    return frame


def open_mp4(out: str) -> OutputContainer:
    """Open a new file whose edit lists count ticks instead of thousandths of a second."""
    import av

    return av.open(out, "w", format="mp4", options={"movie_timescale": str(TICKS)})


def write_encoded(
    out: str,
    look: Look,
    options: dict[str, str],
    pictures: Iterable[tuple[Fraction | float, Planes | None, bool]],
) -> None:
    """Write pictures with x264, without B-frames.

    Args:
        out: the file.
        look: the look of the pictures.
        options: x264's: CUT, CLIP or LOSSLESS.
        pictures: start in seconds, planes, and True for a key frame; the last entry has None and
            the end of the last picture.

    Raises:
        MediaError: the installed PyAV cannot encode with libx264.
    """
    import av
    from av.video.frame import PictureType
    from av.video.stream import VideoStream

    with open_mp4(out) as file:
        try:
            # The rate has no effect: the frames have times.
            stream = file.add_stream("libx264rgb" if look.rgb else "libx264", rate=25)
        except (av.error.FFmpegError, ValueError) as error:
            raise MediaError(f"this PyAV {av.__version__} cannot encode with libx264") from error
        assert isinstance(stream, VideoStream)
        context = stream.codec_context
        context.width, context.height = look.width, look.height
        context.pix_fmt = "rgb24" if look.rgb else video.PLAIN[0]
        stream.time_base = context.time_base = Fraction(1, TICKS)
        if not look.rgb:
            context.color_range = 1 + look.full_range
            context.colorspace = look.matrix
        context.max_b_frames, context.gop_size, context.thread_count = 0, 250, THREADS
        context.options = options
        waiting: Packet | None = None  # the last packet: the muxer needs its duration
        last = -1
        for time, planes, key in pictures:
            frame = None  # ends the encoder
            last = max(last + 1, round(time * TICKS))
            if planes is not None:
                frame = frame_of(planes, look)
                frame.pts, frame.time_base = last, stream.time_base
                frame.pict_type = PictureType.I if key else PictureType.NONE
            for packet in stream.encode(frame):
                if waiting is not None:
                    file.mux(waiting)
                waiting = packet
        if waiting is not None:
            waiting.duration = max(1, last - (waiting.pts or 0))
            file.mux(waiting)


# --- packets of other files ---------------------------------------------------------------------


def mux(
    out: str, picture: str, sound: str | None = None, frame_table: video.FrameTable | None = None
) -> None:
    """Write an mp4 file with the picture of one file and the sound of another, packet by packet.

    Args:
        out: the file.
        picture: a video file; its own sound is left out.
        sound: a file with sound; None for no sound.
        frame_table: the picture's frames, to begin at 0 and last until their end; None keeps the
            file's times.

    Raises:
        MediaError: the picture's file cannot be read.
        av.error.FFmpegError, IndexError, ValueError: mp4 cannot hold both, or there is no sound.
    """
    import av

    table = frame_table or video.frame_table(picture)
    with ExitStack() as files:
        container, stream = files.enter_context(containers.open_video(picture))
        if not frame_table and stream.duration:  # the last packet has no duration
            end = (stream.start_time or 0) + stream.duration
            table = replace(table, end=max(table.times[-1] + 1, end))
        file = files.enter_context(open_mp4(out))
        # Opaque: opens no encoder, which would refuse a bit rate of a few hundred bits.
        track = file.add_stream_from_template(stream, opaque=True)
        track.time_base = stream.time_base
        tracks: dict[str, Stream] = {"video": track}
        parts = [_picture_packets(container, stream, table, table.times[0] if frame_table else 0)]
        if sound is not None:
            other = files.enter_context(av.open(sound))
            sound_stream = other.streams.audio[0]
            tracks["audio"] = file.add_stream_from_template(sound_stream)
            parts.append(packet for packet in other.demux(sound_stream) if packet.dts is not None)
        for packet in heapq.merge(*parts, key=lambda packet: (packet.dts or 0) * packet.time_base):
            packet.stream = tracks[packet.stream.type]
            file.mux(packet)


def _picture_packets(
    container: containers.Container, stream: VideoStream, table: video.FrameTable, begin: int
) -> Iterator[Packet]:
    """Yield a picture's packets, each with a decoding time and a duration, until `table.end`.

    FFmpeg reads no duration of reordered frames, nor of an mp4's last one. Without a duration the
    last frame would be shown for no time, and an edit list would leave it out. Matroska's first
    packets have no decoding time.
    """
    last = table.times[-1]
    usual = last - table.times[-2] if len(table.times) > 1 else table.end - last
    waiting: list[Packet] = []  # packets before the first one with a decoding time
    for packet in container.demux(stream):
        if not packet.size:
            continue  # PyAV's last packet
        if packet.is_discard:
            raise MediaError("holds frames that are not shown")
        packet.duration = table.end - last if packet.pts == last else packet.duration or usual
        waiting.append(packet)
        if packet.dts is not None:
            for before, packet_before in enumerate(reversed(waiting[:-1]), start=1):
                packet_before.dts = packet.dts - before * usual
            for one in waiting:
                if one.pts is None or one.dts is None:
                    raise MediaError(f"has frames without times; {containers.CONVERT}")
                one.pts -= begin
                one.dts -= begin
                yield one
            waiting = []
