"""Eight rotations of each question: circular accuracy and where the model likes to answer (ours).

The items of a question are its rotations; `answer` is the letter at which the truth is shown and
`letter` the one chosen. None of these numbers is in the paper, which only says that answers are
spread uniformly. Items whose answer is withheld are dropped before (scores.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lmms_eval_tasks.maverix.labels import LETTERS, N_OPTIONS
from lmms_eval_tasks.utils import aggregate
from lmms_eval_tasks.utils.aggregate import Item, Pool


def pools(items: Sequence[Item]) -> dict[str, Pool]:
    """Rotations by question; a pool is right with eight of eight, and incomplete with fewer."""
    # One category for all: circular accuracy is not split.
    return aggregate.pools(_as_pairs(items), N_OPTIONS)


def circ_acc(items: Sequence[Item]) -> float | None:
    """Share of questions with all eight rotations right; chance is 8^-8."""
    return aggregate.pool_accuracy(_as_pairs(items), N_OPTIONS)


def circ_acc_valid(items: Sequence[Item]) -> float | None:
    """The same among questions whose rotations are all there and readable."""
    return aggregate.pool_accuracy_valid(_as_pairs(items), N_OPTIONS)


def circ_acc_failed(items: Sequence[Item]) -> int:
    """Number of questions with a rotation missing or unreadable."""
    return aggregate.count_failed_pools(_as_pairs(items), N_OPTIONS)


def chose(letter: str, items: Sequence[Item]) -> float | None:
    """Share of the readable answers that chose `letter`; 1/8 without a preference."""
    return aggregate.mean(float(item["letter"] == letter) for item in _readable(items))


def position_bias(items: Sequence[Item]) -> float | None:
    """Total variation distance between the letters chosen and the letters of the truth.

    Over readable answers: half the sum over A-H of |share chosen - share true|. 0 for a model
    that is always right, and about 0 for one that guesses uniformly; 7/8 for one that always gives
    the same letter while the truth visits all eight alike (the most that complete pools allow; with
    `--limit` it may reach 1).
    """
    read = _readable(items)
    if not read:
        return None
    chosen = Counter(item["letter"] for item in read)
    true = Counter(item["answer"] for item in read)
    return sum(abs(chosen[letter] - true[letter]) for letter in LETTERS) / (2 * len(read))


def _readable(items: Sequence[Item]) -> list[Item]:
    # An item kept after an error of ours (status `error`) may have no letter at all.
    return [item for item in items if item["status"] == "ok" and item.get("letter") is not None]


def _as_pairs(items: Sequence[Item]) -> list[Item]:
    return [{**item, "category": ""} for item in items]
