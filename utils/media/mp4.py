"""The mp4 files that are made here: x264's pictures, stored ones, packets copied, and sound.

Times are in units of 1 / `TICKS` seconds; edit lists count in them as well.
"""

from __future__ import annotations

import heapq
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import video

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Planes = Sequence[NDArray[np.uint8]]

TICKS = 90_000
_UNSPECIFIED = 2  # ITU-T H.273: matrix, primaries or transfer unknown
# Nothing that trades PSNR for looks; finer chroma, since an error of chroma counts in four pixels.
# The macroblock tree in C: x264's code for AVX gives other bits than that for SSE, and that for
# AVX-512 was seen to give other bits from one encoding to the next on a busy machine.
PARAMS = "no-psy=1:aq-mode=0:chroma-qp-offset=-4:cpu-independent=1"
THREADS = 4  # a fixed number, so that the bytes are the same everywhere
# Frames that follow each other; an I frame that is asked for is a key frame. On MAIA's videos 47 to
# 50 dB PSNR over the planes (44 to 46 in RGB), at about 5 times their size.
CUT = {"preset": "veryfast", "crf": "14", "forced-idr": "1", "x264-params": PARAMS}
# Key frames alone, cheap to decode: no CABAC, no deblocking. In RGB 48 dB on MAIA's, 47 on noise.
CLIP = {
    "preset": "veryfast",
    "qp": "14",
    "x264-params": f"keyint=1:cabac=0:no-deblock=1:{PARAMS}",
}


@dataclass(frozen=True)
class Look:
    """Size in pixels, range and matrix (H.273) that all pictures of a file share.

    Pictures are planes of uint8: Y, U, V in 4:2:0, or G, B, R where `rgb`.
    """

    width: int
    height: int
    rgb: bool = False
    full_range: bool = False
    matrix: int = _UNSPECIFIED


def frame_of(planes: Planes, look: Look) -> Any:
    """An av.VideoFrame that holds the planes: rgb24 or yuv420p."""
    import av
    import numpy as np

    if look.rgb:
        green, blue, red = planes
        return av.VideoFrame.from_ndarray(np.dstack((red, green, blue)), format="rgb24")
    stacked = np.concatenate([plane.reshape(-1) for plane in planes])
    frame = av.VideoFrame.from_ndarray(stacked.reshape(-1, look.width), format=video.PLAIN[0])
    frame.colorspace, frame.color_range = look.matrix, 1 + look.full_range
    return frame


