"""Which judges can do it and with how much room; the user's prompts in place of ours."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges.config import MAX_TOKENS, REASONING_TOKENS
from lmms_eval_tasks.movierecapsqa import judge

KEY = "sk-planted-0123456789"


class TestPrompts:
    """The user's prompts in place of ours."""

    @pytest.fixture
    def mine(self, tmp_path: Path) -> Path:
        file = tmp_path / "movierecapsqa" / "judge.yml"
        file.parent.mkdir()
        shutil.copy(Path(judge.__file__).parent / "prompts" / "judge.yml", file)
        return file

    def edited(self, file: Path, **changes: str | None) -> Path:
        parts = yaml.safe_load(file.read_text(encoding="utf-8")) | changes
        kept = {name: text for name, text in parts.items() if text is not None}
        file.write_text(yaml.safe_dump(kept), encoding="utf-8")
        return file.parent.parent

    def test_they_replace_ours(self, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = self.edited(mine, relevance="Rate the relevance.", claims_system="List it.")
        assert "Rate the relevance." in judge.dimension_criterion("relevance", 2, folder).template
        assert "Rate the relevance." not in judge.dimension_criterion("relevance", 2).template
        monkeypatch.setenv(settings.PROMPTS, str(folder))
        assert "Rate the relevance." in judge.dimension_criterion("relevance", 3).template
        assert judge.claims_criterion().system == "List it."
        hashed = judge.claims_criterion().prompt_hash
        assert hashed == judge.dimension_criterion("coherence", 7).prompt_hash
        assert judge.describe("none")["prompt"] == {"hash": hashed, "source": str(mine)}
        assert judge.prompt_name() == f"{mine} ({hashed})"

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"context": "{facts}"}, r"\{dialogue\}"),
            ({"context": "{question} {facts} {dialogue}"}, r"\{question\}"),
            ({"system": "About {question}"}, r"\{question\}"),
            ({"reply": "{question} {claims}"}, r"\{words\}"),
            ({"claims": "{question} {candidate} {facts}"}, r"\{facts\}"),
            ({"coherence": None}, "coherence"),
            ({"factuality": "Rate {claims}"}, r"\{claims\}"),
        ],
    )
    def test_what_does_not_fit_stops_the_run(
        self,
        changes: dict[str, str | None],
        said: str,
        mine: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv(settings.PROMPTS, str(self.edited(mine, **changes)))
        with pytest.raises(PromptError, match=f"judge.yml.*{said}"):
            judge.check("none")


class TestConfig:
    """Which judges can do it, and with how much room."""

    def test_the_papers_judge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(JudgeError, match=r"gpt-4\.1-mini needs a key"):
            judge.check()
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        judge.check()
        assert judge.config(env={"OPENAI_API_KEY": KEY}).model == judge.PAPER_JUDGE
        described = judge.describe()
        assert described["comparable"] is True
        assert (described["max_tokens"], described["timeout"]) == (judge.REPLY_TOKENS, 180)
        assert "planted" not in str(described)

    def test_the_users_own_room_stays(self, tmp_path: Path) -> None:
        file = tmp_path / "judge.yml"
        file.write_text("model: m\nbase_url: http://localhost:1/v1\nmax_tokens: 700\ntimeout: 9\n")
        config = judge.config(str(file), {})
        assert (config.sampling.max_tokens, config.timeout) == (700, 9)
        plain = judge.config("m@http://localhost:1/v1", {})
        assert plain.sampling.max_tokens == judge.REPLY_TOKENS > MAX_TOKENS
        reasoning = judge.config("o3@http://localhost:1/v1", {})
        assert reasoning.sampling.max_tokens == REASONING_TOKENS >= judge.REPLY_TOKENS

    def test_none_judges_later_and_rules_cannot(self) -> None:
        judge.check("none")
        with pytest.raises(JudgeError, match=f"cannot decide {judge.CLAIMS}, {judge.LABELS}"):
            judge.check("offline")

    @pytest.mark.parametrize("kind", ["panel", "debate"])
    def test_several_judges_have_no_claims_in_common(self, kind: str, tmp_path: Path) -> None:
        file = tmp_path / "judge.yml"
        members = "[a@http://localhost:1/v1, b@http://localhost:1/v1]"
        file.write_text(f"{kind}: {members}\n")
        for refuses in (judge.check, judge.config, judge.describe):
            with pytest.raises(JudgeError, match=r"several judges.*name one model") as caught:
                refuses(str(file))
            assert "\n" not in str(caught.value)

    def test_a_recording_without_labels_is_refused_by_name(self, tmp_path: Path) -> None:
        file = tmp_path / "recorded.jsonl"
        fields = {"question": "q", "candidate": "a"}
        line = {"criterion": judge.CLAIMS, "fields": fields, "reply": '{"claims": []}'}
        file.write_text(json.dumps(line))
        with pytest.raises(JudgeError, match=f"cannot decide {judge.LABELS}:"):
            judge.check(f"replay:{file}")
