"""The reliability report, computed once into one plain dict: the JSON that tables and page show.

Who is who: *raters* are all judges in all rounds; *judges* in the narrow sense, of panels, alpha
and selection, are those that rated alone (round `first`). A rater that made the reference is left
out, since it would be compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval_tasks.cvrr_es.study import comparisons, kappas, leniency, parts, ratings
from lmms_eval_tasks.cvrr_es.study.leniency import folded
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.cvrr_es.study.selection import Selection
from lmms_eval_tasks.cvrr_es.study.study import Folds, Rater, Study, folds, summaries
from lmms_eval_tasks.errors import DataError

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
            not select from where its rule says own=no; None: every judge that has such a round.
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
    shown = [r for r in raters if r.round in _ALWAYS or r.judge in finals]
    shown.sort(key=lambda rater: (_ORDER.index(rater.round), rater.judge))
    study = replace(whole, raters={rater: whole.raters[rater] for rater in shown})
    split = folds(study.items, study.questions, chosen.seed)
    draws = {"resamples": chosen.resamples, "seed": chosen.seed}
    together = parts.Together(study, split, **draws)
    told = [parts.rater_part(study, rater, split, **draws) for rater in shown]
    alone = {one["judge"]: one["kappa"]["mean"]["kappa"] for one in told if one["round"] == "first"}
    panels = parts.all_panels(together, chosen.selection, finals, alone)
    return {
        "data": _data(study, split, chosen),
        "final_judges": sorted(finals),
        "reference": _reference(study),
        "raters": told,
        "between": _between(study, together),
        "accuracy": leniency.against_kappa(alone, chosen.accuracies) if chosen.accuracies else None,
        "panels": panels,
        "selection": parts.selected(together, chosen.selection, finals),
        "rounds": parts.rounds(together),
        "notes": [
            *_notes(rows, reference, study, whole, resamples=chosen.resamples),
            *(_without_kappa(told) if study.reference else []),
            *_undefined(told, panels, chosen.resamples),
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
        "counts": study.counts(study.reference),
        "ratings": summaries(study, study.reference),
        "win_rates": comparisons.win_rates(study, study.reference),
    }


def _between(study: Study, together: parts.Together) -> Report:
    """Agreement of raters with each other; alpha is of those that rated alone."""
    named = {parts.name_of(rater): own for rater, own in study.raters.items()}
    found = comparisons.alpha(study, list(together.first.values()))
    return {
        "pairs": [
            {"one": one, "other": other, **{name: own[name] for name in ("kappa", "n", "reason")}}
            for (one, other), own in comparisons.pairwise(study, named).items()
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


def _without_kappa(raters: Iterable[Report]) -> list[str]:
    """Why raters have no kappa at all, or none without their offset for some ratings."""
    told = []
    for part in raters:
        mean, lost = part["kappa"]["mean"], part["without_offset"]["not_fitted"]
        if mean["kappa"] is None:
            told.append(f"{part['name']}: no kappa: {mean['reason']}")
        if lost:
            told.append(
                f"{part['name']}: {lost:,} ratings are in a fold without an offset: the kappa "
                "without offset is not of them"
            )
    return told


def _undefined(raters: Iterable[Report], panels: Report | None, resamples: int) -> list[str]:
    """In how many resamples of an interval there was no kappa."""
    made = [(part["name"], part["kappa"]) for part in raters]
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
