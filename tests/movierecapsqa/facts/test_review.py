"""What a person is told to look at: cases as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.movierecapsqa.facts import review

CASES = json.loads(
    (Path(__file__).parents[2] / "cases" / "movierecapsqa_facts_checks.json").read_text(
        encoding="utf-8"
    )
)


@pytest.mark.parametrize("case", CASES["leaks"], ids=lambda case: case["question"])
def test_leaks(case: dict[str, Any]) -> None:
    assert review.leaks(case["question"], case["answer"]) is case["leaks"]


@pytest.mark.parametrize("case", CASES["names"], ids=lambda case: case["question"])
def test_names(case: dict[str, Any]) -> None:
    assert review.names_left(case["question"], case["facts"]) == case["names"]


def test_a_question_that_is_asked_twice_is_told_twice() -> None:
    questions = [
        {"qid": 0, "question": "What does he do?", "datasetAnswer": "Runs."},
        {"qid": 1, "question": "what does  he do", "datasetAnswer": "Falls."},
        {"qid": 4, "question": "Why?"},
    ]
    found = review.review({"id": "v.1", "facts": ["Ann runs."], "questions": questions})
    assert found == {
        "answer": [],
        "name": [],
        "repeated": ["v.1/0: What does he do?", "v.1/1: what does  he do"],
    }
