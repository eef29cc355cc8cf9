"""Answers with known verdicts: choosing those that a judge gets, and comparing its verdicts."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest

from lmms_eval_tasks.benchmark import Item, KnownAnswer
from lmms_eval_tasks.judges.checks import VerdictPair
from lmms_eval_tasks.utils.metrics.aggregate import NO_CLAIMS


def draw(answers: Sequence[KnownAnswer], count: int | None) -> list[KnownAnswer]:
    """Return `count` answers: equally many of each known verdict, from all videos in turn.

    The choice does not depend on the order of `answers`. An answer that occurs twice counts once.
    None returns all.
    """
    different = {(one.task, one.doc["id"], one.text): one for one in answers if one.right_verdicts}
    place: Counter[tuple[float, str]] = Counter()
    by_verdict: dict[float, list[tuple[int, KnownAnswer]]] = {}
    for name in sorted(different, key=lambda name: hashlib.sha256(repr(name).encode()).digest()):
        one = different[name]
        worth, video = next(iter(one.right_verdicts.values())), str(one.doc["video"])
        by_verdict.setdefault(worth, []).append((place[worth, video], one))
        place[worth, video] += 1
    columns = [sorted(by_verdict[worth], key=lambda one: one[0]) for worth in sorted(by_verdict)]
    return [one for _, one in filter(None, chain(*zip_longest(*columns)))][:count]


def compare(answers: Sequence[KnownAnswer], items: Sequence[Item]) -> dict[str, list[VerdictPair]]:
    """Return pairs of the known verdict and the judge's verdict, by the name of the request.

    A verdict between two numbers of the scale (a mean over samples or judges) is rounded, halves
    down. An answer in which the judge finds no claim has the score 0.
    """
    pairs: dict[str, list[VerdictPair]] = {}
    for answer, item in zip(answers, items, strict=True):
        for name, right in answer.right_verdicts.items():
            score = (item.get("verdicts") or {}).get(name, {}).get("score")
            score = 0.0 if item["status"] == NO_CLAIMS else score
            judged = None if score is None else math.ceil(score - 0.5)
            pairs.setdefault(name, []).append(VerdictPair(right, judged, str(answer.doc["video"])))
    return pairs
