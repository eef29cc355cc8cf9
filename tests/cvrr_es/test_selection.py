"""The mixture's judges: by threshold, by rank, on other folds, and what the tables allow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.cvrr_es.study.selection import (
    THETA,
    Selection,
    fitting_items,
    judge_kappa,
    parse,
)
from lmms_eval_tasks.errors import DataError, TasksError

TABLES: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "cases" / "cvrr_es_mixture_tables.json").read_text()
)

# Ten questions, two candidates; fold 0 is the first half. The reference counts up and down.
ITEMS = [Item(f"d/{n:03d}", candidate) for n in range(1, 11) for candidate in "xy"]
TRUTH = {item: 1 + (int(item.question[2:]) + (item.candidate == "y")) % 5 for item in ITEMS}
FOLDS = {item: int(item.question > "d/005") for item in ITEMS}
DIMENSION = dict.fromkeys(ITEMS, "d")


def swapped(wrong_fold: int) -> dict[Item, int]:
    """A judge that is right outside one fold and says the opposite in it."""
    return {item: 6 - r if FOLDS[item] == wrong_fold else r for item, r in TRUTH.items()}


JUDGES = {
    "right": dict(TRUTH),
    "wrong in 0": swapped(0),
    "wrong in 1": swapped(1),
    "constant": dict.fromkeys(ITEMS, 4),
    "silent": {},
}


def chosen(rule: str, **changes: Any) -> dict[tuple[int | None, str], tuple[str, ...]]:
    given: dict[str, Any] = {
        "ratings": JUDGES,
        "reference": TRUTH,
        "dimension_of": DIMENSION,
        "fold_of": FOLDS,
    }
    found = selection.choices(**(given | changes), selection=parse(rule))
    return {part: choice.judges for part, choice in found.items()}


def test_an_items_judges_are_chosen_on_the_other_folds() -> None:
    assert chosen("theta=0.9") == {
        (0, "d"): ("right", "wrong in 0"),  # fold 0's judges by fold 1, where "wrong in 0" is right
        (1, "d"): ("right", "wrong in 1"),
    }
    assert chosen("theta=0.9,cross_fit=no") == {(None, "d"): ("right",)}


def test_the_reference_of_a_fold_has_no_say_in_that_folds_judges() -> None:
    other = {item: 6 - r if FOLDS[item] == 0 else r for item, r in TRUTH.items()}
    before, after = chosen("theta=0.9"), chosen("theta=0.9", reference=other)
    assert after[0, "d"] == before[0, "d"]
    assert after[1, "d"] == ("wrong in 0",) != before[1, "d"]


def test_kappa_is_that_of_each_candidate_and_then_the_mean() -> None:
    # Within a candidate this judge is constant (kappa 0); pooled it agrees, since y is better.
    reference = {
        item: (1 if item.candidate == "x" else 4) + (item.question > "d/005") for item in ITEMS
    }
    tells_candidates = {item: 1 if item.candidate == "x" else 5 for item in ITEMS}
    found = judge_kappa(tells_candidates, reference, ITEMS)
    assert found == 0
    picked = chosen("theta=0.1,fallback=none", ratings={"j": tells_candidates}, reference=reference)
    assert set(picked.values()) == {()}


def test_a_candidate_without_a_kappa_is_left_out_of_the_mean() -> None:
    reference = {item: 3 if item.candidate == "x" else TRUTH[item] for item in ITEMS}
    found = judge_kappa(reference, reference, ITEMS)
    assert found == 1
    assert judge_kappa({}, reference, ITEMS) is None


def test_theta_itself_passes() -> None:
    kappa = judge_kappa(JUDGES["constant"], TRUTH, ITEMS)
    assert kappa == 0
    assert "constant" in chosen("theta=0,cross_fit=no")[None, "d"]
    assert "constant" not in chosen("theta=0.0001,cross_fit=no")[None, "d"]


def test_top_takes_the_best_by_name_where_equal_and_nobody_without_a_kappa() -> None:
    assert chosen("top=1")[0, "d"] == ("right",)  # as good as "wrong in 0", first by name
    assert chosen("top=2")[0, "d"] == ("right", "wrong in 0")
    assert chosen("top=9")[0, "d"] == ("constant", "right", "wrong in 0", "wrong in 1")


@pytest.mark.parametrize(
    ("fallback", "judges"),
    [("all", ("bad", "worse")), ("best", ("bad",)), ("none", ())],
)
def test_where_nobody_passes_the_fallback_holds_and_is_told(
    fallback: str, judges: tuple[str, ...]
) -> None:
    ratings = {"worse": {i: 6 - r for i, r in TRUTH.items()}, "bad": dict.fromkeys(ITEMS, 4)}
    rule = parse(f"theta=0.5,fallback={fallback}")
    found = selection.choices(ratings, TRUTH, DIMENSION, FOLDS, rule)
    assert [(one.judges, one.fell_back) for one in found.values()] == [(judges, True)] * 2
    assert found[0, "d"].kappas["bad"] == 0


def test_a_dimension_without_reference_in_other_folds_falls_back() -> None:
    dimension = {item: "e" if item.question == "d/001" else "d" for item in ITEMS}
    found = selection.choices(JUDGES, TRUTH, dimension, FOLDS, parse("theta=0.9"))
    assert set(found) == {(0, "d"), (0, "e"), (1, "d")}
    assert found[0, "e"].fell_back
    assert found[0, "e"].judges == tuple(sorted(JUDGES))
    assert not found[0, "d"].fell_back


def test_every_dimension_has_its_own_judges() -> None:
    dimension = {item: "even" if int(item.question[2:]) % 2 else "odd" for item in ITEMS}
    ratings = {
        name: {item: r if dimension[item] == name else 6 - r for item, r in TRUTH.items()}
        for name in ("even", "odd")
    }
    found = chosen("theta=0.5", ratings=ratings, dimension_of=dimension)
    assert found == {
        (0, "even"): ("even",),
        (0, "odd"): ("odd",),
        (1, "even"): ("even",),
        (1, "odd"): ("odd",),
    }


def test_items_without_ratings_or_reference_get_judges_too() -> None:
    new = Item("d/099", "z")
    found = chosen("theta=0.9", dimension_of=DIMENSION | {new: "f"}, fold_of=FOLDS | {new: 2})
    assert found[2, "f"] == tuple(sorted(JUDGES))
    assert found[0, "d"] == ("right", "wrong in 0")


@pytest.mark.parametrize("rule", ["theta=0.9", "theta=0.9,cross_fit=no"])
def test_judges_are_looked_up_whichever_way_they_were_chosen(rule: str) -> None:
    found = selection.choices(JUDGES, TRUTH, DIMENSION, FOLDS, parse(rule))
    both = [selection.choice_for(found, "d", fold) for fold in (0, 1)]
    assert {id(one) for one in both} == {id(one) for one in found.values()}
    with pytest.raises(KeyError):
        selection.choice_for(found, "e", 0)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"ratings": {}}, "no judges to choose from"),
        ({"ratings": {"silent": {}}}, "no judges to choose from"),
        ({"reference": {}}, "none of these items has one"),
        ({"fold_of": None}, "needs two folds of videos or more"),
        ({"fold_of": dict.fromkeys(ITEMS, 3)}, "needs two folds of videos or more"),
        ({"fold_of": {ITEMS[0]: 0, ITEMS[1]: 1}}, "this item is in no fold"),
    ],
)
def test_what_cannot_be_chosen_by_is_one_line(changes: Mapping[str, Any], line: str) -> None:
    with pytest.raises(DataError, match=line) as caught:
        chosen("theta=0.1", **changes)
    assert "\n" not in str(caught.value)


def test_the_papers_way_needs_no_folds() -> None:
    assert chosen("theta=0.9,cross_fit=no", fold_of=None) == {(None, "d"): ("right",)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Selection()),
        ("theta=0.2", Selection(theta=0.2)),
        (" theta = 0.2 , cross_fit = no ", Selection(theta=0.2, cross_fit=False)),
        ("top=3", Selection("top", k=3)),
        ("fallback=none", Selection(fallback="none")),
        ("theta=-1", Selection(theta=-1.0)),
    ],
)
def test_the_options_text(text: str, expected: Selection) -> None:
    assert parse(text) == expected
    assert parse(str(expected)) == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("theta", "is no setting"),
        ("tetha=0.2", "is no setting"),
        ("theta=0.2,theta=0.3", "given twice"),
        ("theta=0.2,top=2", "two rules"),
        ("theta=20", "no kappa in -1..1"),
        ("theta=nan", "no kappa in -1..1"),
        ("theta=", "no kappa in -1..1"),
        ("top=0", "no number of judges"),
        ("top=-1", "no number of judges"),
        ("top=²", "no number of judges"),
        ("fallback=some", "none of all, best, none"),
        ("cross_fit=1", "neither yes nor no"),
    ],
)
def test_other_texts_are_one_line_with_the_form(text: str, line: str) -> None:
    with pytest.raises(TasksError, match=line) as caught:
        parse(text)
    assert "expected a form like theta=" in str(caught.value)
    assert "\n" not in str(caught.value)


def column(table: str, place: int) -> list[float]:
    return [row[place] for row in TABLES[table].values()]


def test_the_default_is_what_the_papers_tables_allow() -> None:
    same = {
        dimension: sum(map(float.__eq__, column("collective", n), column("mixture", n)))
        for n, dimension in enumerate(TABLES["dimensions"])
    }
    best = {d: max(column("judges", n)) for n, d in enumerate(TABLES["dimensions"])}
    fell_back = {dimension for dimension, cells in same.items() if cells == 5}
    differ = {dimension for dimension, cells in same.items() if cells == 0}
    assert (len(fell_back), len(differ)) == (4, 6)
    highest = max(best[dimension] for dimension in fell_back)
    lowest = min(best[dimension] for dimension in differ)
    assert (highest, lowest) == (7.27, 9.33)
    assert highest < 100 * THETA <= lowest
    # The eleventh fits no theta: four cells are the same, and its best judge is the better one.
    (odd,) = set(same) - fell_back - differ
    assert (odd, same[odd], best[odd]) == ("understanding_emotional_context", 4, 12.11)
    assert best[odd] > lowest
    intern = dict(zip(TABLES["dimensions"], TABLES["judges"]["InternVL2"], strict=True))
    assert max(intern[d] for d in {*fell_back, odd}) == 7.5 < 100 * THETA
    assert min(intern[d] for d in differ) == 9.33
    fine = TABLES["dimensions"].index("fine_grained_action_understanding")
    passed = {name for name, row in TABLES["judges"].items() if row[fine] >= 100 * THETA}
    assert passed == {"InternVL2", "GPT-4o mini"}  # as 5.3 says


def test_references_off_the_scale_are_not_chosen_by() -> None:
    odd = {item: 4.5 if item.candidate == "x" else r for item, r in TRUTH.items()}
    parts = fitting_items(ITEMS, odd, DIMENSION, FOLDS)
    assert {item.candidate for own in parts.values() for item in own} == {"y"}
    assert chosen("theta=0.9", reference=odd)[0, "d"] == ("right", "wrong in 0")
