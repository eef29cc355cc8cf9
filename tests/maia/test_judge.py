"""MAIA's criterion: prompt, the forms of the reply, score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lmms_eval_tasks.judges import JudgeConfig, config, reader
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.verdict import Reply
from lmms_eval_tasks.maia import judge
from tests.checks import table
from tests.fuzz.watch import at_most

REFERENCES = [f"risposta {number}" for number in range(8)]
FIELDS = {"question": "Che cosa?", "references": REFERENCES, "candidate": "un'«altra»\n{x}"}


def test_everything_reaches_the_judge() -> None:
    system, user = render(judge.criterion(), FIELDS)
    for text in ["Che cosa?", "un'«altra»\n{x}", *REFERENCES]:
        assert text in user["content"]
    assert all(label in system["content"] for label, _ in judge.LABELS)


def score(reply: str, candidate: str = "un'altra", finish: str = "stop") -> float | str:
    """What the criterion makes of a reply: its score, or the status of a failure."""
    fields = {**FIELDS, "candidate": candidate}
    found = reader.judged(judge.criterion(), fields, Reply(reply, finish), "judge")
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


def test_room_for_a_label() -> None:
    """And no more, unless the user says so; our labels stand whatever the prompt asks for."""
    given: dict[str, Any] = {"default_model": "gpt-4o"}
    asked = config.resolve(None, {"OPENAI_API_KEY": "k"}, **given)
    assert judge.suited(asked).sampling.max_tokens == 16
    own = replace(asked, sampling=replace(asked.sampling, max_tokens=900))
    assert judge.suited(own).sampling.max_tokens == 900
    panel = judge.suited(JudgeConfig("panel", members=(asked, own)))
    assert [one.sampling.max_tokens for one in panel.members] == [16, 900]
