"""Numbers by task turned into one row per model and length of video, as the paper's tables want."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.maverix.labels import MODES, TASKS, kind_of, length_of, mode_of
from lmms_eval_tasks.maverix.metrics import WITH_SOUND, left_out
from lmms_eval_tasks.report.paper_tables import DOUBT, INVALID, number

Cell = tuple[float | None, str]  # a value and its mark

SHORT, FULL = "localized", "full length"
MARKS = {
    "*": "* the sound does not reach this model: S stands for A, and V+S for V+A",
    "?": "? whether the sound reached this model is not known",
    "~": "~ left out: modes whose sound does not reach the model (what they measure is no sound)",
    "!": DOUBT,
}
_STANDS_IN = {"a": "s", "av": "vs"}


@dataclass
class Entry:
    """One model's numbers with one length of video."""

    label: str  # as given, with the model behind its tasks' names; "" for a single run
    length: str
    tasks: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # (kind, mode)
    sound: dict[str, str] = field(default_factory=dict)  # mode -> metrics.SOUND
    silent: set[str] = field(default_factory=set)  # modes whose sound does not arrive
    invalid: set[tuple[str, str]] = field(default_factory=set)  # of `tasks`

    @property
    def title(self) -> str:
        """What stands in a table's first column."""
        return self.label or "this run"

    def value(self, kind: str, mode: str, metric: str) -> float | None:
        """A metric of the mode's own task, or None."""
        return number(self.tasks.get((kind, mode), {}).get(metric))

    def stands(self, kind: str, mode: str) -> tuple[str, str]:
        """The mode whose numbers stand in a mode's column, and their marks ("" for its own)."""
        mark = "?" if self.sound.get(mode) == "unknown" else ""
        if mode in self.silent:
            mode, mark = _STANDS_IN[mode], "*"
        return mode, mark + self.doubt(kind, mode)

    def doubt(self, kind: str, *modes: str) -> str:
        """The mark of numbers that rest on these modes, if a task of theirs is invalid."""
        return "!" if any((kind, mode) in self.invalid for mode in modes) else ""

    def shown(self, kind: str, mode: str, metric: str) -> tuple[float | None, str]:
        """What stands in a mode's column: the value and its mark."""
        mode, mark = self.stands(kind, mode)
        return self.value(kind, mode, metric), mark

    def modes(self, kind: str) -> list[str]:
        """Modes with a task of that kind, without those whose sound does not arrive."""
        return [mode for mode in MODES if (kind, mode) in self.tasks and mode not in self.silent]

    def hides(self, kind: str) -> bool:
        """Whether `modes` leaves out a task."""
        return any((kind, mode) in self.tasks for mode in self.silent)

    def mode_title(self, kind: str, mode: str) -> str:
        """The paper's title of a mode, with its marks."""
        return MODES[mode].title + self.stands(kind, mode)[1]


def entries(rows: Sequence[tuple[str, Numbers]]) -> list[Entry]:
    """Rows of `tables.tables` by model and length of video, a model's two lengths in turn.

    Names that are no task of MAVERIX are left out.
    """
    found: dict[str, dict[str, Entry]] = {}  # label -> length -> entry
    for label, numbers in rows:
        for name, values in numbers.items():
            # Behind it: the model where several were rescored, and ` INVALID`.
            task, _, added = name.partition(" ")
            if task in TASKS:
                full = f"{label} {added.removesuffix(INVALID)}".strip()
                length = FULL if length_of(task) == "long" else SHORT
                entry = found.setdefault(full, {}).setdefault(length, Entry(full, length))
                at = kind_of(task), mode_of(task).slug
                entry.tasks[at] = values
                entry.invalid |= {at} if added.endswith(INVALID) else set()
    for lengths in found.values():
        tasks = [(mode, own) for one in lengths.values() for (_, mode), own in one.tasks.items()]
        known = {mode: _state(mode, tasks) for mode in WITH_SOUND}
        for entry in lengths.values():
            entry.sound, entry.silent = known, left_out(known)
    order = (SHORT, FULL)
    return [lengths[name] for lengths in found.values() for name in order if name in lengths]


def _state(mode: str, tasks: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """What became of a mode's sound (metrics.SOUND), by the counts of a model's tasks; "" unknown.

    Where the mode was not run, those of the others say whether S stands in for it.
    """

    def counts(metric: str, *, own: bool) -> list[float]:
        found = (number(values.get(metric)) for at, values in tasks if (at == mode) == own)
        return [count for count in found if count is not None]

    missing, unknown = (counts(f"n_sound_{what}", own=True) for what in ("missing", "unknown"))
    if missing:
        return "not delivered" if any(missing) else "unknown" if any(unknown) else "delivered"
    missing = counts(f"n_sound_missing_{mode}", own=False)
    # Without a missing one it may be delivered or not be known: no table tells these two apart.
    return "" if not missing else "not delivered" if any(missing) else "unknown"
