"""The released answers with published scores: how they are read, and what our scores count as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import published
from lmms_eval_tasks.movierecapsqa.judge import Context
from lmms_eval_tasks.runs.agreement import task as agreement_task
from tests.movierecapsqa.asking import Item, at, claimed, labelled, script
from tests.movierecapsqa.entries import SPOKEN, entry, question, write

GOOD = {"factuality": 4, "relevance": 5}


def answered(model: str, text: Any, scores: Any = GOOD) -> dict[str, Any]:
    return {"model": model, "answer": text, "scores": scores}


def data(folder: Path, *model_answers: dict[str, Any], **changes: Any) -> published.Data:
    asked = question(7, modelAnswers=list(model_answers), **changes)
    return published.read(write(folder, [entry(questions=[asked])]))


def test_names_are_those_of_table_4_and_people_are_one_row(tmp_path: Path) -> None:
    found = data(
        tmp_path,
        *(answered(name, "a") for name in ("LLaVa-NeXT.response", "amazon_nova.response", "mine")),
        humanAnswer={"answer": "first", "scores": GOOD},
        humanAnswers=[{"answer": "second", "scores": None}],
    )
    assert found.models == ["LLaVA-NeXT-Video", "Amazon Nova Lite", "mine"]
    first = found.answers[0]
    assert (first.question_id, first.video, first.text) == ("talk.1/7", "talk", "a")
    assert first.scores == GOOD
    assert (first.context.segment, first.context.dialogue) == ("talk.1", SPOKEN)
    people = [answer for answer in found.answers if answer.by == published.PEOPLE]
    assert [(a.text, a.number, a.is_scored) for a in people] == [
        ("first", 0, True),
        ("second", 1, False),
    ]


def test_answers_without_scores_are_counted_by_why(tmp_path: Path) -> None:
    found = data(
        tmp_path,
        answered("a", "", None),
        answered("b", None, {}),
        answered("c", "I cannot help with that.", None),
        answered("d", "It rains.", {"factuality": None}),
        answered("e", "It rains.", {"factuality": 0}),
    )
    assert [a.by for a in found.answers if a.is_scored] == ["e", "people"]
    task = agreement_task.load("movierecapsqa", published, found.file, None)
    lines = agreement_task.coverage(task)
    for line in (
        "a: 0 of 1 answers have scores; without: 1 empty",
        "b: 0 of 1 answers have scores; without: 1 empty",
        "c: 0 of 1 answers have scores; without: 1 refused",
        "d: 0 of 1 answers have scores; without: 1 with a text",
        "e: 1 of 1 answers have scores",
    ):
        assert line in lines


def test_what_cannot_be_used_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"talk\.1/7 has two answers of mine"):
        data(tmp_path, answered("mine", "a"), answered("mine.response", "b"))
    with pytest.raises(DataError, match="no answer has published scores"):
        data(tmp_path, answered("mine", "a", None), humanAnswer=...)
    two = [entry(1), entry(2, startTime=9, endTime=8)]
    with pytest.raises(DataError, match=r"1 segments cannot be used:\n  talk.2"):
        published.read(write(tmp_path, two))
    monkeypatch.setenv(settings.ALLOW_BAD_ITEMS, "1")
    found = published.read(write(tmp_path, two))
    assert list(found.left_out) == ["talk.2"]
    task = agreement_task.load("movierecapsqa", published, found.file, None)
    assert any(line.startswith("left out: 1 ") for line in agreement_task.coverage(task))


def test_scores_beside_the_bounds_of_the_labels() -> None:
    context = Context("seg", ("A fact.",), "A line.")

    def judged(text: str, scores: Any, **replies: str) -> tuple[published.Released, Item]:
        one = published.Released("seg/0", "GPT-4o", 0, "video", context, "Who?", text, scores)
        with at(script(**replies)) as (judge, _, _):
            return one, published.judged(judge, one)

    mixed = labelled(["supported", "contradictory"], 4)  # at most 2
    done = [judged("He does.", {**GOOD, "factuality": n}, factuality=mixed) for n in (4, 1)]
    lines = published.checks([*done, judged("Well.", GOOD, claims=claimed([]))])
    assert lines[0] == "claims: 2.0 in each of 2 answers"
    assert lines[1].startswith("answers without a claim: 1 ")
    assert lines[2].startswith("factuality: 2 of 2 scores outside")
    assert lines[2].endswith("1 of 2 published scores too")
    assert lines[4] == "coherence: 0 of 2 scores outside the bounds of their labels"
    # An estimate's stand-ins are replies that can be read.
    planned = published.requests(done[0][0])
    names = ("claims", "factuality", "relevance", "coherence")
    replies = dict(zip(names, (reply for _, _, reply in planned), strict=True))
    assert judged("He does.", GOOD, **replies)[1]["status"] == "ok"
