"""What the check before a run found, kept for the run's docs and results.

The host hands nothing from one to the other, and files may change or go while a model answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lmms_eval_tasks.movierecapsqa.labels import condition_of, source_of
from lmms_eval_tasks.movierecapsqa.schema import Release
from lmms_eval_tasks.movierecapsqa.usability import Held
from lmms_eval_tasks.runs.cuts import Window
from lmms_eval_tasks.runs.remembered import Remembered


@dataclass(frozen=True)
class Checked:
    """The data of a run as they were before its model was built.

    Attributes:
        release: the user's data; its bad segments are left out of every task.
        held: what there is of each source that a task shows.
        uncut: windows that could not be made, with the reason.
    """

    release: Release
    held: Mapping[str, Held]
    uncut: Mapping[Window, str] = field(default_factory=dict)

    def left_out(self, task: str) -> dict[str, str]:
        """Segments whose questions a task leaves out because the user allowed it, with the reason.

        Args:
            task: one of the run's.
        """
        if not condition_of(task).picture:
            return dict(self.release.problems)
        windows, absent, bad = self.held[source_of(task)]
        uncut = {name: self.uncut[w] for name, w in windows.items() if w in self.uncut}
        return {**self.release.problems, **absent, **bad, **uncut}


_found: Remembered[Checked] = Remembered()
remember, last = _found.remember, _found.last


def remember_uncut(uncut: Mapping[Window, str]) -> None:
    """Add windows that could not be made to what is kept."""
    if found := last():
        remember(replace(found, uncut={**found.uncut, **uncut}))
