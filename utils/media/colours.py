"""Between a decoder's planes and RGB, in the way of the readers that the host's models use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Planes = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8]]

# Share of red and blue in luma by ITU-T H.273 matrix number; all others are read as BT.601.
_WEIGHTS = {1: (0.2126, 0.0722), 4: (0.30, 0.11), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
_BT_601 = (0.299, 0.114)
_JPEG = 2  # AVCOL_RANGE_JPEG


def to_rgb(frame: Any, matrix: int, full_range: bool) -> NDArray[np.uint8]:
    """RGB of shape (height, width, 3), converted by the matrix tag as decord does.

    Args:
        frame: an av.VideoFrame of any format.
        matrix: H.273 number of the frame's matrix.
        full_range: luma covers 0 to 255, not 16 to 235.
    """
    changes: dict[str, int] = {}
    if matrix in _WEIGHTS:
        # PyAV's names are swscale's numbers, which are those of H.273.
        changes["src_colorspace"] = matrix
        changes["dst_colorspace"] = 5  # swscale's default; PyAV acts only if the two differ
    if full_range:
        changes["src_color_range"] = _JPEG
    rgb: NDArray[np.uint8] = frame.to_ndarray(format="rgb24", **changes)
    return rgb


def from_rgb(rgb: NDArray[np.uint8], matrix: int) -> Planes:
    """Limited-range Y, U, V of the picture's size; back to RGB this is good for 51 dB."""
    import numpy as np

    red_weight, blue_weight = _WEIGHTS.get(matrix, _BT_601)
    red, green, blue = np.moveaxis(rgb.astype(np.float32), 2, 0)
    luma = red_weight * red + (1 - red_weight - blue_weight) * green + blue_weight * blue
    planes = (
        16 + luma * (219 / 255),
        128 + (blue - luma) * (112 / 255 / (1 - blue_weight)),
        128 + (red - luma) * (112 / 255 / (1 - red_weight)),
    )
    y, u, v = (np.rint(plane).clip(0, 255).astype(np.uint8) for plane in planes)
    return y, u, v


def frame_of(planes: Planes, full_chroma: bool) -> Any:
    """An av.VideoFrame that holds the planes: yuv444p if `full_chroma`, else yuv420p."""
    import av
    import numpy as np

    if full_chroma:
        return av.VideoFrame.from_ndarray(np.stack(planes), format="yuv444p")
    stacked = np.concatenate([plane.reshape(-1) for plane in planes])
    width = planes[0].shape[1]
    return av.VideoFrame.from_ndarray(stacked.reshape(-1, width), format="yuv420p")
