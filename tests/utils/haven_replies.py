"""Long replies that a parser of structured text must read in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

SIZE = 100_000  # characters
SECONDS = 5.0  # generous for a loaded machine; quadratic matching takes minutes at this size


def slow(read: Callable[[str], Any], pieces: tuple[str, ...], head: str = "") -> list[str]:
    """The pieces of which `read` takes too long over a reply of 100 kB that repeats them."""
    found = []
    for piece in pieces:
        text = head + piece * (SIZE // len(piece)) + "x"
        start = time.perf_counter()
        read(text)
        if time.perf_counter() - start > SECONDS:
            found.append(piece)
    return found
