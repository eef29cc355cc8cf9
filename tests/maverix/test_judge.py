"""The judge of open answers: four requests, whole numbers from 0 to 5, and whose fault a gap is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.verdict import Verdict
from lmms_eval_tasks.maverix import judge
from lmms_eval_tasks.maverix.labels import DIMENSIONS
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from lmms_eval_tasks.runs import before, rescore
from tests.local_endpoint import Fault, LocalEndpoint, error, last_user_text, refused, truncated
from tests.maverix import runs
from tests.maverix.runs import REFUSAL, memory, sample

__all__ = ["memory", "sample"]
pytestmark = pytest.mark.usefixtures("sample")


def judged(
    doc: runs.Doc, reply: str, answer: Callable[[str], str | Fault]
) -> tuple[runs.Item, list[dict[str, Any]]]:
    """The item of a reply, and the requests of a judge who answers by dimension."""
    with (
        LocalEndpoint(lambda request: answer(runs.dimension_of(request))) as endpoint,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv(settings.JUDGE, f"rater@{endpoint.url}")
        (item,) = runs.score([doc], lambda _: reply)
    return item, [chat.json for chat in endpoint.chats]


def test_one_request_for_each_dimension() -> None:
    """The paraphrase is judged as what was asked; the reasoning is no part of the answer."""
    original, doc = runs.docs("maverix_s_oe")[:2]
    given = dict(zip(DIMENSIONS, (5, 3, 2, 0), strict=True))
    reply = "<think>hm</think> «It» is {red}."
    item, chats = judged(doc, reply, lambda name: f'{{"score": {given[name]}}}')
    assert sorted(map(runs.dimension_of, chats)) == sorted(DIMENSIONS)
    (text,) = {last_user_text(chat) for chat in chats}
    assert all(part in text for part in (doc["question"], doc["reference"], "«It» is {red}."))
    assert original["question"] not in text
    assert "hm" not in text
    ratings = {n: {"score": score, "status": "ok"} for n, score in given.items()}
    assert item["dimensions"] == ratings
    assert (item["status"], item["candidate"]) == ("ok", "«It» is {red}.")
    criteria = judge.criteria()
    assert tuple(criteria) == DIMENSIONS
    assert len({one.system for one in criteria.values()}) == 4
    assert {one.name for one in criteria.values()} == {f"maverix_{name}" for name in DIMENSIONS}


def test_what_costs_no_call() -> None:
    doc = runs.docs("maverix_s_oe")[0]
    for reply, status in (
        ("", "empty"),
        (REFUSAL, "refused"),
        ("<think>never closed", "truncated"),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error"),
    ):
        item, chats = judged(doc, reply, lambda _: '{"score": 5}')
        assert (chats, item["status"]) == ([], status)
        assert item["dimensions"] == {name: {"score": 0, "status": status} for name in DIMENSIONS}
        expected = None if status == "model_error" else 0
        assert runs.numbers("maverix_s_oe", [item])["correctness_valid"] == expected
    assert judged(runs.withheld(doc), "red", lambda _: '{"score": 5}')[1] == []


def test_which_replies_are_a_rating() -> None:
    """A failure is the judge's and keeps its reason; the other dimensions have their ratings."""
    criterion = judge.criteria()["detail"]
    for score in range(6):
        for text in (f'{{"score": {score}}}', f"{{'score': {score}}}"):
            assert criterion.score(reader.read(text, criterion.schema, bare="score")) == score
    doc = runs.docs("maverix_s_oe")[0]
    for reply, status in (
        ('{"score": 4.5}', "judge_parse_failure"),
        ('{"score": 6}', "judge_parse_failure"),
        ('{"score": -1}', "judge_parse_failure"),
        ('{"score": 4, "why": "x"}', "judge_parse_failure"),
        ("It is good.", "judge_parse_failure"),
        (truncated('{"score'), "judge_truncated"),
        (refused(), "judge_refused"),
        (error(400), "judge_api_error"),
    ):
        item, _ = judged(
            doc, "red", lambda name, reply=reply: reply if name == "context" else '{"score": 4}'
        )
        assert item["dimensions"]["context"] == {"score": None, "status": status}
        assert item["status"] == status
        verdict = Verdict.from_dict(item["verdicts"]["context"])
        assert "judge_" + verdict.status == status
        assert verdict.reason
        found = runs.numbers("maverix_s_oe", [item])
        assert (found["context_valid"], found["context_failed"]) == (None, 1)
        assert {found[f"{n}_valid"] for n in DIMENSIONS if n != "context"} == {4}


