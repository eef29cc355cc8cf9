"""A verdict's score and status cannot contradict each other."""

import json
import math

import pytest

from lmms_eval_tasks.judges import Status, Verdict


def test_as_dict_is_plain():
    verdict = Verdict(1.0, Status.OK, "r", "raw", "j", "m")
    value = json.loads(json.dumps(verdict.as_dict()))
    assert value == {
        "score": 1.0,
        "status": "ok",
        "reason": "r",
        "raw": "raw",
        "judge": "j",
        "model": "m",
    }
    assert type(verdict.as_dict()["status"]) is str
    assert Verdict(**value) == verdict


def test_an_expectation_of_zero_is_kept():
    verdict = Verdict(0.0, Status.OK, expected=0.0, expected_mass=0.9)
    assert verdict.as_dict()["expected"] == 0.0
    assert Verdict.from_dict(verdict.as_dict()) == verdict


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_failure_has_no_score(status):
    assert Verdict(None, status).score is None
    with pytest.raises(ValueError, match="no score"):
        Verdict(0.0, status)


@pytest.mark.parametrize("score", [None, math.nan, math.inf])
def test_ok_needs_a_number(score):
    with pytest.raises(ValueError, match="finite"):
        Verdict(score, "ok")


def test_unknown_status():
    with pytest.raises(ValueError, match="fine"):
        Verdict(None, "fine")
