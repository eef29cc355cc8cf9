"""What the check before a run found, kept for the run's docs and results.

The host hands nothing from one to the other, and files may change or go while a model answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lmms_eval_tasks.haven.options import Options
from lmms_eval_tasks.haven.schema import Release
from lmms_eval_tasks.runs.remembered import Remembered


@dataclass(frozen=True)
class Checked:
    """The data of a run as they were before its model was built.

    Attributes:
        release: the user's data, of the chosen sources.
        options: how items are made.
        reasons: task -> id of a video -> why its item is left out.
        undecoded: path of a video whose frames cannot be read -> why.
    """

    release: Release
    options: Options
    reasons: Mapping[str, Mapping[str, str]]
    undecoded: Mapping[str, str] = field(default_factory=dict)

    def left_out(self, task: str) -> dict[str, str]:
        """Videos that a task leaves out, with the reason.

        Args:
            task: one of the run's.
        """
        found = dict(self.reasons[task])
        if not task.endswith("_text"):
            for record in self.release.records:
                if why := self.undecoded.get(str(record.path and record.path.resolve())):
                    found.setdefault(record.id, why)
        return found


_found: Remembered[Checked] = Remembered()
remember, last = _found.remember, _found.last


def remember_undecoded(undecoded: Mapping[str, str]) -> None:
    """Add videos whose frames cannot be read to what is kept."""
    if found := last():
        remember(replace(found, undecoded={**found.undecoded, **undecoded}))
