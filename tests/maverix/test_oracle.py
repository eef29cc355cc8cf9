"""The oracle sees only the rendered request, so a lost question or a wrong letter shows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.host import names
from lmms_eval_tasks.maverix import tasks
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.sample import players
from tests.maverix.runs import docs


@pytest.fixture(autouse=True)
def sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


@pytest.fixture
def key(sample_root: Path) -> players.AnswerKey:
    return players.AnswerKey.load(sample_root / "maverix" / "key.json")


def replies(asked: list[dict[str, Any]], key: players.AnswerKey) -> list[str]:
    """What the oracle says to the very prompts that a model is given."""
    return [players.oracle(names.doc_to_text(doc), key) for doc in asked]


@pytest.mark.parametrize("mode", MODES)
def test_every_letter(mode: str, key: players.AnswerKey) -> None:
    for name in (f"maverix_{mode}", f"maverix_long_{mode}", f"maverix_{mode}_circular"):
        asked = docs(name)
        assert replies(asked, key) == [doc["answer"] for doc in asked]


@pytest.mark.parametrize("mode", MODES)
def test_open_answers_and_lures(mode: str, key: players.AnswerKey) -> None:
    for name in (f"maverix_{mode}_oe", f"maverix_long_{mode}_oe"):
        asked = docs(name)
        assert replies(asked, key) == [doc["reference"] for doc in asked]
        drawn = [players.coin(names.doc_to_text(doc), key) for doc in asked]
        right = [reply == doc["reference"] for reply, doc in zip(drawn, asked, strict=True)]
        assert 5 < sum(right) < 35


@pytest.mark.parametrize(("kind", "part"), [("maverix_vs", "choice"), ("maverix_s_oe", "open")])
def test_a_prompt_that_lost_its_question_or_options_shows(
    kind: str, part: str, key: players.AnswerKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, whole = docs(kind), tasks.task_prompts()
    assert players.UNKNOWN not in replies(asked, key)
    for lost in ("{question}", "{options}"):
        if lost in whole.text[part]:
            text = {**whole.text, part: whole.text[part].replace(lost, "")}
            broken = dataclasses.replace(whole, text=text)
            monkeypatch.setattr(tasks, "task_prompts", lambda broken=broken: broken)
            given = replies(asked, key)
            right = [doc["answer" if "answer" in doc else "reference"] for doc in asked]
            assert not [reply for reply, truth in zip(given, right, strict=True) if reply == truth]
            if lost == "{question}":
                assert set(given) == {players.UNKNOWN}
