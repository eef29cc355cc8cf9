"""The reliability report as one plain dict, computed once: the JSON that tables and page show.

*Raters* are all judges in all rounds. *Judges* in the narrow sense, of panels and alpha, are those
that rated alone (round `first`), with the final judge's own first ratings: these the final judge of
the collective knows as well. The rater that made the reference is left out, since it would be
compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import SCALE
from lmms_eval_tasks.cvrr_es.study import kappas, ratings, selection
from lmms_eval_tasks.cvrr_es.study.panels import FITTED, PANELS, Panel, panel
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow, folded
from lmms_eval_tasks.cvrr_es.study.study import Rater, RatingPairs, Study, cells, study, summaries
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.metrics import stats
from lmms_eval_tasks.utils.metrics.agreement import krippendorff_alpha

Report = dict[str, Any]
_SHOWN = ("first", "reference", "collective", "mixture")  # order of the raters' rounds


def report(rows: Sequence[RatingRow], reference: Sequence[RatingRow]) -> Report:
    """Compute the report; its types are those of JSON.

    Raises:
        DataError: see `study`; the reference is by several raters; there is no other rater.
    """
    referees = sorted({Rater(row.judge, row.round) for row in reference})
    if len(referees) > 1:
        raise DataError(
            f"the reference comes from {len(referees)} raters: "
            f"{', '.join(f'{judge} ({name})' for judge, name in referees)}: "
            "name the file of one rater with --reference; the others can be "
            "among the ratings"
        )
    made = study(rows, reference)
    order = sorted(made.raters, key=lambda rater: (_SHOWN.index(rater.round), rater.judge))
    raters = {rater: made.raters[rater] for rater in order if rater not in referees}
    if not raters:
        raise DataError("the only ratings are the reference's: name also files of other judges")
    alone = {rater.judge: own for rater, own in raters.items() if rater.round == "first"}
    told = [_rater(_name(rater), own, *rater) for rater, own in raters.items()]
    strata = selection.strata(made.items, made.places)
    panels = _panels(made, alone, strata)
    # Squared differences, as in the quadratic kappa; ratings that are not whole count as missing.
    rated = [[pair.rating for pair in every] for every in zip(*alone.values(), strict=True)]
    alpha = krippendorff_alpha(rated, SCALE) if len(alone) > 1 else None
    # The best single judge is best in hindsight: chosen by its kappa on the same items.
    known = [one for one in told[: len(alone)] if one["kappa"]["mean"]["kappa"] is not None]
    best = min(known, key=lambda one: -one["kappa"]["mean"]["kappa"], default={"judge": None})
    compared = [
        (_name(rater), rater.judge, own)
        for rater, own in raters.items()
        if rater.round in ("collective", "mixture") and rater.judge in alone
    ]
    if best["judge"] is not None:
        compared += [(name, best["judge"], own) for name, (own, _) in panels.items() if own]
    return {
        "data": {
            "items": len(made.items),
            "questions": len(made.places),
            "videos": len({place.video for place in made.places.values()}),
            "dimensions": list(cells(made.raters[order[0]])),
            "candidates": sorted({item.candidate for item in made.items}),
            "folds": len({one.fold for one in strata.values()}),
        },
        "reference": {"name": referees[0].judge, "ratings": summaries(made.reference)}
        if referees
        else None,
        "raters": told,
        "panels": [
            {**_rater(name, own), "note": note} for name, (own, note) in panels.items() if own
        ],
        "best_single": best["judge"],
        "differences": [
            {"name": name, "minus": other, **kappas.difference(own, alone[other])}
            for name, other, own in compared
        ],
        "alpha": alpha and {"value": alpha.value, "reason": alpha.reason, "n": alpha.n},
        "notes": [
            *_notes(made, rows, reference),
            *(f"{name}: {note}" for name, (_, note) in panels.items() if note),
            *(
                f"{one['name']}: no kappa: {one['kappa']['mean']['reason']}"
                for one in told
                if reference and one["kappa"]["mean"]["kappa"] is None
            ),
        ],
    }


def _name(rater: Rater) -> str:
    """The name of a rater in tables: the judge, and its round unless it rated alone."""
    how = {"first": "", "reference": ", with reference"}
    return rater.judge + how.get(rater.round, f", {rater.round}")


def _rater(name: str, pairs: RatingPairs, judge: str = "", how: str = "panel") -> Report:
    """The ratings of a rater or panel, its kappas and its leniency."""
    candidates = sorted({pair.item.candidate for pair in pairs})
    return {
        "name": name,
        "judge": judge,
        "round": how,
        "itself": [one for one in candidates if folded(one) == folded(judge) != ""],
        "kappa": kappas.reliability(pairs),
        "leniency": kappas.leniency(pairs),
        "ratings": summaries(pairs),
    }


def _panels(
    study: Study, alone: Mapping[str, RatingPairs], strata: selection.Strata
) -> dict[str, tuple[RatingPairs, str]]:
    """The pairs and the note of every panel, by its name in tables."""
    ratings = {judge: {pair.item: pair.rating for pair in pairs} for judge, pairs in alone.items()}
    truth = {pair.item: pair.rating for pair in study.reference}
    panels: dict[str, tuple[RatingPairs, str]] = {}
    for name in PANELS if len(alone) > 1 else ():
        if name != FITTED or len({stratum.fold for stratum in strata.values()}) > 1:
            votes = panel(name, ratings, truth, strata)
        else:
            votes = Panel({}, "not computed: fitting on other videos requires two videos or more")
        if name == FITTED and not truth:
            votes = Panel({})
        pairs = [
            pair._replace(rating=votes.ratings.get(pair.item), was_asked=pair.item in votes.ratings)
            for pair in next(iter(alone.values()))
        ]
        title = {"dawid_skene": "Dawid-Skene", FITTED: "kappa-weighted mean"}.get(name, name)
        panels[f"panel: {title}"] = (pairs if votes.ratings else [], votes.note)
    return panels


def _notes(
    study: Study, rows: Sequence[RatingRow], reference: Sequence[RatingRow]
) -> Iterator[str]:
    """Yield notes for readers of the numbers."""
    if not reference:
        yield (
            "no kappa, because there are no reference ratings: make them with "
            "`lmms-eval-tasks debate` and name their file with --reference"
        )
    referees = {Rater(row.judge, row.round) for row in reference}
    for judge, name in sorted(study.raters.keys() & referees):
        yield f"{judge} ({name}) made the reference and is not compared with itself"
    videos: dict[str, set[str]] = {}
    for place in study.places.values():
        videos.setdefault(place.dimension, set()).add(place.video)
    fewest = min(map(len, videos.values()))
    if fewest > 1 and (told := stats.few(fewest)):
        yield told
    compared = [row for row in rows if Rater(row.judge, row.round) not in referees]
    yield from ratings.rating_notes(compared, study.items)
    yield from (f"reference: {line}" for line in ratings.rating_notes(reference, study.items))
