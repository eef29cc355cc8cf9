"""The wav files that segments.py makes, read as samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.errors import MediaError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000  # samples a second of every wav made here; Whisper knows no other


def samples(path: str | Path) -> NDArray[np.float32]:
    """Samples of a 16 kHz mono wav file of 16 bits: float32, shape (n,), from -1 to 1.

    Raises:
        MediaError: it is not such a file; names it.
    """
    import wave

    import numpy as np

    try:
        with wave.open(str(path), "rb") as file:
            form = (file.getframerate(), file.getnchannels(), file.getsampwidth())
            content = file.readframes(file.getnframes())
    except (OSError, EOFError, wave.Error) as error:
        raise MediaError(f"{path}: cannot be read as a wav file ({error})") from error
    if form != (RATE, 1, 2):
        raise MediaError(
            f"{path}: {form[0]} Hz, {form[1]} channels, {8 * form[2]} bits; "
            f"expected {RATE} Hz, 1 channel, 16 bits"
        )
    found: NDArray[np.float32] = np.frombuffer(content, dtype="<i2").astype(np.float32)
    found /= 2**15
    return found
