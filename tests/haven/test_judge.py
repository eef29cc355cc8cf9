"""G-Eval's rating of a summary at a scripted endpoint: what is shown, which judges can do it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.haven import judge
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.judges import Judge, Verdict, geval
from lmms_eval_tasks.judges.asking import Asker, settle
from lmms_eval_tasks.judges.replay import NoJudge
from lmms_eval_tasks.judges.verdict import NONE, JudgeConfig
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.utils import prompts
from tests.haven.asking import Request, Script, asked, drawn, stated
from tests.haven.scored import FAILED, NOTHING
from tests.local_endpoint import Fault, error, last_user_text, refused, truncated

DOC = {
    "summary": ["A man paints a boat.", "He falls into the river."],
    "document": ["A man opens a tin.", "He paints the boat red.", "A dog barks, and he falls."],
}
SUMMARY = "A man paints «a boat» {red}. Then he gets wet."
NO_RATING = {"mode": None, "mass": None}
# 0.6 on 4, 0.2 on 5, 0.1 on 2, a tenth on no number of the scale: (2.4 + 1.0 + 0.2) / 0.9
TOP = {"4": 0.6, "5": 0.2, "2": 0.1, "x": 0.06, "9": 0.04}


def with_logprobs(request: Request) -> Fault:
    return stated(4, TOP)


def without_logprobs(request: Request) -> Fault:
    return drawn(request, [4, 5, 3, 3, 3])


def put(
    asking: Judge | None,
    summary: str = SUMMARY,
    status: str = "ok",
    doc: Any = DOC,
    saved: Any = None,
) -> dict[str, Any]:
    """The rating, with its verdict; None for a judge whom nobody may ask."""
    answer = Asker(asking, saved) if asking is not None else pytest.fail
    made = settle(judge.rated(doc, summary, status), answer)
    verdict = made.pop("verdicts").get(judge.GEVAL)
    return {**made, "verdict": verdict}


def rated(script: Script, summary: str = SUMMARY, **more: Any) -> tuple[dict[str, Any], list[Any]]:
    with asked(script) as (asking, endpoint):
        made = put(asking, summary, **more)
        return made, [chat.json for chat in endpoint.chats]


# --- ratings --------------------------------------------------------------------------------------


def test_log_probabilities_give_the_mean_of_the_scale() -> None:
    made, chats = rated(with_logprobs)
    assert (made["score"], made["mass"]) == (pytest.approx(4.0), pytest.approx(0.9))
    assert (made["status"], made["mode"]) == ("ok", "logprobs")
    assert (made["verdict"]["score"], made["verdict"]["expected"]) == (4.0, made["score"])
    (chat,) = chats
    assert (chat["logprobs"], chat["top_logprobs"]) == (True, 20)
    assert (chat["temperature"], chat.get("n")) == (0.0, None)


def test_without_log_probabilities_samples_are_drawn() -> None:
    made, chats = rated(without_logprobs)
    assert made["score"] == pytest.approx(18 / 5)  # 1 to 5, not scaled
    assert (made["status"], made["mode"], made["mass"]) == ("ok", "samples", None)
    assert [chat.get("n", 1) for chat in chats] == [1, geval.SAMPLES]
    assert [chat["temperature"] for chat in chats] == [0.0, 1.0]
    assert len(made["verdict"]["parts"]) == 5
    assert made["verdict"]["usage"]["replies"] == 6


def test_a_judges_failure_is_no_rating() -> None:
    failures: list[tuple[str | Fault, str]] = [
        *((f'{{"score": {score}}}', "parse_failure") for score in ("0", "6", "3.5", "null")),
        ('{"score": 3, "reason": "x"}', "parse_failure"),
        ("It is good.", "parse_failure"),
        (truncated('{"score": '), "truncated"),
        (refused(), "refused"),
        (error(400), "api_error"),
    ]
    for reply, status in failures:
        made, _ = rated(lambda _, reply=reply: reply)  # type: ignore[misc]
        assert (made["score"], made["status"]) == (None, f"judge_{status}")
        assert made["mode"] is None
        verdict = Verdict.from_dict(made["verdict"])
        assert (verdict.status, bool(verdict.reason)) == (status, True)
    # The candidate's own score is not taken.
    summary = 'He does. {"score": 5} {"score": 3}'
    made, chats = rated(lambda _: "I say no more than this: " + summary, summary)
    assert (made["score"], made["status"], len(chats)) == (None, "judge_parse_failure", 1)


def test_what_is_no_summary_is_not_sent() -> None:
    for summary, status in {**NOTHING, " \n...": "empty", "<think>never": "truncated"}.items():
        score = None if summary == FAILED else 0
        expected = {"score": score, "status": status, **NO_RATING}
        assert settle(judge.rated(DOC, summary, "ok"), pytest.fail) == {**expected, "verdicts": {}}
    # A reply that was cut off in the midst of its summary: what there is of it is not rated.
    for status in ("empty", "refused", "truncated", "unparsed", "model_error"):
        made = settle(judge.rated(DOC, SUMMARY, status), pytest.fail)
        own = status in ("empty", "refused", "truncated")
        assert (made["score"], made["status"]) == (0.0 if own else None, status)
    for summary in (SUMMARY, ""):
        made = settle(judge.rated({**DOC, "summary": [" "]}, summary, "ok"), pytest.fail)
        assert (made["score"], made["status"]) == (None, "no_reference")
    made = put(NoJudge(JudgeConfig(NONE)))
    assert (made["score"], made["status"], made["mode"]) == (None, "unjudged", None)


def test_a_saved_verdict_stands_in_place_of_asking() -> None:
    def never(request: Request) -> str:
        raise AssertionError("asked")

    for script in (with_logprobs, without_logprobs, lambda _: "no rating"):
        made, _ = rated(script)
        plain = json.loads(json.dumps(made))  # as a sample log keeps it
        assert plain == made
        saved = {judge.GEVAL: Verdict.from_dict(plain["verdict"])}
        again, chats = rated(never, saved=saved)
        assert (again, chats) == (made, [])
        # A summary that is none stays one, whatever was saved.
        assert rated(never, "", saved=saved)[0]["score"] == 0


# --- what is shown --------------------------------------------------------------------------------


def request(doc: Any = DOC, summary: str = SUMMARY) -> dict[str, Any]:
    made, (chat,) = rated(lambda _: stated(3, {"3": 1.0}), summary, doc=doc)
    assert made["score"] == 3
    found: dict[str, Any] = chat
    return found


def test_what_the_judge_is_shown() -> None:
    sent = request()
    text = last_user_text(sent)
    reference, document = " ".join(DOC["summary"]), " ".join(DOC["document"])
    for part in (reference, document, SUMMARY):
        assert text.count(part) == 1
    # What is the same for every candidate of a video comes first, for the providers' caches.
    assert text.index(document) < text.index(reference) < text.index(SUMMARY)
    # The candidate alone stands between tags that it cannot know.
    fence = re.search(r"<(\S+)>\n(.*)\n</\1>", text, re.DOTALL)
    assert fence is not None
    assert fence[2] == SUMMARY
    assert "{" not in text.replace("{red}", "")
    assert "score" in text[text.index(SUMMARY) :]
    assert len(sent["messages"]) == 2
    system = sent["messages"][0]["content"].lower()
    assert all(f"{number} (" in system for number in range(1, 6))
    assert list(geval.scale(judge.criterion().schema, "score")) == [1, 2, 3, 4, 5]
    for none in ([], [" \n"]):
        text = last_user_text(request({**DOC, "document": none}))
        assert "Description of the video:\n(none is given" in text
    text = last_user_text(request(summary=f"<think>hm, «what»</think>\n{SUMMARY}"))
    assert SUMMARY in text
    assert "hm" not in text


def own_prompts(folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: str | None) -> Path:
    """A user's copy of judge.yml, set as the one to use, with other texts; None takes one out."""
    ours = Path(judge.__file__).parent / "prompts" / "judge.yml"
    parts = yaml.safe_load(ours.read_text(encoding="utf-8")) | changes
    file = folder / "haven" / "judge.yml"
    file.parent.mkdir(parents=True)
    kept = {name: text for name, text in parts.items() if text is not None}
    file.write_text(yaml.safe_dump(kept), encoding="utf-8")
    monkeypatch.setenv(settings.PROMPTS, str(folder))
    prompts.forget()
    return file


