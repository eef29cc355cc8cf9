"""What a model is given, what its reply is worth, and saved runs scored again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.cvrr_es import sample
from lmms_eval_tasks.cvrr_es.data import running_model
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, HINT, JUDGE_TASKS
from lmms_eval_tasks.cvrr_es.sample import FLAT, MODELS
from lmms_eval_tasks.cvrr_es.settings import (
    CVRR_CANDIDATES,
    CVRR_NAME,
    CVRR_RATINGS,
    CVRR_REFERENCE,
)
from lmms_eval_tasks.cvrr_es.tasks import BENCHMARK
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.judges.verdict import Status, Verdict
from lmms_eval_tasks.runs import prepare, rescore, scoring
from tests.cvrr_es.scored import (
    PART,
    Stated,
    answered,
    doc,
    rated,
    rated_doc,
    row,
    saved_run,
    write_ratings,
)

ANSWER = f"cvrr_es_{PART}"


@pytest.fixture
def on_sample(sample_folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packaged sample with its candidates, ratings and reference."""
    folder = sample_folder
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, str(folder.parent))
    monkeypatch.setenv(CVRR_CANDIDATES, str(folder / sample.PREDICTIONS))
    monkeypatch.setenv(CVRR_RATINGS, str(folder / sample.FIRST))
    monkeypatch.setenv(CVRR_REFERENCE, str(folder / sample.REFERENCE))
    return folder


def docs(task: str) -> list[Any]:
    return prepare.usable_docs(BENCHMARK, task)


def test_no_reference_and_no_judge_in_a_request(on_sample: Path) -> None:
    """But for candidates' answers that hold it word for word; the debate alone sees it."""
    truth = {one["id"]: one for name in DIMENSIONS for one in docs(f"cvrr_es_{name}")}
    for task in JUDGE_TASKS:
        searched = 0
        for one in docs(task):
            sent = json.dumps(task_functions.doc_to_messages(one), default=str, ensure_ascii=False)
            assert one["question"] in sent
            for name in (*MODELS, FLAT, "invented"):
                assert name not in sent
            for text in (truth[one["question_id"]][name] for name in ("reference", "lure")):
                if text not in one["answer"]:
                    searched += 1
                    assert text not in sent, one["id"]
        assert searched > 75


def test_the_bare_question_and_with_the_hint(on_sample: Path) -> None:
    """The same docs, judged alike; only the text before the question is another."""
    bare, hint = docs(ANSWER), docs(f"{HINT}{PART}")
    assert [{**one, "task": ANSWER} for one in hint] == bare
    for one, other in zip(bare, hint, strict=True):
        assert task_functions.doc_to_text(one) == one["question"]
        told = task_functions.doc_to_text(other)
        assert told.endswith(one["question"])
        assert "does not happen in the video" in told


def test_what_the_model_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not depend on where a checkpoint lies."""
    assert running_model() == "model"
    for arguments, name in (
        ({"pretrained": "Qwen/Qwen2.5-VL-7B-Instruct"}, "Qwen2.5-VL-7B-Instruct"),
        ({"pretrained": "/data/models/tiny/"}, "tiny"),
        ({"model_version": "gpt-4o", "pretrained": "x/y"}, "gpt-4o"),
        ({"pretrained": " / "}, "some_class"),
        ({"pretrained": 7}, "some_class"),
    ):
        with context.begun(context.RunModel("some_class", "chat", arguments)):
            for given, expected in (("  ", name), (" GPT-4o mini ", "GPT-4o mini")):
                monkeypatch.setenv(CVRR_NAME, given)
                assert running_model() == expected


def test_the_judge_is_asked_by_item(stated: Stated) -> None:
    with context.begun(context.RunModel("c", "chat", {"pretrained": "a/tiny"})):
        item = answered("<think>A cat?</think> right 4.5 ", place=7)
    (fields,) = stated.asked
    assert fields == {
        "id": "partial_actions/007",
        "question": "What happens?",
        "reference": "A dog runs away.",
        "candidate": "right 4.5",
    }
    assert (item["candidate"], item["answer"]) == ("tiny", "right 4.5")
    assert (item["status"], item["right"], item["points"]) == ("ok", 1.0, 4.5)
    assert item["media"] is None  # no such file: the reply counts all the same
    assert item["verdicts"]["correct"]["raw"].startswith('{"pred": "correct"')


def test_a_verdict_whose_score_cannot_be_told() -> None:
    """Correct is 1.0, which must not pass for 1 of 5."""
    told = Verdict(1.0, Status.OK, raw="yes, correct", judge="by hand")
    kept = BENCHMARK.tasks[ANSWER].log_fields(doc())
    item = scoring.scored(BENCHMARK.tasks[ANSWER], kept, "x", lambda asks: [told])
    assert (item["right"], item["points"], item["status"]) == (1.0, None, "ok")


# --- saved runs -----------------------------------------------------------------------------------


def test_a_later_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's of now, or the run's own; it replaces the run's whole."""

    def rescored(reference: float | None, *named: tuple[int, int]) -> tuple[Any, list[str]]:
        made = [rated(n, rated_doc(n, reference=reference and n)) for n in (1, 3, 5)]
        rows = [row(*one, "debate", round="reference") for one in named]
        file = write_ratings(tmp_path / "reference.jsonl", rows)
        monkeypatch.setenv(CVRR_REFERENCE, str(file) if rows else "")
        found = rescore.rescore_saved(BENCHMARK, [saved_run("cvrr_judge", made)], None)
        (own,) = found.numbers
        numbers, missing = own.values, own.details["kappa"]["pooled"]["missing"]
        told = [line for line in found.lines() if "no rating of these answers" in line]
        return (numbers["kappa"], numbers["leniency"], missing), told

    assert rescored(None) == ((None, None, 3), [])
    assert rescored(1) == ((1, 0, 0), [])
    assert rescored(None, (1, 5), (3, 3), (5, 1)) == ((-1, 0, 0), [])
    part = pytest.approx(1 - 2 * 1 / (2 * 23 - 2 * 4 * 5))
    assert rescored(1, (1, 2), (3, 3)) == ((part, -0.5, 1), [])
    numbers, (note,) = rescored(1, (9, 2))
    assert numbers == (None, None, 3)
    assert note.startswith("cvrr_judge: the reference has no rating of these answers")


def test_a_rating_that_lacks_its_reference() -> None:
    """None is no reference; without the field nobody knows."""
    items = [rated(4, rated_doc(place)) for place in (1, 2)]
    del items[1]["reference_rating"]
    with pytest.raises(
        DataError, match=rf"{PART}/002.* has no `reference_rating`; delete its line"
    ):
        rescore.rescore_saved(BENCHMARK, [saved_run("cvrr_judge", items)], None)
