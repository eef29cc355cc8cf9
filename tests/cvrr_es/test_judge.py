"""The benchmark's own judge: prompt, the published keys, both numbers, whose failure is whose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.cvrr_es import judge
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import Verdict, candidate, reader
from lmms_eval_tasks.judges.config_file import resolve
from lmms_eval_tasks.judges.engine import schema_of
from lmms_eval_tasks.judges.panel import combine
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.judges.replay import Recordings, ReplayJudge
from tests.conftest import SHARED
from tests.local_endpoint import LocalEndpoint

FIELDS = {"question": "Who runs?", "reference": "A dog.", "candidate": "A cat."}


def reply(pred: str = "correct", score: object = 4, reason: str = "It's so.") -> str:
    return json.dumps({"pred": pred, "score": score, "reason": reason})


def test_everything_reaches_the_judge_and_the_answer_is_delimited() -> None:
    system, user = render(judge.criterion(), {**FIELDS, "candidate": "an {x}\n'other'"})
    for text in ("Who runs?", "A dog.", "an {x}\n'other'"):
        assert text in user["content"]
    assert "<candidate-" in user["content"]
    assert "JSON" in system["content"]
    for key in ("pred", "score", "reason", "correct", "incorrect"):
        assert f'"{key}"' in system["content"]


def test_the_schema_is_the_published_one() -> None:
    schema = schema_of(judge.Judgement)
    assert list(schema["properties"]) == ["pred", "score", "reason"]
    assert schema["required"] == ["pred", "score", "reason"]
    assert schema["properties"]["pred"]["enum"] == ["correct", "incorrect"]


@pytest.mark.parametrize(("pred", "right"), [("correct", 1.0), ("incorrect", 0.0), ("Correct", 1)])
@pytest.mark.parametrize("score", [0, 4.5, 5, "3"])
def test_both_numbers_of_one_reply(pred: str, right: float, score: object) -> None:
    criterion = judge.criterion()
    value = reader.read(reply(pred, score), criterion.schema)
    verdict = Verdict(criterion.score(value), "ok", "r", reply(pred, score))
    assert judge.points(verdict) == (right, float(str(score)))


@pytest.mark.parametrize(
    "text",
    [reply("partially correct"), reply(score=5.5), reply(score=-1), '{"pred": "correct"}', "yes"],
)
def test_other_replies_are_none(text: str) -> None:
    with pytest.raises(reader.UnreadableError):
        reader.read(text, judge.Judgement)


def test_a_failed_verdict_has_no_numbers() -> None:
    assert judge.points(None) is None
    assert judge.points(Verdict(None, "parse_failure", raw=reply())) is None
    assert judge.points(Verdict(1.0, "ok", raw="edited by hand")) is None


def test_a_panel_has_the_mean_of_its_members_scores() -> None:
    votes = [
        Verdict(1.0, "ok", "r", reply("correct", 5), "a"),
        Verdict(1.0, "ok", "r", reply("correct", 3), "b"),
        Verdict(0.0, "ok", "r", reply("incorrect", 1), "c"),
        Verdict(None, "api_error", "r", "", "d"),
    ]
    assert judge.points(combine(votes)) == (1.0, 3.0)
    assert judge.points(combine(votes[3:])) is None


def test_a_debates_numbers_are_the_consolidators() -> None:
    turns = (Verdict(0.0, "ok", "r", reply("incorrect", 0), "Agent A, round 1: m"),)
    whole = Verdict(1.0, "ok", "r", reply("correct", 4), "debate", parts=turns)
    assert judge.points(whole) == (1.0, 4.0)


@pytest.mark.parametrize("answer", ["", " \n", "</think>"])
def test_an_empty_answer_is_worth_0_and_costs_nothing(answer: str) -> None:
    with LocalEndpoint(lambda request: reply()) as endpoint:
        one = judges.make(judge.config(f"m@{endpoint.url}"))
        empty = candidate.judge_answer(one, judge.criterion(), FIELDS, answer)
        given = candidate.judge_answer(one, judge.criterion(), FIELDS, "A cat.")
        assert len(endpoint.chats) == 1
    assert (empty.status, empty.score, empty.verdict) == ("empty", 0.0, None)
    assert (given.status, given.score) == ("ok", 1.0)
    assert judge.points(given.verdict) == (1.0, 4.0)


def test_the_users_prompt_replaces_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "cvrr_es" / "judge.yml"
    file.parent.mkdir()
    file.write_text("system: mine\nuser: '{question} {reference} {candidate}'\n")
    assert judge.criterion(tmp_path).system == "mine"
    assert judge.criterion().system != "mine"
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(tmp_path))
    assert judge.criterion().system == "mine"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    told = judge.describe()
    assert told["prompt"] == {"hash": judge.criterion().prompt_hash, "source": str(file)}
    assert str(file) in judge.prompt_name()
    file.write_text("system: mine\nuser: '{question} {candidate}'\n")
    judge._criterion.cache_clear()
    with pytest.raises(PromptError, match=r"\{reference\}"):
        judge.check()


def test_check(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError, match=r"gpt-3\.5-turbo needs a key"):
        judge.check()
    with pytest.raises(JudgeError, match="cannot decide cvrr_es"):
        judge.check("offline")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    judge.check()
    assert judge.config().model == "gpt-3.5-turbo"
    assert judge.describe()["comparable"] is True
    assert "planted" not in json.dumps(judge.describe())
    assert judge.config("gpt-4o").comparable is False
    assert judge.config(env={"OPENAI_API_KEY": "sk-other-0123456789"}).model == "gpt-3.5-turbo"


def test_without_a_usable_judge_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        verdict = candidate.usable(judge.config).verdict(judge.criterion(), FIELDS)
        assert (verdict.score, verdict.status) == (None, "skipped")
    assert "gpt-3.5-turbo" in capsys.readouterr().err


def test_published_judgements_have_both_numbers(tmp_path: Path) -> None:
    file = SHARED / "data/cvrr_es/judge_results/GPT4o/partial_actions.json"
    if not file.is_file():
        pytest.skip(f"no published judgements at {file}")
    rows = json.loads(file.read_text(encoding="utf-8"))
    lines = []
    for number, (given, asked) in enumerate(rows):
        fields = {
            "id": str(number),
            "question": asked["q"],
            "reference": asked["a"],
            "candidate": asked["pred"].strip(),
        }
        lines.append({"criterion": judge.NAME, "fields": fields, "reply": repr(given)})
    record = tmp_path / "recorded.jsonl"
    record.write_text("\n".join(map(json.dumps, lines)))
    spec = resolve(f"replay:{record}", {}, default_model="x")
    replay = ReplayJudge(spec, Recordings.load(record))
    found = [
        candidate.judge_answer(
            replay, judge.criterion(), line["fields"], line["fields"]["candidate"]
        )
        for line in lines
    ]
    numbers = [judge.points(one.verdict, one.candidate) for one in found]
    assert [(one.correct, one.score) for one in numbers if one] == [
        (float(given["pred"] == "correct"), float(given["score"])) for given, _ in rows
    ]
    # As published for GPT-4o in Partial Actions.
    assert f"{100 * sum(one.correct for one in numbers if one) / len(rows):.2f}" == "77.67"
