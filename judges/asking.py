"""Requests for judgements from the scoring of a reply, and the sources of verdicts.

The scoring of a reply is a generator. It yields lists of `Ask`s, gets a `Verdict` for each, and
returns the item. The same scoring is a run with a judge, `rescore` with saved verdicts, an estimate
with stand-ins, and a batch with a provider that writes requests to a file.

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
        scored: the result of a task's `score`: a generator, or an item that needs no verdict.
        answer: returns the verdicts for a list of asks, in order.

    Returns:
        The item. If it had asks, its `verdicts` are the last verdict of each ask, as plain types.
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
    """The source of an item's verdicts: valid saved verdicts, and the judge for the others.

    If a verdict is made anew, saved verdicts that rest on it (labels of claims) become invalid.
    """

    def __init__(
        self,
        judge: Judge,
        saved: Mapping[str, Verdict] | None = None,
        keeps: Callable[[Ask, Verdict], bool] = lambda ask, verdict: True,  # noqa: ARG005
    ) -> None:
        self._judge, self._saved, self._keeps = judge, dict(saved or {}), keeps
        self._anew: set[str] = set()  # names of the asks that went to the judge

    @property
    def count_new(self) -> int:
        """The number of verdicts from the judge in this run."""
        return len(self._anew)

    def __call__(self, asks: Asks) -> list[Verdict]:
        """Return the verdicts of a list of asks, in order."""
        kept = {ask.name: one for ask in asks if (one := self._kept(ask)) is not None}
        if any(ask.in_one for ask in asks) and len(kept) < len(asks):
            kept = {}
        new = [ask for ask in asks if ask.name not in kept]
        self._anew |= {ask.name for ask in new}
        if len(new) < 2 or not self._judge.config.endpoints:
            given = [ask.answered(self._judge) for ask in new]
        else:  # a thread for each; the judge's limits decide how many requests go out
            # Copied, since the task is a context variable, which threads do not inherit.
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
    """An ask whose saved verdict is valid as long as its reply can be read (`said`)."""

    def stands(self, saved: Verdict) -> bool:
        """Return True if the saved verdict has no reply, or its reply can still be read."""
        return saved.status != Status.OK.value or said(self, saved) is not None


def given_by(judge: Judge) -> Callable[[Ask, Verdict], bool]:
    """Return the test of saved verdicts for a judge that is named for a saved run (`Asker.keeps`).

    Without a judge (`none`) every saved verdict is valid. With a judge, a verdict is valid if this
    judge gave it with the same settings and prompt.
    """

    likely = (judge.config, geval.sampling(judge.config))  # outside `keeps`, since each is hashed

    def keeps(ask: Ask, verdict: Verdict) -> bool:
        if judge.config.provider == NONE:
            return True
        same = verdict.setup in {judges.setup(config, ask.criterion) for config in likely}
        return verdict.score is not None and same

    return keeps


# --- a judge's verdict on an answer ---------------------------------------------------------------


def usable(config: Callable[[], JudgeConfig]) -> Judge:
    """Return the judge of `config()`; if it cannot be used, a judge `none`, with one warning.

    `judges.preflight` stops such a run before it starts, but only through our hook in lmms-eval.
    Without the hook an exception during scoring would lose every answer (docs/design.md, "What
    lmms-eval does"); so the answers are kept, to be judged later.
    """
    try:
        return judges.make(config())
    except TasksError as error:
        _say_once(str(error))
        return NoJudge()


@lru_cache(maxsize=8)
def _say_once(problem: str) -> None:
    say(
        f"answers are not judged now: {problem} "
        "Judge the saved samples later with lmms-eval-tasks judge LOGS --judge SPEC"
    )


def judged(
    name: str, criterion: Criterion, fields: Mapping[str, object], reply: str
) -> Generator[Sequence[Ask], Sequence[Verdict], Judged]:
    """Put a model's reply to a judge; a reply without an answer needs no judge.

    Args:
        name: the ask's name.
        criterion: the question to the judge.
        fields: the criterion's fields but `candidate`.
        reply: the model's text, as lmms-eval passes it.

    Returns:
        The answer with its verdict; score 0 without a verdict if the reply has no answer.
    """
    status, candidate = reply_text.to_judge(reply)
    if status != "ok":
        # Nor may lmms-eval's text for a failed request pass for an answer.
        return Judged("", status, 0.0, None)
    (verdict,) = yield [Ask(name, criterion, {**fields, "candidate": candidate})]
    return graded(candidate, verdict)
