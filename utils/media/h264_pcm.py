"""H.264 without compression: every macroblock is stored as samples (mb_type I_PCM).

Why not an encoder: an evaluation decodes the same 32 frames again for each question, and entropy
decoding is most of the time that near-lossless H.264 takes (measured on MAIA, processor time of one
clip: 45 ms at 46 dB with CAVLC and no deblocking, 16 ms here). I_PCM belongs to every profile of
H.264, so any decoder reads it, and the planes come back bit for bit. It costs 1.5 bytes a pixel.

Section numbers are those of ITU-T H.264. Every picture is an IDR picture of one slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from lmms_eval_tasks.utils.media.colours import Planes
    from lmms_eval_tasks.utils.media.video_frames import Look

_SPS, _PPS, _IDR = 0x67, 0x68, 0x65  # nal_ref_idc 3 with nal_unit_type 7, 8, 5
_BASELINE, _HIGH_444 = 66, 244
_LEVEL_5_2 = 52
_I_SLICE, _I_PCM = 7, 25
_EXTENDED = 5  # video_format: unspecified
_EMULATION = re.compile(rb"\x00\x00(?=[\x00-\x03])")


def access_units(pictures: Iterable[Planes], look: Look) -> Iterator[bytes]:
    """Annex B access units, one for each picture; the first one carries the parameter sets.

    Args:
        pictures: (Y, U, V) planes of uint8; chroma at half the size in both directions, or at full
            size where `look.full_chroma`.
        look: size and colour description, written into the stream.
    """
    for number, planes in enumerate(pictures):
        header = _sps(look) + _pps() if number == 0 else b""
        yield header + _picture(planes, look, number)


class _Bits:
    """A string of bits with the descriptors of 7.2: u(n), ue(v), se(v)."""

    def __init__(self) -> None:
        self._bits = ""

    def u(self, width: int, value: int) -> _Bits:
        self._bits += format(value, f"0{width}b")
        return self

    def flags(self, *values: int) -> _Bits:
        for value in values:
            self.u(1, bool(value))
        return self

    def ue(self, *values: int) -> _Bits:
        for value in values:
            code = format(value + 1, "b")
            self._bits += "0" * (len(code) - 1) + code
        return self

    def aligned(self) -> bytes:
        bits = self._bits + "0" * (-len(self._bits) % 8)
        return int(bits, 2).to_bytes(len(bits) // 8, "big")

    def rbsp(self) -> bytes:
        """The bits with the stop bit of 7.3.2.11."""
        return self.u(1, 1).aligned()


def _nal(header: int, payload: bytes) -> bytes:
    """A NAL unit with start code and emulation prevention (7.4.1.1, annex B)."""
    return b"\x00\x00\x00\x01" + bytes([header]) + _EMULATION.sub(b"\x00\x00\x03", payload)


def _sps(look: Look) -> bytes:
    bits = _Bits()
    if look.full_chroma:
        bits.u(8, _HIGH_444).u(8, 0).u(8, _LEVEL_5_2)
        bits.ue(0, 3).flags(0).ue(0, 0).flags(0, 0)  # id, 4:4:4, one colour plane set, 8 bits
    else:
        bits.u(8, _BASELINE).u(8, 0b11000000).u(8, _LEVEL_5_2).ue(0)
    # log2_max_frame_num = 4; order of output = order of decoding (type 2); no reference frames.
    bits.ue(0, 2, 0).flags(0)
    across, down = _macroblocks(look)
    bits.ue(across - 1, down - 1).flags(1, 1)  # frames only, direct_8x8_inference
    unit = 1 if look.full_chroma else 2
    right, bottom = (16 * across - look.width) // unit, (16 * down - look.height) // unit
    bits.flags(right or bottom)
    if right or bottom:
        bits.ue(0, right, 0, bottom)
    bits.flags(1)  # VUI (E.1.1)
    bits.flags(0, 0, 1).u(3, _EXTENDED).flags(look.full_range, 1)
    bits.u(8, look.primaries).u(8, look.transfer).u(8, look.matrix)
    bits.flags(0, 0, 0, 0, 0)  # chroma location, timing, two HRDs, pic_struct
    # Restriction: nothing is reordered or kept, so that a decoder hands out a picture at once.
    bits.flags(1, 1).ue(0, 0, 16, 16, 0, 0)
    return _nal(_SPS, bits.rbsp())


def _pps() -> bytes:
    bits = _Bits().ue(0, 0).flags(0, 0).ue(0, 0, 0).flags(0).u(2, 0)
    bits.ue(0, 0, 0)  # QPs and chroma offset: 0
    bits.flags(1, 0, 0)  # the slice header says that there is no deblocking
    return _nal(_PPS, bits.rbsp())


def _picture(planes: Planes, look: Look, number: int) -> bytes:
    """One IDR slice: its header (7.3.3), then `mb_type`, alignment and samples of each block."""
    import numpy as np

    across, down = _macroblocks(look)
    side = 16 if look.full_chroma else 8
    luma, blue, red = planes
    samples = np.concatenate(
        [_blocks(luma, 16, across, down)]
        + [_blocks(plane, side, across, down) for plane in (blue, red)],
        axis=1,
    )
    header = _Bits().ue(0, _I_SLICE, 0).u(4, 0).ue(number % 2)  # neighbours differ in idr_pic_id
    header.flags(0, 0).ue(0, 1)  # marking, slice_qp_delta, disable_deblocking_filter_idc
    start = header.ue(_I_PCM).aligned()
    # From the second block on, everything starts at a byte: the type is the same two bytes.
    types = np.frombuffer(_Bits().ue(_I_PCM).aligned(), np.uint8)
    body = np.concatenate([np.broadcast_to(types, (across * down, types.size)), samples], axis=1)
    return _nal(_IDR, start + body.tobytes()[types.size :] + b"\x80")


def _blocks(plane: NDArray[np.uint8], side: int, across: int, down: int) -> NDArray[np.uint8]:
    """Cut a plane into blocks in raster order: (down * across, side * side), edges repeated."""
    import numpy as np

    height, width = plane.shape
    padded = np.pad(plane, ((0, down * side - height), (0, across * side - width)), mode="edge")
    grid: NDArray[np.uint8] = padded.reshape(down, side, across, side).swapaxes(1, 2)
    return grid.reshape(down * across, side * side)


def _macroblocks(look: Look) -> tuple[int, int]:
    return -(-look.width // 16), -(-look.height // 16)
