"""How much higher a judge rates than the reference, and than it rates others: 5.1 and section 6."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability import sums_bootstrap
from lmms_eval_tasks.cvrr_es.reliability.describe import Split, split
from lmms_eval_tasks.cvrr_es.reliability.differences import Difference
from lmms_eval_tasks.cvrr_es.reliability.study import Ratings, Study
from lmms_eval_tasks.utils import stats

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.reliability.sums_bootstrap import Matrix


@dataclass(frozen=True)
class SelfPreference:
    """A judge that is among the candidates.

    Attributes:
        own: candidates that are the judge itself, by name.
        toward_itself, toward_others: its leniency on their answers.
        difference: toward itself minus toward the others; `n` counts both. Above 0 is no proof of
            vanity: answers that are truly good leave less room above the reference than bad ones,
            so compare with how lenient other judges are to the same candidates.
    """

    own: tuple[str, ...]
    toward_itself: Difference
    toward_others: Difference
    difference: Difference


def leniencies(study: Study, ratings: Ratings) -> Split[Difference]:
    """Leniency of one rater overall and in every part."""
    return split(study, lambda items: leniency(study, ratings, items))


def leniency(study: Study, ratings: Ratings, items: Sequence[Item]) -> Difference:
    """Mean rating minus mean reference, over the items that both rated, each counted alike.

    Above 0 is lenient. Ratings that are not whole count as they are. The interval is Student's t
    with standard errors clustered by video (`stats.clustered_mean`).
    """
    found = _differences(study, ratings, items)
    if not found:
        return _undefined(_why_nothing(study))
    values = [difference for _, difference in found]
    videos = [study.video(item) for item, _ in found]
    return Difference(
        stats.mean(values), "", len(found), *sums_bootstrap.clustered_or_reason(values, videos)
    )


def own_candidates(judge: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The candidates that are the judge itself: the same name but for case and punctuation."""
    name = folded(judge)
    return tuple(other for other in candidates if name and folded(other) == name)


def folded(name: str) -> str:
    """A name's letters and digits, in one case: "GPT-4o mini" and "gpt4o_Mini" are one model."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return "".join(character for character in plain if character.isalnum())


def self_preference(
    study: Study,
    judge: str,
    ratings: Ratings,
    *,
    resamples: int = sums_bootstrap.RESAMPLES,
    seed: int = 0,
) -> SelfPreference | None:
    """Is a judge more lenient to its own answers? None if none of the candidates is the judge.

    Args:
        study: with the reference that leniency is measured against.
        judge: its name.
        ratings: what it gave.
        resamples, seed: of the bootstrap over videos of the difference; 0 resamples for none.
    """
    own = own_candidates(judge, study.candidates)
    if not own:
        return None
    mine = [item for item in study.items if item.candidate in own]
    others = [item for item in study.items if item.candidate not in own]
    itself, rest = leniency(study, ratings, mine), leniency(study, ratings, others)
    difference = _contrast(itself, rest)
    if difference.value is None:
        return SelfPreference(own, itself, rest, difference)
    sums = _sums(study, _differences(study, ratings, mine), _differences(study, ratings, others))
    interval, no_interval = sums_bootstrap.interval_or_reason(
        difference.value,
        sums,
        _difference_of_means,
        difference.n,
        unknown=int(sum(sums.get("", ())[::2])),
        resamples=resamples,
        seed=seed,
    )
    return SelfPreference(
        own, itself, rest, replace(difference, interval=interval, no_interval=no_interval)
    )


def _contrast(itself: Difference, rest: Difference) -> Difference:
    """Difference of the two means, without its interval."""
    if itself.value is None or rest.value is None:
        whose = "its own" if itself.value is None else "other candidates'"
        return _undefined(f"{whose} answers: {itself.reason or rest.reason}")
    return Difference(itself.value - rest.value, "", itself.n + rest.n, None, "")


def _sums(
    study: Study, mine: Iterable[tuple[Item, float]], others: Iterable[tuple[Item, float]]
) -> dict[str, list[float]]:
    """Video -> number and total of its own answers' differences, then of the others'.

    Both are drawn together, since they are on the same videos.
    """
    by_video: dict[str, tuple[list[float], list[float]]] = {}
    for place, part in enumerate((mine, others)):
        for item, difference in part:
            by_video.setdefault(study.video(item), ([], []))[place].append(difference)
    return {
        video: [number for own in sides for number in (len(own), math.fsum(own))]
        for video, sides in by_video.items()
    }


def _difference_of_means(drawn: Matrix) -> Matrix:
    """Sums (number, total, number, total) of each resample to a difference, nan if a side is empty.

    Shape (resamples, 4) to (resamples,).
    """
    import numpy as np

    one, first, other, second = drawn.T
    made = first / np.maximum(one, 1) - second / np.maximum(other, 1)
    return np.where((one == 0) | (other == 0), np.nan, made)


def _differences(study: Study, ratings: Ratings, items: Iterable[Item]) -> list[tuple[Item, float]]:
    """Rating minus reference of the items that have both."""
    reference = study.reference
    return [
        (item, rating - compared)
        for item in items
        if (rating := ratings.get(item)) is not None
        and (compared := reference.get(item)) is not None
    ]


def _undefined(reason: str) -> Difference:
    return Difference(None, reason, 0, None, sums_bootstrap.NO_VALUE)


def _why_nothing(study: Study) -> str:
    return (
        "no item was rated by the judge and the reference"
        if study.reference
        else "there is no reference yet"
    )
