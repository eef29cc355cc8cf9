"""One rater's part of the report, as plain data: what it gave, and how far it can be relied on.

The reliability report, computed once into one plain dict: the JSON that tables and page show.

Who is who: *raters* are all judges in all rounds; *judges* in the narrow sense, of panels, alpha
and selection, are those that rated alone (round `first`). A rater that made the reference is left
out, since it would be compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import ROUNDS
from lmms_eval_tasks.cvrr_es.study import comparisons, kappas, leniency, panel_report, ratings
from lmms_eval_tasks.cvrr_es.study.kappas import Reliability, average
from lmms_eval_tasks.cvrr_es.study.leniency import folded
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.selection import Selection
from lmms_eval_tasks.cvrr_es.study.study import (
    Folds,
    Rater,
    Ratings,
    Split,
    Study,
    by_video,
    summaries,
)
from lmms_eval_tasks.errors import DataError

# --- rater_report ---


Part = dict[str, Any]


def name(rater: Rater) -> str:
    """As tables call it: the judge, and how it came to its ratings unless it rated alone."""
    if rater.round == ROUNDS[0]:
        return rater.judge
    return f"{rater.judge}, {'with reference' if rater.round == 'reference' else rater.round}"


def one(study: Study, rater: Rater, folds: Folds, *, resamples: int, seed: int) -> Part:
    """Everything about one rater.

    Args:
        study: all items.
        rater: one of the study's.
        folds: of the study, for the offset.
        resamples, seed: of every interval; 0 resamples for none.
    """
    ratings = study.raters[rater]
    options = {"resamples": resamples, "seed": seed}
    agreement = kappas.reliability(study, ratings, **options)
    corrected = comparisons.take_off(study, ratings, folds)
    after = kappas.reliability(study, corrected.ratings, **options)
    favour = leniency.self_preference(study, rater.judge, ratings, **options)
    return {
        "name": name(rater),
        "judge": rater.judge,
        "round": rater.round,
        "itself": list(leniency.own_candidates(rater.judge, study.candidates)),
        "counts": asdict(study.counts(ratings)),
        "ratings": split(summaries(study, ratings)),
        "kappa": agreement_part(agreement),
        "leniency": split(leniency.leniencies(study, ratings)),
        "self_preference": None
        if favour is None
        else {
            "candidates": list(favour.own),
            "toward_itself": favour.toward_itself.as_dict(),
            "toward_others": favour.toward_others.as_dict(),
            "difference": favour.difference.as_dict(),
        },
        "without_offset": {
            "mean": after.mean.as_dict(),
            "pooled": after.pooled.as_dict(),
            "offsets": list(corrected.offsets),
            "clipped": corrected.clipped,
            "not_fitted": corrected.not_fitted,
        },
        "without_empty": without_empty(study, rater),
        "preferences": comparisons.agreement(study, ratings).as_dict(),
        "win_rates": win_rates(study, ratings),
    }


def without_empty(study: Study, rater: Rater) -> Part:
    """The numbers of the published scripts' items, which have no empty answers."""
    kept = study.without_empty
    ratings = kept.raters[rater]
    found = kappas.reliability(kept, ratings, resamples=0)
    return {
        "mean": found.mean.value,
        "pooled": found.pooled.value,
        "n": found.pooled.agreement.n,
        "counts": asdict(kept.counts(ratings)),
    }


def agreement_part(found: Reliability) -> Part:
    """All kappas of a rater or a panel."""
    cells: dict[str, dict[str, Part]] = {}
    of_candidate: dict[str, list[float | None]] = {}
    for cell, own in found.cells.items():
        cells.setdefault(cell.dimension, {})[cell.candidate] = own.as_dict()
        of_candidate.setdefault(cell.candidate, []).append(own.value)
    return {
        "mean": found.mean.as_dict(),
        "pooled": found.pooled.as_dict(),
        "by_dimension": {key: own.as_dict() for key, own in found.by_dimension.items()},
        "pooled_by_dimension": {
            key: own.as_dict() for key, own in found.pooled_by_dimension.items()
        },
        # Of one candidate: the mean over the dimensions where it has a kappa.
        "by_candidate": {key: average(own) for key, own in of_candidate.items()},
        "cells": cells,
    }


def split(found: Split[Any]) -> Part:
    """A split of numbers that know `as_dict`."""
    cells: dict[str, dict[str, Part]] = {}
    for cell, own in found.cells.items():
        cells.setdefault(cell.dimension, {})[cell.candidate] = own.as_dict()
    return {
        "overall": found.overall.as_dict(),
        "by_dimension": {key: own.as_dict() for key, own in found.by_dimension.items()},
        "by_candidate": {key: own.as_dict() for key, own in found.by_candidate.items()},
        "cells": cells,
    }


def win_rates(study: Study, ratings: Ratings) -> Part:
    """Each candidate against each other, and against all others together."""
    duels = comparisons.win_rates(study, ratings)
    against: dict[str, dict[str, Part]] = {}
    for (first, second), duel in duels.items():
        against.setdefault(first, {})[second] = {
            **vars(duel),
            "win_rate": duel.win_rate,
            "score": duel.score,
        }
    return {"against": against, "score": {key: _score(own) for key, own in against.items()}}


