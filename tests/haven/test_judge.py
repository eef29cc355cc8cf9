"""What HAVEN's judge is shown, which judges can do it, and the user's prompts in place of ours."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.haven import judge
from lmms_eval_tasks.haven.judge import criterion, rate_summary
from lmms_eval_tasks.judges import geval
from tests.conftest import SHARED
from tests.haven.asking import DOCUMENT, REFERENCE, SUMMARY, asked, stated
from tests.local_endpoint import last_user_text

KEY = "sk-planted-0123456789"


def request(document: str = DOCUMENT, summary: str = SUMMARY) -> dict[str, Any]:
    with asked(lambda _: stated(3, {"3": 1.0})) as (asking, endpoint):
        assert rate_summary(asking, REFERENCE, document, summary)["score"] == 3
        (chat,) = endpoint.chats
    found: dict[str, Any] = chat.json
    return found


def test_what_the_judge_is_shown() -> None:
    text = last_user_text(request())
    for part in (REFERENCE, DOCUMENT, SUMMARY):
        assert text.count(part) == 1
    # What is the same for every candidate of a video comes first, for the providers' caches.
    assert text.index(DOCUMENT) < text.index(REFERENCE) < text.index(SUMMARY)
    # The candidate alone stands between tags that it cannot know.
    fence = re.search(r"<(\S+)>\n(.*)\n</\1>", text, re.DOTALL)
    assert fence is not None
    assert fence[2] == SUMMARY
    assert "{" not in text.replace("{red}", "")
    assert "score" in text[text.index(SUMMARY) :]


def test_one_criterion_has_all_of_it() -> None:
    messages = request()["messages"]
    assert len(messages) == 2
    system = messages[0]["content"].lower()
    for word in ("faithful", "coverage", "coheren", "conci", "one rating", "whole number"):
        assert word in system
    for number in range(1, 6):
        assert f"{number} (" in system
    assert list(geval.scale(criterion().schema, "score")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("document", ["", " \n"])
def test_without_a_document(document: str) -> None:
    text = last_user_text(request(document))
    assert "Description of the video:\n(none is given" in text


def test_reasoning_is_not_shown() -> None:
    text = last_user_text(request(summary=f"<think>hm, «what»</think>\n{SUMMARY}"))
    assert SUMMARY in text
    assert "hm" not in text


def test_fields_are_those_of_a_request() -> None:
    doc = {"summary": ["A man paints a boat.", "He falls."], "document": ["A tin.", "A dog."]}
    made = judge.fields(doc, "x")
    assert made == {
        "reference": "A man paints a boat. He falls.",
        "document": "A tin. A dog.",
        "candidate": "x",
    }
    assert judge.fields({**doc, "document": []}, "x")["document"].startswith("(none is given")


def test_the_prompts_are_not_the_papers_words() -> None:
    paper = SHARED / "papers" / "haven.txt"
    if not paper.is_file():
        pytest.skip(f"no paper at {paper}")
    theirs = " ".join(re.findall(r"\w+", paper.read_text(encoding="utf-8").lower()))
    own = " ".join([criterion().system, criterion().template]).lower()
    words = re.findall(r"\w+", own)
    assert len(words) > 150
    runs = [" ".join(words[place : place + 7]) for place in range(len(words) - 6)]
    assert [run for run in runs if run in theirs] == []


class TestPrompts:
    """The user's prompts in place of ours."""

    @pytest.fixture
    def mine(self, tmp_path: Path) -> Path:
        file = tmp_path / "haven" / "judge.yml"
        file.parent.mkdir()
        shutil.copy(Path(judge.__file__).parent / "prompts" / "judge.yml", file)
        return file

    def edited(self, file: Path, **changes: str | None) -> Path:
        parts = yaml.safe_load(file.read_text(encoding="utf-8")) | changes
        kept = {name: text for name, text in parts.items() if text is not None}
        file.write_text(yaml.safe_dump(kept), encoding="utf-8")
        return file.parent.parent

    def test_they_replace_ours(self, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = self.edited(mine, geval="Rate it.", no_document="no document")
        assert criterion(folder).system == "Rate it."
        assert criterion().system != "Rate it."
        ours = criterion().prompt_hash
        monkeypatch.setenv(settings.PROMPTS, str(folder))
        assert criterion().system == "Rate it."
        sent = request(document="")
        assert sent["messages"][0]["content"] == "Rate it."
        assert "Description of the video:\nno document" in last_user_text(sent)
        hashed = criterion().prompt_hash
        assert hashed != ours
        assert judge.describe("none")["prompt"] == {"hash": hashed, "source": str(mine)}
        assert judge.prompt_name() == f"{mine} ({hashed})"

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"show": "{document} {candidate}"}, r"\{reference\}"),
            ({"show": "{reference} {candidate}"}, r"\{document\}"),
            ({"show": "{reference} {document}"}, r"\{candidate\}"),
            ({"show": "{reference} {document} {candidate} {video}"}, r"\{video\}"),
            ({"geval": "Rate {candidate}"}, r"\{candidate\}"),
            ({"geval": None}, "geval"),
            ({"score": None}, "score"),
            ({"no_document": None}, "no_document"),
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
        with pytest.raises(PromptError, match=f"judge.yml.*{said}") as caught:
            judge.check("none")
        assert "\n" not in str(caught.value)


