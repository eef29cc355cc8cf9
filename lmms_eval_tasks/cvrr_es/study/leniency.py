"""How much higher a judge rates than the reference, and than it rates others: 5.1 and section 6.

Does a judge that answers better judge better? Its benchmark accuracy beside its kappa (6).

Judges' own accuracy on the benchmark from a file: JSON, or CSV of judge,accuracy.
"""

from __future__ import annotations

import csv
import json
import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING

from lmms_eval_tasks.cvrr_es.study import kappas
from lmms_eval_tasks.cvrr_es.study.comparisons import Difference
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.study import Ratings, Split, Study, split
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.runs.agreement_scores import spearman
from lmms_eval_tasks.utils import stats

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.study.kappas import Matrix

# --- leniency ---


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
        stats.mean(values), "", len(found), *kappas.clustered_or_reason(values, videos)
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
    resamples: int = kappas.RESAMPLES,
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
    interval, no_interval = kappas.interval_or_reason(
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
    return Difference(None, reason, 0, None, kappas.NO_VALUE)


def _why_nothing(study: Study) -> str:
    return (
        "no item was rated by the judge and the reference"
        if study.reference
        else "there is no reference yet"
    )


# --- own_accuracy ---


@dataclass(frozen=True)
class AccuracyAndKappa:
    """Spearman's rho over judges.

    Attributes:
        rho: -1 to 1; None with its `reason`.
        pairs: judge -> (accuracy as given, kappa), for judges that have both.
        without_accuracy, without_kappa: judges that are left out.
        unknown: names with an accuracy that no judge has.
    """

    rho: float | None
    reason: str
    pairs: Mapping[str, tuple[float, float]]
    without_accuracy: tuple[str, ...] = ()
    without_kappa: tuple[str, ...] = ()
    unknown: tuple[str, ...] = field(default=())


def against_kappa(
    kappas: Mapping[str, float | None], accuracies: Mapping[str, float]
) -> AccuracyAndKappa:
    """Rank correlation of judges' own accuracy with their agreement with the reference.

    Args:
        kappas: judge -> kappa, None where it is undefined.
        accuracies: judge -> accuracy on the benchmark, all in % or all as shares; names may differ
            from the judges' in case and punctuation.

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
        given[folded(name)] = _accuracy(name, accuracy)
    if any(0 < value <= 1 for value in given.values()) and max(given.values()) > 1:
        raise DataError(
            "accuracies of judges: some are at most 1 and some above: give all as shares from 0 to "
            "1, or all in %"
        )
    pairs: dict[str, tuple[float, float]] = {}
    for judge, kappa in kappas.items():
        if kappa is not None and folded(judge) in given:
            pairs[judge] = (given[folded(judge)], kappa)
    rho, reason = _rho(list(pairs.values()))
    names = {folded(judge) for judge in kappas}
    return AccuracyAndKappa(
        rho,
        reason,
        pairs,
        tuple(judge for judge in kappas if folded(judge) not in given),
        tuple(judge for judge, kappa in kappas.items() if kappa is None),
        tuple(name for name in accuracies if folded(name) not in names),
    )


def _accuracy(name: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= float(given) <= 100:
        raise DataError(f"accuracy of {name}: {given!r} is no number from 0 to 100")
    return float(given)


def _rho(pairs: list[tuple[float, float]]) -> tuple[float | None, str]:
    if len(pairs) < 3:
        return None, f"{len(pairs)} judges have both numbers: two points always lie on a line"
    rho = spearman(pairs)
    if rho is None:
        return None, "all judges have the same accuracy, or the same kappa"
    return rho, ""


# --- accuracy_files ---


_FORM = 'expected JSON like {"GPT-4o": 70.8} or CSV with the columns judge,accuracy'


def read_accuracies(path: Path) -> dict[str, float]:
    """Judge -> accuracy, all in % or all as shares; who uses them checks their range.

    Raises:
        DataError: the file cannot be read, is neither form, or names a judge twice.
    """
    try:
        text = path.expanduser().read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 text (byte {error.start})") from None
    pairs = _csv(path, text) if path.suffix.lower() == ".csv" else _json(path, text)
    if not pairs:
        raise DataError(f"{path}: no accuracies; {_FORM}")
    found: dict[str, float] = {}
    for judge, accuracy in pairs:
        if judge in found:
            raise DataError(f"{path}: {judge} is named twice: keep one")
        found[judge] = accuracy
    return found


def _json(path: Path, text: str) -> list[tuple[str, float]]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not valid JSON ({error}); {_FORM}") from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise DataError(f"{path}: {_FORM}")
    for judge, accuracy in pairs:
        if isinstance(accuracy, bool) or not isinstance(accuracy, int | float):
            raise DataError(f"{path}: {judge}: {accuracy!r} is no number; {_FORM}")
    return [(judge, float(accuracy)) for judge, accuracy in pairs]


def _csv(path: Path, text: str) -> list[tuple[str, float]]:
    found = []
    for number, row in enumerate(csv.reader(text.splitlines()), 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (number == 1 and cells[:2] == ["judge", "accuracy"]):
            continue
        try:
            judge, accuracy = cells
            found.append((judge, float(accuracy)))
        except ValueError:
            raise DataError(f"{path}, line {number}: {','.join(row)!r}; {_FORM}") from None
    return found
