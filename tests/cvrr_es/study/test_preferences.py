"""Which candidate wins, by hand."""

from __future__ import annotations

import itertools
import json

import pytest

from lmms_eval_tasks.cvrr_es.study import comparisons
from lmms_eval_tasks.cvrr_es.study.comparisons import Duel
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from tests.cvrr_es.study.study_rows import drawn, of, study

JUDGE = {"A": [5, 3, 4], "B": [4, 3, None], "C": [1, 5, 4.5]}
REFERENCE = {"A": [5, 3, 4], "B": [5, 1, 1], "C": [2, 3, 4]}


def test_win_rates_by_hand():
    made = study({"J": JUDGE}, REFERENCE)
    found = comparisons.win_rates(made, of(made))
    assert found == {
        ("A", "B"): Duel(1, 1, 0),
        ("B", "A"): Duel(0, 1, 1),
        ("A", "C"): Duel(1, 0, 2),
        ("C", "A"): Duel(2, 0, 1),
        ("B", "C"): Duel(1, 0, 1),
        ("C", "B"): Duel(1, 0, 1),
    }
    assert (found["A", "B"].win_rate, found["B", "A"].win_rate) == (0.5, 0)
    assert (found["A", "B"].score, found["B", "A"].score) == (0.75, 0.25)


def test_candidates_that_never_meet():
    made = study({"J": {"A": [5, "absent"], "B": ["absent", 3]}}, {"A": [1, 1], "B": [1, 1]})
    found = comparisons.win_rates(made, of(made))
    assert found["A", "B"] == Duel(0, 0, 0)
    assert (found["A", "B"].win_rate, found["A", "B"].score) == (None, None)


def test_both_sides_of_a_duel_add_up():
    made = drawn(4)
    found = comparisons.win_rates(made, made.reference)
    for one, other in itertools.combinations(made.candidates, 2):
        assert found[one, other].score + found[other, one].score == pytest.approx(1)
        met = [
            question
            for question in made.questions
            if {Item(question, one), Item(question, other)} <= made.reference.keys()
        ]
        assert found[one, other].n == len(met)


def test_agreement_by_hand():
    """First question: tied by the reference, same, same. Second: tied by the judge, by the
    reference, same. Third: tied by the reference, and B has no rating."""
    made = study({"J": JUDGE}, REFERENCE)
    found = comparisons.agreement(made, of(made))
    assert (found.same, found.opposite, found.both_tied) == (3, 0, 0)
    assert (found.judge_tied, found.reference_tied) == (1, 3)
    assert (found.n, found.agreement, found.decided) == (7, 3 / 7, 1)
    assert found.interval.estimate == 3 / 7
    shown = json.loads(json.dumps(found.as_dict()))
    assert (shown["n"], shown["same"], shown["interval"]["clusters"]) == (7, 3, 2)


def test_opposite_and_tied_by_both():
    made = study({"J": {"A": [5, 2, 4], "B": [4, 2, 5]}}, {"A": [1, 3, 2], "B": [2, 3, 3]})
    found = comparisons.agreement(made, of(made))
    assert (found.same, found.opposite, found.both_tied) == (1, 1, 1)
    assert found.agreement == 2 / 3
    assert found.decided == 0.5


def test_a_constant_judge_prefers_nothing():
    made = study({"J": {"A": [4, 4], "B": [4, 4]}}, {"A": [5, 3], "B": [1, 3]})
    found = comparisons.agreement(made, of(made))
    assert (found.judge_tied, found.both_tied, found.decided) == (1, 1, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"video": ""}, "the video of 1 of 1 pairs is not known"),
        ({"video": "a"}, "all pairs are on one video"),
    ],
)
def test_no_interval(changes, reason):
    made = study({"J": {"A": [4], "B": [5]}}, {"A": [3], "B": [4]}, **changes)
    found = comparisons.agreement(made, of(made))
    assert (found.agreement, found.interval, found.no_interval) == (1, None, reason)


def test_nothing_to_compare():
    made = study({"J": {"A": [4, 2]}}, {"A": [3, 2]})
    found = comparisons.agreement(made, of(made))
    assert (found.n, found.agreement, found.decided) == (0, None, None)
    assert found.no_interval == "there is no value"
