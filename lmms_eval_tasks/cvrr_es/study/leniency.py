"""How much higher a judge rates than the reference, and than it rates others: 5.1 and section 6.

And does a judge that answers better judge better: its own accuracy beside its kappa (section 6).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.comparisons import told_difference
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Part, Ratings, Study, split
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.metrics.agreement import spearman
from lmms_eval_tasks.utils.released_files import read_json

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.study.kappas import Matrix


def leniencies(study: Study, ratings: Ratings) -> Part:
    """Leniency of one rater overall and in every part."""
    return split(study, lambda items: leniency(study, ratings, items))


def leniency(study: Study, ratings: Ratings, items: Sequence[Item]) -> Part:
    """Mean rating minus mean reference, over the items that both rated, each counted alike.

    Above 0 is lenient. Ratings that are not whole count as they are. The interval is Student's t
    with standard errors clustered by video (`stats.clustered_mean`).
    """
    found = _differences(study, ratings, items)
    reason = "there is no reference yet"
    if study.reference:
        reason = "" if found else "no item was rated by the judge and the reference"
    values = [difference for _, difference in found]
    interval = kappas.clustered_or_reason(values, [video for video, _ in found])
    return told_difference(fmean(values) if values else None, reason, len(found), interval)


def _differences(study: Study, ratings: Ratings, items: Iterable[Item]) -> list[tuple[str, float]]:
    """Video, and rating minus reference, of the items that have both."""
    return [
        (study.video(item), rating - compared)
        for item in items
        if (rating := ratings.get(item)) is not None
        and (compared := study.reference.get(item)) is not None
    ]


# --- judges that judge themselves -----------------------------------------------------------------


def own_candidates(judge: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """The candidates that are the judge itself: the same name but for case and punctuation."""
    name = folded(judge)
    return tuple(other for other in candidates if name and folded(other) == name)


def folded(name: str) -> str:
    """A name's letters and digits, in one case: "GPT-4o mini" and "gpt4o_Mini" are one model."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).casefold()))


def self_preference(
    study: Study, judge: str, ratings: Ratings, *, resamples: int = kappas.RESAMPLES, seed: int = 0
) -> Part | None:
    """Is a judge more lenient to its own answers? None if none of the candidates is the judge.

    Returns:
        Its `candidates`; its leniency `toward_itself` and `toward_others`, and the `difference`,
        whose `n` counts both. Above 0 is no proof of vanity: answers that are truly good leave less
        room above the reference than bad ones, so compare with how lenient other judges are to the
        same candidates.
    """
    own = own_candidates(judge, study.candidates)
    if not own:
        return None
    sides = [
        [item for item in study.items if (item.candidate in own) is mine] for mine in (True, False)
    ]
    itself, rest = (leniency(study, ratings, items) for items in sides)
    value, reason, n = None, "", 0
    if itself["value"] is None:
        reason = f"its own answers: {itself['reason']}"
    elif rest["value"] is None:
        reason = f"other candidates' answers: {rest['reason']}"
    else:
        value, n = itself["value"] - rest["value"], itself["n"] + rest["n"]
    # Both sides of a video are drawn together: number and total of its own, then of the others'.
    by_video: dict[str, tuple[list[float], list[float]]] = {}
    for place, items in enumerate(sides):
        for video, difference in _differences(study, ratings, items):
            by_video.setdefault(video, ([], []))[place].append(difference)
    sums = {
        video: [number for side in both for number in (len(side), math.fsum(side))]
        for video, both in by_video.items()
    }
    interval = kappas.interval_or_reason(
        value,
        sums,
        _difference_of_means,
        n,
        unknown=int(sum(sums.get("", ())[::2])),
        resamples=resamples,
        seed=seed,
    )
    return {
        "candidates": list(own),
        "toward_itself": itself,
        "toward_others": rest,
        "difference": told_difference(value, reason, n, interval),
    }


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
