"""What the check before a run found, kept for the run's docs and results.

The host hands nothing from one to the other, and files may change or go while a model answers.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lmms_eval_tasks.cvrr_es.candidates import Aligned
from lmms_eval_tasks.cvrr_es.judge_items import Rated
from lmms_eval_tasks.cvrr_es.schema import Question, Release
from lmms_eval_tasks.runs.remembered import Remembered


@dataclass(frozen=True)
class Checked:
    """The data of a run as they were before its model was built.

    Attributes:
        release: the user's data; its bad questions are left out of every task.
        tasks: names.
        troubles: id of a question -> why its video cannot be shown.
        candidates: whose answers are rated; empty without a judge task.
        rated: judge task -> what it rates.
        uncut: path of a video that cannot be handed over -> why.
    """

    release: Release
    tasks: Sequence[str]
    troubles: Mapping[str, str]
    candidates: Sequence[Aligned] = ()
    rated: Mapping[str, Rated] = field(default_factory=dict)
    uncut: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def by_id(self) -> dict[str, Question]:
        """The release's questions."""
        return {one.id: one for one in self.release.questions}

    def left_out(self) -> dict[str, str]:
        """Questions that every task leaves out because the user allowed it, with the reason."""
        uncut = {
            one.id: self.uncut[path]
            for one in self.release.questions
            if (path := str(self.release.video_path(one).resolve())) in self.uncut
        }
        return {**self.release.problems, **self.troubles, **uncut}


_found: Remembered[Checked] = Remembered()
remember, last = _found.remember, _found.last


def remember_uncut(uncut: Mapping[str, str]) -> None:
    """Add videos that cannot be handed over to what is kept."""
    if found := last():
        remember(replace(found, uncut={**found.uncut, **uncut}))
