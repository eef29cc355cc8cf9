"""From items to numbers: accuracies in three forms, pools, means of categories.

The types below say what a function reads of an item; every task's own type of an item has more
(benchmark.py). All functions are pure, do not depend on the order of the items (sums use math.fsum
over values, groups are keyed), and return None where a number does not exist.

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
from typing import Any, TypeVar, cast

from typing_extensions import ReadOnly, TypedDict

from lmms_eval_tasks.notify import say

Item = Mapping[str, Any]  # of any task, for code that knows no benchmark
T = TypeVar("T")
I = TypeVar("I", bound=Mapping[str, object])  # noqa: E741 - an item of one task


class Outcome(TypedDict):
    """The status of a reply, or of one rating of it."""

    status: ReadOnly[str]  # ok, or why there is no number


class Graded(Outcome):
    """A reply that is right or wrong."""

    # 1 or 0, between them for the mean of a panel; None without a verdict.
    right: ReadOnly[float | None]


class GradedItem(Graded):
    """A reply that is right or wrong, with its id and video, for intervals and pools."""

    id: ReadOnly[str]
    video: ReadOnly[str]


NO_CLAIMS = "no_claims"  # status: an answer in which the judge finds nothing claimed
CANDIDATE_FAILURES = frozenset({"empty", "refused", "truncated", NO_CLAIMS})
NOT_JUDGED = "unjudged"  # nobody was meant to judge now: judge `none`


def mean(values: Iterable[float | None]) -> float | None:
    """Arithmetic mean of the values that there are; None if there are none."""
    collected = [value for value in values if value is not None]
    return math.fsum(collected) / len(collected) if collected else None


def is_valid(item: Outcome) -> bool:
    """Return whether an item stays in the denominator of `_valid`."""
    return item["status"] == "ok" or item["status"] in CANDIDATE_FAILURES


def is_unjudged(items: Sequence[Outcome]) -> bool:
    """Return whether a judge is still to come (judge `none`): nobody was asked about any answer.

    Answers that were never put to a judge, such as empty ones, do not make it a judged run.
    """
    asked = [item for item in items if item["status"] not in CANDIDATE_FAILURES]
    return bool(asked) and all(item["status"] == NOT_JUDGED for item in asked)


def is_claimless(items: Sequence[Item]) -> bool:
    """Return whether a judge found no claim in any answer: it failed then, not the candidate.

    Answers that look like refusals may all claim nothing.
    """
    told = [item for item in items if item.get("status") == NO_CLAIMS]  # a metric's own: without
    rated = (one for item in items for one in (item.get("dimensions") or {}).values())
    empty_handed = not all(item.get("refused") for item in told)
    return empty_handed and not any(one["status"] == "ok" for one in rated)


def as_counted(items: Sequence[I]) -> Sequence[I]:
    """All items of a task as its numbers count them: `is_claimless` is the judge's failure."""
    if not is_claimless(items):
        return items
    failed = {"status": f"judge_{NO_CLAIMS}", "dimensions": {}}
    return [cast(I, {**item, **failed}) if item["status"] == NO_CLAIMS else item for item in items]


def accuracy(items: Sequence[Graded]) -> float | None:
    """Share of right items in 0..1, failed ones counted as wrong.

    None if there is no number yet: no items, or a run that waits for its judge.
    """
    return None if is_unjudged(items) else mean(float(item["right"] or 0) for item in items)


def accuracy_valid(items: Sequence[Graded]) -> float | None:
    """Share of right items in 0..1 among those that could be read and judged; None as above."""
    return None if is_unjudged(items) else accuracy([item for item in items if is_valid(item)])


def rights(items: Sequence[GradedItem]) -> dict[str, tuple[str, float]]:
    """The values that `accuracy` is the mean of, by id, with the video; {} before a judge came."""
    if is_unjudged(items):
        return {}
    return {item["id"]: (item["video"], float(item["right"] or 0)) for item in items}


def count_refusals(items: Sequence[Item]) -> int:
    """Number of judged answers that look like refusals."""
    return sum(bool(item.get("refused")) for item in items)


def if_refusals_wrong(
    statistic: Callable[[Sequence[I]], float | None],
) -> Callable[[Sequence[I]], float | None]:
    """A number as it would be if every answer that looks like a refusal were wrong.

    Args:
        statistic: of items; of theirs it reads right, points, geval or dimensions.
    """
    nothing = {"score": 0.0, "status": "refused"}

    def wrong(item: I) -> I:
        if not item.get("refused"):
            return item
        values = {"right": 0, "points": 0.0, "geval": {**nothing, "mode": None}}
        made = {**item, **{k: v for k, v in values.items() if k in item}, "status": "refused"}
        if isinstance(dimensions := item.get("dimensions"), Mapping):
            made["dimensions"] = dict.fromkeys(dimensions, nothing)
        return cast(I, made)

    return lambda items: statistic([wrong(item) for item in items])


def count_failed(items: Sequence[Outcome]) -> int:
    """Number of items that leave `_valid`: those that could not be read, judged or asked."""
    return sum(not is_valid(item) for item in items)


def by_status(items: Iterable[Item]) -> dict[str, int]:
    """Number of items by status, sorted by name."""
    return dict(sorted(Counter(item["status"] for item in items).items()))


def unlike(asked: Mapping[str, Iterable[Item]]) -> str:
    """The number of items of each, if they do not all have the same ones; else ""."""
    ids = {name: frozenset(item["id"] for item in items) for name, items in asked.items()}
    if len(set(ids.values())) < 2:
        return ""
    return ", ".join(f"{name} {len(own)}" for name, own in ids.items())


def grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Items by their key, such as a category."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def mean_of_groups(
    statistic: Callable[[Sequence[T]], float | None], key: Callable[[T], str], items: Sequence[T]
) -> float | None:
    """The papers' average: mean over the groups that have a value, each weighing the same."""
    return mean(map(statistic, grouped(items, key).values()))


# --- pools ------------------------------------------------------------------------------------


class InPool(TypedDict):
    """An item of a pool."""

    id: ReadOnly[str]  # that of its question, a slash, its number


def pool_of(item: InPool) -> str:
    """The id of the question whose pool an item is in."""
    return item["id"].rpartition("/")[0]


def pools(items: Iterable[GradedItem], size: int) -> list[GradedItem]:
    """Pools as items: right if complete and right in all, `incomplete` or `unread` if one is lost.

    Args:
        items: pairs.
        size: number of pairs of a complete pool.
    """
    made: list[GradedItem] = []
    for question, several in grouped(items, pool_of).items():
        group = {item["id"]: item for item in several}.values()
        is_whole = len(group) == size
        is_right = is_whole and all(item["right"] == 1 for item in group)
        status = "ok" if all(map(is_valid, group)) else "unread"
        made.append(
            {
                "id": question,
                "video": several[0].get("video", ""),  # the host's table has pairs without it
                "right": int(is_right),
                "status": status if is_whole else "incomplete",
            }
        )
    return made


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
        say(f"{name} cannot be computed and is reported as N/A")
        traceback.print_exc()
