"""The reliability report, computed once into one plain dict: the JSON that tables and page show.

Who is who: *raters* are all judges in all rounds; *judges* in the narrow sense, of panels, alpha
and selection, are those that rated alone (round `first`), the final judge's own first ratings among
them: that is what the collective's final judge knows as well. A rater that made the reference is
left out, since it would be compared with itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS, ROUNDS
from lmms_eval_tasks.cvrr_es.study import comparisons, kappas, panels, ratings, selection
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, Panel
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow, folded
from lmms_eval_tasks.cvrr_es.study.selection import Selection
from lmms_eval_tasks.cvrr_es.study.study import (
    Folds,
    Rater,
    Ratings,
    Study,
    folds,
    strata,
    summaries,
)
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.metrics.agreement import spearman

Report = dict[str, Any]
NO_REFERENCE = (
    "no kappa: there are no reference ratings yet; make them with `lmms-eval-tasks debate` and "
    "name their file with --reference"
)
# What a panel takes from the reference.
NOTHING, OTHER_VIDEOS, SAME_ITEMS = "nothing", "other folds", "the same items"
_ALWAYS = ("first", "reference")  # rounds that are shown whoever the final judge is
_FINAL = ("collective", "mixture")


@dataclass(frozen=True)
class Options:
    """What the user may choose.

    Attributes:
        accuracies: judge -> its own accuracy on the benchmark, in one unit.
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
        DataError: as Study.of; a reference of several raters; no rater left but the reference
            itself; a final judge that is no rater.
    """
    return _Report(rows, reference, options or Options()).made()


def name_of(rater: Rater) -> str:
    """As tables call it: the judge, and how it came to its ratings unless it rated alone."""
    if rater.round == ROUNDS[0]:
        return rater.judge
    return f"{rater.judge}, {'with reference' if rater.round == 'reference' else rater.round}"


class _Report:
    """What all parts of a report share."""

    def __init__(
        self, rows: Sequence[RatingRow], reference: Sequence[RatingRow], options: Options
    ) -> None:
        names = sorted({f"{row.judge} ({row.round})" for row in reference})
        if len(names) > 1:
            raise DataError(
                f"the reference is of {len(names)} raters: {', '.join(names)}: name one's file "
                "with --reference; the others' can be among the ratings"
            )
        self.rows, self.referred, self.options = rows, reference, options
        self.whole = Study.of(rows, reference)
        raters = [rater for rater in self.whole.raters if rater not in self.whole.referees]
        if not raters:
            raise DataError(
                "there are no ratings but the reference's: name files of other judges too"
            )
        self.final_judges = _final_judges(raters, options.final_judge)
        shown = [r for r in raters if r.round in _ALWAYS or r.judge in self.final_judges]
        order = (*_ALWAYS, *_FINAL)
        shown.sort(key=lambda rater: (order.index(rater.round), rater.judge))
        self.raters = {rater: self.whole.raters[rater] for rater in shown}
        self.study = replace(self.whole, raters=self.raters)
        self.draws = {"resamples": options.resamples, "seed": options.seed}
        self.folds: Folds = folds(self.study.items, self.study.questions, options.seed)
        self.strata = strata(self.study.items, self.study.questions, self.folds)
        self.first = {r.judge: own for r, own in self.raters.items() if r.round == "first"}
        self.truth = {
            item: int(rating)
            for item, rating in self.study.reference.items()
            if rating is not None and rating in RATINGS
        }

    def made(self) -> Report:
        study, options = self.study, self.options
        raters = [self._rater(rater, own) for rater, own in self.raters.items()]
        alone = {one["judge"]: one["kappa"]["mean"]["kappa"] for one in raters[: len(self.first)]}
        places = study.questions.values()
        panels = self._panels(alone)
        named = ", ".join(sorted(rater.judge for rater in study.referees))
        reference = {"name": named, "ratings": summaries(study, study.reference)}
        return {
            "data": {
                "items": len(study.items),
                "questions": len(study.questions),
                "videos": len({place.video for place in places} - {""}),
                "questions_without_video": sum(not place.video for place in places),
                "dimensions": list(study.dimensions),
                "candidates": list(study.candidates),
                **self.draws,
                "folds": self.folds.count,
                "folds_note": self.folds.note,
            },
            "final_judges": sorted(self.final_judges),
            "reference": reference if study.reference else None,
            "raters": raters,
            "between": self._between(),
            "accuracy": _accuracy(alone, options.accuracies) if options.accuracies else None,
            "panels": panels,
            "rounds": self._rounds(),
            "notes": [*self._notes(), *_of_kappas(raters, panels, options.resamples)],
        }

    # --- one rater ------------------------------------------------------------------------------

    def _rater(self, rater: Rater, own: Ratings) -> Report:
        """What it gave, and how far it can be relied on."""
        name = folded(rater.judge)
        return {
            "name": name_of(rater),
            "judge": rater.judge,
            "round": rater.round,
            "itself": [one for one in self.study.candidates if name and folded(one) == name],
            "kappa": self._kappa(own),
            "leniency": comparisons.leniency(self.study, own, self.study.items),
            "ratings": summaries(self.study, own),
        }

    def _kappa(self, own: Ratings) -> Report:
        return kappas.reliability(self.study, own, **self.draws)

    # --- judges together ------------------------------------------------------------------------

    def _between(self) -> Report:
        """Agreement of raters with each other; alpha is of those that rated alone."""
        named = {name_of(rater): own for rater, own in self.raters.items()}
        alpha = comparisons.alpha(self.study, list(self.first.values()))
        return {
            "pairs": [
                {"one": one, "other": other, **{key: own[key] for key in ("kappa", "n", "reason")}}
                for (one, other), own in comparisons.pairwise(self.study, named).items()
            ],
            "alpha": {
                "value": alpha.value,
                "reason": alpha.reason,
                "n": alpha.n,
                "left_out": alpha.missing + alpha.off_scale,
                "judges": len(self.first),
                "level": comparisons.ALPHA,
            },
        }

    def _panels(self, alone: Mapping[str, float | None]) -> Report | None:
        """Every panel beside the best single judge; None with fewer than two judges.

        The best single judge is best in hindsight: chosen by its kappa on the very items, as far as
        all judges rated them (else by `alone`, on its own). `best_judge` is the panel that had to
        choose on others.
        """
        if len(self.first) < 2:
            return None
        shared = comparisons.shared(self.study, *self.first.values())
        on_shared = selection.best_first(
            {
                judge: kappas.reliability(shared, own, resamples=0)["mean"]["kappa"]
                for judge, own in self.first.items()
            }
        )
        best = next(iter(on_shared or selection.best_first(alone)), None)
        rows = []
        for name, (fitted, panel) in self._all_panels().items():
            row: Report = {"name": name, "fitted_to": fitted, "note": panel.note, "over_best": None}
            row["kappa"] = self._kappa(panel.ratings) if panel.ratings else None
            if panel.ratings and best is not None:
                row["over_best"] = self._difference(panel.ratings, self.first[best])
            rows.append(row)
        return {
            "judges": sorted(self.first),
            "best_single": best,
            "best_single_n": len(shared.items) if on_shared else None,
            "panels": rows,
        }

    def _all_panels(self) -> dict[str, tuple[str, Panel]]:
        """Name -> what it is fitted to, and its ratings; empty ones with the reason as note."""
        judges = panels.Judges(self.first, self.truth, self.strata)
        made = {}
        for name, (_, is_fitted) in PANELS.items():
            why = self._why_not(self.first, cross_fit=True) if is_fitted else ""
            panel = Panel({}, why) if why else judges.panel(name)
            made[name] = (OTHER_VIDEOS if is_fitted else NOTHING, panel)
        made["selected_mean"] = (OTHER_VIDEOS, self._selected(cross_fit=True))
        made["selected_mean_same_items"] = (SAME_ITEMS, self._selected(cross_fit=False))
        return made

    def _why_not(self, others: Mapping[str, Ratings], *, cross_fit: bool) -> str:
        if not self.truth:
            return "no kappa: no rated item has a reference rating"
        if not others:
            return "not computed: no judge but the final one rated alone"
        if cross_fit and self.folds.count < 2:
            return "not computed: fitting on other videos needs two videos or more"
        return ""

    def _selected(self, *, cross_fit: bool) -> Panel:
        """The mean of the judges that the mixture's rule selects for each answer."""
        rule = replace(self.options.selection, cross_fit=cross_fit)
        others = {
            judge: own
            for judge, own in self.first.items()
            if rule.own or judge not in self.final_judges
        }
        if why := self._why_not(others, cross_fit=cross_fit):
            return Panel({}, why)
        found: dict[Item, int] = {}
        for item, choice in selection.choices(others, self.truth, self.strata, rule).items():
            given = [others[judge].get(item) for judge in choice.judges]
            if whole := [int(rating) for rating in given if rating in RATINGS]:
                found[item] = panels.mean(whole)
        return Panel(found, "" if found else "no judge is selected anywhere")

    def _rounds(self) -> list[Report]:
        """Kappa of final judges that saw others' ratings minus that of the same judges alone."""
        return [
            {"name": name_of(rater), "difference": self._difference(own, self.first[rater.judge])}
            for rater, own in self.raters.items()
            if rater.round in _FINAL and rater.judge in self.first
        ]

    def _difference(self, own: Ratings, other: Ratings) -> Report:
        return comparisons.difference(self.study, own, other, **self.draws)

    # --- what a reader of the numbers must know -------------------------------------------------

    def _notes(self) -> list[str]:
        study, whole = self.study, self.whole
        told = [] if study.reference else [NO_REFERENCE]
        unknown = sum(not place.video for place in study.questions.values())
        if unknown:
            told.append(
                f"no intervals where they would need it: the video of {unknown:,} of "
                f"{len(study.questions):,} questions is not known; give the rows a `video`"
            )
        for judge, name in sorted(whole.raters.keys() - self.raters.keys()):
            why = ": not the final judge that was named; left out"
            if (judge, name) in whole.referees:
                why = " made the reference: not compared with itself"
            told.append(f"{judge} ({name}){why}")
        kept = [row for row in self.rows if Rater(row.judge, row.round) in self.raters]
        off = sum(row.status == ratings.OFF_SCALE for row in (*kept, *self.referred))
        if off:
            told.append(f"ratings off the scale of 1 to 5, counted as failures: {off:,}")
        videos: dict[str, set[str]] = {}
        for place in study.questions.values():
            videos.setdefault(place.dimension, set()).add(place.video)
        fewest = min(len(set().union(*videos.values())), *map(len, videos.values()))
        if self.options.resamples and not unknown and 1 < fewest < kappas.FEW:
            told.append(
                f"some intervals rest on as few as {fewest} videos: percentile intervals on fewer "
                f"than {kappas.FEW} are too narrow, and low"
            )
        told += ratings.notes(kept, study.items)
        return told + [f"reference: {line}" for line in ratings.notes(self.referred, study.items)]


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


