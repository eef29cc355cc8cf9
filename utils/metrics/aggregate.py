"""Numbers from items: accuracies in three forms, pools, means of categories.

The types below declare the fields of an item that a function reads; a task's own type of item has
more fields (benchmark.py). All functions are pure, do not depend on the order of the items (sums
use math.fsum, groups have keys), and return None if a number does not exist.

Each number has three forms (docs/metrics.md, "Every number in three"). The plain number counts
every failed item as wrong. `_valid` leaves out items that could not be read or judged. `_failed`
counts the items that `_valid` leaves out. A failure of the candidate (no answer, no claim, a
refusal, a truncated answer) counts as 0 in the plain number and in `_valid`, because a model must
not gain by abstaining.
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
    """A reply with its verdict: right or wrong; for a panel also a value between them."""

    # 1 or 0, for a panel's mean 0..1; None without a verdict.
    right: ReadOnly[float | None]


class GradedItem(Graded):
    """A reply with its verdict, and its id and video for intervals and pools."""

    id: ReadOnly[str]
    video: ReadOnly[str]


NO_CLAIMS = "no_claims"  # status of an answer in which the judge finds no claim
CANDIDATE_FAILURES = frozenset({"empty", "refused", "truncated", NO_CLAIMS})
NOT_JUDGED = "unjudged"  # status of an item in a run without a judge (judge `none`)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the arithmetic mean of the values that are not None; None without any."""
    collected = [value for value in values if value is not None]
    return math.fsum(collected) / len(collected) if collected else None


def is_valid(item: Outcome) -> bool:
    """Return True if an item counts in `_valid`."""
    return item["status"] == "ok" or item["status"] in CANDIDATE_FAILURES


def is_unjudged(items: Sequence[Outcome]) -> bool:
    """Return True if no answer was judged, so that the run still needs its judge (judge `none`).

    Answers that never go to a judge, such as empty ones, do not make a run judged.
    """
    asked = [item for item in items if item["status"] not in CANDIDATE_FAILURES]
    return bool(asked) and all(item["status"] == NOT_JUDGED for item in asked)


def is_claimless(items: Sequence[Item]) -> bool:
    """Return True if the judge found no claim in any answer; then the judge failed, not the model.

    False if all answers without claims look like refusals, since a refusal may have no claim.
    """
    # Items of a metric may lack a status.
    told = [item for item in items if item.get("status") == NO_CLAIMS]
    rated = (one for item in items for one in (item.get("dimensions") or {}).values())
    empty_handed = not all(item.get("refused") for item in told)
    return empty_handed and not any(one["status"] == "ok" for one in rated)


def as_counted(items: Sequence[I]) -> Sequence[I]:
    """Return a task's items as its numbers count them.

    If the items are `is_claimless`, the status `no_claims` becomes a failure of the judge.
    """
    if not is_claimless(items):
        return items
    failed = {"status": f"judge_{NO_CLAIMS}", "dimensions": {}}
    return [cast(I, {**item, **failed}) if item["status"] == NO_CLAIMS else item for item in items]


def accuracy(items: Sequence[Graded]) -> float | None:
    """Return the share of right items in 0..1, in which failed items count as wrong.

    None if there are no items, or if the run is not judged yet (`is_unjudged`).
    """
    return None if is_unjudged(items) else mean(float(item["right"] or 0) for item in items)


def accuracy_valid(items: Sequence[Graded]) -> float | None:
    """Return the share of right items in 0..1 among readable and judged items.

    None if there is no such item, or if the run is not judged yet (`is_unjudged`).
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
        statistic: a function of items that reads only their fields `right`, `points`, `geval` and
            `dimensions`.
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
    """Return the number of items that `_valid` leaves out, since they were not read or judged."""
    return sum(not is_valid(item) for item in items)


def by_status(items: Iterable[Item]) -> dict[str, int]:
    """Return the number of items by status, sorted by name."""
    return dict(sorted(Counter(item["status"] for item in items).items()))


def unlike(items_by_task: Mapping[str, Iterable[Item]]) -> str:
    """Return the number of items of each task, as text, if tasks have different ids; else ""."""
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
    """Return the papers' average: the mean of the groups' values, each with the same weight.

    A group without a value does not count.
    """
    return mean(map(statistic, grouped(items, key).values()))


# --- pools ------------------------------------------------------------------------------------


class InPool(TypedDict):
    """An item that belongs to a pool of items on one question."""

    id: ReadOnly[str]  # the question's id, a slash, and the item's number in the pool


def pool_of(item: InPool) -> str:
    """Return the id of the question whose pool an item is in."""
    return item["id"].rpartition("/")[0]


def pools(items: Iterable[GradedItem], size: int) -> list[GradedItem]:
    """Return one item for each pool; a pool is right if it is complete and all its items are right.

    The status of a pool is `incomplete` if items are missing, `unread` if one of them could not be
    read or judged, else `ok`.

    Args:
        items: the items of all pools.
        size: number of items of a complete pool.
    """
    pool_items: list[GradedItem] = []
    for question, several in grouped(items, pool_of).items():
        group = {item["id"]: item for item in several}.values()
        is_whole = len(group) == size
        is_right = is_whole and all(item["right"] == 1 for item in group)
        status = "ok" if all(map(is_valid, group)) else "unread"
        pool_items.append(
            {
                "id": question,
                "video": several[0].get("video", ""),  # items for lmms-eval's table have none
                "right": int(is_right),
                "status": status if is_whole else "incomplete",
            }
        )
    return pool_items


# --- errors in aggregations -------------------------------------------------------------------


@contextmanager
def never_raises(name: str) -> Iterator[None]:
    """Print an exception in the block or in the decorated function, and continue.

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
