"""A judge's own accuracy beside its kappa."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.cvrr_es.study.leniency import against_kappa
from lmms_eval_tasks.errors import DataError

KAPPAS = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}


def test_by_hand():
    """Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / 60."""
    found = against_kappa(KAPPAS, {"a": 10, "b": 20, "c": 30, "d": 40})
    assert found.rho == pytest.approx(0.8)
    assert found.reason == ""
    assert found.pairs["b"] == (20, 0.3)
    assert (found.without_accuracy, found.without_kappa, found.unknown) == ((), (), ())


def test_shares_do_as_well_as_percentages():
    shares = against_kappa(KAPPAS, {"a": 0.0, "b": 0.2, "c": 0.3, "d": 1.0})
    assert shares.rho == pytest.approx(0.8)


def test_zero_is_a_number():
    """Of rho (ranks 1 2 3 4 and 2 4 1 3: 1 - 6 * 10 / 60), and of an accuracy in %."""
    kappas = {"a": 0.2, "b": 0.4, "c": 0.1, "d": 0.3}
    found = against_kappa(kappas, {"a": 0, "b": 20, "c": 30, "d": 40})
    assert (found.rho, found.reason) == (0, "")


def test_who_is_left_out_is_named():
    found = against_kappa(
        {**KAPPAS, "GPT-4o": None, "x": 0.5},
        {"A": 10, "b.": 20, "c": 30, "d": 40, "gpt4o": 75, "nobody": 1.5},
    )
    assert found.rho == pytest.approx(0.8)
    assert found.without_accuracy == ("x",)
    assert found.without_kappa == ("GPT-4o",)
    assert found.unknown == ("nobody",)
    assert set(found.pairs) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("kappas", "accuracies", "reason"),
    [
        (KAPPAS, {}, "0 judges have both numbers"),
        (KAPPAS, {"a": 10, "b": 20}, "2 judges have both numbers"),
        (KAPPAS, {"a": 10, "b": 10, "c": 10}, "the same accuracy, or the same kappa"),
        (dict.fromkeys("abc", 0.0), {"a": 10, "b": 20, "c": 30}, "or the same kappa"),
    ],
)
def test_undefined(kappas, accuracies, reason):
    found = against_kappa(kappas, accuracies)
    assert found.rho is None
    assert reason in found.reason


@pytest.mark.parametrize(
    ("accuracies", "message"),
    [
        ({"a": 101}, "accuracy of a: 101 is no number from 0 to 100"),
        ({"a": -0.1}, "no number from 0 to 100"),
        ({"a": float("nan")}, "no number from 0 to 100"),
        ({"a": "75 %"}, "'75 %' is no number"),
        ({"a": True}, "True is no number"),
        ({"GPT-4o": 75, "GPT 4o": 70}, "accuracy of GPT 4o: there are two"),
        ({"a": 0.75, "b": 33}, "all as shares"),
        ({"a": 1, "b": 33}, "all as shares"),
    ],
)
def test_what_is_refused(accuracies, message):
    with pytest.raises(DataError, match=message):
        against_kappa(KAPPAS, accuracies)