def test_the_users_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Path(judge.__file__).parent / "prompts" / "judge.yml"
    parts = yaml.safe_load(ours.read_text(encoding="utf-8"))
    cases: tuple[tuple[dict[str, str | None], str], ...] = (
        ({"detail": "Rate the detail."}, ""),
        ({"user": "{question} {candidate}"}, r"\{reference\}"),
        ({"user": "{question} {reference} {candidate} {more}"}, r"\{more\}"),
        ({"temporal": None}, "temporal"),
        ({"context": "Rate {candidate}"}, r"\{candidate\}"),
    )
    for number, (changes, said) in enumerate(cases):
        file = tmp_path / str(number) / "maverix" / "judge.yml"
        file.parent.mkdir(parents=True)
        shutil.copy(ours, file)
        kept = {name: text for name, text in {**parts, **changes}.items() if text is not None}
        file.write_text(yaml.safe_dump(kept), encoding="utf-8")
        monkeypatch.setenv(settings.PROMPTS, str(file.parent.parent))
        if said:
            with pytest.raises(PromptError, match=f"judge.yml.*{said}"):
                before.check_benchmark(BENCHMARK, ["maverix_s_oe"])
            continue
        detail = judge.criteria()["detail"]
        assert detail.system == "Rate the detail."
        assert before.describe_judge(BENCHMARK)["prompt"]["hash"] == detail.prompt_hash
        assert before.judge_prompt(BENCHMARK) == f"{file} ({detail.prompt_hash})"


def test_check(monkeypatch: pytest.MonkeyPatch) -> None:
    before.check_judge(BENCHMARK)  # none: judged later
    with pytest.raises(JudgeError, match="cannot decide maverix_context, maverix_correctness"):
        before.check_judge(BENCHMARK, "offline")
    monkeypatch.delenv(settings.JUDGE)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    before.check_judge(BENCHMARK)
    told = before.describe_judge(BENCHMARK)
    assert (told["model"], told["comparable"]) == ("gpt-4o", True)
    assert "planted" not in str(told)


def test_saved_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand; what is missing is asked for dimension by dimension; another judge rates all."""
    docs = runs.docs("maverix_s_oe")[:4]
    fails = ["temporal"]

    def rate(request: dict[str, Any]) -> str:
        name = runs.dimension_of(request)
        plus = DIMENSIONS.index(name) + request["model"].startswith("two")
        return "no rating" if name in fails else f'{{"score": {plus}}}'

    with LocalEndpoint(rate) as endpoint:
        monkeypatch.setenv(settings.JUDGE, f"one@{endpoint.url}")
        items = runs.score(docs, lambda doc: "" if "q02" in doc["id"] else "red")
        run, asked = runs.run("maverix_s_oe", items), len(endpoint.chats)

        def again(judge: str | None, **how: bool) -> Any:
            before_these = len(endpoint.chats)
            done = rescore.rescore_saved(BENCHMARK, [run], judge, **how)
            chats = [chat.json for chat in endpoint.chats[before_these:]]
            return done, sorted(set(map(runs.dimension_of, chats)))

        done, dimensions = again(None)
        assert (done.numbers["maverix_s_oe"], dimensions) == (runs.numbers(run.task, items), [])
        pairs = done.verdicts["maverix_s_oe"]
        assert len(pairs) == 2 * 4  # the two empty answers have none
        assert all(pair.before == pair.after for pair in pairs)
        fails.clear()
        done, dimensions = again(f"one@{endpoint.url}", missing_only=True)
        assert dimensions == ["temporal"]
        assert done.numbers["maverix_s_oe"]["temporal_failed"] == 0
        done, dimensions = again(f"two@{endpoint.url}", missing_only=True)
        assert dimensions == sorted(DIMENSIONS)
        changed = {
            pair.after.score - pair.before.score
            for pair in done.verdicts["maverix_s_oe"]
            if pair.before.score is not None
        }
        assert changed == {1}
    assert asked
