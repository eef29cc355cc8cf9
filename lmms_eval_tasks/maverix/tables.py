"""Rows of MAVERIX's tables that no layout can define (leaderboards/maverix.json).

If sound does not reach a model, S stands in for A and V+S for V+A (the paper's Table 3). Numbers
have a mark if they rest on such a mode, or on sound that may not have arrived.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from lmms_eval_tasks.benchmark import TableRow
from lmms_eval_tasks.maverix import metrics
from lmms_eval_tasks.maverix.labels import MODES, MULTIMODAL, TASKS, UNIMODAL
from lmms_eval_tasks.tables.paper_tables import Sure, number

_STANDS_IN = {"a": "s", "av": "vs"}
_LENGTHS = {"localized": "", "long": "long_"}  # length of video -> prefix of task names


class ModelNumbers(NamedTuple):
    """One model's numbers with one length of video."""

    rows: Mapping[tuple[str, str], TableRow]  # by kind and mode
    sound: Mapping[str, str]  # mode -> state of sound (metrics.SOUND), over all lengths

    def value(self, kind: str, mode: str, metric: str) -> float | None:
        """Return a metric of the mode's own task; None without it."""
        row = self.rows.get((kind, mode))
        return number(row.values.get(metric)) if row else None

    def doubts(self, mode: str) -> str:
        """Return the mark of a mode: "^" for missing sound, "?" for unknown sound, else ""."""
        silent = mode in metrics.left_out(self.sound)
        return "^" if silent else "?" if self.sound.get(mode) == "unknown" else ""

    def marks(self, kind: str, mode: str) -> str:
        """Return the marks of a mode's own numbers."""
        row = self.rows.get((kind, mode))
        return self.doubts(mode) + ("!" if row and row.invalid else "")

    def number(self, kind: str, mode: str, metric: str) -> Sure | None:
        """Return the number in a mode's column, in which S may stand in for A, and V+S for V+A."""
        marks, other = self.marks(kind, mode), _STANDS_IN.get(mode, "")
        there = [(kind, one) in self.rows for one in (mode, other)]
        if mode in metrics.left_out(self.sound) and there != [True, False]:
            mode, marks = other, "*" + self.marks(kind, other)
        return Sure.marked(self.value(kind, mode, metric), marks)

    def by_mode(self) -> dict[str, Sure | None]:
        """Return the cells of Tables 3 and 6; a joined number has the marks of all its modes."""
        best = metrics.best_of_modes({m: self.value("choice", m, "acc") for m in MODES}, self.sound)
        used = MODES.keys() - metrics.left_out(self.sound)

        def joined(name: str, modes: Collection[str]) -> Sure | None:
            marks = {mark for mode in used & {*modes} for mark in self.marks("choice", mode)}
            return Sure.marked(best[name], "".join(sorted(marks)))

        return {
            **{mode: self.number("choice", mode, "acc") for mode in MODES},
            **{f"correctness_{m}": self.number("open", m, "correctness_valid") for m in MODES},
            "best_uni": joined("best_uni", UNIMODAL),
            "best_multi": joined("best_multi", MULTIMODAL),
            "delta_multi": joined("delta_multi", MODES),
        }


def marked_rows(rows: Sequence[TableRow]) -> Iterator[TableRow]:
    """Yield the rows with their marks, and a row `maverix_..._by_mode` per model and length."""
    asked = [(TASKS[row.task], row) for row in rows if row.task in TASKS]
    for model in dict.fromkeys(row.model for _, row in asked):
        own = [(task, row) for task, row in asked if row.model == model]
        numbers = [(task.mode.slug, row) for task, row in own]
        sound = {mode: _state(mode, numbers) for mode in metrics.WITH_SOUND}
        for length, start in _LENGTHS.items():
            there = {(a.kind, a.mode.slug): row for a, row in own if a.length == length}
            entry = ModelNumbers(there, sound)
            yield from (row._replace(marks=entry.doubts(at)) for (_, at), row in there.items())
            yield TableRow(f"maverix_{start}by_mode", entry.by_mode(), model)


def _state(mode: str, rows: Sequence[tuple[str, TableRow]]) -> str:
    """Return the state of a mode's sound (metrics.SOUND) from the counts of a model's tasks.

    If the mode was not run, counts of other modes say whether S stands in for it. "" means unknown.
    """

    def total(metric: str, *, of_model: bool = True) -> float | None:
        numbers = [number(row.values.get(metric)) for at, row in rows if (at == mode) == of_model]
        counts = [count for count in numbers if count is not None]
        return sum(counts) if counts else None

    if (missing := total("n_sound_missing")) is None:
        missing = total(f"n_sound_missing_{mode}", of_model=False)
        # If no sound is missing, it may be delivered or unknown: tables do not tell these apart.
        return "" if missing is None else "not delivered" if missing else "unknown"
    return "not delivered" if missing else "unknown" if total("n_sound_unknown") else "delivered"
