"""What the judge of MovieRecapsQA is shown.

    LMMS_EVAL_TASKS_MOVIERECAPSQA=NAME=VALUE,...   or   lmms_eval --movierecapsqa NAME=VALUE,...

The authors' released code shows a question's own facts and no dialogue; the published scores were
not made so: answers that rest on the dialogue alone have high ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError

ALL, ALIGNED = "all", "aligned"
GIVEN, NONE = "given", "none"
_VALUES = {"facts": (ALL, ALIGNED), "dialogue": (GIVEN, NONE)}


class Options(NamedTuple):
    """What is shown beside question and claims.

    Attributes:
        facts: `all` of the segment's, or those that are `aligned` with the question.
        dialogue: the segment's, as `given`, or `none`.
    """

    facts: str = ALL
    dialogue: str = GIVEN

    def shown(
        self, facts: Sequence[str], aligned: Sequence[str], dialogue: str
    ) -> tuple[Sequence[str], str]:
        """Facts and dialogue as the judge gets them.

        Args:
            facts: of the segment.
            aligned: of the question.
            dialogue: of the segment.
        """
        return (
            aligned if self.facts == ALIGNED else facts,
            dialogue if self.dialogue == GIVEN else "",
        )


def current() -> Options:
    """The user's choice.

    Raises:
        TasksError: an option is unknown, given twice, or has another value.
    """
    text = os.environ.get(settings.MOVIERECAPSQA, "")
    given: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = (piece.strip() for piece in part.partition("="))
        expected = _VALUES.get(name)
        if expected is None:
            raise _wrong(text, f"{name!r} is none of {', '.join(_VALUES)}")
        if name in given:
            raise _wrong(text, f"{name} is given twice")
        if value not in expected:
            raise _wrong(text, f"{name}={value}: expected {' or '.join(expected)}")
        given[name] = value
    return Options(**given)


def _wrong(text: str, why: str) -> TasksError:
    return TasksError(f"{settings.MOVIERECAPSQA}={text!r}: {why}")
