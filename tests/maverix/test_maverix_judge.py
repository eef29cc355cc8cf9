"""The judge of open answers: four requests, whole numbers from 0 to 5, and whose fault a gap is."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.config import OPENAI, JudgeConfig
from lmms_eval_tasks.judges.verdict import Criterion, Verdict
from lmms_eval_tasks.maverix import judge, scores, utils
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from tests.local_endpoint import Fault, LocalEndpoint, error, last_user_text, refused, truncated
from tests.maverix import runs
from tests.maverix.runs import sample

__all__ = ["sample"]
pytestmark = pytest.mark.usefixtures("sample")
FIRST = scores.FIRST["open"]


def open_item(reply: str, answer: Callable[[dict[str, Any]], str | Fault]) -> Any:
    """The item of the sample's first open question, and the requests of a judge at an endpoint."""
    doc = runs.docs("open")[0]
    with LocalEndpoint(answer, model="local") as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.JUDGE, f"rater@{endpoint.url}")
        item = utils.open_process_results(doc, [reply])[FIRST]
    return doc, item, [chat.json for chat in endpoint.chats]


def by_dimension(ratings: Mapping[str, str | Fault]) -> Callable[[dict[str, Any]], str | Fault]:
    return lambda request: ratings[runs.dimension_of(request)]


