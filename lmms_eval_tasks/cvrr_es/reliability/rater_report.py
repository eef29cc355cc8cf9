"""One rater's part of the report, as plain data: what it gave, and how far it can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import ROUNDS
from lmms_eval_tasks.cvrr_es.reliability import kappas, leniency, offsets, preferences
from lmms_eval_tasks.cvrr_es.reliability.describe import Split, summaries
from lmms_eval_tasks.cvrr_es.reliability.folds import Folds
from lmms_eval_tasks.cvrr_es.reliability.kappa_values import average
from lmms_eval_tasks.cvrr_es.reliability.kappas import Reliability
from lmms_eval_tasks.cvrr_es.reliability.study import Rater, Ratings, Study

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
    corrected = offsets.take_off(study, ratings, folds)
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
        "preferences": preferences.agreement(study, ratings).as_dict(),
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
    duels = preferences.win_rates(study, ratings)
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
