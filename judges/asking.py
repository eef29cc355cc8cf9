"""Requests for judgements from the scoring of a reply, and the sources of verdicts.

The scoring of a reply is a generator. It yields lists of `JudgeRequest`s, gets a `Verdict` for
each, and returns the item's fields. The caller supplies the verdicts, so the same generator serves
four purposes: a run takes verdicts from a judge, `rescore` from the saved items, an estimate from
likely replies, and a batch from a provider that writes requests to a file.

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
        scored: the result of a task's `score`: a generator, or an item that needs no verdict.
        answer: returns the verdicts for a list of requests, in order.

    Returns:
        The item's fields. After a generator, `verdicts` holds the last verdict of each request by
        the request's name, in plain types.
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
    """The source of an item's verdicts: saved verdicts if they are valid, else the judge.

    If the judge gives a verdict again, saved verdicts that rest on it become invalid, such as the
    labels of claims after a new list of claims.

    Args:
        judge: the judge for verdicts that are not saved or not valid.
        saved: the item's saved verdicts, by the request's name.
        keeps: returns True if a saved verdict may be used for a request.
    """

    def __init__(
        self,
        judge: Judge,
        saved: Mapping[str, Verdict] | None = None,
        keeps: Callable[[JudgeRequest, Verdict], bool] = lambda request, verdict: True,  # noqa: ARG005
    ) -> None:
        self._judge, self._saved, self._keeps = judge, dict(saved or {}), keeps
        self._anew: set[str] = set()  # names of the requests that went to the judge

    @property
    def count_new(self) -> int:
        """The number of verdicts from the judge in this run."""
        return len(self._anew)

    def __call__(self, requests: JudgeRequests) -> list[Verdict]:
        """Return the verdicts on a list of requests, in order."""
        kept = {
            request.name: one for request in requests if (one := self._kept(request)) is not None
        }
        if any(request.in_one for request in requests) and len(kept) < len(requests):
            kept = {}
        new = [request for request in requests if request.name not in kept]
        self._anew |= {request.name for request in new}
        if len(new) < 2 or not self._judge.config.endpoints:
            given = [request.answered(self._judge) for request in new]
        else:  # a thread for each request; the judge's limits decide how many are sent at a time
            # The context is copied: the task is a context variable, which threads do not inherit.
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
    """A request whose saved verdict is valid as long as its reply can be read (`parsed_reply`)."""

    def stands(self, saved: Verdict) -> bool:
        """Return True if the saved verdict has no reply, or its reply can still be read."""
        return saved.status != Status.OK.value or parsed_reply(self, saved) is not None


def given_by(judge: Judge) -> Callable[[JudgeRequest, Verdict], bool]:
    """Return the function that decides which saved verdicts a judge's run keeps.

    The function is an argument of `VerdictSource`. The judge `none` keeps all. Any other judge
    keeps the verdicts with a score that it gave itself, with the same settings and prompt.
    """

    likely = (judge.config, geval.sampling(judge.config))  # here, so that each is hashed only once

    def keeps(request: JudgeRequest, verdict: Verdict) -> bool:
        if judge.config.provider == NONE:
            return True
        same = verdict.setup in {
            judges.judge_fingerprint(config, request.criterion) for config in likely
        }
        return verdict.score is not None and same

    return keeps


# --- a judge's verdict on an answer ---------------------------------------------------------------


def usable(config: Callable[[], JudgeConfig]) -> Judge:
    """Return the judge of `config()`; if it cannot be used, print why and return the judge `none`.

    `judges.preflight` stops such a run before it starts, but only if our hook in lmms-eval is in
    place. Without the hook, an exception during scoring would lose every answer (docs/design.md,
    "What lmms-eval does"). With the judge `none`, the answers are saved and can be judged later.
    """
    try:
        return judges.make_judge(config())
    except TasksError as error:
        _say_once(str(error))
        return NoJudge()


@lru_cache(maxsize=8)
def _say_once(problem: str) -> None:
    notify(
        f"answers are not judged in this run: {problem} To judge the saved "
        "samples later: lmms-eval-tasks judge LOGS --judge SPEC"
    )


def judge_reply(
    name: str, criterion: Criterion, fields: Mapping[str, object], reply: str
) -> Generator[Sequence[JudgeRequest], Sequence[Verdict], JudgedAnswer]:
    """Request the verdict on a model's reply; a reply without an answer is not sent to the judge.

    Args:
        name: the request's name.
        criterion: the kind of verdict.
        fields: the criterion's fields, without `candidate`.
        reply: the model's text, as lmms-eval passes it.

    Returns:
        The answer with its verdict. For a reply without an answer, the score 0 and no verdict.
    """
    status, candidate = reply_text.to_judge(reply)
    if status != "ok":
        # The reply may also be lmms-eval's text for a failed request, which is no answer.
        return JudgedAnswer("", status, 0.0, None)
    (verdict,) = yield [JudgeRequest(name, criterion, {**fields, "candidate": candidate})]
    return judged_answer(candidate, verdict)
