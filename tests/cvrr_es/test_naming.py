"""What the model under test is called: it must not depend on where a checkpoint lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import running, settings
from lmms_eval_tasks.cvrr_es import data
from tests.cvrr_es.release_files import predict
from tests.cvrr_es.scored import PART


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"pretrained": "Qwen/Qwen2.5-VL-7B-Instruct"}, "Qwen2.5-VL-7B-Instruct"),
        ({"pretrained": "/data/models/tiny/"}, "tiny"),
        ({"model_version": "gpt-4o", "pretrained": "x/y"}, "gpt-4o"),
        ({"model": "openai/gpt-4o-mini"}, "gpt-4o-mini"),
        ({"pretrained": " / "}, "some_class"),
        ({"pretrained": 7}, "some_class"),
        ({}, "some_class"),
    ],
)
def test_of_a_model(arguments: dict[str, Any], name: str) -> None:
    with running.model(running.Model("some_class", "chat", arguments)):
        assert data.running_model() == name


def test_without_our_hook() -> None:
    assert data.running_model() == "model"


def test_the_users_name_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    with running.model(running.Model("c", "chat", {"pretrained": "a/b"})):
        monkeypatch.setenv(settings.CVRR_NAME, "  ")
        assert data.running_model() == "b"
        monkeypatch.setenv(settings.CVRR_NAME, " GPT-4o mini ")
        assert data.running_model() == "GPT-4o mini"


def test_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert data.candidates() == []
    for name in ("bob", "ada"):
        predict(tmp_path / "all" / name, PART, [("A?", "a")])
    predict(tmp_path / "zoe", PART, [("A?", "a")])
    monkeypatch.setenv(settings.CVRR_CANDIDATES, f"{tmp_path / 'zoe'}, {tmp_path / 'all'}")
    assert data.candidates() == ["zoe", "ada", "bob"]
    monkeypatch.setenv(settings.CVRR_CANDIDATES, str(tmp_path / "nothing"))
    assert data.candidates() == []
