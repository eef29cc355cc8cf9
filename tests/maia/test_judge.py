"""MAIA's criterion: prompt, the forms of the reply, score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lmms_eval_tasks.judges import JudgeConfig, config, reader
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.verdict import Reply
from lmms_eval_tasks.maia import judge
from tests.checks import table

REFERENCES = [f"risposta {number}" for number in range(8)]
FIELDS = {"question": "Che cosa?", "references": REFERENCES, "candidate": "un'«altra»\n{x}"}
JSON = '{"reason": "stesso senso", "correct": true}'


def test_everything_reaches_the_judge() -> None:
    system, user = render(judge.criterion(), FIELDS)
    for text in ["Che cosa?", "un'«altra»\n{x}", *REFERENCES]:
        assert text in user["content"]
    assert all(label in system["content"] for label, _ in judge.LABELS)


@table(
    "reply, status, score",
    [
        ("Correct", "ok", 1.0),
        (" incorrect.\n", "ok", 0.0),
        ("CORRECT", "ok", 1.0),
        ("<think>Uguale alla terza.</think>Correct", "ok", 1.0),
        (JSON, "ok", 1.0),
        ("Correct, since it says so", "ok", 1.0),  # the first word counts
        ("**Incorrect**\n\nThe correct place is another.", "ok", 0.0),
        ("Correct or Incorrect", "parse_failure", None),
        ("Correct/Incorrect", "parse_failure", None),
        ("Correct answers name the place", "parse_failure", None),
        ("The answer is Correct.", "parse_failure", None),
        ("Correctly", "parse_failure", None),
        ("Not correct", "parse_failure", None),
        ("", "parse_failure", None),
    ],
)
def test_a_label_is_a_verdict(reply: str, status: str, score: float | None) -> None:
    found = reader.judged(judge.criterion(), FIELDS, Reply(reply), "judge")
    assert (found.status, found.score) == (status, score)


def test_room_for_a_label() -> None:
    """And no more, unless the user says so; our labels stand whatever the prompt asks for."""
    given: dict[str, Any] = {"default_model": "gpt-4o"}
    asked = config.resolve(None, {"OPENAI_API_KEY": "k"}, **given)
    assert judge.suited(asked).sampling.max_tokens == 16
    own = replace(asked, sampling=replace(asked.sampling, max_tokens=900))
    assert judge.suited(own).sampling.max_tokens == 900
    panel = judge.suited(JudgeConfig("panel", members=(asked, own)))
    assert [one.sampling.max_tokens for one in panel.members] == [16, 900]