def _accuracy(alone: Mapping[str, float | None], accuracies: Mapping[str, float]) -> Report:
    """Does a judge that answers better judge better: rank correlation of accuracy and kappa (6).

    `rho` is Spearman's, None of fewer than three `pairs` or where one side is constant.
    """
    given = {folded(name): value for name, value in accuracies.items()}
    pairs = {
        judge: (given[folded(judge)], kappa)
        for judge, kappa in alone.items()
        if kappa is not None and folded(judge) in given
    }
    return {
        "rho": spearman(list(pairs.values())) if len(pairs) > 2 else None,
        "pairs": {judge: {"accuracy": one, "kappa": own} for judge, (one, own) in pairs.items()},
    }


def _of_kappas(raters: Sequence[Report], panels: Report | None, resamples: int) -> Iterable[str]:
    """Why raters have no kappa, and in how many resamples of an interval there was none."""
    for part in raters:
        if part["kappa"]["mean"]["kappa"] is None and (why := part["kappa"]["mean"]["reason"]):
            yield f"{part['name']}: no kappa: {why}"
    named = [(part["name"], part["kappa"]) for part in raters]
    named += [
        (f"panel {one['name']}", one["kappa"]) for one in (panels or {"panels": []})["panels"]
    ]
    lacking: dict[int, list[str]] = {}  # resamples -> whose, since many lack the same
    for name, kappa in named:
        interval = kappa and kappa["mean"]["interval"]
        if interval and interval["undefined"]:
            lacking.setdefault(interval["undefined"], []).append(name)
    for number, names in lacking.items():
        yield f"{', '.join(names)}: {number:,} of {resamples:,} resamples have no kappa"
