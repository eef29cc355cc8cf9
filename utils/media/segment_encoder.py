"""Encode the frames of a segment: H.264 in mp4 that every reader can seek in, with exact times."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media.colours import frame_of
from lmms_eval_tasks.utils.media.segment_head import Head
from lmms_eval_tasks.utils.media.video_frames import FULL_RANGE, PLAIN, Look, look_of, planes_of

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media.colours import Planes

TICKS = 90_000  # a second, in units of the cut's time base
# On MAIA's videos 47 to 50 dB PSNR over the planes (44 to 46 in RGB), at about 5 times their size.
CRF, PRESET = 14, "veryfast"
# Nothing that trades PSNR for looks; finer chroma, since an error of chroma counts in four pixels.
# The macroblock tree in C: x264's code for AVX gives other bits than that for SSE, and that for
# AVX-512 was seen to give other bits from one encoding to the next on a busy machine.
PARAMS = "no-psy=1:aq-mode=0:chroma-qp-offset=-4:cpu-independent=1"
THREADS = 4  # a fixed number, so that the bytes are the same everywhere
# Two key frames are less than a second apart if each half second that has frames begins with one.
_KEYS_PER_SECOND = 2


def open_mp4(out: str) -> Any:
    """A new mp4 file; its edit lists count ticks instead of thousandths of a second."""
    import av

    return av.open(out, "w", format="mp4", options={"movie_timescale": str(TICKS)})


class Encoder:
    """Writes frames as an H.264 stream in an mp4 file; use as a context manager."""

    def __init__(self, out: str, first: Any, source: Head) -> None:
        import av

        self._turns = round(first.rotation / 90) % 4  # counterclockwise, as numpy's rot90
        self._size = (first.width, first.height)
        self.look = self._look_of(first, source)
        self._slot = self._last = -1
        self._waiting: Any = None  # the last packet, whose duration the next frame tells
        self._file = open_mp4(out)
        try:
            stream: Any = self._file.add_stream("libx264", rate=25)  # the frames have times
        except (av.error.FFmpegError, ValueError) as error:
            raise MediaError(f"this PyAV {av.__version__} cannot encode with libx264") from error
        base = Fraction(1, TICKS)
        context = stream.codec_context
        context.width, context.height, context.pix_fmt = (
            self.look.width,
            self.look.height,
            PLAIN[0],
        )
        stream.time_base = context.time_base = base
        context.color_range = FULL_RANGE if self.look.full_range else 1
        context.colorspace, context.color_primaries = self.look.matrix, self.look.primaries
        context.color_trc = self.look.transfer
        context.max_b_frames, context.gop_size = 0, 250
        context.thread_count = THREADS
        context.options = {
            "preset": PRESET,
            "crf": str(CRF),
            "forced-idr": "1",  # the I frames that are asked for are key frames
            "x264-params": PARAMS,
        }
        self._stream, self._base = stream, base

    def __enter__(self) -> Encoder:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, time: Fraction, frame: Any) -> None:
        """Encode a frame that is shown from `time` (seconds in the cut) on."""
        from av.video.frame import PictureType

        picture = frame_of(self._planes(frame), full_chroma=False)
        picture.pts = self._last = max(self._last + 1, round(time * TICKS))
        picture.time_base = self._base
        slot = int(time * _KEYS_PER_SECOND)
        picture.pict_type = PictureType.I if slot > self._slot else PictureType.NONE
        self._slot = slot
        self._mux(self._stream.encode(picture))

    def finish(self, duration: Fraction) -> None:
        """Show the last frame until `duration` (seconds in the cut)."""
        self._mux(self._stream.encode(None))
        last = self._waiting
        last.duration = max(1, round(duration * TICKS) - last.pts)
        self._file.mux(last)

    def _mux(self, packets: Sequence[Any]) -> None:
        for packet in packets:
            if self._waiting is not None:
                self._waiting.duration = packet.pts - self._waiting.pts
                self._file.mux(self._waiting)
            self._waiting = packet

    def _look_of(self, frame: Any, source: Head) -> Look:
        width, height = (length + length % 2 for length in self._size)
        if self._turns % 2:
            width, height = height, width
        return look_of(frame, width, height, source.primaries, source.transfer, full_chroma=False)

    def _planes(self, frame: Any) -> Planes:
        """Upright planes in 4:2:0 with 8 bits, of even size."""
        import numpy as np

        if (frame.width, frame.height) != self._size:
            frame = frame.reformat(width=self._size[0], height=self._size[1])
        if frame.format.name not in PLAIN:
            full = frame.format.name.startswith("yuvj")  # else swscale would change the range
            frame = frame.reformat(format=PLAIN[full])
        y, u, v = planes_of(frame, Look(*self._size))
        y = np.pad(y, [(0, y.shape[0] % 2), (0, y.shape[1] % 2)], mode="edge")
        y, u, v = (np.ascontiguousarray(np.rot90(plane, self._turns)) for plane in (y, u, v))
        return y, u, v
