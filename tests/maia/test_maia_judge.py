"""MAIA's criterion: prompt, schema, score, and the choice of judge before a run."""

import json

import pytest

from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import candidate, offline, reader
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.maia import judge


def test_the_name_is_the_one_the_rules_know():
    assert judge.criterion().name == judge.NAME == offline.REFERENCE_AGREEMENT


def test_everything_reaches_the_judge():
    references = [f"risposta {number}" for number in range(8)]
    fields = {"question": "Che cosa?", "references": references, "candidate": "un'«altra»\n{x}"}
    system, user = render(judge.criterion(), fields)
    for text in ["Che cosa?", "un'«altra»\n{x}", *references]:
        assert text in user["content"]
    assert "JSON" in system["content"]  # JSON mode insists on the word


@pytest.mark.parametrize(("correct", "score"), [("true", 1.0), ("false", 0.0)])
def test_score(correct, score):
    criterion = judge.criterion()
    reply = reader.read(f'{{"reason": "r", "correct": {correct}}}', criterion.schema)
    assert criterion.score(reply) == score


def test_the_users_prompt_replaces_ours(tmp_path, monkeypatch):
    file = tmp_path / "maia" / "judge.yml"
    file.parent.mkdir()
    file.write_text("system: mine\nuser: '{question} {references} {candidate}'\n")
    assert judge.criterion(tmp_path).system == "mine"
    assert judge.criterion().system != "mine"
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(tmp_path))
    assert judge.criterion().system == "mine"
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "offline")
    assert judge.describe()["prompt"] == {
        "hash": judge.criterion().prompt_hash,
        "source": str(file),
    }


def test_a_users_prompt_that_does_not_fit_stops_the_run(tmp_path, monkeypatch):
    file = tmp_path / "maia" / "judge.yml"
    file.parent.mkdir()
    file.write_text("system: mine\nuser: '{question} {candidate}'\n")
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(tmp_path))
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "offline")
    with pytest.raises(PromptError, match=r"\{references\}"):
        judge.check()


def test_check(monkeypatch):
    with pytest.raises(JudgeError, match="LMMS_EVAL_TASKS_JUDGE=offline"):
        judge.check()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    judge.check()
    assert judge.config().model == "gpt-4o"
    assert judge.describe()["comparable"] is True
    assert "planted" not in json.dumps(judge.describe())
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "offline")
    judge.check()
    assert judge.config().provider == "offline"
    assert judge.config("none").provider == "none"


def test_without_a_usable_judge_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As under the host's own commands where the hook could not check it before the run."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("LMMS_EVAL_TASKS_JUDGE", raising=False)
    for _ in range(3):
        verdict = candidate.usable(judge.config).verdict(judge.criterion(), {})
        assert (verdict.score, verdict.status) == (None, "skipped")
    said = capsys.readouterr().err
    assert said.count("answers are not judged now") == 1
    assert "OPENAI_API_KEY" in said
