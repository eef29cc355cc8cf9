"""G-Eval's rating of a summary at a scripted endpoint: what is shown, which judges can do it.

How a rating is made of log-probabilities or samples, judge's failures and saved verdicts are those
of judges/geval.py: tests/judges/test_geval.py, tests/movierecapsqa/test_baselines.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.haven import judge, tasks
from lmms_eval_tasks.haven.tasks import BENCHMARK
from lmms_eval_tasks.runs import prepare
from tests.checks import own_prompts, refused
from tests.haven.docs import doc
from tests.haven.scored import NOTHING, REFUSED
from tests.judged import scored
from tests.local_endpoint import Fault, choice, completion, error, last_user_text

SUMMARY = "A man paints «a boat» {red}. Then he gets wet."
TELLING = {
    "summary": ["A man paints a boat.", "He falls into the river."],
    "document": ["A man opens a tin.", "He paints the boat red.", "A dog barks, and he falls."],
}


def drawn(request: dict[str, Any]) -> Fault:
    """As many choices as are asked for, without log-probabilities: 4, then 4, 5, 3, 3, 3."""
    scores = [4, 5, 3, 3, 3][: request.get("n", 1)]
    usage = {"prompt_tokens": 9, "completion_tokens": 3}
    return completion([choice(f'{{"score": {score}}}') for score in scores], usage)


def rated(
    script: Callable[[dict[str, Any]], str | Fault] = drawn,
    reply: str = SUMMARY,
    task: str = "haven_v2t",
    **changes: Any,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The item of a reply, and what was asked of a judge at an endpoint."""
    given = doc(task, **{**TELLING, **changes})
    return scored(BENCHMARK, script, tasks.score_summary(tasks.log_fields(given), reply))


def test_a_rating_of_1_to_5() -> None:
    made, chats = rated()
    assert made["geval"] == {"score": 18 / 5, "status": "ok", "mode": "samples"}
    assert [(chat.get("n", 1), chat["temperature"]) for chat in chats] == [(1, 0.0), (5, 1.0)]
    assert chats[0]["top_logprobs"] == 20
    for reply, status in (('{"score": 6}', "parse_failure"), (error(400), "api_error")):
        made, _ = rated(lambda _, reply=reply: reply)  # type: ignore[misc]
        assert made["geval"] == {"score": None, "status": f"judge_{status}", "mode": None}


def test_what_is_no_summary_is_not_sent() -> None:
    """Worth 0, below the scale, if it is the model's own failure; a refusal is judged as it is."""
    for reply, status in {**NOTHING, " \n...": "empty"}.items():
        if reply == REFUSED:
            made, chats = rated(reply=reply)
            assert (made["geval"]["status"], made["status"]) == ("ok", "refused")
            assert (made["candidate"], set(made["scores"].values())) == ("", {0.0})
            assert REFUSED in last_user_text(chats[0])
            continue
        score = None if status == "model_error" else 0.0
        made, chats = rated(reply=reply)
        assert made["geval"] == {"score": score, "status": status, "mode": None}
        assert chats == []
    made, chats = rated(reply="IMPORTANT FRAMES: [Frame 1]", task="haven_v2vt")
    assert made["geval"] == {"score": None, "status": "unparsed", "mode": None}
    assert chats == []


# --- what is shown --------------------------------------------------------------------------------


def test_what_the_judge_is_shown() -> None:
    sent = rated()[1][0]
    text = last_user_text(sent)
    reference, document = " ".join(TELLING["summary"]), " ".join(TELLING["document"])
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
    system, _ = (message["content"] for message in sent["messages"])
    assert all(f"{number} (" in system.lower() for number in range(1, 6))
    for none in ([], [" \n"]):
        text = last_user_text(rated(document=none)[1][0])
        assert "Description of the video:\n(none is given" in text
    text = last_user_text(rated(reply=f"<think>hm, «what»</think>\n{SUMMARY}")[1][0])
    assert SUMMARY in text
    assert "hm" not in text


def test_the_users_prompts_replace_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = judge.geval_criterion().prompt_hash
    mine = own_prompts(
        tmp_path, monkeypatch, "haven", "judge", geval="Rate it.", no_document="no document"
    )
    sent = rated(document=[])[1][0]
    assert sent["messages"][0]["content"] == "Rate it."
    assert "Description of the video:\nno document" in last_user_text(sent)
    hashed = judge.geval_criterion().prompt_hash
    assert hashed != ours
    monkeypatch.setenv(settings.JUDGE, "none")
    assert prepare.describe_judge(BENCHMARK)["prompt"] == {"hash": hashed, "source": str(mine)}
    own_prompts(tmp_path / "bad", monkeypatch, "haven", "judge", show="{document} {candidate}")
    told = r"judge.yml.*\{reference\}"
    refused(PromptError, told, prepare.check_judge, BENCHMARK, "none")


# --- which judges ---------------------------------------------------------------------------------


def test_ours_is_never_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    refused(JudgeError, r"gpt-4\.1-mini requires a key", prepare.check_judge, BENCHMARK)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    prepare.check_judge(BENCHMARK)
    described = prepare.describe_judge(BENCHMARK)
    assert (described["model"], described["comparable"]) == (judge.PAPER_JUDGE, False)
    assert described["warning"] == f"judged by gpt-4.1-mini: {judge.WARNING}"
    assert "planted" not in json.dumps(described)
