"""The parts of the report as plain data: one rater, panels, selection, the final judge's rounds.

Panels are of all judges that rated alone, the final judge's own first ratings among them: that is
what the collective's final judge knows as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from lmms_eval_tasks.cvrr_es.labels import RATINGS, ROUNDS
from lmms_eval_tasks.cvrr_es.study import comparisons, kappas, leniency, panels, selection
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, Panel
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.selection import Selection
from lmms_eval_tasks.cvrr_es.study.study import (
    Folds,
    Part,
    Rater,
    Ratings,
    Study,
    strata,
    summaries,
)

# What a panel takes from the reference.
NOTHING, OTHER_VIDEOS, SAME_ITEMS = "nothing", "other folds", "the same items"
SELECTED = "selected_mean"  # mean of the judges that the mixture's rule selects
SELECTED_SAME = "selected_mean_same_items"
NO_REFERENCE = "no kappa: no rated item has a reference rating"
ONE_FOLD = "not computed: fitting on other videos needs two videos or more"

# --- one rater ----------------------------------------------------------------------------------


def name_of(rater: Rater) -> str:
    """As tables call it: the judge, and how it came to its ratings unless it rated alone."""
    if rater.round == ROUNDS[0]:
        return rater.judge
    return f"{rater.judge}, {'with reference' if rater.round == 'reference' else rater.round}"


def rater_part(study: Study, rater: Rater, folds: Folds, *, resamples: int, seed: int) -> Part:
    """Everything about one rater: what it gave, and how far it can be relied on."""
    ratings = study.raters[rater]
    options = {"resamples": resamples, "seed": seed}
    corrected, offsets = comparisons.take_off(study, ratings, folds)
    after = kappas.reliability(study, corrected, **options)
    return {
        "name": name_of(rater),
        "judge": rater.judge,
        "round": rater.round,
        "itself": list(leniency.own_candidates(rater.judge, study.candidates)),
        "counts": study.counts(ratings),
        "ratings": summaries(study, ratings),
        "kappa": kappas.reliability(study, ratings, **options),
        "leniency": leniency.leniencies(study, ratings),
        "self_preference": leniency.self_preference(study, rater.judge, ratings, **options),
        "without_offset": {"mean": after["mean"], "pooled": after["pooled"], **offsets},
        "without_empty": _without_empty(study, rater),
        "preferences": comparisons.agreement(study, ratings),
        "win_rates": comparisons.win_rates(study, ratings),
    }


def _without_empty(study: Study, rater: Rater) -> Part:
    """The numbers of the published scripts' items, which have no empty answers."""
    kept = study.without_empty
    ratings = kept.raters[rater]
    found = kappas.reliability(kept, ratings, resamples=0)
    return {
        "mean": found["mean"]["kappa"],
        "pooled": found["pooled"]["kappa"],
        "n": found["pooled"]["n"],
        "counts": kept.counts(ratings),
    }


# --- judges together ----------------------------------------------------------------------------


class Together:
    """What all parts share: the judges that rated alone, the folds, and the truth as integers."""

    def __init__(self, study: Study, folds: Folds, *, resamples: int, seed: int) -> None:
        self.study = study
        self.options = {"resamples": resamples, "seed": seed}
        self.first = {
            rater.judge: own
            for rater, own in study.raters.items()
            if rater.round == "first" and rater not in study.referees
        }
        self.reference = {
            item: int(rating)
            for item, rating in study.reference.items()
            if rating is not None and rating in RATINGS
        }
        self.has_folds = folds.count > 1
        self.strata = strata(study.items, study.questions, folds)
        self.finals = {
            rater: own
            for rater, own in study.raters.items()
            if rater.round in ("collective", "mixture")
        }

    def kappa(self, ratings: Ratings) -> Part:
        """All kappas of a panel."""
        return kappas.reliability(self.study, ratings, **self.options)

    def difference(self, one: Ratings, other: Ratings | None) -> Part | None:
        """Kappa of one minus kappa of the other, on shared items."""
        if other is None:
            return None
        return comparisons.difference(self.study, one, other, **self.options)


def all_panels(
    given: Together,
    rule: Selection,
    final_judges: frozenset[str],
    alone: Mapping[str, float | None],
) -> Part | None:
    """Every panel beside the best single judge and the mean; None with fewer than two judges.

    The best single judge is best in hindsight: chosen by its kappa on the very items, as far as all
    judges rated them. `best_judge` is the panel that had to choose on others.

    Args:
        final_judges: whose own ratings the mixture does not select from if its rule says so.
        alone: kappa of each judge on its own items, to choose by where those that all rated give
            none.
    """
    if len(given.first) < 2:
        return None
    shared = comparisons.shared(given.study, *given.first.values())
    on_shared = selection.best_first(
        {
            judge: kappas.reliability(shared, own, resamples=0)["mean"]["kappa"]
            for judge, own in given.first.items()
        }
    )
    best = next(iter(on_shared or selection.best_first(alone)), None)
    best_ratings = given.first[best] if best is not None else None
    made = _made(given, rule, final_judges)
    mean = made["mean"][1].ratings

    def compared(ratings: Ratings, *, is_mean: bool = False) -> Part:
        return {
            "over_best": given.difference(ratings, best_ratings),
            "over_mean": None if is_mean else given.difference(ratings, mean),
        }

    rows = []
    for name, (fitted, panel) in made.items():
        row: Part = {"name": name, "fitted_to": fitted, "note": panel.note, "kappa": None}
        row |= {"over_best": None, "over_mean": None}
        if panel.ratings:
            row["kappa"] = given.kappa(panel.ratings)
            row |= compared(panel.ratings, is_mean=name == "mean")
        rows.append(row)
    return {
        "judges": sorted(given.first),
        "best_single": best,
        "best_single_n": len(shared.items) if on_shared else None,
        "panels": rows,
        "finals": {name_of(rater): compared(own) for rater, own in given.finals.items()},
    }


