"""What the check before a run found, kept for the run's docs and results.

The host hands nothing from one to the other, and files may change or go while a model answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval_tasks.maverix.item import Item
from lmms_eval_tasks.maverix.labels import Mode
from lmms_eval_tasks.maverix.schema import Release
from lmms_eval_tasks.runs.remembered import Remembered

Window = tuple[str, float | None, float | None]  # a video's path, start and end in seconds


@dataclass(frozen=True)
class Checked:
    """The data of a run as they were before its model was built.

    Attributes:
        release: the user's data.
        items: those that can be asked.
        left_out: the others by id, with the reason.
        silent: items without sound, with the reason; left out where the mode has sound.
        subtitles: which subtitles there were (subtitle_notes.py); None if no mode shows any.
        uncut: windows that could not be cut, with the reason; left out where the mode has picture
            or sound.
    """

    release: Release
    items: Sequence[Item]
    left_out: Mapping[str, str]
    silent: Mapping[str, str]
    subtitles: Mapping[str, Any] | None = None
    uncut: Mapping[Window, str] = field(default_factory=dict)

    def asks(self, row: Mapping[str, Any], mode: Mode, length: str) -> bool:
        """Whether an item of the usable ones is asked in a mode, by its row (data.py)."""
        if mode.sound and row["id"] in self.silent:
            return False
        shown = mode.picture or mode.sound
        return not (shown and self.uncut.get(window_of(row, length)))


_found: Remembered[Checked] = Remembered()
remember, last = _found.remember, _found.last


def remember_uncut(uncut: Mapping[Window, str]) -> None:
    """Add windows that could not be cut to what is kept."""
    if found := last():
        remember(replace(found, uncut={**found.uncut, **uncut}))


def window_of(row: Mapping[str, Any], length: str) -> Window:
    """What is cut of a row or doc: its segment, or the whole video if `length` is long."""
    if length == "long":
        return row["video_path"], None, None
    return row["video_path"], row["start"], row["end"]
