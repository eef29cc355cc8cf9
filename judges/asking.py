"""Requests for a judgement from scoring a reply, and who answers them: the one way to an item.

Scoring is a generator. It yields lists of `Ask`s, gets a `Verdict` for each, and returns the item.
Driven with a judge it is a run; with saved verdicts it is `rescore`; with stand-ins it is the
estimate; with a provider that writes requests down it is a batch.

    def oevqa(doc, reply):
        done = yield from judged("agrees", AGREES, fields, reply)
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
from lmms_eval_tasks.judges.verdict import NONE, Ask, Asks, Judged, Scoring, graded
from lmms_eval_tasks.notify import say
from lmms_eval_tasks.utils.replies import reply_text

Answer = Callable[[Asks], Sequence[Verdict]]


def settle(
    scored: Scoring[Mapping[str, object]] | Mapping[str, object], answer: Answer
) -> dict[str, Any]:
    """Run a scoring to its end.

    Args:
        scored: what a task's `score` returned: a generator, or an item that asks for nothing.
        answer: gives the verdicts of one list of asks, in its order.

    Returns:
        The item; with `verdicts`, each ask's last one as plain types, where it asked anything.
    """
    if not isinstance(scored, Generator):
        return dict(scored)
    verdicts: dict[str, Any] = {}
    try:
        asks = next(scored)
        while True:
            found = answer(asks)
            verdicts |= {ask.name: one.as_dict() for ask, one in zip(asks, found, strict=True)}
            asks = scored.send(found)
    except StopIteration as done:
        return {**done.value, "verdicts": verdicts}


class Asker:
    """Answers the asks of one item: saved verdicts that stand, and the judge for the rest.

    A verdict that was made anew brings down those that rest on it (labels of claims).
    """

    def __init__(
        self,
        judge: Judge,
        saved: Mapping[str, Verdict] | None = None,
        keeps: Callable[[Ask, Verdict], bool] = lambda ask, verdict: True,  # noqa: ARG005
    ) -> None:
        self._judge, self._saved, self._keeps = judge, dict(saved or {}), keeps
        self._anew: set[str] = set()  # names of what the judge was asked

    @property
    def count_new(self) -> int:
        """Return the number of verdicts that were asked for, not kept."""
        return len(self._anew)

    def __call__(self, asks: Asks) -> list[Verdict]:
        """The verdicts of one list, in its order."""
        kept = {ask.name: one for ask in asks if (one := self._kept(ask)) is not None}
        if any(ask.in_one for ask in asks) and len(kept) < len(asks):
            kept = {}
        new = [ask for ask in asks if ask.name not in kept]
        self._anew |= {ask.name for ask in new}
        if len(new) < 2 or not self._judge.config.endpoints:
            given = [ask.answered(self._judge) for ask in new]
        else:  # each in a thread of its own; the judge's limits say how many requests go out
            # The task is a context variable: threads do not inherit it.
            own = [copy_context() for _ in new]
            with ThreadPoolExecutor(max_workers=len(new)) as pool:
                given = list(pool.map(lambda c, ask: c.run(ask.answered, self._judge), own, new))
        made = {ask.name: one for ask, one in zip(new, given, strict=True)}
        return [kept.get(ask.name) or made[ask.name] for ask in asks]

    def _kept(self, ask: Ask) -> Verdict | None:
        found = self._saved.get(ask.name)
        if found is None or ask.rests_on in self._anew or not ask.stands(found):
            return None
        return found if self._keeps(ask, found) else None


def said(ask: Ask, verdict: Verdict) -> Any:
    """Return the parsed reply of a verdict (`reader.said`)."""
    return reader.said(ask.criterion, ask.fields, verdict)


@dataclass(frozen=True)
class ReadAsk(Ask):
    """One whose reply is read again from its verdict (`said`): it stands while that is possible."""

    def stands(self, saved: Verdict) -> bool:
        """Return whether its reply, if there was one, can still be read."""
        return saved.status != Status.OK.value or said(self, saved) is not None


def given_by(judge: Judge) -> Callable[[Ask, Verdict], bool]:
    """Return the test for saved verdicts when a judge is named for a saved run (`Asker.keeps`).

    Without a judge (`none`) all stand; with one, those that this very judge gave with the same
    settings and prompt.
    """

    likely = (judge.config, geval.sampling(judge.config))  # once: each is hashed

    def keeps(ask: Ask, verdict: Verdict) -> bool:
        if judge.config.provider == NONE:
            return True
        same = verdict.setup in {judges.setup(config, ask.criterion) for config in likely}
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
        return judges.make(config())
    except TasksError as error:
        _say_once(str(error))
        return NoJudge()


@lru_cache(maxsize=8)
def _say_once(problem: str) -> None:
    say(
        f"answers are not judged in this run: {problem} To judge the saved "
        "samples later: lmms-eval-tasks judge LOGS --judge SPEC"
    )


def judged(
    name: str, criterion: Criterion, fields: Mapping[str, object], reply: str
) -> Generator[Sequence[Ask], Sequence[Verdict], Judged]:
    """Put a model's reply to a judge (asking.py); a reply that is no answer is not worth a call.

    Args:
        reply: the model's text, as the host hands it over.
    """
    status, candidate = reply_text.to_judge(reply)
    if status != "ok":
        # The host's own "request failed" must not pass for the model's text either.
        return Judged("", status, 0.0, None)
    (verdict,) = yield [Ask(name, criterion, {**fields, "candidate": candidate})]
    return graded(candidate, verdict)
