"""How much higher a judge rates than the reference, and than it rates others: 5.1 and section 6.

And does a judge that answers better judge better: its own accuracy beside its kappa (section 6).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.comparisons import Difference
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Ratings, Split, Study, split
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils import stats
from lmms_eval_tasks.utils.released_files import read_json
from lmms_eval_tasks.utils.score_agreement import spearman

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.study.kappas import Matrix


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
        return _undefined(
            "no item was rated by the judge and the reference"
            if study.reference
            else "there is no reference yet"
        )
    values = [difference for _, difference in found]
    interval = kappas.clustered_or_reason(values, [video for video, _ in found])
    return Difference(stats.mean(values), "", len(found), *interval)


def _differences(study: Study, ratings: Ratings, items: Iterable[Item]) -> list[tuple[str, float]]:
    """Video, and rating minus reference, of the items that have both."""
    return [
        (study.video(item), rating - compared)
        for item in items
        if (rating := ratings.get(item)) is not None
        and (compared := study.reference.get(item)) is not None
    ]


def _undefined(reason: str) -> Difference:
    return Difference(None, reason, 0, None, kappas.NO_VALUE)


# --- judges that judge themselves -----------------------------------------------------------------


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

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "candidates": list(self.own),
            "toward_itself": self.toward_itself.as_dict(),
            "toward_others": self.toward_others.as_dict(),
            "difference": self.difference.as_dict(),
        }


def own_candidates(judge: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The candidates that are the judge itself: the same name but for case and punctuation."""
    name = folded(judge)
    return tuple(other for other in candidates if name and folded(other) == name)


def folded(name: str) -> str:
    """A name's letters and digits, in one case: "GPT-4o mini" and "gpt4o_Mini" are one model."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def self_preference(
    study: Study, judge: str, ratings: Ratings, *, resamples: int = kappas.RESAMPLES, seed: int = 0
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
    if itself.value is None or rest.value is None:
        whose = "its own" if itself.value is None else "other candidates'"
        nothing = _undefined(f"{whose} answers: {itself.reason or rest.reason}")
        return SelfPreference(own, itself, rest, nothing)
    # Both sides of a video are drawn together: number and total of its own, then of the others'.
    by_video: dict[str, tuple[list[float], list[float]]] = {}
    for place, items in enumerate((mine, others)):
        for video, difference in _differences(study, ratings, items):
            by_video.setdefault(video, ([], []))[place].append(difference)
    sums = {
        video: [number for side in sides for number in (len(side), math.fsum(side))]
        for video, sides in by_video.items()
    }
    apart = Difference(itself.value - rest.value, "", itself.n + rest.n, None, "")
    interval, no_interval = kappas.interval_or_reason(
        apart.value,
        sums,
        _difference_of_means,
        apart.n,
        unknown=int(sum(sums.get("", ())[::2])),
        resamples=resamples,
        seed=seed,
    )
    return SelfPreference(
        own, itself, rest, replace(apart, interval=interval, no_interval=no_interval)
    )


def _difference_of_means(drawn: Matrix) -> Matrix:
    """Sums (number, total, number, total) of each resample to a difference, nan if a side is empty.

    Shape (resamples, 4) to (resamples,).
    """
    import numpy as np

    one, first, other, second = drawn.T
    made = first / np.maximum(one, 1) - second / np.maximum(other, 1)
    return np.where((one == 0) | (other == 0), np.nan, made)


# --- a judge's own accuracy -----------------------------------------------------------------------


def against_kappa(
    kappas: Mapping[str, float | None], accuracies: Mapping[str, float]
) -> dict[str, Any]:
    """Rank correlation of judges' own accuracy with their agreement with the reference.

    Args:
        kappas: judge -> kappa, None where it is undefined.
        accuracies: judge -> accuracy on the benchmark, all in % or all as shares; names may differ
            from the judges' in case and punctuation.

    Returns:
        Spearman's `rho`, -1 to 1, or None with its `reason`; `pairs` of judges that have both; who
        is left out (`without_accuracy`, `without_kappa`); `unknown` names with an accuracy.

    Raises:
        DataError: an accuracy that is no number from 0 to 100, two of one judge, or shares mixed
            with %.
    """
    given: dict[str, float] = {}
    for name, accuracy in accuracies.items():
        if folded(name) in given:
            raise DataError(
                f"accuracy of {name}: there are two, under names that differ in case or "
                "punctuation only: keep one"
            )
        if not 0 <= accuracy <= 100:
            raise DataError(f"accuracy of {name}: {accuracy!r} is no number from 0 to 100")
        given[folded(name)] = accuracy
    if any(0 < value <= 1 for value in given.values()) and max(given.values()) > 1:
        raise DataError(
            "accuracies of judges: some are at most 1 and some above: give all as shares from 0 to "
            "1, or all in %"
        )
    pairs = {
        judge: (given[folded(judge)], kappa)
        for judge, kappa in kappas.items()
        if kappa is not None and folded(judge) in given
    }
    rho = spearman(list(pairs.values())) if len(pairs) > 2 else None
    reason = "" if rho is not None else "all judges have the same accuracy, or the same kappa"
    if len(pairs) < 3:
        reason = f"{len(pairs)} judges have both numbers: two points always lie on a line"
    names = {folded(judge) for judge in kappas}
    return {
        "rho": rho,
        "reason": reason,
        "pairs": {judge: {"accuracy": one, "kappa": own} for judge, (one, own) in pairs.items()},
        "without_accuracy": [judge for judge in kappas if folded(judge) not in given],
        "without_kappa": [judge for judge, kappa in kappas.items() if kappa is None],
        "unknown": [name for name in accuracies if folded(name) not in names],
    }


def read_accuracies(path: Path) -> dict[str, float]:
    """Judge -> accuracy from a JSON file; `against_kappa` checks their range.

    Raises:
        DataError: the file cannot be read, or is of another form.
    """
    found = read_json(path.expanduser())
    if not isinstance(found, dict) or not found:
        raise DataError(f'{path}: expected judges with their accuracy, like {{"GPT-4o": 70.8}}')
    for judge, accuracy in found.items():
        if isinstance(accuracy, bool) or not isinstance(accuracy, int | float):
            raise DataError(f"{path}: {judge}: expected a number, found {accuracy!r}")
    return {judge: float(accuracy) for judge, accuracy in found.items()}
