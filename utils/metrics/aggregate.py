"""Numbers from items: accuracies in three forms, pools, means of categories.

The types below declare the fields that a function reads of an item; a task's own type of item has
more fields (benchmark.py). All functions are pure, do not depend on the order of the items (sums
use math.fsum over values, groups are keyed), and return None if a number does not exist.

Each number has three forms (docs/metrics.md, "Every number in three"). The plain number counts
every failed item as wrong. `_valid` leaves out items that could not be read or judged. `_failed` is
the number of those. A failure of the candidate (no answer, no claim, a refusal, a truncated answer)
is 0 in both forms, because abstaining must not pay.
"""

from __future__ import annotations

import math
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from typing_extensions import ReadOnly, TypedDict

from lmms_eval_tasks.notify import notify

Item = Mapping[str, Any]  # an item of any task, for code that knows no benchmark
T = TypeVar("T")
I = TypeVar("I", bound=Mapping[str, object])  # noqa: E741 - an item of one task


class Outcome(TypedDict):
    """The status of a reply, or of one rating of it."""

    status: ReadOnly[str]  # ok, or the reason why there is no number


class Graded(Outcome):
    """A reply with its verdict: right, wrong, or between for a panel."""

    # 1 or 0, for a panel's mean 0..1; None without a verdict.
    right: ReadOnly[float | None]


class GradedItem(Graded):
    """A reply with its verdict, and its id and video for intervals and pools."""

    id: ReadOnly[str]
    video: ReadOnly[str]


NO_CLAIMS = "no_claims"  # status of an answer in which the judge finds no claim
CANDIDATE_FAILURES = frozenset({"empty", "refused", "truncated", NO_CLAIMS})
NOT_JUDGED = "unjudged"  # status of an item that was not to be judged: judge `none`


def mean(values: Iterable[float | None]) -> float | None:
    """Return the arithmetic mean of the values that are not None; None without any."""
    collected = [value for value in values if value is not None]
    return math.fsum(collected) / len(collected) if collected else None


def is_valid(item: Outcome) -> bool:
    """Return True if an item counts in `_valid`."""
    return item["status"] == "ok" or item["status"] in CANDIDATE_FAILURES


def is_unjudged(items: Sequence[Outcome]) -> bool:
    """Return True if a run waits for its judge (judge `none`): no answer was judged.

    Answers that never go to a judge, such as empty ones, do not make a run judged.
    """
    asked = [item for item in items if item["status"] not in CANDIDATE_FAILURES]
    return bool(asked) and all(item["status"] == NOT_JUDGED for item in asked)


def is_claimless(items: Sequence[Item]) -> bool:
    """Return True if the judge found no claim in any answer, which is the judge's failure.

    False if all answers without claims look like refusals, which may claim nothing.
    """
    # Items of a metric may lack a status.
    told = [item for item in items if item.get("status") == NO_CLAIMS]
    rated = (one for item in items for one in (item.get("dimensions") or {}).values())
    empty_handed = not all(item.get("refused") for item in told)
    return empty_handed and not any(one["status"] == "ok" for one in rated)


def as_counted(items: Sequence[I]) -> Sequence[I]:
    """Return a task's items as its numbers count them: `is_claimless` is a failure of the judge."""
    if not is_claimless(items):
        return items
    failed = {"status": f"judge_{NO_CLAIMS}", "dimensions": {}}
    return [cast(I, {**item, **failed}) if item["status"] == NO_CLAIMS else item for item in items]


def accuracy(items: Sequence[Graded]) -> float | None:
    """Return the share of right items in 0..1, in which failed items count as wrong.

    None if there is no number yet: no items, or a run that waits for its judge.
    """
    return None if is_unjudged(items) else mean(float(item["right"] or 0) for item in items)


def accuracy_valid(items: Sequence[Graded]) -> float | None:
    """Return the share of right items in 0..1 among readable and judged items.

    None if there is no such item, or if the run waits for its judge.
    """
    return None if is_unjudged(items) else accuracy([item for item in items if is_valid(item)])


def rights(items: Sequence[GradedItem]) -> dict[str, tuple[str, float]]:
    """Return the values that `accuracy` averages, by id, with the video; {} if not judged yet."""
    if is_unjudged(items):
        return {}
    return {item["id"]: (item["video"], float(item["right"] or 0)) for item in items}


def count_refusals(items: Sequence[Item]) -> int:
    """Return the number of judged answers that look like refusals."""
    return sum(bool(item.get("refused")) for item in items)


def if_refusals_wrong(
    statistic: Callable[[Sequence[I]], float | None],
) -> Callable[[Sequence[I]], float | None]:
    """Return the statistic with every answer that looks like a refusal counted as wrong.

    Args:
        statistic: a function of items that reads only their right, points, geval or dimensions.
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
    """Return the number of items that `_valid` leaves out: not read, not judged or not answered."""
    return sum(not is_valid(item) for item in items)


def by_status(items: Iterable[Item]) -> dict[str, int]:
    """Return the number of items by status, sorted by name."""
    return dict(sorted(Counter(item["status"] for item in items).items()))


def unlike(items_by_task: Mapping[str, Iterable[Item]]) -> str:
    """Return the number of items by name, as text, if the ids of their items differ; else ""."""
    ids = {name: frozenset(item["id"] for item in items) for name, items in items_by_task.items()}
    if len(set(ids.values())) < 2:
        return ""
    return ", ".join(f"{name} {len(own)}" for name, own in ids.items())


def grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    """Return items by their key, such as a category."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def mean_of_groups(
    statistic: Callable[[Sequence[T]], float | None], key: Callable[[T], str], items: Sequence[T]
) -> float | None:
    """Return the papers' average: the mean over groups with a value, each with the same weight."""
    return mean(map(statistic, grouped(items, key).values()))


# --- pools ------------------------------------------------------------------------------------


class InPool(TypedDict):
    """An item that belongs to a pool of items on one question."""

    id: ReadOnly[str]  # id of its question, a slash, its number


def pool_of(item: InPool) -> str:
    """Return the id of the question whose pool an item is in."""
    return item["id"].rpartition("/")[0]


def pools(items: Iterable[GradedItem], size: int) -> list[GradedItem]:
    """Return pools as items: right if complete and all right, else `incomplete` or `unread`.

    Args:
        items: the pairs.
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
                "video": several[0].get("video", ""),  # items of lmms-eval's table lack it
                "right": int(is_right),
                "status": status if is_whole else "incomplete",
            }
        )
    return made


# --- errors in aggregations -------------------------------------------------------------------


@contextmanager
def never_raises(name: str) -> Iterator[None]:
    """Print an exception inside the context, or inside the decorated function, and go on.

    An exception would lose every result of the run. The decorated function returns None instead,
    and tables show N/A.

    Args:
        name: name of the metric for the message.
    """
    try:
        yield
    except Exception:
        notify(f"{name} cannot be computed and is reported as N/A")
        traceback.print_exc()
