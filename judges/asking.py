"""What scoring a reply asks of a judge, and who answers: the one way from a reply to its item.

Scoring is a generator. It yields lists of `Ask`s, gets a `Verdict` for each, and returns the item.
Driven with a judge it is a run; with saved verdicts it is `rescore`; with stand-ins it is the
estimate; with a provider that writes requests down it is a batch.

    def oevqa(doc, reply):
        done = yield from candidate.judged("agrees", AGREES, fields, reply)
        return {"candidate": done.candidate, "status": done.status, "right": done.score}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lmms_eval_tasks import judges
from lmms_eval_tasks.judges import geval_ratings, reader
from lmms_eval_tasks.judges.config import NONE
from lmms_eval_tasks.judges.judging import quotable
from lmms_eval_tasks.judges.ledger import current_task
from lmms_eval_tasks.judges.ledger import task as as_task
from lmms_eval_tasks.judges.verdict import Ask, Asks, Judge, Scoring, Status, Verdict

Answer = Callable[[Asks], Sequence[Verdict]]


def settle(scored: Scoring | dict[str, Any], answer: Answer) -> dict[str, Any]:
    """Run a scoring to its end.

    Args:
        scored: what a task's `score` returned: a generator, or an item that asks for nothing.
        answer: gives the verdicts of one list of asks, in its order.

    Returns:
        The item; with `verdicts`, each ask's last one as plain types, where it asked anything.
    """
    if isinstance(scored, dict):
        return scored
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
        """Make one.

        Args:
            judge: who is asked.
            saved: verdicts by the name of their ask.
            keeps: whether a saved verdict is wanted at all; all are unless told.
        """
        self._judge, self._saved, self._keeps = judge, dict(saved or {}), keeps
        self._anew: set[str] = set()  # names of what the judge was asked

    def __call__(self, asks: Asks) -> list[Verdict]:
        """The verdicts of one list, in its order."""
        kept = {ask.name: one for ask in asks if (one := self._kept(ask)) is not None}
        if any(ask.together for ask in asks) and len(kept) < len(asks):
            kept = {}
        new = [ask for ask in asks if ask.name not in kept]
        self._anew |= {ask.name for ask in new}
        made = dict(zip((ask.name for ask in new), self._side_by_side(new), strict=True))
        return [kept.get(ask.name) or made[ask.name] for ask in asks]

    def _kept(self, ask: Ask) -> Verdict | None:
        found = self._saved.get(ask.name)
        if found is None or ask.samples or ask.rests_on in self._anew:
            return None
        if not self._keeps(ask, found):
            return None
        if ask.reads and found.status == Status.OK.value and said(ask, found) is None:
            return None
        return found

    def _side_by_side(self, asks: Asks) -> list[Verdict]:
        """Each in a thread of its own; how many requests go out is up to the judge's limits."""
        if len(asks) < 2 or not self._judge.config.endpoints:
            return [ask_judge(self._judge, ask) for ask in asks]
        task = current_task()

        def booked(ask: Ask) -> Verdict:
            with as_task(task):  # a context variable: threads do not inherit it
                return ask_judge(self._judge, ask)

        with ThreadPoolExecutor(max_workers=len(asks)) as pool:
            return list(pool.map(booked, asks))


def said(ask: Ask, verdict: Verdict) -> Any:
    """What a verdict's reply says, in the criterion's schema; None if it cannot be read."""
    criterion = ask.criterion
    try:
        return reader.read(verdict.raw, criterion.schema, quotable(criterion, ask.fields))
    except reader.UnreadableError:
        return None


def ask_judge(judge: Judge, ask: Ask) -> Verdict:
    """The judge's verdict on one thing; a mean over samples where they are asked for."""
    if ask.samples:
        return geval_ratings.drawn(judge, ask.criterion, ask.fields, ask.samples, ask.first)

    def plainly() -> Verdict:
        return judge.verdict(ask.criterion, ask.fields)

    return plainly() if ask.before is None else ask.before(judge, plainly)


def given_by(judge: Judge, *, missing_only: bool) -> Callable[[Ask, Verdict], bool]:
    """Which saved verdicts are kept when a judge is named for a saved run (`Asker.keeps`).

    Without a judge (`none`) all stand; with one, none do, or with `missing_only` those that this
    very judge gave with the same settings and prompt.
    """

    def keeps(ask: Ask, verdict: Verdict) -> bool:
        if judge.config.provider == NONE:
            return True
        if not missing_only or verdict.score is None:
            return False
        likely = (judge.config, geval_ratings.sampling(judge.config))
        return verdict.setup in {judges.setup(config, ask.criterion) for config in likely}

    return keeps
