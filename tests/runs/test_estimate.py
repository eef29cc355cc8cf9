"""What a run would cost, before it is started; what the command prints: tests/golden."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.judges import costs, resolve
from lmms_eval_tasks.maia import judge as judge_of_maia
from lmms_eval_tasks.runs import estimate

TASK = "maia_oevqa"


@pytest.fixture(autouse=True)
def sample(sample_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv(settings.CACHE, str(sample_root.parent))
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path))


def judge(spec: str = "gpt-4o"):
    return resolve(spec, {"OPENAI_API_KEY": "x"}, default_model="gpt-4o")


def test_dollars_follow_from_tokens_and_a_batch_is_half() -> None:
    found = estimate.estimate(TASK, judge())
    assert found.generations == found.verdicts == found.calls == 48
    assert found.reply_tokens == found.calls * costs.REPLY_TOKENS
    expected = (found.judge_tokens * 2.5 + found.reply_tokens * 10) / 1e6
    assert found.cost == pytest.approx(expected)
    assert found.batch_cost == pytest.approx(expected / 2)
    assert estimate.estimate(TASK, judge("m@http://localhost/v1")).cost is None


def test_a_debate_asks_each_agent_twice_at_most(tmp_path: Path) -> None:
    file = tmp_path / "debate.yml"
    file.write_text("debate: [gpt-4o, gpt-4.1]\nconsolidator: o3\n")
    found = estimate.estimate(TASK, judge(str(file)), limit=2)
    assert (found.verdicts, found.calls) == (2, 2 * 5)
    assert "twice the tokens" in found.notes[-1]


def test_a_panels_members_are_all_asked(tmp_path: Path) -> None:
    file = tmp_path / "panel.yml"
    file.write_text("panel: [gpt-4o, gpt-4.1, o3]\n")
    found = estimate.estimate(TASK, judge(str(file)), limit=2)
    assert (found.verdicts, found.calls, len(found.notes)) == (2, 6, 3)
    asked = [
        (
            judge_of_maia.agreement_criterion(),
            {"question": "", "references": [], "candidate": ""},
            "x",
        )
    ]
    one, three = (costs.plan(judge(spec), asked) for spec in ("gpt-4o", str(file)))
    assert (one.calls, three.calls) == (1, 3)  # also of a check of a judge, whose replies are known
