"""The mixture's judges by its rule, on the other folds; folds by video."""

from __future__ import annotations

from typing import Any

from lmms_eval_tasks.cvrr_es.study import selection
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey
from lmms_eval_tasks.cvrr_es.study.selection import Selection, Stratum, judge_kappa, parse
from lmms_eval_tasks.errors import DataError, TasksError
from tests.checks import refused
from tests.cvrr_es.study.study_rows import drawn

# Ten questions, two candidates; fold 0 is the first half. The reference counts up and down.
ITEMS = [AnswerKey(f"d/{n:03d}", candidate) for n in range(1, 11) for candidate in "xy"]
TRUTH = {item: 1 + (int(item.question[2:]) + (item.candidate == "y")) % 5 for item in ITEMS}
FOLDS = {item: int(item.question > "d/005") for item in ITEMS}
STRATA = {item: Stratum(fold, "d") for item, fold in FOLDS.items()}
FIRST, SECOND, WHOLE = Stratum(0, "d"), Stratum(1, "d"), Stratum(None, "d")


def wrong_in(fold: int) -> dict[AnswerKey, int]:
    """Right outside one fold, and the opposite in it."""
    return {item: 6 - r if FOLDS[item] == fold else r for item, r in TRUTH.items()}


JUDGES = {"right": dict(TRUTH), "wrong in 0": wrong_in(0), "wrong in 1": wrong_in(1)}
JUDGES |= {"constant": dict.fromkeys(ITEMS, 4), "silent": {}}


def chosen(rule: str, **changes: Any) -> dict[Any, tuple[str, ...]]:
    """By stratum."""
    given = {"ratings": JUDGES, "reference": TRUTH, "strata": STRATA, **changes}
    found = selection.choices(**given, selection=parse(rule))
    assert set(found) == set(given["strata"])
    return {one.stratum: one.judges for one in found.values()}


def test_an_items_judges_are_chosen_on_the_other_folds() -> None:
    assert chosen("theta=0.9") == {
        FIRST: ("right", "wrong in 0"),  # by fold 1, where "wrong in 0" is right
        SECOND: ("right", "wrong in 1"),
    }
    assert chosen("theta=0.9,cross_fit=no") == {WHOLE: ("right",)}
    # The reference of a fold has no say in that fold's judges.
    after = chosen("theta=0.9", reference=wrong_in(0))
    assert after == {FIRST: ("right", "wrong in 0"), SECOND: ("wrong in 0",)}


def test_kappa_is_that_of_each_candidate_and_then_the_mean() -> None:
    """Within a candidate this judge is constant (0); pooled it agrees, since y is better."""
    reference = {i: (1 if i.candidate == "x" else 4) + (i.question > "d/005") for i in ITEMS}
    tells = {item: 1 if item.candidate == "x" else 5 for item in ITEMS}
    assert judge_kappa(tells, reference, ITEMS) == 0
    assert set(chosen("theta=0.1", ratings={"j": tells}, reference=reference).values()) == {()}
    # A candidate without a kappa is left out of the mean.
    reference = {item: 3 if item.candidate == "x" else TRUTH[item] for item in ITEMS}
    assert judge_kappa(reference, reference, ITEMS) == 1


def test_theta_and_top() -> None:
    assert "constant" in chosen("theta=-0.0001,cross_fit=no")[WHOLE]
    assert "constant" not in chosen("theta=0,cross_fit=no")[WHOLE]  # 0 itself does not pass
    assert chosen("top=1")[FIRST] == ("right",)  # as good as "wrong in 0", first by name
    assert chosen("top=2")[FIRST] == ("right", "wrong in 0")
    # Nobody without a kappa.
    assert chosen("top=9")[FIRST] == ("constant", "right", "wrong in 0", "wrong in 1")
    refused(DataError, "none of these items has one", chosen, "", reference={})
    refused(DataError, "requires two folds", chosen, "", strata=dict.fromkeys(ITEMS, FIRST))


def test_the_options_text() -> None:
    for text, expected in {
        "": Selection(),
        " theta = 0.2 , cross_fit = no ": Selection(theta=0.2, cross_fit=False),
        "top=3": Selection(top=3),
    }.items():
        assert parse(text) == parse(str(expected)) == expected
    for text, line in {
        "tetha=0.2": "no such name",
        **dict.fromkeys(("theta=0.2,theta=0.3", "theta=0.2,top=2"), "twice, or theta and top"),
        **dict.fromkeys(("theta", "theta=20", "theta=nan"), "theta: "),
        "top=0": "top: ",
    }.items():
        refused(TasksError, rf"{line}.*; expected a form like theta=0\.1, ", parse, text)


# --- folds ----------------------------------------------------------------------------------------


def test_a_video_is_in_one_fold_whatever_the_order() -> None:
    made = drawn(1)
    found = selection.strata(made.items, made.places)
    folds_of: dict[str, set[int | None]] = {}
    for item, stratum in found.items():
        assert stratum.dimension == made.places[item.question].dimension
        folds_of.setdefault(made.places[item.question].video, set()).add(stratum.fold)
    assert all(len(own) == 1 for own in folds_of.values())
    assert {one.fold for one in found.values()} == set(range(5))
    assert selection.strata(made.items[::-1], made.places) == found
