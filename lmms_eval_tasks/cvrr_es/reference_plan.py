"""What reference ratings would cost, asking nobody: every turn of a debate, put together as it is.

The agents are played by stand-ins with reasons of the usual length, so that later turns hold the
earlier ones as in the real debate. Of many answers a part is looked at, spread evenly over them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.cvrr_es import reference_judges
from lmms_eval_tasks.cvrr_es.reference_judges import Asked
from lmms_eval_tasks.judges import Criterion, JudgeConfig, Verdict
from lmms_eval_tasks.judges.config import DEBATE
from lmms_eval_tasks.runs.agreement.plan import Asked as Request
from lmms_eval_tasks.runs.agreement.plan import Plan, at_best, enlarged, plan, summary
from lmms_eval_tasks.runs.estimate import REPLY_TOKENS

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.debate import DebateJudge

PART = 300  # answers that are looked at, of however many
_REASON = " ".join(["word"] * (REPLY_TOKENS - 10))
_REPLY = json.dumps({"reason": _REASON, "rating": 3})


class Estimated(NamedTuple):
    """The work by model, and notes on how it was estimated."""

    plans: list[tuple[str, Plan]]  # with the model's label; agents with one setting are one
    notes: list[str]

    @property
    def calls(self) -> int:
        """All requests."""
        return sum(one.calls for _, one in self.plans)

    @property
    def cost(self) -> float | None:
        """Dollars; None where a price is unknown."""
        costs = [one.cost for _, one in self.plans]
        known = [cost for cost in costs if cost is not None]
        return math.fsum(known) if len(known) == len(costs) else None

    def lines(self) -> list[str]:
        """The estimate in words: each model, all together, notes."""
        from lmms_eval_tasks.judges.ledger import dollars

        found = [f"{label}: {summary(one)}" for label, one in self.plans]
        cost = "unknown price" if self.cost is None else dollars(self.cost)
        return [*found, f"all: {self.calls:,} calls, {cost}", *self.notes]


class _StandIn:
    """Notes what it is asked and gives a reply of the usual length."""

    def __init__(self, config: JudgeConfig, asked: list[Request]) -> None:
        self.config, self._asked = config, asked

    def supports(self, criterion: str) -> bool:  # noqa: ARG002 - a stand-in takes any
        """Every criterion."""
        return True

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        """A rating in the middle."""
        self._asked.append((criterion, dict(fields), _REPLY))
        return Verdict(3.0, "ok", _REASON, _REPLY, judge=self.config.label)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """As many of them."""
        return [self.verdict(criterion, fields) for _ in range(samples)]


def estimate(config: JudgeConfig, asked: Sequence[Asked]) -> Estimated:
    """The work of rating `asked`, without repairs and without what is in the cache already.

    Args:
        config: from `reference_judges.config`.
        asked: at least one answer.
    """
    from lmms_eval_tasks.judges import run

    # Two candidates may give the same answer, which is asked about once.
    different = list(dict.fromkeys((a.question, a.reference, a.answer, a.empty) for a in asked))
    first = {(a.question, a.reference, a.answer, a.empty): a for a in reversed(asked)}
    step = max(1, math.ceil(len(different) / PART))
    part = [first[key] for key in different[::step]]
    requests: dict[JudgeConfig, list[Request]] = {}
    for model in config.members or (config,):
        requests.setdefault(model, [])
    judge = _judge(config, requests)
    for one in part:
        judge.verdict(reference_judges.criterion(), reference_judges.fields(one))
    plans = [(model.label, plan(model, own)) for model, own in requests.items()]
    notes = [note for _, one in plans for note in one.notes]
    if len(different) < len(asked):
        notes.append(f"{len(asked) - len(different):,} answers are another candidate's too: free")
    if step > 1:
        factor = len(different) / len(part)
        plans = [(label, enlarged(one, factor)) for label, one in plans]
        notes.append(f"estimated on {len(part):,} of {len(different):,} different answers")
    notes += [f"{label}: {note}" for label, one in plans for note in at_best(one)]
    notes += [
        f"assumed: {REPLY_TOKENS} tokens for each reply; no repairs",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]
    return Estimated(plans, notes)


def _judge(
    config: JudgeConfig, requests: Mapping[JudgeConfig, list[Request]]
) -> DebateJudge | _StandIn:
    from lmms_eval_tasks.judges.debate import DebateJudge

    if config.provider != DEBATE:
        return _StandIn(config, requests[config])
    *agents, last = (_StandIn(model, requests[model]) for model in config.members)
    return DebateJudge(config, agents, last, config.rounds)
