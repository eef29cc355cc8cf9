"""What a task's results tell beside its numbers, by hand."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.metrics import details
from tests.cvrr_es.scored import PART, TIME, Stated, answered, eight, rated, rated_doc

ANSWER = f"cvrr_es_{PART}"


def of_answers(*replies: str) -> dict[str, Any]:
    made = [answered(reply, place)["acc"] for place, reply in enumerate(replies, 1)]
    return details(ANSWER, made)


def of_ratings(made: list[Any]) -> dict[str, Any]:
    found = details("cvrr_judge", [one["kappa"] for one in made])
    assert json.loads(json.dumps(found)) == found
    return found


class TestAnswers:
    def test_by_video(self, stated: Stated) -> None:
        """Means 0.4 and 0.5, 1 0 1 0 on four videos: half a width of t(3) * sqrt(1/12)."""
        found = of_answers("right 5", "wrong 1", "right 4", "", "hm")
        assert (found["items"], found["status"]) == (5, {"empty": 1, "judge_api_error": 1, "ok": 3})
        intervals = found["intervals"]
        assert intervals["acc"]["estimate"] == pytest.approx(0.4)
        assert intervals["acc_valid"]["estimate"] == pytest.approx(0.5)
        width = intervals["acc_valid"]["high"] - intervals["acc_valid"]["low"]
        assert width / 2 == pytest.approx(3.1824463 / 12**0.5)
        assert intervals["score_valid"]["estimate"] == pytest.approx(2.5)

    def test_waiting_for_the_judge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.JUDGE, "none")
        assert of_answers("A dog.", "") == {
            "items": 2,
            "status": {"empty": 1, "unjudged": 1},
            "intervals": {},
        }

    def test_nothing_valid(self, stated: Stated) -> None:
        assert of_answers("hm", "hm")["intervals"].keys() == {"acc"}


class TestRatings:
    def test_every_cell(self) -> None:
        found = of_ratings(eight())
        kappa = found["kappa"]
        assert {name: one["kappa"] for name, one in kappa["cells"].items()} == {
            f"{PART}/ada": 1,
            f"{PART}/bob": -1,
            f"{TIME}/ada": 0,
            f"{TIME}/bob": pytest.approx(2 / 3),
        }
        assert kappa["by_dimension"][TIME]["percent"] == pytest.approx(100 / 3)
        assert kappa["mean"]["kappa"] == pytest.approx(1 / 6)
        assert kappa["mean"]["band"] == "slight"
        assert kappa["pooled"]["n"] == 8
        assert kappa["cells"][f"{TIME}/ada"]["note"] == "the rating is always 4"
        assert found["ratings"]["by_candidate"]["bob"]["mean"] == 3
        assert found["ratings"]["overall"]["distribution"]["4"] == 3
        assert found["leniency"]["by_dimension"][TIME]["value"] == 1
        assert (found["judge"], found["items"], found["status"]) == ("model", 8, {"ok": 8})

    def test_failures_and_forms(self) -> None:
        made = eight(fell_back=True)
        made.append(rated("[[4]]", rated_doc(3)))
        made.append(rated("hm", rated_doc(4)))
        found = of_ratings(made)
        assert found["forms"] == {"no_object": 1, "no_reason": 1}
        assert found["fell_back"] == 8
        assert found["status"] == {"ok": 9, "unparsed": 1}
        assert found["ratings"]["overall"]["failed"] == 1
        assert (found["kappa"]["pooled"]["n"], found["kappa"]["pooled"]["missing"]) == (8, 2)

    def test_no_reference(self) -> None:
        found = of_ratings([rated(4, rated_doc(n)) for n in (1, 2)])
        for name in ("mean", "pooled"):
            assert found["kappa"][name]["kappa"] is None
            assert found["kappa"][name]["reason"] == "there is no reference yet"
        assert found["leniency"]["overall"]["reason"] == "there is no reference yet"
        assert found["ratings"]["overall"]["mean"] == 4

    def test_order_does_not_matter(self) -> None:
        mixed = eight()
        random.Random(2).shuffle(mixed)
        assert of_ratings(mixed) == of_ratings(eight())
