"""Panels on ratings small enough to work out by hand, and what holds for all of them."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmms_eval_tasks.cvrr_es.study import panels, selection
from lmms_eval_tasks.cvrr_es.study.panels import PANELS, Judges, Panel
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.utils.agreement import kappa

SCALE = (1, 2, 3, 4, 5)
ITEMS = [Item(f"d/{n:03d}", candidate) for n in range(1, 31) for candidate in "xy"]
DIMENSION = {item: "late" if item.question > "d/015" else "early" for item in ITEMS}
FOLDS = {item: int(item.question[2:]) % 3 for item in ITEMS}
FITTED = [name for name, uses_reference in PANELS.items() if uses_reference]
# Correcting judges is what naive Bayes is for: it does not repeat a single judge.
REPEATING = [name for name in PANELS if not name.startswith("naive_bayes")]
Table = dict[str, dict[Item, int]]
FIT = panels.dawid_skene


@pytest.fixture(autouse=True)
def few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight, as if they were enough: how a panel is put together does not depend on it."""
    monkeypatch.setattr(panels, "dawid_skene", lambda own: replace(FIT(own, 8), converged=True))


def drawn(seed: int, missing: float = 0.0) -> tuple[Table, dict[Item, int]]:
    """Ratings by a good, a lenient, a random and a contrary judge, and the reference."""
    rng = Random(seed)
    truth = {item: rng.choice((1, 1, 1, 2, 2, 3, 4, 5)) for item in ITEMS}
    rules = {
        "good": lambda r: min(5, max(1, r + rng.choice((0, 0, 0, 1, -1)))),
        "lenient": lambda r: min(5, r + 1),
        "random": lambda r: rng.choice(SCALE),
        "contrary": lambda r: 6 - r,
    }
    ratings = {
        name: {item: rule(r) for item, r in truth.items() if rng.random() >= missing}
        for name, rule in rules.items()
    }
    return ratings, truth


def rate(name: str, *known: Any) -> Panel:
    return Judges(*known).panel(name)


@pytest.mark.parametrize("name", PANELS)
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_every_item_with_a_rating_gets_one_on_the_scale(name: str, missing: float) -> None:
    ratings, truth = drawn(1, missing)
    panel = rate(name, ratings, truth, DIMENSION, FOLDS)
    assert set(panel.ratings) == {item for own in ratings.values() for item in own}
    assert {type(rating) for rating in panel.ratings.values()} == {int}
    assert set(panel.ratings.values()) <= set(SCALE)


@pytest.mark.parametrize("name", REPEATING)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 999), missing=st.sampled_from([0.0, 0.3]), data=st.data())
def test_with_one_judge_a_panel_repeats_it(
    name: str, seed: int, missing: float, data: st.DataObject
) -> None:
    ratings, truth = drawn(seed, missing)
    judge = data.draw(st.sampled_from(sorted(ratings)))
    panel = rate(name, {judge: ratings[judge]}, truth, DIMENSION, FOLDS)
    assert panel.ratings == ratings[judge]


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("fold", [0, 1, 2])
def test_the_reference_of_a_fold_has_no_say_in_that_folds_ratings(name: str, fold: int) -> None:
    ratings, truth = drawn(2, 0.2)
    own = [item for item in ITEMS if FOLDS[item] == fold]
    for other in (
        {item: 6 - r if item in own else r for item, r in truth.items()},
        {item: r for item, r in truth.items() if item not in own},
    ):
        before = rate(name, ratings, truth, DIMENSION, FOLDS).ratings
        after = rate(name, ratings, other, DIMENSION, FOLDS).ratings
        assert {item: after[item] for item in own if item in after} == {
            item: before[item] for item in own if item in before
        }


@pytest.mark.parametrize("name", FITTED)
def test_the_reference_of_other_folds_has_one(name: str) -> None:
    ratings, truth = drawn(2)
    upside_down = {item: 6 - r for item, r in truth.items()}
    before = rate(name, ratings, truth, DIMENSION, FOLDS).ratings
    assert rate(name, ratings, upside_down, DIMENSION, FOLDS).ratings != before


