"""Numbers by task turned into one row per model and length of video, as the paper's tables want."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmms_eval_tasks.benchmark import Numbers
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.maverix.metrics import WITH_SOUND, left_out, worst_sound
from lmms_eval_tasks.report.paper_tables import number

Cell = tuple[float | None, str]  # a value and its mark

SHORT, FULL = "localized", "full length"
MARKS = {
    "*": "* the sound does not reach this model: S stands for A, and V+S for V+A",
    "?": "? whether the sound reached this model is not known",
    "~": "~ left out: modes whose sound does not reach the model (what they measure is no sound)",
}
_STANDS_IN = {"a": "s", "av": "vs"}
# A task's name, then whatever was added to it: ` INVALID`, the model where several were rescored.
_TASK = re.compile(
    r"maverix(?P<long>_long)?_(?P<mode>a|s|v|vs|av)(?P<kind>_oe|_circular)?(?P<rest> .*)?",
    re.DOTALL,
)
_GROUP = re.compile(r"maverix_table3(?P<rest> .*)?", re.DOTALL)
_KINDS = {None: "choice", "_oe": "open", "_circular": "circular"}


@dataclass
class Entry:
    """One model's numbers with one length of video."""

    label: str  # as given, with what was added to its tasks' names; "" for a single run
    length: str
    tasks: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)  # (kind, mode)
    group: Mapping[str, Any] = field(default_factory=dict)  # the group of Table 3
    sound: dict[str, str] = field(default_factory=dict)  # mode -> metrics.SOUND
    silent: set[str] = field(default_factory=set)  # modes whose sound does not arrive

    @property
    def title(self) -> str:
        """What stands in a table's first column."""
        return f"this run {self.label}".strip() if self.label in ("", "INVALID") else self.label

    def value(self, kind: str, mode: str, metric: str) -> float | None:
        """A metric of the mode's own task, or None."""
        return number(self.tasks.get((kind, mode), {}).get(metric))

    def stands(self, mode: str) -> tuple[str, str]:
        """The mode whose numbers stand in a mode's column, and their mark ("" for its own)."""
        if mode in self.silent:
            return _STANDS_IN[mode], "*"
        return mode, "?" if self.sound.get(mode) == "unknown" else ""

    def shown(self, kind: str, mode: str, metric: str) -> tuple[float | None, str]:
        """What stands in a mode's column: the value and its mark."""
        mode, mark = self.stands(mode)
        return self.value(kind, mode, metric), mark

    def modes(self, kind: str) -> list[str]:
        """Modes with a task of that kind, without those whose sound does not arrive."""
        return [mode for mode in MODES if (kind, mode) in self.tasks and mode not in self.silent]

    def hides(self, kind: str) -> bool:
        """Whether `modes` leaves out a task."""
        return any((kind, mode) in self.tasks for mode in self.silent)

    def mode_title(self, mode: str) -> str:
        """The paper's title of a mode, marked where nobody knows about its sound."""
        return MODES[mode].title + self.stands(mode)[1]


def entries(rows: Sequence[tuple[str, Numbers]], sound: Mapping[str, str]) -> list[Entry]:
    """Rows of `tables.tables` by model and length of video, a model's two lengths in turn.

    Names that are no task of MAVERIX, and no group of Table 3, are left out.

    Args:
        rows: a label and numbers by task or group.
        sound: state of the sound (metrics.SOUND) by task. One that was not run may be among them: S
            stands in for it if the model has no sound. Where it says nothing, the tasks' counts do
            (`n_sound_missing`, `n_sound_unknown` of the task itself, `n_sound_missing_a` and `_av`
            of the others).
    """
    found: dict[str, dict[str, Entry]] = {}  # label -> length -> entry
    states: dict[str, dict[str, str]] = {}  # label -> mode -> state; the same for both lengths
    for label, numbers in rows:
        for name, values in numbers.items():
            match = _TASK.fullmatch(name) or _GROUP.fullmatch(name)
            if match is None:
                continue
            rest = match["rest"] or ""
            full = f"{label}{rest}".strip()
            length = FULL if match.groupdict().get("long") else SHORT
            known = states.setdefault(full, {})
            entry = found.setdefault(full, {}).setdefault(length, Entry(full, length, sound=known))
            if match.re is _GROUP:
                entry.group = values
                continue
            mode = match["mode"]
            entry.tasks[_KINDS[match["kind"]], mode] = values
            if MODES[mode].sound:
                state = _state(name.removesuffix(rest), values, sound)
                known[mode] = worst_sound([known.get(mode, ""), state])
    for label, known in states.items():
        for mode in WITH_SOUND:
            known[mode] = known.get(mode) or _not_run(mode, found[label].values(), sound)
        for entry in found[label].values():
            entry.silent = left_out(known)
    order = (SHORT, FULL)
    return [lengths[name] for lengths in found.values() for name in order if name in lengths]


def _state(task: str, values: Mapping[str, Any], sound: Mapping[str, str]) -> str:
    if task in sound:
        return sound[task]
    if number(values.get("n_sound_missing")):
        return "not delivered"
    if number(values.get("n_sound_unknown")):
        return "unknown"
    return "delivered" if "n_sound_missing" in values else ""


def _not_run(mode: str, lengths: Iterable[Entry], sound: Mapping[str, str]) -> str:
    """State of a mode that has no task of its own."""
    if f"maverix_{mode}" in sound:
        return sound[f"maverix_{mode}"]
    counts = [
        count
        for entry in lengths
        for values in entry.tasks.values()
        if (count := number(values.get(f"n_sound_missing_{mode}"))) is not None
    ]
    # Without a missing one it may be delivered or not be known: no table tells these two apart.
    return "" if not counts else "not delivered" if any(counts) else "unknown"
