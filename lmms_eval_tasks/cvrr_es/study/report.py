"""The reliability report, computed once into one plain dict: the JSON that tables and page show.

Who is who: *raters* are all judges in all rounds; *judges* in the narrow sense, of panels and
alpha, are those that rated alone (round `first`), the final judge's own first ratings among them:
that is what the collective's final judge knows as well. A rater that made the reference is left
out, since it would be compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import ROUNDS
from lmms_eval_tasks.cvrr_es.study import kappas, ratings, selection
from lmms_eval_tasks.cvrr_es.study.panels import FITTED, PANELS, Panel, panel
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow, folded
from lmms_eval_tasks.cvrr_es.study.study import Pairs, Rater, Study, split, study, summary
from lmms_eval_tasks.errors import DataError

Report = dict[str, Any]
NO_REFERENCE = (
    "no kappa: there are no reference ratings yet; make them with `lmms-eval-tasks debate` and "
    "name their file with --reference"
)
# What a panel takes from the reference.
NOTHING, OTHER_VIDEOS = "nothing", "other folds"
_SHOWN = ("first", "reference", "collective", "mixture")  # the order of raters' rounds


def report(rows: Sequence[RatingRow], reference: Sequence[RatingRow]) -> Report:
    """Compute everything; JSON knows all types in it.

    Raises:
        DataError: as `study`; a reference of several raters; no rater left but the reference
            itself.
    """
    names = sorted({f"{row.judge} ({row.round})" for row in reference})
    if len(names) > 1:
        raise DataError(
            f"the reference is of {len(names)} raters: {', '.join(names)}: name one's file "
            "with --reference; the others' can be among the ratings"
        )
    made = study(rows, reference)
    order = sorted(made.raters, key=lambda rater: (_SHOWN.index(rater.round), rater.judge))
    raters = {rater: made.raters[rater] for rater in order if rater not in made.referees}
    if not raters:
        raise DataError("there are no ratings but the reference's: name files of other judges too")
    candidates = sorted({item.candidate for item in made.items})
    dimensions = list(dict.fromkeys(made.places[item.question].dimension for item in made.items))
    told = [_rater(rater, own, candidates) for rater, own in raters.items()]
    alone = {rater.judge: own for rater, own in raters.items() if rater.round == ROUNDS[0]}
    own_kappas = {one["judge"]: one["kappa"]["mean"]["kappa"] for one in told[: len(alone)]}
    strata = selection.strata(made.items, made.places)
    panels = _panels(made, alone, own_kappas, strata)
    alpha = kappas.alpha(list(alone.values())) if len(alone) > 1 else None
    videos = {place.video for place in made.places.values()}
    name = ", ".join(sorted(rater.judge for rater in made.referees))
    return {
        "data": {
            "items": len(made.items),
            "questions": len(made.places),
            "videos": len(videos - {""}),
            "questions_without_video": sum(not one.video for one in made.places.values()),
            "dimensions": dimensions,
            "candidates": candidates,
            "folds": len({one.fold for one in strata.values()}),
        },
        "reference": {"name": name, "ratings": split(made.reference, summary)}
        if made.reference
        else None,
        "raters": told,
        "alpha": alpha and {"value": alpha.value, "reason": alpha.reason, "n": alpha.n},
        "panels": panels,
        "rounds": [
            {"name": name_of(rater), "difference": kappas.difference(own, alone[rater.judge])}
            for rater, own in raters.items()
            if rater.round in ("collective", "mixture") and rater.judge in alone
        ],
        "notes": [*_notes(made, rows, reference), *_of_kappas(told, panels)],
    }


def name_of(rater: Rater) -> str:
    """As tables call it: the judge, and how it came to its ratings unless it rated alone."""
    if rater.round == ROUNDS[0]:
        return rater.judge
    return f"{rater.judge}, {'with reference' if rater.round == 'reference' else rater.round}"


def _rater(rater: Rater, own: Pairs, candidates: Sequence[str]) -> Report:
    """What it gave, and how far it can be relied on."""
    name = folded(rater.judge)
    return {
        "name": name_of(rater),
        "judge": rater.judge,
        "round": rater.round,
        "itself": [one for one in candidates if name and folded(one) == name],
        "kappa": kappas.reliability(own),
        "leniency": kappas.leniency(own),
        "ratings": split(own, summary),
    }


def _panels(
    made: Study,
    alone: dict[str, Pairs],
    own_kappas: dict[str, float | None],
    strata: selection.Strata,
) -> Report | None:
    """Every panel beside the best single judge; None with fewer than two judges.

    The best single judge is best in hindsight: chosen by its kappa on the very items.
    """
    if len(alone) < 2:
        return None
    given = {judge: {pair.item: pair.rating for pair in own} for judge, own in alone.items()}
    truth = {pair.item: pair.rating for pair in made.reference}
    known = {judge: kappa for judge, kappa in own_kappas.items() if kappa is not None}
    best = min(known, key=lambda judge: (-known[judge], judge), default=None)
    rows = []
    for name in PANELS:
        if name != FITTED:
            found = panel(name, given, truth, strata)
        elif not known:
            found = Panel({}, "no kappa: no rated item has a reference rating")
        elif len({one.fold for one in strata.values()}) < 2:
            found = Panel({}, "not computed: fitting on other videos needs two videos or more")
        else:
            found = panel(name, given, truth, strata)
        own = [
            pair._replace(rating=found.ratings.get(pair.item))
            for pair in next(iter(alone.values()))
        ]
        rows.append(
            {
                "name": name,
                "fitted_to": OTHER_VIDEOS if name == FITTED else NOTHING,
                "note": found.note,
                "kappa": kappas.reliability(own) if found.ratings else None,
                "over_best": kappas.difference(own, alone[best])
                if found.ratings and best is not None
                else None,
            }
        )
    return {"judges": sorted(alone), "best_single": best, "panels": rows}


# --- what a reader of the numbers must know -------------------------------------------------------


def _notes(made: Study, rows: Sequence[RatingRow], reference: Sequence[RatingRow]) -> Iterable[str]:
    if not reference:
        yield NO_REFERENCE
    if unknown := sum(not place.video for place in made.places.values()):
        yield (
            f"no intervals where they would need it: the video of {unknown:,} of "
            f"{len(made.places):,} questions is not known; give the rows a `video`"
        )
    for judge, name in sorted(made.raters.keys() & made.referees):
        yield f"{judge} ({name}) made the reference: not compared with itself"
    videos: dict[str, set[str]] = {}
    for place in made.places.values():
        videos.setdefault(place.dimension, set()).add(place.video)
    fewest = min(map(len, videos.values()))
    if not unknown and 1 < fewest < kappas.FEW:
        yield (
            f"some intervals rest on as few as {fewest} videos: percentile intervals on fewer "
            f"than {kappas.FEW} are too narrow, and low"
        )
    compared = [row for row in rows if Rater(row.judge, row.round) not in made.referees]
    yield from ratings.notes(compared, made.items)
    yield from (f"reference: {line}" for line in ratings.notes(reference, made.items))


def _of_kappas(raters: Sequence[Report], panels: Report | None) -> Iterable[str]:
    """Why raters have no kappa, and in how many resamples of an interval there was none."""
    named = [(part["name"], part["kappa"]) for part in raters]
    for name, kappa in named:
        if kappa["mean"]["kappa"] is None and (why := kappa["mean"]["reason"]):
            yield f"{name}: no kappa: {why}"
    named += [
        (f"panel {one['name']}", one["kappa"]) for one in (panels or {"panels": []})["panels"]
    ]
    lacking: dict[int, list[str]] = {}  # resamples -> whose, since many lack the same
    for name, kappa in named:
        interval = kappa and kappa["mean"]["interval"]
        if interval and interval["undefined"]:
            lacking.setdefault(interval["undefined"], []).append(name)
    for number, names in lacking.items():
        yield f"{', '.join(names)}: {number:,} of 1,000 resamples have no kappa"