@pytest.mark.parametrize("name", [name for name in PANELS if name not in FITTED])
def test_other_panels_never_look_at_the_reference(name: str) -> None:
    ratings, truth = drawn(3)
    assert rate(name, ratings, {}, DIMENSION) == rate(name, ratings, truth, DIMENSION, FOLDS)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), constants=st.lists(st.sampled_from(SCALE), max_size=4))
def test_constant_judges_change_nothing_for_weights_and_the_best_judge(
    seed: int, constants: list[int]
) -> None:
    ratings, truth = drawn(seed)
    more = ratings | {f"constant {n}": dict.fromkeys(ITEMS, r) for n, r in enumerate(constants)}
    for name in ("kappa_weighted", "best_judge"):
        before = rate(name, ratings, truth, DIMENSION, FOLDS)
        assert rate(name, more, truth, DIMENSION, FOLDS) == before


@pytest.mark.parametrize("name", PANELS)
def test_the_order_of_judges_and_items_changes_nothing(name: str) -> None:
    ratings, truth = drawn(4, 0.3)
    turned = {j: dict(reversed(ratings[j].items())) for j in reversed(ratings)}
    assert rate(name, turned, truth, DIMENSION, FOLDS) == rate(
        name, ratings, truth, DIMENSION, FOLDS
    )


def test_weights_are_the_judges_kappas_in_the_same_dimension_on_other_folds() -> None:
    ratings, truth = drawn(5)
    panel = rate("kappa_weighted", ratings, truth, DIMENSION, FOLDS).ratings
    for item in ITEMS:
        others = [i for i in ITEMS if DIMENSION[i] == DIMENSION[item] and FOLDS[i] != FOLDS[item]]
        weight = {}
        for judge, own in ratings.items():
            by_candidate = []
            for candidate in "xy":
                mine = [i for i in others if i.candidate == candidate]
                found = kappa([own[i] for i in mine], [truth[i] for i in mine], SCALE, "quadratic")
                by_candidate.append(found.value or 0.0)
            weight[judge] = max(0.0, sum(by_candidate) / 2)
        total = sum(weight.values())
        mean = sum(weight[judge] * own[item] for judge, own in ratings.items()) / total
        assert abs(panel[item] - mean) <= 0.5 + 1e-9


def test_the_best_judge_is_chosen_by_dimension_and_the_next_best_stands_in() -> None:
    _, truth = drawn(6)
    ratings = {
        "early judge": {i: r if DIMENSION[i] == "early" else 6 - r for i, r in truth.items()},
        "late judge": {i: r if DIMENSION[i] == "late" else 6 - r for i, r in truth.items()},
    }
    assert rate("best_judge", ratings, truth, DIMENSION, FOLDS).ratings == truth
    gap = ITEMS[0]
    del ratings["early judge"][gap]
    panel = rate("best_judge", ratings, truth, DIMENSION, FOLDS)
    assert panel.ratings == truth | {gap: 6 - truth[gap]}
    assert panel.note == "rated by the next best judge: 1"


def test_of_judges_without_a_kappa_the_first_by_name_stands_in() -> None:
    _, truth = drawn(6)
    ratings = {"good": {i: r for i, r in truth.items() if i != ITEMS[0]}}
    # Each rated one answer alone, so neither has a kappa in the other folds.
    ratings |= {"b": {ITEMS[0]: 5}, "a": {ITEMS[0]: 2}}
    panel = rate("best_judge", ratings, truth, DIMENSION, FOLDS)
    assert panel.ratings == truth | {ITEMS[0]: 2}


def test_classes_are_read_as_the_most_probable_rating_or_as_their_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratings, truth = drawn(6)
    torn = (0.4, 0.0, 0.0, 0.3, 0.3)  # most probable 1, mean 3.1
    model = panels.Latent(dict.fromkeys(ITEMS, torn), 1, True)
    monkeypatch.setattr(panels, "dawid_skene", lambda _: model)
    monkeypatch.setattr(panels, "naive_bayes", lambda *given: dict.fromkeys(given[3], torn))
    for name in ("dawid_skene", "naive_bayes"):
        one = rate(name, ratings, truth, DIMENSION, FOLDS).ratings
        assert one == dict.fromkeys(ITEMS, 1)
        mean = rate(f"{name}_mean", ratings, truth, DIMENSION, FOLDS).ratings
        assert mean == dict.fromkeys(ITEMS, 3)


