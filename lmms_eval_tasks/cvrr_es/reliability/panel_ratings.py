"""Panels: the judges' ratings of an answer made into one.

The study ends with the wish for methods that weigh judges by their reliability (5.3, 6); these are
some, from counting votes to latent classes. Each rates every answer that at least one judge rated.
What a panel takes from the reference is fitted by dimension, as the study's reliability scores are,
and always on other folds than the answer's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from lmms_eval_tasks.cvrr_es.rating_rows import Item
from lmms_eval_tasks.cvrr_es.reliability import latent, voting
from lmms_eval_tasks.cvrr_es.reliability.fitting import (
    ByJudge,
    Part,
    Rated,
    Reference,
    fitting_items,
    judge_kappa,
    on_scale,
    part_of,
)
from lmms_eval_tasks.errors import DataError

# Name -> whether it is fitted to the reference.
PANELS = {
    "majority": False,
    "median": False,
    "mean": False,
    "dawid_skene": False,  # the most probable class
    "dawid_skene_mean": False,  # the mean of the classes: the same model, but ratings have an order
    "kappa_weighted": True,  # mean by max(0, kappa)
    "best_judge": True,
    "naive_bayes": True,
    "naive_bayes_mean": True,
}


@dataclass(frozen=True)
class Panel:
    """The ratings of a panel (whole, 1 to 5) or a judge, and what a reader should know of them."""

    ratings: Rated
    note: str = ""


class Judges:
    """The judges' ratings, with what several panels share; each part is computed once, if at all.

    Args:
        ratings: judge -> item -> rating. Those off the scale, or not whole, are left out.
        reference: only looked at by panels that are fitted to it.
        dimension_of: of all rated items. One dimension for all fits over all of them.
        fold_of: of all rated items; None will do for panels that are not fitted to the reference.
    """

    def __init__(
        self,
        ratings: ByJudge,
        reference: Reference,
        dimension_of: Mapping[Item, str],
        fold_of: Mapping[Item, int] | None = None,
    ) -> None:
        self._given, self._off_scale = on_scale(ratings)
        self._reference, self._dimension_of, self._fold_of = reference, dimension_of, fold_of
        # Answer -> judge -> rating. Sums are of math.fsum, so the judges' order has no influence.
        self._votes: dict[Item, dict[str, int]] = {}
        for judge, own in self._given.items():
            for item, rating in own.items():
                self._votes.setdefault(item, {})[judge] = rating

    def panel(self, name: str) -> Panel:
        """One panel's ratings.

        Fitting falls back where it has nothing to go by, and the note counts the answers: the plain
        mean where no judge of the answer has a positive weight, where no judge has a kappa, and
        where a dimension has no reference in other folds; the next best judge where the best one
        did not rate (of several without a kappa the first by name).

        Args:
            name: of PANELS.

        Raises:
            DataError: no such panel, an item without dimension or fold, no folds where they are
                needed.
        """
        if name not in PANELS:
            raise DataError(f"no panel is called {name!r}: choose from {', '.join(PANELS)}")
        if PANELS[name] and self._fold_of is None:
            raise DataError(
                f"the panel {name} is fitted to the reference on other folds: give them"
            )
        notes: Counter[str] = Counter(
            {"ratings left out, being no whole number of the scale": self._off_scale}
        )
        ratings, more = {
            "majority": self._voted,
            "median": self._voted,
            "mean": self._voted,
            "kappa_weighted": self._weighted,
            "best_judge": self._best,
            "dawid_skene": self._dawid_skene,
            "dawid_skene_mean": self._dawid_skene,
            "naive_bayes": self._naive_bayes,
            "naive_bayes_mean": self._naive_bayes,
        }[name](name, notes)
        counted = [f"{what}: {count}" for what, count in notes.items() if count]
        return Panel(ratings, "; ".join([*counted, *more]))

    def _voted(self, name: str, _: Counter[str]) -> tuple[dict[Item, int], list[str]]:
        rule = {"majority": voting.majority, "median": voting.median, "mean": _plain_mean}[name]
        return {item: rule(list(votes.values())) for item, votes in self._votes.items()}, []

    def _weighted(self, _: str, notes: Counter[str]) -> tuple[dict[Item, int], list[str]]:
        found = {}
        for item, votes in self._votes.items():
            kappas = self._kappas[self._parts[item]]
            weights = [max(0.0, kappas[judge] or 0.0) for judge in votes]
            if any(weights):
                found[item] = voting.weighted_mean(list(votes.values()), weights)
            else:
                found[item] = _plain_mean(list(votes.values()))
                notes["plain mean, no judge of the answer has a positive kappa"] += 1
        return found, []

    def _best(self, _: str, notes: Counter[str]) -> tuple[dict[Item, int], list[str]]:
        ranked = {part: _best_first(kappas) for part, kappas in self._kappas.items()}
        found = {}
        for item, votes in self._votes.items():
            order = ranked[self._parts[item]]
            if not order:
                found[item] = _plain_mean(list(votes.values()))
                notes["plain mean, no judge has a kappa in other folds"] += 1
                continue
            judge = next((judge for judge in order if judge in votes), min(votes))
            found[item] = votes[judge]
            notes["rated by the next best judge"] += judge != order[0]
        return found, []

    def _dawid_skene(self, name: str, _: Counter[str]) -> tuple[dict[Item, int], list[str]]:
        read = latent.most_probable if name == "dawid_skene" else latent.mean_rating
        found, notes = {}, []
        for dimension, model in self._latent.items():
            found.update({item: read(p) for item, p in model.probabilities.items()})
            if not model.converged:
                notes.append(f"not converged in {model.iterations} iterations: {dimension}")
        return found, notes

    def _naive_bayes(self, name: str, notes: Counter[str]) -> tuple[dict[Item, int], list[str]]:
        read = latent.most_probable if name == "naive_bayes" else latent.mean_rating
        found = {}
        for part, own in self._by_part.items():
            if not self._fit_to[part]:
                found.update({item: _plain_mean(list(self._votes[item].values())) for item in own})
                notes["plain mean, no reference in other folds of the dimension"] += len(own)
                continue
            posterior = latent.naive_bayes(self._given, self._reference, self._fit_to[part], own)
            found.update({item: read(p) for item, p in posterior.items()})
        return found, []

    @cached_property
    def _parts(self) -> dict[Item, Part]:
        return {item: part_of(item, self._dimension_of, self._fold_of) for item in self._votes}

    @cached_property
    def _by_part(self) -> dict[Part, list[Item]]:
        found: dict[Part, list[Item]] = {}
        for item, part in self._parts.items():
            found.setdefault(part, []).append(item)
        return found

    @cached_property
    def _fit_to(self) -> dict[Part, list[Item]]:
        return fitting_items(self._votes, self._reference, self._dimension_of, self._fold_of)

    @cached_property
    def _kappas(self) -> dict[Part, dict[str, float | None]]:
        return {
            part: {
                judge: judge_kappa(own, self._reference, items)
                for judge, own in sorted(self._given.items())
            }
            for part, items in self._fit_to.items()
        }

    @cached_property
    def _latent(self) -> dict[str, latent.Latent]:
        dimensions: dict[str, dict[str, dict[Item, int]]] = {}
        for judge, own in self._given.items():
            for item, rating in own.items():
                dimension = part_of(item, self._dimension_of, None)[1]
                dimensions.setdefault(dimension, {}).setdefault(judge, {})[item] = rating
        return {name: latent.dawid_skene(own) for name, own in sorted(dimensions.items())}


def _plain_mean(ratings: list[int]) -> int:
    return voting.weighted_mean(ratings, [1.0] * len(ratings))


def _best_first(kappas: Mapping[str, float | None]) -> list[str]:
    """Judges with a kappa, the highest first, equal ones by name."""
    known = {judge: kappa for judge, kappa in kappas.items() if kappa is not None}
    return sorted(known, key=lambda judge: (-known[judge], judge))
