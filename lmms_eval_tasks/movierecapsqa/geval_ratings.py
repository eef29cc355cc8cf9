"""The column of Table 4 that G-Eval's ratings make: two dimensions of an answer, scaled to 0..1.

How a rating comes about, and in which of two modes, is in ../geval_ratings.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from lmms_eval_tasks.judges import Criterion, Judge, Verdict, geval, geval_ratings
from lmms_eval_tasks.judges.geval_ratings import HIGHEST, LOWEST

DIMENSIONS = ("coherence", "consistency")


def rate(
    judge: Judge,
    pair: Mapping[str, Criterion],
    fields: Mapping[str, str],
    reply: str,
    *,
    saved: Mapping[str, Verdict | None],
    samples: int,
) -> dict[str, Any]:
    """Judge an answer in both dimensions (geval_ratings.rate), its score on Table 4's scale.

    Returns:
        score 0..1 or None, status, mode, and dimensions (baselines.judge_baselines).
    """
    made = geval_ratings.rate(judge, pair, fields, reply, saved=saved, samples=samples)
    if made["status"] != "ok":
        return made  # the score of what is no answer is 0 on either scale
    ratings = [one["score"] for one in made["dimensions"].values() if one["score"] is not None]
    return {**made, "score": scaled(ratings)}


def scaled(ratings: Sequence[float]) -> float | None:
    """The mean of ratings of 1 to 5 on Table 4's scale, (mean - 1) / 4; None of none."""
    if not ratings:
        return None
    return geval.scaled(fmean(ratings), LOWEST, HIGHEST)
