"""What one part of a process found, kept for another that the host hands nothing to."""

from __future__ import annotations

from typing import Generic, TypeVar

Found = TypeVar("Found")


class Remembered(Generic[Found]):
    """The last thing that was found, or None.

    A benchmark's check runs before the host builds a model; its docs and results come later, when
    files may have changed or gone.
    """

    def __init__(self) -> None:
        self._found: Found | None = None

    def remember(self, found: Found | None) -> None:
        """Keep this in place of what was kept; None forgets it."""
        self._found = found

    def last(self) -> Found | None:
        """What was kept last; None if nothing was."""
        return self._found
