"""One answer of a model under test, put to a judge: whose trouble is it if there is no score?

The item's status tells. `empty`, `refused`, `truncated` and `model_error` are the candidate's (the
first three are worth 0 everywhere, utils/aggregate.py); `judge_<status>` is the judge's and leaves
`_valid`; `unjudged` waits for a judge (`none`); `ok` has a score.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from lmms_eval_tasks.console import say
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import make
from lmms_eval_tasks.judges.config import NONE, JudgeConfig
from lmms_eval_tasks.judges.providers import NoJudge
from lmms_eval_tasks.judges.verdict import Ask, Criterion, Judge, Status, Verdict
from lmms_eval_tasks.utils import answers
from lmms_eval_tasks.utils.aggregate import NOT_JUDGED

OF_THE_JUDGE = "judge_"  # prefix of an item's status


def usable(config: Callable[[], JudgeConfig]) -> Judge:
    """The judge of `config()`; without a usable one nobody is asked, and one line says so.

    `judges.preflight` stops such a run before it starts. Where the host runs without our hook it
    cannot, and an exception while scoring would lose every answer (host.md): they are kept and
    judged later.
    """
    try:
        return make(config())
    except TasksError as error:
        _say_once(str(error))
        return NoJudge(JudgeConfig(NONE))


@lru_cache(maxsize=8)
def _say_once(problem: str) -> None:
    say(
        f"answers are not judged now: {problem} "
        "Judge the saved samples later with lmms-eval-tasks judge LOGS --judge SPEC"
    )


class Judged(NamedTuple):
    """An answer and what became of it."""

    candidate: str  # what was put to the judge: without reasoning; empty if it is no answer
    status: str
    score: float | None
    verdict: Verdict | None  # None if nobody was asked, since there is no answer


def judged(
    name: str, criterion: Criterion, fields: Mapping[str, Any], reply: str
) -> Generator[Sequence[Ask], Sequence[Verdict], Judged]:
    """Put a model's reply to a judge (asking.py); a reply that is no answer is not worth a call.

    Args:
        name: of the ask.
        criterion: its placeholder for the answer is `candidate`.
        fields: the criterion's other fields.
        reply: the model's text, as the host hands it over.
    """
    status = answers.reply_status(reply)
    if status != "ok":
        # The host's own "request failed" must not pass for the model's text either.
        return Judged("", status, 0.0, None)
    candidate = answers.strip_reasoning(reply)[0].strip()
    (verdict,) = yield [Ask(name, criterion, {**fields, "candidate": candidate})]
    return graded(candidate, verdict)


def graded(candidate: str, verdict: Verdict) -> Judged:
    """An answer with its verdict: whose trouble it is if there is no score."""
    if verdict.judge == NONE:
        # Not `judge_skipped`: an answer over the budget is a failure of a judged run, this is not.
        return Judged(candidate, NOT_JUDGED, None, verdict)
    ok = verdict.status == Status.OK.value
    return Judged(candidate, "ok" if ok else OF_THE_JUDGE + verdict.status, verdict.score, verdict)
