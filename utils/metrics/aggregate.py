"""From items to numbers: accuracies in three forms, pools, means of categories.

An item is a plain dict with at least `id`, `status` and `right` (1, 0, or None where there is no
verdict). All functions are pure, do not depend on the order of the items (sums use math.fsum over
values, groups are keyed), and return None where a number does not exist.

The three forms (docs/metrics.md, "Every number in three"): the plain number counts every failed
item as wrong; `_valid` leaves out items that could not be read or judged; `_failed` counts those.
What the candidate did itself (answered or claimed nothing, refused, was cut off) is 0 in both
forms: abstaining must not pay.
"""

from __future__ import annotations

import math
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from lmms_eval_tasks.notify import say

Item = Mapping[str, Any]

NO_CLAIMS = "no_claims"  # status: an answer in which the judge finds nothing claimed
CANDIDATE_FAILURES = frozenset({"empty", "refused", "truncated", NO_CLAIMS})
NOT_JUDGED = "unjudged"  # nobody was meant to judge now: judge `none`


def mean(values: Iterable[float]) -> float | None:
    """Arithmetic mean, or None of nothing."""
    collected = list(values)
    return math.fsum(collected) / len(collected) if collected else None


def is_valid(item: Item) -> bool:
    """Whether an item stays in the denominator of `_valid`."""
    return item["status"] == "ok" or item["status"] in CANDIDATE_FAILURES


def is_unjudged(items: Sequence[Item]) -> bool:
    """Whether a judge is still to come (judge `none`): nobody was asked about any answer.

    Answers that were never put to a judge, such as empty ones, do not make it a judged run.
    """
    asked = [item for item in items if item["status"] not in CANDIDATE_FAILURES]
    return bool(asked) and all(item["status"] == NOT_JUDGED for item in asked)


def is_claimless(items: Sequence[Item]) -> bool:
    """Whether a judge found no claim in any answer: then it failed, and not the candidate.

    Answers that look like refusals may all claim nothing.
    """
    told = [item for item in items if item.get("status") == NO_CLAIMS]  # a metric's own: without
    rated = (one for item in items for one in (item.get("dimensions") or {}).values())
    empty_handed = not all(item.get("refused") for item in told)
    return empty_handed and not any(one["status"] == "ok" for one in rated)


def as_counted(items: Sequence[Item]) -> Sequence[Item]:
    """All items of a task as its numbers count them: `is_claimless` is the judge's failure."""
    if not is_claimless(items):
        return items
    failed = {"status": f"judge_{NO_CLAIMS}", "dimensions": {}}
    return [{**item, **failed} if item["status"] == NO_CLAIMS else item for item in items]


def accuracy(items: Sequence[Item]) -> float | None:
    """Share of right items in 0..1, failed ones counted as wrong.

    None if there is no number yet: no items, or a run that waits for its judge.
    """
    return None if is_unjudged(items) else mean(float(item["right"] or 0) for item in items)


def accuracy_valid(items: Sequence[Item]) -> float | None:
    """Share of right items in 0..1 among those that could be read and judged; None as above."""
    return None if is_unjudged(items) else accuracy([item for item in items if is_valid(item)])


def rights(items: Sequence[Item]) -> dict[str, tuple[str, float]]:
    """What `accuracy` is the mean of, by id, with its video; nothing before a judge came."""
    if is_unjudged(items):
        return {}
    return {item["id"]: (item["video"], float(item["right"] or 0)) for item in items}


def count_refusals(items: Sequence[Item]) -> int:
    """Number of judged answers that look like refusals."""
    return sum(bool(item.get("refused")) for item in items)


def if_refusals_wrong(statistic: Callable[[Sequence[Item]], Any]) -> Callable[..., Any]:
    """A number as it would be if every answer that looks like a refusal were wrong.

    Args:
        statistic: of items; of theirs it reads right, points, geval or dimensions.
    """
    nothing = {"score": 0.0, "status": "refused"}

    def wrong(item: Item) -> Item:
        if not item.get("refused"):
            return item
        values = {"right": 0, "points": 0.0, "geval": nothing}
        made = {**item, **{k: v for k, v in values.items() if k in item}, "status": "refused"}
        if item.get("dimensions"):
            made["dimensions"] = dict.fromkeys(item["dimensions"], nothing)
        return made

    return lambda items: statistic([wrong(item) for item in items])


def count_failed(items: Sequence[Item]) -> int:
    """Number of items that leave `_valid`: those that could not be read, judged or asked."""
    return sum(not is_valid(item) for item in items)


def by_status(items: Iterable[Item]) -> dict[str, int]:
    """Number of items by status, sorted by name."""
    return dict(sorted(Counter(item["status"] for item in items).items()))


def unlike(asked: Mapping[str, Iterable[Item]]) -> str:
    """How many items each of several has, if they do not all have the same ones; else ""."""
    ids = {name: frozenset(item["id"] for item in items) for name, items in asked.items()}
    if len(set(ids.values())) < 2:
        return ""
    return ", ".join(f"{name} {len(own)}" for name, own in ids.items())


def by_category(items: Iterable[Item]) -> dict[str, list[Item]]:
    """Items by their `category`."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(item["category"], []).append(item)
    return groups


def mean_of_categories(
    statistic: Callable[[Sequence[Item]], float | None], items: Sequence[Item]
) -> float | None:
    """The papers' average: mean over the categories that have a value, each weighing the same."""
    values = [statistic(group) for group in by_category(items).values()]
    return mean(value for value in values if value is not None)


# --- pools ------------------------------------------------------------------------------------


class Pool(NamedTuple):
    """The pairs of one question."""

    question: str
    video: str
    category: str
    right: bool  # complete and all pairs right
    valid: bool  # complete and every pair could be read


def pools(items: Iterable[Item], size: int) -> dict[str, Pool]:
    """Items grouped into pools by `question_id`.

    Args:
        items: pairs, each with `id` (that of its question, a slash, its number).
        size: number of pairs of a complete pool.
    """
    groups: dict[str, dict[str, Item]] = {}
    for item in items:
        question = item.get("question_id") or item["id"].rpartition("/")[0]
        groups.setdefault(question, {})[item["id"]] = item
    result = {}
    for question, group in groups.items():
        complete = len(group) == size
        first = next(iter(group.values()))
        right = complete and all(item["right"] == 1 for item in group.values())
        valid = complete and all(map(is_valid, group.values()))
        video, category = first.get("video", ""), first.get("category", "")
        result[question] = Pool(question, video, category, right, valid)
    return result


def pool_accuracy(items: Sequence[Item], size: int) -> float | None:
    """Share of pools with all pairs right; incomplete and unreadable ones are not right."""
    return mean(float(pool.right) for pool in pools(items, size).values())


def pool_accuracy_valid(items: Sequence[Item], size: int) -> float | None:
    """Share of right pools among those that are complete and could be read."""
    return mean(float(pool.right) for pool in pools(items, size).values() if pool.valid)


def count_failed_pools(items: Sequence[Item], size: int) -> int:
    """Number of pools that are incomplete or hold a pair that could not be read."""
    return sum(not pool.valid for pool in pools(items, size).values())


# --- the host's rule --------------------------------------------------------------------------


@contextmanager
def never_raises(name: str) -> Iterator[None]:
    """Within it, or in the function it decorates, an exception is printed and passed over.

    It would lose every result of the run. The function returns None then, and tables show N/A.

    Args:
        name: the metric that the line names.
    """
    try:
        yield
    except Exception:
        say(f"{name} failed and is reported as N/A")
        traceback.print_exc()
