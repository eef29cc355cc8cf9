"""MAIA's criterion: prompt, the forms of the reply, score."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import prompts
from lmms_eval_tasks.judges import JudgeConfig, config, reader
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.maia import judge
from lmms_eval_tasks.settings import JudgeLimits
from tests.checks import own_prompts, table
from tests.fuzz.watch import at_most
from tests.local_endpoint import LocalEndpoint

REFERENCES = [f"risposta {number}" for number in range(8)]
FIELDS = {"question": "Che cosa?", "references": REFERENCES, "candidate": "un'«altra»\n{x}"}


def test_everything_reaches_the_judge() -> None:
    system, user = render(judge.agreement_criterion(), FIELDS)
    for text in ["Che cosa?", "un'«altra»\n{x}", *REFERENCES]:
        assert text in user["content"]
    assert all(label in system["content"] for label, _ in judge.LABELS)


def score(reply: str, candidate: str = "un'altra", finish: str = "stop") -> float | str:
    """What the criterion makes of a reply: its score, or the status of a failure."""
    fields = {**FIELDS, "candidate": candidate}
    found = reader.read_verdict(
        judge.agreement_criterion(), fields, JudgeReply(reply, finish), "judge"
    )
    return found.status if found.score is None else found.score


@table("reply, value")
def test_labels(reply: str, value: float | str) -> None:
    assert score(reply) == value


@table("reply, value")
def test_cut_labels(reply: str, value: float | str) -> None:
    """A label that stands whole, with what cannot change it behind; never one that still can."""
    assert score(reply, finish="length") == value


@table("reply, candidate, value")
def test_quoted_labels(reply: str, candidate: str, value: float | str) -> None:
    assert score(reply, candidate) == value


# Whatever follows: a sentence on another verdict never turns the one that was given.
BEHIND = (
    "Incorrect",
    "Correct",
    "No.",
    "?",
    "Wait, no.",
    "or Incorrect",
    "The answer is Incorrect.",
)
BEHIND += ("However, it is Correct.", "Verdict: Incorrect", "Verdict: Correct", "= false", ": no")


@table("label", [one for one, _ in judge.LABELS])
@table("sign", [" ", "\n", ". ", ", ", " - ", ": ", "\n\n"])
def test_a_sentence_more_never_turns_a_label(label: str, sign: str) -> None:
    own = float(label == "Correct")
    for lead in ("", "Verdict: ", "**Verdict:** ", "The references differ.\n\nVerdict: "):
        for more in BEHIND:
            assert score(f"{lead}{label}{sign}{more}") in (own, "parse_failure"), (lead, more)


@table(
    "piece",
    ["Correct ", "Correct. ", "Verdict: ", "\n", "* ", "not ", "Correct\n", "(", "<x>", "{"],
)
def test_long_replies_take_no_time(piece: str) -> None:
    with at_most(10):
        long = piece * (150_000 // len(piece))
        for reply in (long, f"Incorrect. {long}", f"{long} Correct"):
            assert score(reply, long) in (0.0, 1.0, "parse_failure", "truncated")


@table(
    "limit, format, sent",
    [(None, "auto", True), (900, "auto", False), (4, "auto", True), (None, "text", False)],
)
def test_a_grammar_of_the_two_words(limit: int | None, format: str, sent: bool) -> None:  # noqa: A002
    """Not where the judge has room to think first, which it would forbid."""

    def reply(request: Any) -> str:
        form = request.get("response_format")
        return json.dumps(form["json_schema"]["schema"]["enum"][1]) if form else "Correct"

    with LocalEndpoint(reply) as endpoint:
        asked = judge.limit_reply(config.resolve(f"m@{endpoint.url}", {}, default_model="gpt-4o"))
        sampling = replace(asked.sampling, max_tokens=limit or asked.sampling.max_tokens)
        run = JudgeSession(JudgeLimits())
        made = run.judge(replace(asked, sampling=sampling, reply_format=format))
        assert made.verdict(judge.agreement_criterion(), FIELDS).score == (0.0 if sent else 1.0)
        assert len(endpoint.chats) == 1


def test_a_word_that_comes_as_other_json_is_asked_for_again_without_a_schema() -> None:
    """Where a server takes any schema for any JSON."""

    def reply(request: Any) -> str:
        return "{}" if "response_format" in request else "Correct"

    with LocalEndpoint(reply) as endpoint:
        asked = judge.limit_reply(config.resolve(f"m@{endpoint.url}", {}, default_model="gpt-4o"))
        found = (
            JudgeSession(JudgeLimits()).judge(asked).verdict(judge.agreement_criterion(), FIELDS)
        )
        assert (found.score, found.repaired, len(endpoint.chats)) == (1.0, True, 2)


def test_a_prompt_that_asks_for_json_has_no_grammar_of_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_prompts(tmp_path, monkeypatch, "maia", "judge", system="Reply in JSON: reason, correct.")
    assert judge.agreement_criterion().exact_schema is None
    prompts.forget()
    monkeypatch.undo()
    assert judge.agreement_criterion().exact_schema == judge.WORD


def test_room_for_a_label() -> None:
    """And no more, unless the user says so; our labels stand whatever the prompt asks for."""
    given: dict[str, Any] = {"default_model": "gpt-4o"}
    asked = config.resolve(None, {"OPENAI_API_KEY": "k"}, **given)
    assert judge.limit_reply(asked).sampling.max_tokens == 16
    own = replace(asked, sampling=replace(asked.sampling, max_tokens=900))
    assert judge.limit_reply(own).sampling.max_tokens == 900
    panel = judge.limit_reply(JudgeConfig("panel", members=(asked, own)))
    assert [one.sampling.max_tokens for one in panel.members] == [16, 900]
