"""MAIA's criterion: prompt, schema, score."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.maia import judge


def test_everything_reaches_the_judge() -> None:
    references = [f"risposta {number}" for number in range(8)]
    fields = {"question": "Che cosa?", "references": references, "candidate": "un'«altra»\n{x}"}
    system, user = render(judge.criterion(), fields)
    for text in ["Che cosa?", "un'«altra»\n{x}", *references]:
        assert text in user["content"]
    assert "JSON" in system["content"]  # JSON mode insists on the word


def test_the_users_prompt_replaces_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "maia" / "judge.yml"
    file.parent.mkdir()
    file.write_text("system: mine\nuser: '{question} {references} {candidate}'\n")
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(tmp_path))
    assert judge.criterion().system == "mine"
    shown = (judge.prompt().hash, judge.prompt().source)
    assert shown == (judge.criterion().prompt_hash, str(file))