def test_naive_bayes_corrects_a_lenient_and_a_contrary_judge() -> None:
    _, truth = drawn(7)
    for rule in (lambda r: 6 - r, lambda r: {1: 2, 2: 3, 3: 4, 4: 5, 5: 1}[r]):
        ratings = {"j": {item: rule(r) for item, r in truth.items()}}
        one = dict.fromkeys(ITEMS, "d")
        assert rate("naive_bayes", ratings, truth, one, FOLDS).ratings == truth


def test_dawid_skene_finds_the_judges_to_trust_where_they_are_many() -> None:
    ratings, truth = drawn(8)
    rng = Random(8)
    for n in range(4):
        ratings[f"good {n}"] = {
            item: r if rng.random() < 0.8 else rng.choice(SCALE) for item, r in truth.items()
        }
    one = dict.fromkeys(ITEMS, "d")
    judges = Judges(ratings, truth, one)
    found = {
        name: selection.judge_kappa(judges.panel(name).ratings, truth, ITEMS)
        for name in ("mean", "dawid_skene", "dawid_skene_mean")
    }
    assert min(found["dawid_skene"], found["dawid_skene_mean"]) > found["mean"] + 0.1


def test_dawid_skene_is_fitted_by_dimension_and_says_where_it_did_not_converge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratings, truth = drawn(9)
    late = {
        j: {i: r for i, r in own.items() if DIMENSION[i] == "late"} for j, own in ratings.items()
    }
    both = rate("dawid_skene", ratings, truth, DIMENSION)
    alone = rate("dawid_skene", late, truth, DIMENSION)
    assert alone.ratings.items() <= both.ratings.items()
    assert (len(alone.ratings), len(both.ratings)) == (30, 60)
    assert both.note == ""

    monkeypatch.setattr(panels, "dawid_skene", lambda own: FIT(own, iterations=2))
    assert rate("dawid_skene_mean", ratings, truth, DIMENSION).note == (
        "not converged in 2 iterations: early; not converged in 2 iterations: late"
    )


def test_where_nothing_can_be_fitted_the_plain_mean_holds_and_is_counted() -> None:
    ratings, truth = drawn(10)
    mean = rate("mean", ratings, truth, DIMENSION).ratings
    for name in FITTED:
        # One fold only: no other folds to fit to.
        panel = rate(name, ratings, truth, DIMENSION, dict.fromkeys(ITEMS, 0))
        assert panel.ratings == mean
        assert panel.note.startswith("plain mean, no ")
        assert panel.note.endswith(": 60")
    contrary = {"contrary": ratings["contrary"], "random": {ITEMS[0]: 5}}
    panel = rate("kappa_weighted", contrary, truth, DIMENSION, FOLDS)
    assert panel.note == "plain mean, no judge of the answer has a positive kappa: 60"


def test_ratings_off_the_scale_are_left_out_and_counted() -> None:
    ratings, truth = drawn(11)
    odd = dict(zip(ITEMS, (0, 6, 4.5, float("nan"), None), strict=False))
    more = ratings | {"odd": odd, "whole": {ITEMS[0]: 4.0}}
    less = ratings | {"whole": {ITEMS[0]: 4}}
    for name in PANELS:
        with_odd = rate(name, more, truth, DIMENSION, FOLDS)
        assert with_odd.ratings == rate(name, less, truth, DIMENSION, FOLDS).ratings
        assert "ratings left out, being no whole number of the scale: 4" in with_odd.note
    kept, left_out = selection.on_scale(more)
    assert (kept["odd"], left_out) == ({}, 4)


def test_what_cannot_be_rated_is_one_line() -> None:
    ratings, truth = drawn(14)
    with pytest.raises(DataError, match="no panel is called 'vote': choose from majority"):
        rate("vote", ratings, truth, DIMENSION, FOLDS)
    with pytest.raises(DataError, match="fitted to the reference on other folds"):
        rate("best_judge", ratings, truth, DIMENSION)
    with pytest.raises(DataError, match="d/001, x: this item is in no fold"):
        rate(
            "best_judge",
            ratings,
            truth,
            DIMENSION,
            {i: f for i, f in FOLDS.items() if i != ITEMS[0]},
        )
    with pytest.raises(DataError, match="d/001, x: no dimension is known"):
        rate("dawid_skene", ratings, truth, {}, FOLDS)
