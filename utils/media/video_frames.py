"""The pixels of some frames of a video file.

Pixels are taken as the decoder's planes (Y, U, V) and never as RGB. Readers disagree about the
conversion (decord follows the BT.709 tag, PyAV's `to_ndarray` does not), and the way to RGB and
back alone costs more than the clip may lose (43 to 44 dB left on MAIA). decord hands out RGB only,
so PyAV decodes the frames that decord lists. decord's own would also be wrong after a jump into an
open group of pictures, and in MPEG-TS.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media.colours import from_rgb, to_rgb
from lmms_eval_tasks.utils.media.video_source import MAX_THREADS, FrameTable, open_video

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media.colours import Planes

_UNSPECIFIED = 2  # ITU-T H.273: matrix, primaries and transfer unknown
FULL_RANGE = 2  # AVCOL_RANGE_JPEG
PLAIN = ("yuv420p", "yuvj420p")  # 4:2:0 with 8 bits, of limited and of full range


@dataclass(frozen=True)
class Look:
    """Size in pixels and colour description (H.273 numbers) that all pictures of a clip share."""

    width: int
    height: int
    full_chroma: bool = False  # 4:4:4 instead of 4:2:0; then always of limited range
    full_range: bool = False
    matrix: int = _UNSPECIFIED
    primaries: int = _UNSPECIFIED
    transfer: int = _UNSPECIFIED


class Tally:
    """How many frames decoders have given, wanted or passed over."""

    def __init__(self) -> None:
        self.frames = 0

    def of(self, frames: Iterable[Any]) -> Iterator[Any]:
        """The frames, each counted when it comes."""
        for frame in frames:
            self.frames += 1
            yield frame


def pictures(path: str, table: FrameTable, indices: Sequence[int]) -> tuple[list[Planes], Look]:
    """The upright planes of the frames at `indices` (ascending positions in the table).

    A rotation in the file (phones) is applied, as decord does. 4:2:0 with 8 bits stays as it is,
    bit for bit; other formats, and odd sizes, which H.264 cannot hold as 4:2:0, become 4:4:4.

    Raises:
        MediaError: one of the frames cannot be decoded.
        LookupError: the decoder shows other frames than the table lists; ask `decoded_table`.
    """
    import numpy as np

    found: list[Planes] = []
    look: Look | None = None
    for frame, colours in decode(path, table, indices):
        if look is None:
            size, look = (frame.width, frame.height), _look(frame, *colours)
            turns = round(frame.rotation / 90) % 4  # counterclockwise, as numpy's rot90
        elif (frame.width, frame.height) != size:
            frame = frame.reformat(width=size[0], height=size[1])  # noqa: PLW2901
        y, u, v = (np.ascontiguousarray(np.rot90(p, turns)) for p in planes_of(frame, look))
        found.append((y, u, v))
    if look is None or len(found) != len(indices):
        raise LookupError(f"{len(found)} of {len(indices)} frames found")
    if turns % 2:
        look = replace(look, width=look.height, height=look.width)
    return found, look


def decode(
    path: str, table: FrameTable, indices: Sequence[int], tally: Tally | None = None
) -> Iterator[tuple[Any, tuple[int, int]]]:
    """Frames at `indices` in order, with the stream's primaries and transfer (H.273 numbers).

    One pass through the file, a frame at a time. Ends early if the decoder does not show a frame
    that the table lists. `tally` counts all frames that are decoded on the way.

    Raises:
        MediaError: one of the frames cannot be decoded.
    """
    tally = tally or Tally()
    threads = 1 if list(indices) == [0] else MAX_THREADS  # the first frame waits for no other
    with open_video(path, threads) as (container, stream):
        context = stream.codec_context
        find = _by_position if table.decoded else _by_time
        for frame in find(container, stream, table, indices, tally):
            yield frame, (context.color_primaries, context.color_trc)


def _by_position(
    container: Any, stream: Any, table: FrameTable, indices: Sequence[int], tally: Tally
) -> Iterator[Any]:
    wanted = set(indices)
    for position, frame in enumerate(tally.of(container.decode(stream))):
        if frame.is_corrupt:
            at = table.seconds(min(position, len(table.times) - 1))
            raise MediaError(f"the frame at {at:.3f} s cannot be decoded")
        if position in wanted:
            yield frame


def _by_time(
    container: Any, stream: Any, table: FrameTable, indices: Sequence[int], tally: Tally
) -> Iterator[Any]:
    frames: Iterator[Any] = iter(())
    position: int | None = None
    for target in (table.times[index] for index in indices):
        # Jump only where a key frame lies between here and there; else decoding on is shorter.
        key = bisect_right(table.keys, target)
        if position is None or (key and table.keys[key - 1] > position):
            container.seek(target, stream=stream, backward=True)
            frames = tally.of(container.decode(stream))
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
    """Size and colours of a frame, before any rotation; planes that fit are kept as they are."""
    kept = frame.format.name in PLAIN and not (frame.width % 2 or frame.height % 2)
    return look_of(frame, frame.width, frame.height, primaries, transfer, full_chroma=not kept)


def look_of(
    frame: Any, width: int, height: int, primaries: int, transfer: int, *, full_chroma: bool
) -> Look:
    """The look of pictures that are made of frames like this one; RGB and grey tell no colours."""
    if len(frame.format.components) < 3 or frame.format.is_rgb:
        return Look(width, height, full_chroma=full_chroma)
    return Look(
        width,
        height,
        full_chroma=full_chroma,
        full_range=not full_chroma and is_full_range(frame),
        matrix=int(frame.colorspace),
        primaries=primaries,
        transfer=transfer,
    )


def is_full_range(frame: Any) -> bool:
    """Whether the frame's luma covers 0 to 255, not 16 to 235."""
    return bool(frame.color_range == FULL_RANGE or frame.format.name.startswith("yuvj"))


def planes_of(frame: Any, look: Look) -> Planes:
    """Y, U, V as uint8 arrays: the decoder's own where they have the look's format.

    Others go through the RGB that readers make of them: how chroma is brought to full size differs
    with format and size, so nothing else would give the same RGB again.
    """
    import numpy as np

    if look.full_chroma and (frame.format.name != "yuv444p" or is_full_range(frame)):
        return from_rgb(to_rgb(frame, look.matrix, is_full_range(frame)), look.matrix)
    y, u, v = (
        np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)[: plane.height, : plane.width]
        for plane in frame.planes
    )
    return y, u, v