class TestConfig:
    """Which judges can do it."""

    def test_ours_is_never_the_papers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv(settings.JUDGE, raising=False)
        with pytest.raises(JudgeError, match=r"gpt-4\.1-mini needs a key"):
            judge.check()
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        judge.check()
        assert judge.config(env={"OPENAI_API_KEY": KEY}).model == judge.PAPER_JUDGE
        described = judge.describe()
        assert described["comparable"] is False
        assert described["warning"] == f"judged by gpt-4.1-mini: {judge.WARNING}"
        assert "planted" not in json.dumps(described)

    def test_the_way_of_rating_is_described(self) -> None:
        described = judge.describe("m@http://localhost:1/v1")
        assert described["geval"] == {
            "top_logprobs": 20,
            "samples_without_logprobs": 5,
            "temperature_of_samples": 1.0,
        }
        assert described["prompt"]["source"] == "lmms_eval_tasks/haven/prompts/judge.yml"
        assert described["prompt"]["hash"] == criterion().prompt_hash
        assert described["warning"] == f"judged by m@http://localhost:1/v1: {judge.WARNING}"
        assert json.loads(json.dumps(described)) == described
        assert "not judged yet" in judge.describe("none")["warning"]

    def test_none_judges_later_and_rules_cannot(self) -> None:
        judge.check("none")
        with pytest.raises(JudgeError, match="cannot decide haven_geval"):
            judge.check("offline")

    @pytest.mark.parametrize("kind", ["panel", "debate"])
    def test_several_judges_have_no_rating_of_one_kind(self, kind: str, tmp_path: Path) -> None:
        file = tmp_path / "judge.yml"
        file.write_text(f"{kind}: [a@http://localhost:1/v1, b@http://localhost:1/v1]\n")
        for refuses in (judge.check, judge.config, judge.describe):
            with pytest.raises(JudgeError, match=r"several judges.*name one model") as caught:
                refuses(str(file))
            assert "\n" not in str(caught.value)

    def test_a_verdict_carries_its_setup(self) -> None:
        with asked(lambda _: stated(3, {"3": 1.0})) as (asking, _):
            made = rate_summary(asking, REFERENCE, DOCUMENT, SUMMARY)
            assert made["verdict"]["setup"] == judges.setup(asking.config, criterion())


def test_importing_brings_no_client() -> None:
    code = (
        "import sys, lmms_eval_tasks.haven.judge; "
        "print({'openai', 'torch', 'transformers'} & {*sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
