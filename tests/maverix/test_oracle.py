"""The oracle sees only the rendered request, so a lost question or a wrong letter shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from lmms_eval_tasks.maverix import data
from lmms_eval_tasks.maverix.labels import LETTERS
from lmms_eval_tasks.models import players


@pytest.fixture(autouse=True)
def sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


@pytest.fixture
def key(sample_root: Path) -> players.AnswerKey:
    return players.AnswerKey.load(sample_root / "maverix" / "key.json")


def docs(name: str) -> list[dict[str, Any]]:
    return list(getattr(data, name)(Dataset.from_list(data.rows(data.load()))))


def rendered(doc: dict[str, Any]) -> str:
    lines = [doc["question"]]
    lines += [f"{x}. {text}" for x, text in zip(LETTERS, doc.get("options", ()), strict=False)]
    return "Subtitles:\n[00:01.0 - 00:01.8] Word A. B.\n\n" + "\n".join(lines)


@pytest.mark.parametrize("name", ["choice_av", "choice_long_s", "circular_v"])
def test_every_letter(name: str, key: players.AnswerKey) -> None:
    asked = docs(name)
    assert [players.oracle(rendered(doc), key) for doc in asked] == [doc["answer"] for doc in asked]


def test_open_answers_and_lures(key: players.AnswerKey) -> None:
    asked = docs("open_vs")
    assert [players.oracle(rendered(doc), key) for doc in asked] == [d["reference"] for d in asked]
    drawn = [players.coin(rendered(doc), key) for doc in asked]
    right = [reply == doc["reference"] for reply, doc in zip(drawn, asked, strict=True)]
    assert 5 < sum(right) < 35


def test_without_question_or_right_option_it_does_not_know(key: players.AnswerKey) -> None:
    doc = docs("choice_a")[0]
    text = rendered(doc)
    assert players.oracle(text.replace(doc["question"], ""), key) == players.UNKNOWN
    right = doc["options"][LETTERS.index(doc["answer"])]
    assert players.oracle(text.replace(right, "1 Hz"), key) == players.UNKNOWN
    twice = text.replace(doc["options"][LETTERS.index(doc["answer"]) - 1], right)
    assert players.oracle(twice, key) == players.UNKNOWN


def test_scripted_is_right_as_often_as_it_says() -> None:
    for name in ("choice_a", "circular_a", "open_a"):
        asked = docs(name)
        replies = [players.scripted(doc) for doc in asked]
        target = "reference" if name == "open_a" else "answer"
        right = sum(reply == doc[target] for reply, doc in zip(replies, asked, strict=True))
        assert 0.35 * len(asked) < right < len(asked)
