"""Shapes and tones drawn into an mp4 file, for the sample videos of every benchmark.

Heavy packages are imported inside the functions that need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lmms_eval_tasks.errors import MediaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Colour = tuple[int, int, int]  # red, green, blue, 0 to 255
Point = tuple[float, float]

_OVERSAMPLE = 3  # factor by which shapes are drawn larger and averaged down, for smooth edges
_FADE_SECONDS = 0.01  # at both ends of a tone, so that it does not click
_LOUDNESS = 0.5  # peak of a tone, full scale is 1
_AAC_BLOCK = 1024  # samples per AAC frame
_LAYOUTS = {1: "mono", 2: "stereo"}  # by number of channels


class Tone(NamedTuple):
    """One beep of a sound track; outside all tones the track is silent."""

    start: float  # seconds
    seconds: float
    hertz: float


class Clip(NamedTuple):
    """A video to make, in h264 and AAC."""

    frames: Callable[[], Iterable[NDArray[np.uint8]]]  # (height, width, 3), even sizes
    fps: int  # frames a second
    # One channel (n,) or two (2, n) in [-1, 1]; None: no sound track.
    sound: Callable[[], NDArray[np.float32]] | None = None
    rate: int = 0  # samples a second
    picture_options: Mapping[str, str] | None = None  # further options of FFmpeg's libx264
    sound_options: Mapping[str, str] | None = None  # of FFmpeg's AAC encoder

    def write(self, path: Path) -> None:
        """Draw and encode the clip into an mp4 file.

        A single encoder thread: with several the file would depend on the machine's number of
        cores.

        Raises:
            MediaError: the installed PyAV cannot encode (no libx264 or AAC), or the disk is full.
        """
        import av
        import numpy as np

        options = {"movflags": "+faststart", "fflags": "+bitexact"}
        channels = None if self.sound is None else np.atleast_2d(self.sound())
        x264: dict[str, object] = {"crf": "18", "preset": "medium", "threads": "1"}
        try:
            with av.open(str(path), "w", format="mp4", options=options) as container:
                video = container.add_stream("libx264", rate=self.fps)
                video.options = x264 | dict(self.picture_options or {})
                video.pix_fmt = "yuv420p"
                if channels is not None:
                    audio = container.add_stream("aac", rate=self.rate)
                    audio.options = dict(self.sound_options or {})
                    audio.codec_context.layout = _LAYOUTS[len(channels)]
                    audio.codec_context.bit_rate = 48_000 * len(channels)
                for index, pixels in enumerate(self.frames()):
                    if index == 0:
                        video.height, video.width = pixels.shape[:2]
                    frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                    frame.pts = index
                    container.mux(video.encode(frame))
                container.mux(video.encode())
                if channels is not None:
                    for start in range(0, channels.shape[1], _AAC_BLOCK):
                        block = np.ascontiguousarray(channels[:, start : start + _AAC_BLOCK])
                        layout = _LAYOUTS[len(channels)]
                        samples = av.AudioFrame.from_ndarray(block, format="fltp", layout=layout)
                        samples.sample_rate, samples.pts = self.rate, start
                        container.mux(audio.encode(samples))
                    container.mux(audio.encode())
        except (av.FFmpegError, ValueError) as error:  # ValueError: PyAV 12 for a missing codec
            raise MediaError(f"{path}: the clip cannot be encoded with PyAV: {error}") from error


class Canvas:
    """A picture with antialiased shapes; coordinates are pixels of the finished frame."""

    def __init__(self, width: int, height: int, fill: Colour) -> None:
        from PIL import Image, ImageDraw

        self._image = Image.new("RGB", (width * _OVERSAMPLE, height * _OVERSAMPLE), fill)
        self._draw = ImageDraw.Draw(self._image)

    def polygon(self, points: Sequence[Point], fill: Colour) -> None:
        """Draw a filled polygon."""
        self._draw.polygon(_scaled(points), fill=fill)

    def rectangle(self, left: float, top: float, right: float, bottom: float, fill: Colour) -> None:
        """Draw a filled rectangle, up to but without `right` and `bottom`."""
        (x0, y0), (x1, y1) = _scaled([(left, top), (right, bottom)])
        self._draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill=fill)

    def ellipse(self, centre: Point, rx: float, ry: float, fill: Colour) -> None:
        """Draw a filled ellipse with the half axes `rx` and `ry`."""
        x, y = centre
        (x0, y0), (x1, y1) = _scaled([(x - rx, y - ry), (x + rx, y + ry)])
        self._draw.ellipse((x0, y0, x1, y1), fill=fill)

    def line(self, points: Sequence[Point], width: float, fill: Colour) -> None:
        """Draw a connected line, `width` pixels wide."""
        self._draw.line(_scaled(points), fill=fill, width=round(width * _OVERSAMPLE), joint="curve")

    def pixels(self) -> NDArray[np.uint8]:
        """Return the finished frame, uint8 (height, width, 3)."""
        import numpy as np

        return np.asarray(self._image.reduce(_OVERSAMPLE), dtype=np.uint8)


def soundtrack(tones: Iterable[Tone], seconds: float, rate: int) -> NDArray[np.float32]:
    """Return the tones as samples in [-1, 1], one channel of `seconds * rate`; 0 between tones."""
    import numpy as np

    sound = np.zeros(round(seconds * rate), dtype=np.float32)
    for tone in tones:
        start = round(tone.start * rate)
        count = min(round(tone.seconds * rate), len(sound) - start)
        clock = np.arange(count) / rate
        rise = np.minimum(clock, tone.seconds - clock) / _FADE_SECONDS
        wave = _LOUDNESS * np.sin(2 * np.pi * tone.hertz * clock) * np.clip(rise, 0, 1)
        sound[start : start + count] += wave.astype(np.float32)
    return sound


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * _OVERSAMPLE, y * _OVERSAMPLE) for x, y in points]
