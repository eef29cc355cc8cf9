"""Several judges on one item: one verdict by a stated rule.

`combine` is the pure core; `PanelJudge` asks the members.
Weighted and latent-class panels are fitted to data and live with the study that fits them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.verdict import (
    Criterion,
    Judge,
    JudgeConfig,
    Status,
    Verdict,
    failure_of,
    total_usage,
)


def combine(
    verdicts: Sequence[Verdict],
    rule: str = "majority",
    tie: str = "lower",
    judge: str = "panel",
) -> Verdict:
    """One verdict out of several on the same item; apart from `parts` their order has no influence.

    Only `ok` verdicts vote. If they are no more than half of the panel there is no score, and the
    status is the failures' most frequent one (`failure_of`).

    Args:
        verdicts: at least one; they are kept whole in `parts`.
        rule: majority (the most frequent score), mean, or median.
        tie: which score is taken if several are equally frequent, or if the two middle ones of a
            median differ: the lower (default: a tie never pays), the higher, the mean of the tied
            ones (for the median: the usual one), or none, with status `tie`.
    """
    votes = _votes(verdicts)
    usage = total_usage(verdicts)
    if 2 * len(votes) <= len(verdicts):
        reason = f"{len(votes)} of {len(verdicts)} voted, too few; {_failed(verdicts)}"
        status = failure_of(verdicts)
        return Verdict(None, status, reason, judge=judge, usage=usage, parts=tuple(verdicts))
    score = _decide(votes, rule, tie)
    reason = f"{rule} of {len(votes)} votes: {_counts(votes)}"
    if len(votes) < len(verdicts):
        reason += f"; no vote: {_failed(verdicts)}"
    status = Status.TIE if score is None else Status.OK
    return Verdict(score, status, reason, judge=judge, usage=usage, parts=tuple(verdicts))


class PanelJudge(Judge):
    """A panel as one judge. It adds no state of its own, so it is as thread-safe as its members.

    The members are asked one after another in the calling thread: a run has many threads already,
    and threads of the panel's own would go past the limit that the user set.
    """

    def __init__(
        self,
        config: JudgeConfig,
        judges: Sequence[Judge],
    ) -> None:
        """Raises JudgeError: a judge is in the panel twice.

        It would be answered from the cache and count double.
        """
        for first, second in combinations(judges, 2):
            if first is second or first.config == second.config:
                raise JudgeError(
                    f"the panel {config.label} has the judge {first.config.label} twice, whose "
                    "vote would count double: name different judges"
                )
        self.config, self._judges = config, judges

    def supports(self, criterion: str) -> bool:
        """Whether every member can decide it."""
        return all(judge.supports(criterion) for judge in self._judges)

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> list[Verdict]:
        """The members' first samples make the first verdict, their second ones the second, ..."""
        rows = [judge.verdicts(criterion, fields, samples) for judge in self._judges]
        chosen = self.config.rule, self.config.tie, self.config.label
        return [combine(column, *chosen) for column in zip(*rows, strict=True)]


def _votes(verdicts: Sequence[Verdict]) -> list[float]:
    """The scores of the verdicts that have one, in ascending order."""
    return sorted(verdict.score for verdict in verdicts if verdict.score is not None)


def _decide(votes: Sequence[float], rule: str, tie: str) -> float | None:
    """The score of at least one vote, in ascending order; None: a tie that stays one."""
    if rule == "mean":
        return fmean(votes)
    if rule == "median":
        half = len(votes) // 2
        tied = votes[half : half + 1] if len(votes) % 2 else votes[half - 1 : half + 1]
    else:
        counts = Counter(votes)
        most = max(counts.values())
        tied = [score for score, count in counts.items() if count == most]
    if tied[0] == tied[-1]:
        return tied[0]
    return {"lower": tied[0], "higher": tied[-1], "mean": fmean(tied), "none": None}[tie]


def _counts(votes: Sequence[float]) -> str:
    counts = sorted(Counter(votes).items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{score:g} ({count})" for score, count in counts)


def _failed(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.status for verdict in verdicts if verdict.status != Status.OK)
    return ", ".join(f"{status} ({count})" for status, count in sorted(counts.items()))
