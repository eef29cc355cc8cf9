"""Write a few pictures as a clip or an image that gives back the same pixels.

Clips are H.264 in mp4 without sound, every frame a key frame, with the times they are given. Up to
`_PLAIN_BYTES` they are lossless (h264_pcm.py); larger ones are encoded with x264 at the first of
`_QPS` whose mean PSNR, measured on the decoded clip, reaches `MIN_PSNR`. Every clip is decoded and
compared before anybody sees it.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import h264_pcm
from lmms_eval_tasks.utils.media.colours import frame_of, to_rgb
from lmms_eval_tasks.utils.media.video_frames import Look, planes_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_tasks.utils.media.colours import Planes

MIN_PSNR = 46.0  # dB in RGB, mean over frames; 45 is what the benchmarks promise
TICKS = 90_000  # a second, in units of the clip's time base
_PLAIN_BYTES = 32 * 2**20  # 32 frames of 4:2:0 at up to 854 x 480 and a little more
_QPS = (17, 14, 11, 8, 5, 2, 0)
# Cheap to decode (no CABAC, no deblocking); nothing that trades PSNR for looks; finer chroma, since
# an error of chroma counts in four pixels.
_X264 = "keyint=1:cabac=0:no-deblock=1:no-psy=1:aq-mode=0:chroma-qp-offset=-4"


def write_clip(
    path: str, pictures: Sequence[Planes], look: Look, times: Sequence[float], duration: float
) -> None:
    """Write `pictures`, shown from `times` (seconds, ascending) until `duration`, as an mp4 file.

    Raises:
        MediaError: the clip is not as good as promised, or this build of PyAV has no x264.
    """
    ticks = _ticks(times, duration)
    if len(pictures) * sum(plane.size for plane in pictures[0]) <= _PLAIN_BYTES:
        _mux(path, h264_pcm.access_units(pictures, look), ticks)
        if (psnr := _compare(path, pictures, look, ticks)) != math.inf:
            raise MediaError(f"the lossless clip differs from its frames ({psnr:.1f} dB)")
        return
    for qp in _QPS:
        _mux(path, _x264(pictures, look, qp), ticks)
        if (psnr := _compare(path, pictures, look, ticks)) >= MIN_PSNR:
            return
    raise MediaError(f"x264 reached {psnr:.1f} dB only, below {MIN_PSNR}")


def write_black(
    path: str, pictures: Sequence[Planes], look: Look, times: Sequence[float], duration: float
) -> None:
    """Write pictures that are `black` in `black_look`, whose frames are then exactly 0 in RGB.

    Raises:
        MediaError: this build of PyAV has no x264, or the frames are not black when decoded.
    """
    ticks = _ticks(times, duration)
    _mux(path, _x264(pictures, look, _QPS[0]), ticks)
    if _compare(path, pictures, look, ticks) != math.inf:
        raise MediaError("the black clip is not black after decoding")


def write_image(path: str, planes: Planes, look: Look) -> None:
    """Write one picture as a PNG image in RGB, converted as decord does (by the matrix tag)."""
    from PIL import Image

    Image.fromarray(_rgb(planes, look)).save(path, format="PNG")


def black_look(look: Look) -> Look:
    """The size of `look` with the usual colours, for which black is Y = 16, U = V = 128."""
    odd = look.width % 2 == 1 or look.height % 2 == 1
    return Look(look.width, look.height, full_chroma=odd)


def black(look: Look) -> Planes:
    """The planes of a black picture in `black_look(look)`."""
    import numpy as np

    luma = (look.height, look.width)
    plain = black_look(look)
    chroma = luma if plain.full_chroma else (luma[0] // 2, luma[1] // 2)
    grey = np.full(chroma, 128, np.uint8)
    return np.full(luma, 16, np.uint8), grey, grey


def _ticks(times: Sequence[float], duration: float) -> list[int]:
    """When each picture begins, and when the last one ends, in the clip's time base."""
    ticks = [round(time * TICKS) for time in times]
    return [*ticks, max(round(duration * TICKS), ticks[-1] + 1)]


def _mux(path: str, units: Iterable[bytes], ticks: Sequence[int]) -> None:
    """Put access units into an mp4 file, unit i lasting from ticks[i] to ticks[i + 1]."""
    import av

    base = Fraction(1, TICKS)
    units = iter(units)
    first = next(units)
    # The muxer takes the parameter sets from a stream that was opened, so open the first picture.
    with (
        av.open(io.BytesIO(first), format="h264") as parsed,
        av.open(path, "w", format="mp4") as clip,
    ):
        stream = clip.add_stream_from_template(parsed.streams.video[0])
        stream.time_base = base
        for number, unit in enumerate(_chain(first, units)):
            packet = av.Packet(unit)
            packet.stream, packet.time_base, packet.is_keyframe = stream, base, True
            packet.pts = packet.dts = ticks[number] - ticks[0]
            packet.duration = ticks[number + 1] - ticks[number]
            clip.mux(packet)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _x264(pictures: Sequence[Planes], look: Look, qp: int) -> Iterator[bytes]:
    import av

    try:
        encoder: Any = av.CodecContext.create("libx264", "w")
    except av.error.FFmpegError as error:
        raise MediaError(f"this PyAV {av.__version__} cannot encode with libx264") from error
    encoder.width, encoder.height = look.width, look.height
    encoder.pix_fmt = "yuv444p" if look.full_chroma else "yuv420p"
    encoder.time_base, encoder.framerate = Fraction(1, 25), Fraction(25)  # the container has times
    encoder.color_range = 2 if look.full_range else 1
    encoder.colorspace, encoder.color_primaries = look.matrix, look.primaries
    encoder.color_trc = look.transfer
    encoder.max_b_frames, encoder.gop_size = 0, 1
    encoder.options = {"preset": "veryfast", "qp": str(qp), "x264-params": _X264}
    for number, planes in enumerate(pictures):
        frame = frame_of(planes, look.full_chroma)
        frame.pts, frame.time_base = number, encoder.time_base
        yield from (bytes(packet) for packet in encoder.encode(frame))
    yield from (bytes(packet) for packet in encoder.encode(None))


def _rgb(planes: Planes, look: Look) -> NDArray[np.uint8]:
    return to_rgb(frame_of(planes, look.full_chroma), look.matrix, look.full_range)


def _compare(path: str, pictures: Sequence[Planes], look: Look, ticks: Sequence[int]) -> float:
    """Decode a clip and compare it with what went in.

    Returns:
        Mean PSNR in dB over the frames' RGB, inf if all planes are equal.

    Raises:
        MediaError: other frames, sizes or times than were written.
    """
    import av
    import numpy as np

    values = []
    with av.open(path) as clip:
        stream = clip.streams.video[0]
        stream.thread_type = "AUTO"
        for number, frame in enumerate(clip.decode(stream)):
            start = Fraction(frame.pts) * frame.time_base * TICKS + ticks[0]
            if number >= len(pictures) or round(start) != ticks[number]:
                raise MediaError(f"frame {number} of the clip is not shown when it should be")
            read = planes_of(frame, look)
            if all(np.array_equal(a, b) for a, b in zip(read, pictures[number], strict=True)):
                values.append(math.inf)
                continue
            error = _rgb(read, look).astype(np.int32) - _rgb(pictures[number], look)
            values.append(_psnr(float(np.mean(error**2))))
    if len(values) != len(pictures):
        raise MediaError(f"{len(values)} of {len(pictures)} frames are in the clip")
    return math.fsum(values) / len(values)


def _psnr(mean_square: float) -> float:
    return 10 * math.log10(255**2 / mean_square) if mean_square else math.inf
