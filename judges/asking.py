"""Requests for a judgement from scoring a reply, and who answers them: the one way to an item.

Scoring is a generator. It yields lists of `JudgeRequest`s, gets a `Verdict` for each, and
returns the item. Driven with a judge it is a run; with saved verdicts it is `rescore`; with
stand-ins it is the estimate; with a provider that writes requests down it is a batch.

    def oevqa(doc, reply):
        done = yield from judge_reply("agrees", AGREES, fields, reply)
        return {"candidate": done.candidate, "status": done.status, "right": done.score}
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Status, Verdict, geval, reader
from lmms_eval_tasks.judges.providers.replay import NoJudge
from lmms_eval_tasks.judges.verdict import (
    NONE,
    JudgedAnswer,
    JudgeRequest,
    JudgeRequests,
    ScoringSteps,
    judged_answer,
)
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.replies import reply_text

GetVerdicts = Callable[[JudgeRequests], Sequence[Verdict]]


def run_scoring(
    scored: ScoringSteps[Mapping[str, object]] | Mapping[str, object], answer: GetVerdicts
) -> dict[str, Any]:
    """Run a scoring to its end.

    Args:
        scored: what a task's `score` returned: a generator, or an item that asks for nothing.
        answer: gives the verdicts of one list of requests, in its order.

    Returns:
        The item; with `verdicts`, the last one of each request as plain types, if there was one.
    """
    if not isinstance(scored, Generator):
        return dict(scored)
    verdicts: dict[str, Any] = {}
    try:
        requests = next(scored)
        while True:
            found = answer(requests)
            verdicts |= {
                request.name: one.as_dict() for request, one in zip(requests, found, strict=True)
            }
            requests = scored.send(found)
    except StopIteration as done:
        return {**done.value, "verdicts": verdicts}


class VerdictSource:
    """Answers the requests of one item: saved verdicts that stand, and the judge for the rest.

    A verdict that was made anew brings down those that rest on it (labels of claims).
    """

    def __init__(
        self,
        judge: Judge,
        saved: Mapping[str, Verdict] | None = None,
        keeps: Callable[[JudgeRequest, Verdict], bool] = lambda request, verdict: True,  # noqa: ARG005
    ) -> None:
        self._judge, self._saved, self._keeps = judge, dict(saved or {}), keeps
        self._anew: set[str] = set()  # names of what the judge was asked

    @property
    def count_new(self) -> int:
        """Return the number of verdicts that were asked for, not kept."""
        return len(self._anew)

    def __call__(self, requests: JudgeRequests) -> list[Verdict]:
        """The verdicts of one list, in its order."""
        kept = {
            request.name: one for request in requests if (one := self._kept(request)) is not None
        }
        if any(request.in_one for request in requests) and len(kept) < len(requests):
            kept = {}
        new = [request for request in requests if request.name not in kept]
        self._anew |= {request.name for request in new}
        if len(new) < 2 or not self._judge.config.endpoints:
            given = [request.answered(self._judge) for request in new]
        else:  # each in a thread of its own; the judge's limits say how many requests go out
            # The task is a context variable: threads do not inherit it.
            own = [copy_context() for _ in new]
            with ThreadPoolExecutor(max_workers=len(new)) as pool:
                given = list(
                    pool.map(lambda c, request: c.run(request.answered, self._judge), own, new)
                )
        made = {request.name: one for request, one in zip(new, given, strict=True)}
        return [kept.get(request.name) or made[request.name] for request in requests]

    def _kept(self, request: JudgeRequest) -> Verdict | None:
        found = self._saved.get(request.name)
        if found is None or request.rests_on in self._anew or not request.stands(found):
            return None
        return found if self._keeps(request, found) else None


def parsed_reply(request: JudgeRequest, verdict: Verdict) -> Any:
    """Return the parsed reply of a verdict (`reader.parsed_reply`)."""
    return reader.parsed_reply(request.criterion, request.fields, verdict)


@dataclass(frozen=True)
class RereadRequest(JudgeRequest):
    """One whose reply is read again from its verdict (`said`): it stands while that is possible."""

    def stands(self, saved: Verdict) -> bool:
        """Return whether its reply, if there was one, can still be read."""
        return saved.status != Status.OK.value or parsed_reply(self, saved) is not None


def given_by(judge: Judge) -> Callable[[JudgeRequest, Verdict], bool]:
    """Return the test for saved verdicts where a judge is named for a run (`VerdictSource.keeps`).

    Without a judge (`none`) all stand; with one, those that this very judge gave with the same
    settings and prompt.
    """

    likely = (judge.config, geval.sampling(judge.config))  # once: each is hashed

    def keeps(request: JudgeRequest, verdict: Verdict) -> bool:
        if judge.config.provider == NONE:
            return True
        same = verdict.setup in {
            judges.judge_fingerprint(config, request.criterion) for config in likely
        }
        return verdict.score is not None and same

    return keeps


# --- an answer put to a judge ---------------------------------------------------------------------


def usable(config: Callable[[], JudgeConfig]) -> Judge:
    """The judge of `config()`; without a usable one nobody is asked, and one line says so.

    `judges.preflight` stops such a run before it starts. Where the host runs without our hook it
    cannot, and an exception while scoring would lose every answer (docs/design.md, "What lmms-eval
    does"): they are kept and judged later.
    """
    try:
        return judges.make_judge(config())
    except TasksError as error:
        _say_once(str(error))
        return NoJudge()


@lru_cache(maxsize=8)
def _say_once(problem: str) -> None:
    notify(
        f"answers are not judged now: {problem} "
        "Judge the saved samples later with lmms-eval-tasks judge LOGS --judge SPEC"
    )


def judge_reply(
    name: str, criterion: Criterion, fields: Mapping[str, object], reply: str
) -> Generator[Sequence[JudgeRequest], Sequence[Verdict], JudgedAnswer]:
    """Put a model's reply to a judge (asking.py); a reply that is no answer is not worth a call.

    Args:
        reply: the model's text, as the host hands it over.
    """
    status, candidate = reply_text.to_judge(reply)
    if status != "ok":
        # The host's own "request failed" must not pass for the model's text either.
        return JudgedAnswer("", status, 0.0, None)
    (verdict,) = yield [JudgeRequest(name, criterion, {**fields, "candidate": candidate})]
    return judged_answer(candidate, verdict)