def _made(
    given: Together, rule: Selection, final_judges: frozenset[str]
) -> dict[str, tuple[str, Panel]]:
    """Name -> what it is fitted to, and its ratings; empty ones with the reason as note."""
    judges = panels.Judges(given.first, given.reference, given.strata)
    made: dict[str, tuple[str, Panel]] = {}
    for name, is_fitted in PANELS.items():
        why = _why_not(given, given.first, cross_fit=True) if is_fitted else ""
        panel = Panel({}, why) if why else judges.panel(name)
        made[name] = (OTHER_VIDEOS if is_fitted else NOTHING, panel)
    across = _selected(given, replace(rule, cross_fit=True), final_judges)
    same = _selected(given, replace(rule, cross_fit=False), final_judges)
    return {**made, SELECTED: (OTHER_VIDEOS, across), SELECTED_SAME: (SAME_ITEMS, same)}


def _others(given: Together, rule: Selection, final_judges: frozenset[str]) -> dict[str, Ratings]:
    """Whom the rule chooses from."""
    return {
        judge: own for judge, own in given.first.items() if rule.own or judge not in final_judges
    }


def _why_not(given: Together, others: Mapping[str, Ratings], *, cross_fit: bool) -> str:
    if not given.reference:
        return NO_REFERENCE
    if not others:
        return "not computed: no judge but the final one rated alone"
    if cross_fit and not given.has_folds:
        return ONE_FOLD
    return ""


def _selected(given: Together, rule: Selection, final_judges: frozenset[str]) -> Panel:
    """The mean of the judges that the rule selects for each answer."""
    others = _others(given, rule, final_judges)
    if why := _why_not(given, others, cross_fit=rule.cross_fit):
        return Panel({}, why)
    chosen = selection.choices(others, given.reference, given.strata, rule)
    found: dict[Item, int] = {}
    for item, stratum in given.strata.items():
        own = [
            int(rating)
            for judge in selection.choice_for(chosen, stratum).judges
            if (rating := others[judge].get(item)) is not None and rating in RATINGS
        ]
        if own:
            found[item] = panels.mean(own)
    return Panel(found, "" if found else "no judge is selected anywhere")


def selected(given: Together, rule: Selection, final_judges: frozenset[str]) -> Part:
    """Whom the mixture's rule chooses in each dimension: cross-fitted, and the paper's way."""
    others = _others(given, rule, final_judges)
    found: Part = {"rule": rule.limit, "judges": sorted(others), "ways": {}}
    for way, cross_fit in (("cross_fitted", True), ("same_items", False)):
        why = _why_not(given, others, cross_fit=cross_fit)
        dimensions: dict[str, Part] = {}
        if not why:
            fitted = replace(rule, cross_fit=cross_fit)
            choices = selection.choices(others, given.reference, given.strata, fitted)
            for dimension in given.study.dimensions:
                own = [choice for (_, of), choice in choices.items() if of == dimension]
                times = Counter(judge for choice in own for judge in choice.judges)
                dimensions[dimension] = {
                    "choices": len(own),  # folds, or one
                    "fell_back": sum(choice.fell_back for choice in own),
                    "chosen": {judge: times[judge] for judge in sorted(times)},
                    "kappas": {
                        judge: [choice.kappas[judge] for choice in own] for judge in sorted(others)
                    },
                }
        found["ways"][way] = {"reason": why, "dimensions": dimensions}
    return found


def rounds(given: Together) -> list[Part]:
    """Each final judge's collective and mixture, beside the same judge alone (Tables 6 and 7)."""
    found = []
    for rater, own in given.finals.items():
        alone = given.first.get(rater.judge)
        part: Part = {"name": name_of(rater), "judge": rater.judge, "round": rater.round}
        part["alone"] = alone is not None
        if alone is not None:
            both = comparisons.shared(given.study, own, alone)
            for key, ratings in (("together", own), ("by_itself", alone)):
                on_both = kappas.reliability(both, ratings, resamples=0)
                part[key] = {
                    "n": len(both.items),
                    "mean": on_both["mean"]["kappa"],
                    "by_dimension": {
                        name: one["kappa"] for name, one in on_both["by_dimension"].items()
                    },
                }
            part["difference"] = given.difference(own, alone)
        found.append(part)
    return found