class TestRequests:
    """What the judge is asked."""

    def test_one_request_for_each_dimension(self) -> None:
        given = dict(zip(DIMENSIONS, "5320", strict=True))
        replies = {name: f'{{"score": {score}}}' for name, score in given.items()}
        doc, item, chats = open_item("<think>hm</think> «It» is {red}.", by_dimension(replies))
        assert [runs.dimension_of(chat) for chat in chats] == list(DIMENSIONS)
        for chat in chats:
            text = last_user_text(chat)
            for part in (doc["question"], doc["reference"], "«It» is {red}."):
                assert part in text
            assert "hm" not in text.replace("hmm", "")
        found = {name: rated["score"] for name, rated in item["dimensions"].items()}
        assert found == {name: int(score) for name, score in given.items()}
        assert all(type(score) is int for score in found.values())
        assert (item["status"], item["candidate"]) == ("ok", "«It» is {red}.")

    def test_the_paraphrase_is_judged_as_what_was_asked(self) -> None:
        docs = runs.docs("open")[:2]
        with LocalEndpoint(lambda _: '{"score": 1}') as endpoint:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv(settings.JUDGE, f"rater@{endpoint.url}")
                utils.open_process_results(docs[1], ["red"])
            texts = {last_user_text(chat.json) for chat in endpoint.chats}
        (text,) = texts
        assert docs[1]["question"] in text
        assert docs[0]["question"] not in text

    def test_system_prompts_differ(self) -> None:
        found = judge.criteria()
        assert tuple(found) == DIMENSIONS
        assert len({one.system for one in found.values()}) == 4
        assert len({one.template for one in found.values()}) == 1
        assert {one.name for one in found.values()} == {f"maverix_{name}" for name in DIMENSIONS}

    @pytest.mark.parametrize(
        ("reply", "status", "score"),
        [
            ("", "empty", 0),
            ("I'm sorry, but I can't watch videos.", "refused", 0),
            ("<think>never closed", "truncated", 0),
            ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error", 0),
        ],
    )
    def test_what_is_no_answer_costs_no_call(self, reply: str, status: str, score: int) -> None:
        _, item, chats = open_item(reply, lambda _: '{"score": 5}')
        assert chats == []
        assert item["status"] == status
        for rated in item["dimensions"].values():
            assert rated == {"score": score, "status": status, "verdict": None}
        counts = None if status == "model_error" else 0
        assert scores.OPEN["correctness_valid"]([item]) == counts

    def test_a_withheld_reference_costs_no_call(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with LocalEndpoint(lambda _: '{"score": 5}') as endpoint:
            monkeypatch.setenv(settings.JUDGE, f"rater@{endpoint.url}")
            utils.open_process_results(runs.withheld(runs.docs("open")[0]), ["red"])
        assert endpoint.chats == []


class TestReplies:
    """Which replies are a rating."""

    @pytest.mark.parametrize("score", range(6))
    def test_the_scale(self, score: int) -> None:
        criterion = judge.criteria()["detail"]
        for text in (f'{{"score": {score}}}', f"{{'score': {score}}}"):
            assert criterion.score(reader.read(text, criterion.schema, bare="score")) == score

    @pytest.mark.parametrize(
        ("reply", "status"),
        [
            ('{"score": 4.5}', "judge_parse_failure"),
            ('{"score": 6}', "judge_parse_failure"),
            ('{"score": -1}', "judge_parse_failure"),
            ('{"score": 4, "why": "x"}', "judge_parse_failure"),
            ("It is good.", "judge_parse_failure"),
            (truncated('{"score'), "judge_truncated"),
            (refused(), "judge_refused"),
            (error(400), "judge_api_error"),
        ],
    )
    def test_a_failure_is_the_judges_and_keeps_its_reason(
        self, reply: str | Fault, status: str
    ) -> None:
        good = dict.fromkeys(DIMENSIONS, '{"score": 4}')
        _, item, _ = open_item("red", by_dimension({**good, "context": reply}))
        rated = item["dimensions"]["context"]
        assert (rated["score"], rated["status"], item["status"]) == (None, status, status)
        verdict = Verdict.from_dict(rated["verdict"])
        assert "judge_" + verdict.status == status
        assert verdict.reason
        assert {item["dimensions"][n]["score"] for n in DIMENSIONS if n != "context"} == {4}
        assert scores.OPEN["context_valid"]([item]) is None
        assert scores.OPEN["context_failed"]([item]) == 1
        assert scores.OPEN["correctness_valid"]([item]) == 4


class Fixed:
    """A judge that gives every answer one rating and remembers who was asked for what."""

    def __init__(self, score: float = 2) -> None:
        self.config = JudgeConfig(OPENAI, "fixed")
        self.score, self.asked = score, []  # type: ignore[var-annotated]

    def supports(self, criterion: str) -> bool:
        return bool(criterion)

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        self.asked.append((criterion.name, dict(fields)))
        return Verdict(score=self.score, status="ok", reason="", judge="fixed")

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        return [self.verdict(criterion, fields) for _ in range(samples)]


def test_saved_verdicts_stand_in_for_the_judge() -> None:
    ask = Fixed(2)
    item = utils.identity(runs.docs("open")[0])
    saved = {"detail": Fixed(5).verdict(judge.criteria()["detail"], {}), "context": None}
    made = utils.open_metrics(scores.OPEN, item, "red", judge=ask, saved=saved)[FIRST]
    found = {name: rated["score"] for name, rated in made["dimensions"].items()}
    assert found == {"correctness": 2, "detail": 5, "context": 2, "temporal": 2}
    assert [name for name, _ in ask.asked] == [
        "maverix_correctness",
        "maverix_context",
        "maverix_temporal",
    ]
    for _, fields in ask.asked:
        assert fields == {
            "question": item["question"],
            "reference": item["reference"],
            "candidate": "red",
        }


class TestPrompts:
    """The user's prompts in place of ours."""

    @pytest.fixture
    def mine(self, tmp_path: Path) -> Path:
        file = tmp_path / "maverix" / "judge.yml"
        file.parent.mkdir()
        shutil.copy(Path(judge.__file__).parent / "prompts" / "judge.yml", file)
        return file

    def edited(self, file: Path, **changes: str | None) -> None:
        import yaml

        parts = yaml.safe_load(file.read_text(encoding="utf-8")) | changes
        kept = {name: text for name, text in parts.items() if text is not None}
        file.write_text(yaml.safe_dump(kept), encoding="utf-8")

    def test_they_replace_ours(self, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.edited(mine, detail="Rate the detail.")
        assert judge.criteria(mine.parent.parent)["detail"].system == "Rate the detail."
        assert judge.criteria()["detail"].system != "Rate the detail."
        monkeypatch.setenv(settings.PROMPTS, str(mine.parent.parent))
        assert judge.criteria()["detail"].system == "Rate the detail."
        hashed = judge.criteria()["detail"].prompt_hash
        assert judge.describe("none")["prompt"] == {"hash": hashed, "source": str(mine)}
        assert judge.prompt_name() == f"{mine} ({hashed})"

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"user": "{question} {candidate}"}, r"\{reference\}"),
            ({"user": "{question} {reference} {candidate} {more}"}, r"\{more\}"),
            ({"temporal": None}, "temporal"),
            ({"context": "Rate {candidate}"}, r"\{candidate\}"),
        ],
    )
    def test_what_does_not_fit_stops_the_run(
        self,
        changes: dict[str, str | None],
        said: str,
        mine: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.edited(mine, **changes)
        monkeypatch.setenv(settings.PROMPTS, str(mine.parent.parent))
        with pytest.raises(PromptError, match=f"judge.yml.*{said}"):
            judge.check()


def test_check(monkeypatch: pytest.MonkeyPatch) -> None:
    judge.check()  # none: judged later
    with pytest.raises(JudgeError, match="cannot decide maverix_context, maverix_correctness"):
        judge.check("offline")
    monkeypatch.delenv(settings.JUDGE)
    with pytest.raises(JudgeError, match="OPENAI_API_KEY"):
        judge.check()
    assert judge.config(env={"OPENAI_API_KEY": "sk-planted-0123"}).model == judge.PAPER_JUDGE
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    judge.check()
    assert judge.describe()["comparable"] is True
    assert "planted" not in str(judge.describe())