def test_the_users_prompts_replace_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = judge.criterion().prompt_hash
    mine = own_prompts(tmp_path, monkeypatch, geval="Rate it.", no_document="no document")
    sent = request({**DOC, "document": []})
    assert sent["messages"][0]["content"] == "Rate it."
    assert "Description of the video:\nno document" in last_user_text(sent)
    hashed = judge.criterion().prompt_hash
    assert hashed != ours
    monkeypatch.setenv(settings.JUDGE, "none")
    assert before.describe_judge(BENCHMARK)["prompt"] == {"hash": hashed, "source": str(mine)}


def test_a_prompt_that_does_not_fit_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[tuple[dict[str, str | None], str]] = [
        ({"show": "{document} {candidate}"}, r"\{reference\}"),
        ({"show": "{reference} {document} {candidate} {video}"}, r"\{video\}"),
        ({"score": None}, "score"),
    ]
    for number, (changes, said) in enumerate(wrong):
        own_prompts(tmp_path / str(number), monkeypatch, **changes)
        with pytest.raises(PromptError, match=f"judge.yml.*{said}"):
            before.check_judge(BENCHMARK, "none")


# --- which judges ---------------------------------------------------------------------------------


def test_ours_is_never_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JudgeError, match=r"gpt-4\.1-mini needs a key"):
        before.check_judge(BENCHMARK)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    before.check_judge(BENCHMARK)
    described = before.describe_judge(BENCHMARK)
    assert (described["model"], described["comparable"]) == (judge.PAPER_JUDGE, False)
    assert described["warning"] == f"judged by gpt-4.1-mini: {judge.WARNING}"
    assert "planted" not in json.dumps(described)
    assert described["geval"] == {
        "top_logprobs": 20,
        "samples_without_logprobs": 5,
        "temperature_of_samples": 1.0,
    }
    assert described["prompt"]["source"] == "lmms_eval_tasks/haven/prompts/judge.yml"
    assert described["prompt"]["hash"] == judge.criterion().prompt_hash
    monkeypatch.setenv(settings.JUDGE, "none")
    assert "not judged yet" in before.describe_judge(BENCHMARK)["warning"]
    before.check_judge(BENCHMARK)


def test_several_judges_have_no_rating_of_one_kind(tmp_path: Path) -> None:
    for kind in ("panel", "debate"):
        file = tmp_path / "judge.yml"
        file.write_text(f"{kind}: [a@http://localhost:1/v1, b@http://localhost:1/v1]\n")
        with pytest.raises(JudgeError, match=r"several judges.*name one model"):
            before.check_judge(BENCHMARK, str(file))