def _score(duels: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Share of all duels won, a tie as half a win; None without duels."""
    n = sum(own["wins"] + own["ties"] + own["losses"] for own in duels.values())
    won = sum(own["wins"] + own["ties"] / 2 for own in duels.values())
    return won / n if n else None


# --- report ---


Report = dict[str, Any]
NO_REFERENCE = (
    "no kappa: there are no reference ratings yet; make them with `lmms-eval-tasks debate` and "
    "name their file with --reference"
)


@dataclass(frozen=True)
class Options:
    """What the user may choose.

    Attributes:
        accuracies: judge -> its own accuracy on the benchmark, all in % or all as shares.
        final_judge: whose collective and mixture are shown and whose own ratings the mixture does
            not select from; None: every judge that has such a round.
        selection: the mixture's rule; both ways of fitting are shown, whichever it names.
        resamples: of each interval, at least 1000; 0 for none.
        seed: of intervals and folds.
    """

    accuracies: Mapping[str, float] = field(default_factory=dict)
    final_judge: str | None = None
    selection: Selection = field(default_factory=Selection)
    resamples: int = kappas.RESAMPLES
    seed: int = 0


def report(
    rows: Sequence[RatingRow], reference: Sequence[RatingRow], options: Options | None = None
) -> Report:
    """Compute everything; JSON knows all types in it.

    Args:
        rows: of all judges and rounds, each rating once.
        reference: of one rater; none if it is still to come.
        options: see there.

    Raises:
        DataError: as Study.of and leniency.against_kappa; a reference of several raters; no
            rater left but the reference itself; a final judge that is no rater.
    """
    chosen = options or Options()
    one_reference(reference)
    whole = Study.of(rows, reference)
    raters = [rater for rater in whole.raters if rater not in whole.referees]
    if not raters:
        raise DataError("there are no ratings but the reference's: name files of other judges too")
    finals = _final_judges(raters, chosen.final_judge)
    study = _with(whole, [r for r in raters if r.round in _ALWAYS or r.judge in finals])
    split = by_video(study, seed=chosen.seed)
    together = panel_report.Together(study, split, resamples=chosen.resamples, seed=chosen.seed)
    parts = [
        one(study, rater, split, resamples=chosen.resamples, seed=chosen.seed)
        for rater in study.raters
    ]
    alone = {
        part["judge"]: part["kappa"]["mean"]["kappa"] for part in parts if part["round"] == "first"
    }
    panels = panel_report.all_panels(together, chosen.selection, finals, alone)
    return {
        "data": _data(study, split, chosen),
        "final_judges": sorted(finals),
        "reference": _reference(study),
        "raters": parts,
        "between": _between(study, together),
        "accuracy": _accuracy(alone, chosen.accuracies),
        "panels": panels,
        "selection": panel_report.selected(together, chosen.selection, finals),
        "rounds": panel_report.rounds(together),
        "notes": [
            *_notes(rows, reference, study, whole, resamples=chosen.resamples),
            *(_without_kappa(parts) if study.reference else []),
            *_undefined(parts, panels, chosen.resamples),
        ],
    }


_ALWAYS = ("first", "reference")  # shown whoever the final judge is
_ORDER = (*_ALWAYS, "collective", "mixture")  # of raters in tables; within a round by name


def one_reference(reference: Iterable[RatingRow]) -> None:
    """Check that the reference is of one rater.

    Raises:
        DataError: it is of several.
    """
    names = sorted({f"{row.judge} ({row.round})" for row in reference})
    if len(names) > 1:
        raise DataError(
            f"the reference is of {len(names)} raters: {', '.join(names)}: name one's file with "
            "--reference; the others' can be among the ratings"
        )


def _final_judges(raters: Iterable[Rater], asked: str | None) -> frozenset[str]:
    """Judges with a collective or mixture, or the one that was asked for."""
    judges = {rater.judge for rater in raters}
    if asked is None:
        return frozenset(r.judge for r in raters if r.round not in _ALWAYS)
    found = {judge for judge in judges if folded(judge) == folded(asked)}
    if not found:
        raise DataError(
            f"--final-judge {asked}: has no ratings here; judges: {', '.join(sorted(judges))}"
        )
    return frozenset(found)


def _with(study: Study, raters: Sequence[Rater]) -> Study:
    """The study with these raters alone, in the order of tables."""
    ordered = sorted(raters, key=lambda rater: (_ORDER.index(rater.round), rater.judge))
    return replace(study, raters={rater: study.raters[rater] for rater in ordered})


def _data(study: Study, split: Folds, options: Options) -> Report:
    places = study.questions.values()
    return {
        "items": len(study.items),
        "questions": len(study.questions),
        "videos": len({place.video for place in places} - {""}),
        "questions_without_video": sum(not place.video for place in places),
        "dimensions": list(study.dimensions),
        "candidates": list(study.candidates),
        "empty": len(study.empty),
        "resamples": options.resamples,
        "seed": options.seed,
        "folds": split.count,
        "folds_note": split.note,
    }


def _reference(study: Study) -> Report | None:
    if not study.reference:
        return None
    return {
        "name": ", ".join(sorted(rater.judge for rater in study.referees)),
        "counts": asdict(study.counts(study.reference)),
        "ratings": split(summaries(study, study.reference)),
        "win_rates": win_rates(study, study.reference),
    }


def _between(study: Study, together: panel_report.Together) -> Report:
    """Agreement of raters with each other; alpha is of those that rated alone."""
    names = {rater: name(rater) for rater in study.raters}
    pairs = comparisons.pairwise(study, {names[rater]: own for rater, own in study.raters.items()})
    found = comparisons.alpha(study, list(together.first.values()))
    return {
        "pairs": [
            {
                "one": one,
                "other": other,
                "kappa": kappa.value,
                "n": kappa.agreement.n,
                "reason": kappa.agreement.reason,
            }
            for (one, other), kappa in pairs.items()
        ],
        "alpha": {
            "value": found.value,
            "reason": found.reason,
            "n": found.n,
            "left_out": found.missing + found.off_scale,
            "judges": len(together.first),
            "level": comparisons.ALPHA,
        },
    }


def _accuracy(kappas: Mapping[str, float | None], accuracies: Mapping[str, float]) -> Report | None:
    if not accuracies:
        return None
    found = leniency.against_kappa(kappas, accuracies)
    return {
        "rho": found.rho,
        "reason": found.reason,
        "pairs": {
            judge: {"accuracy": accuracy, "kappa": kappa}
            for judge, (accuracy, kappa) in found.pairs.items()
        },
        "without_accuracy": list(found.without_accuracy),
        "without_kappa": list(found.without_kappa),
        "unknown": list(found.unknown),
    }


def _notes(
    rows: Sequence[RatingRow],
    reference: Sequence[RatingRow],
    study: Study,
    whole: Study,
    *,
    resamples: int,
) -> list[str]:
    """A line for everything that a reader of the numbers must know."""
    told = []
    if not study.reference:
        told.append(NO_REFERENCE)
    unknown = sum(not place.video for place in study.questions.values())
    if unknown:
        told.append(
            f"no intervals where they would need it: the video of {unknown:,} of "
            f"{len(study.questions):,} questions is not known; give the rows a `video`"
        )
    for rater in sorted(whole.raters.keys() & whole.referees):
        told.append(f"{rater.judge} ({rater.round}) made the reference: not compared with itself")
    kept = [row for row in rows if Rater(row.judge, row.round) in study.raters]
    for rater in sorted(whole.raters.keys() - study.raters.keys() - whole.referees):
        told.append(f"{rater.judge} ({rater.round}): not the final judge that was named; left out")
    off = sum(row.status == ratings.OFF_SCALE for row in (*kept, *reference))
    if off:
        told.append(f"ratings off the scale of 1 to 5, counted as failures: {off:,}")
    told += _few_videos(study) if resamples else []
    told += ratings.notes(kept, study.items)
    told += [f"reference: {line}" for line in ratings.notes(reference, study.items)]
    return told


def _without_kappa(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why raters have no kappa at all, or none without their offset for some ratings."""
    told = []
    for part in parts:
        mean, lost = part["kappa"]["mean"], part["without_offset"]["not_fitted"]
        if mean["kappa"] is None:
            told.append(f"{part['name']}: no kappa: {mean['reason']}")
        if lost:
            told.append(
                f"{part['name']}: {lost:,} ratings are in a fold without an offset: the kappa "
                "without offset is not of them"
            )
    return told


def _undefined(parts: Iterable[Report], panels: Report | None, resamples: int) -> list[str]:
    """In how many resamples of an interval there was no kappa."""
    made = [(part["name"], part["kappa"]) for part in parts]
    made += [(f"panel {one['name']}", one["kappa"]) for one in (panels or {"panels": []})["panels"]]
    lacking: dict[int, list[str]] = {}  # resamples -> whose, since many lack the same
    for name, kappa in made:
        for kind, title in (("mean", name), ("pooled", f"{name} (pooled)")):
            interval = kappa and kappa[kind]["interval"]
            if interval and interval["undefined"]:
                lacking.setdefault(interval["undefined"], []).append(title)
    return [
        f"{', '.join(names)}: {number:,} of {resamples:,} resamples have no kappa"
        for number, names in lacking.items()
    ]


def _few_videos(study: Study) -> list[str]:
    """That intervals are too narrow, where they rest on few videos."""
    if any(not place.video for place in study.questions.values()):
        return []  # there are no intervals
    videos: dict[str, set[str]] = {}
    for place in study.questions.values():
        videos.setdefault(place.dimension, set()).add(place.video)
    everything, least = len(set().union(*videos.values())), min(map(len, videos.values()))
    number, whose = (
        (everything, "the intervals rest")
        if everything < kappas.FEW
        else (least, "intervals of single dimensions rest")
    )
    if not 1 < number < kappas.FEW:
        return []
    return [
        f"{whose} on as few as {number} videos: percentile intervals on fewer than "
        f"{kappas.FEW} are too narrow, and low"
    ]
