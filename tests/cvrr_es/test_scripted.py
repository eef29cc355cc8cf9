"""The scripted model's ratings: known worth, on the scale, different in every round."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import sample_answers
from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study import replies
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import players
from tests.cvrr_es.scored import doc, rated_doc

OTHERS = [{"judge": "Zoe", "rating": 3.0}]


def rating(given: dict[str, Any], worth: str) -> Any:
    return json.loads(sample_answers.reply(given, worth))["rating"]


@pytest.mark.parametrize("reference", [1.0, 2.0, 3.0, 4.0, 5.0])
class TestWorth:
    def test_right(self, reference: float) -> None:
        assert rating(rated_doc(reference=reference), "right") == reference

    @pytest.mark.parametrize("others", [[], OTHERS])
    def test_wrong(self, reference: float, others: list[Any]) -> None:
        """Off by one or two, on the scale; more lenient where others' ratings are shown."""
        found = {
            rating(rated_doc(n, reference=reference, others=others), "wrong") for n in range(40)
        }
        assert reference not in found
        assert found <= RATINGS.keys()
        assert all(abs(one - reference) <= 2 for one in found)
        if others and reference < 5:
            assert min(found) > reference


def test_without_a_reference() -> None:
    assert rating(rated_doc(), "right") == 3


def test_unreadable() -> None:
    text = sample_answers.reply(rated_doc(), "unreadable")
    assert replies.read(text).status == "unparsed"


def test_rounds_are_drawn_anew() -> None:
    names = {
        sample_answers.item(rated_doc(round=one)) for one in ("first", "collective", "mixture")
    }
    assert len(names) == 3


def test_the_player_takes_it_for_judge_tasks_alone() -> None:
    replies = {players.scripted(rated_doc(n, reference=4.0)) for n in range(60)}
    assert sample_answers.UNREADABLE in replies
    assert json.dumps({"rating": 4, "reason": "played: right"}) in replies
    answers = {players.scripted(doc(n)) for n in range(60)}
    assert "A dog runs away." in answers
    assert not [one for one in answers if "rating" in one]


@pytest.mark.parametrize("field", ["id", "round", "reference_rating", "others"])
def test_a_doc_that_lacks_a_field(field: str) -> None:
    given = rated_doc(reference=2.0)
    del given[field]
    with pytest.raises(TasksError, match=f"docs of a CVRR judge task: .*{field}"):
        sample_answers.reply(given, "wrong")