def open_mp4(out: str) -> Any:
    """A new file whose edit lists count ticks instead of thousandths of a second."""
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
        look: of the pictures.
        options: x264's, CUT or CLIP.
        pictures: from when on each is shown (seconds), and whether it has to be a key frame; None
            in the end, when the last one is shown no longer.
    """
    import av
    from av.video.frame import PictureType

    with open_mp4(out) as file:
        try:
            # The rate is of no use: the frames have times.
            stream: Any = file.add_stream("libx264rgb" if look.rgb else "libx264", rate=25)
        except (av.error.FFmpegError, ValueError) as error:
            raise MediaError(f"this PyAV {av.__version__} cannot encode with libx264") from error
        context = stream.codec_context
        context.width, context.height = look.width, look.height
        context.pix_fmt = "rgb24" if look.rgb else video.PLAIN[0]
        stream.time_base = context.time_base = Fraction(1, TICKS)
        if not look.rgb:
            context.color_range = 1 + look.full_range
            context.colorspace = look.matrix
        context.max_b_frames, context.gop_size, context.thread_count = 0, 250, THREADS
        context.options = options
        waiting: Any = None  # the last packet: the muxer asks how long it is shown
        last = -1
        for time, planes, key in pictures:
            frame = None  # the encoder's end
            last = max(last + 1, round(time * TICKS))
            if planes is not None:
                frame = frame_of(planes, look)
                frame.pts, frame.time_base = last, stream.time_base
                frame.pict_type = PictureType.I if key else PictureType.NONE
            for packet in stream.encode(frame):
                if waiting is not None:
                    file.mux(waiting)
                waiting = packet
        waiting.duration = max(1, last - waiting.pts)
        file.mux(waiting)


# --- pictures that are stored -------------------------------------------------------------------
#
# H.264 without compression: every macroblock is stored as samples (mb_type I_PCM), every picture is
# an IDR picture of one slice; any decoder reads it. An evaluation decodes the same 32 frames again
# for each question, and entropy decoding is most of the time that lossless H.264 takes. MAIA's
# videos 5 and 12 with the host's readers, how many times less processor time than for the source:
#
#                                                  read_video  load_video_decord  Qwen's reader
#   stored (9 and 11 MB)                           58x, 45x    18x, 25x           17x, 13x
#   x264, qp 0, CAVLC, no deblocking (3 and 5 MB)   9x,  7x     8x,  7x            6x,  6x
#   x264, qp 0, CABAC                               3x,  2x     3x,  2x            3x,  2x
#
# Sections are those of ITU-T H.264.

_SPS, _PPS, _IDR = 0x67, 0x68, 0x65  # nal_ref_idc 3 with nal_unit_type 7, 8, 5
_BASELINE, _HIGH_444, _LEVEL_5_2 = 66, 244, 52
_I_SLICE, _I_PCM, _VIDEO_UNSPECIFIED = 7, 25, 5
_EMULATION = re.compile(rb"\x00\x00(?=[\x00-\x03])")


def write_stored(
    out: str, pictures: Sequence[Planes], look: Look, times: Sequence[float], duration: float
) -> None:
    """Write pictures without loss, shown from `times` (seconds, from 0) until `duration`."""
    import av

    ticks = [round(time * TICKS) for time in times]
    ticks.append(max(round(duration * TICKS), ticks[-1] + 1))
    head = _parameter_sets(look)
    units = [_unit(planes, look, number) for number, planes in enumerate(pictures)]
    units[0] = head + units[0]
    # The muxer takes the parameter sets from a stream that was opened, so open the first picture.
    with av.open(io.BytesIO(units[0]), format="h264") as parsed, open_mp4(out) as file:
        stream = file.add_stream_from_template(parsed.streams.video[0], opaque=True)
        stream.time_base = Fraction(1, TICKS)
        for number, unit in enumerate(units):
            packet = av.Packet(unit)
            packet.stream, packet.time_base, packet.is_keyframe = stream, stream.time_base, True
            packet.pts = packet.dts = ticks[number]
            packet.duration = ticks[number + 1] - ticks[number]
            file.mux(packet)


def _u(width: int, value: int) -> str:
    return format(value, f"0{width}b")


def _ue(*values: int) -> str:
    codes = [format(value + 1, "b") for value in values]
    return "".join("0" * (len(code) - 1) + code for code in codes)


def _aligned(bits: str) -> bytes:
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _nal(header: int, payload: bytes) -> bytes:
    """A NAL unit with start code and emulation prevention (7.4.1.1, annex B)."""
    return b"\x00\x00\x00\x01" + bytes([header]) + _EMULATION.sub(b"\x00\x00\x03", payload)


def _parameter_sets(look: Look) -> bytes:
    if look.rgb:  # id 0, 4:4:4, one colour plane set, 8 bits, no scaling
        bits = _u(8, _HIGH_444) + _u(8, 0) + _u(8, _LEVEL_5_2) + _ue(0, 3) + "0" + _ue(0, 0) + "00"
    else:
        bits = _u(8, _BASELINE) + _u(8, 0b11000000) + _u(8, _LEVEL_5_2) + _ue(0)
    # log2_max_frame_num = 4; order of output = order of decoding (type 2); no reference frames.
    bits += _ue(0, 2, 0) + "0"
    across, down = _macroblocks(look)
    bits += _ue(across - 1, down - 1) + "11"  # frames only, direct_8x8_inference
    unit = 1 if look.rgb else 2  # of cropping
    right, bottom = (16 * across - look.width) // unit, (16 * down - look.height) // unit
    bits += "1" + _ue(0, right, 0, bottom)
    matrix, whole = (0, True) if look.rgb else (look.matrix, look.full_range)
    bits += "1001" + _u(3, _VIDEO_UNSPECIFIED) + _u(1, whole) + "1"  # VUI (E.1.1)
    bits += _u(8, _UNSPECIFIED) + _u(8, _UNSPECIFIED) + _u(8, matrix)
    bits += "00000"  # chroma location, timing, two HRDs, pic_struct
    # Restriction: nothing is reordered or kept, so that a decoder hands out a picture at once.
    bits += "11" + _ue(0, 0, 16, 16, 0, 0)
    pps = _ue(0, 0) + "00" + _ue(0, 0, 0) + "000" + _ue(0, 0, 0) + "100"  # slices: no deblocking
    return _nal(_SPS, _aligned(bits + "1")) + _nal(_PPS, _aligned(pps + "1"))


def _unit(planes: Planes, look: Look, number: int) -> bytes:
    """One IDR slice: its header (7.3.3), then `mb_type`, alignment and samples of each block."""
    import numpy as np

    across, down = _macroblocks(look)
    sides = (16, 16, 16) if look.rgb else (16, 8, 8)
    samples = []
    for plane, side in zip(planes, sides, strict=True):
        # Blocks in raster order: (down * across, side * side), edges repeated.
        edges = [
            (0, n * side - length) for n, length in zip((down, across), plane.shape, strict=True)
        ]
        grid = np.pad(plane, edges, mode="edge").reshape(down, side, across, side).swapaxes(1, 2)
        samples.append(grid.reshape(down * across, side * side))
    header = _ue(0, _I_SLICE, 0) + _u(4, 0) + _ue(number % 2)  # neighbours differ in idr_pic_id
    header += "00" + _ue(0, 1)  # marking, slice_qp_delta, disable_deblocking_filter_idc
    # From the second block on, everything starts at a byte: the type is the same two bytes.
    kind = np.frombuffer(_aligned(_ue(_I_PCM)), np.uint8)
    kinds = np.broadcast_to(kind, (across * down, kind.size))
    body = np.concatenate([kinds, *samples], axis=1).tobytes()[kind.size :]
    return _nal(_IDR, _aligned(header + _ue(_I_PCM)) + body + b"\x80")


def _macroblocks(look: Look) -> tuple[int, int]:
    return -(-look.width // 16), -(-look.height // 16)


# --- packets of other files ---------------------------------------------------------------------


def mux(
    out: str, picture: str, sound: str | None = None, shown: video.FrameTable | None = None
) -> None:
    """Write an mp4 file of the picture of one file and the sound of another, packet by packet.

    Args:
        out: the file.
        picture: a video file; sound of its own is left out.
        sound: a file with sound; None for none.
        shown: of the picture's frames, where they are to begin at 0, and to last until its end.

    Raises:
        MediaError: the picture's file cannot be read.
        av.error.FFmpegError, IndexError, ValueError: mp4 cannot hold both, or there is no sound.
    """
    import av

    table = shown or video.frame_table(picture)
    with ExitStack() as files:
        container, stream = files.enter_context(video.open_video(picture))
        if not shown and stream.duration:  # the last packet does not tell its own
            end = (stream.start_time or 0) + stream.duration
            table = replace(table, end=max(table.times[-1] + 1, end))
        file = files.enter_context(open_mp4(out))
        # Opaque: no encoder is opened, which would refuse a bit rate of a few hundred bits.
        track = file.add_stream_from_template(stream, opaque=True)
        track.time_base = stream.time_base
        made = {"video": track}
        parts = [_picture_packets(container, stream, table, table.times[0] if shown else 0)]
        if sound is not None:
            other = files.enter_context(av.open(sound))
            heard = other.streams.audio[0]
            made["audio"] = file.add_stream_from_template(heard)
            parts.append(packet for packet in other.demux(heard) if packet.dts is not None)
        for packet in heapq.merge(*parts, key=lambda packet: packet.dts * packet.time_base):
            packet.stream = made[packet.stream.type]
            file.mux(packet)


def _picture_packets(
    container: Any, stream: Any, table: video.FrameTable, begin: int
) -> Iterator[Any]:
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
        if packet.is_discard:
            raise MediaError("holds frames that are not shown")
        packet.duration = table.end - last if packet.pts == last else packet.duration or usual
        waiting.append(packet)
        if packet.dts is not None:
            for before, packet_before in enumerate(reversed(waiting[:-1]), start=1):
                packet_before.dts = packet.dts - before * usual
            for one in waiting:
                one.pts -= begin
                one.dts -= begin
                yield one
            waiting = []
