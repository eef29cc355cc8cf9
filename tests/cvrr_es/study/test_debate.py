"""Reference ratings: who gives them, what they are asked; and `lmms-eval-tasks debate`.

The command runs on a small study, against an endpoint that plays all agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from lmms_eval_tasks.cvrr_es import judge
from lmms_eval_tasks.cvrr_es.release import CvrrQuestion
from lmms_eval_tasks.cvrr_es.study import ratings, reference
from lmms_eval_tasks.cvrr_es.study.reference import AnswerToRate
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.verdict import DEBATE
from tests.cvrr_es.study.debating import ANSWERS, DIFFERENT, SAID, Study, played, wanted

TURNS = 5 * DIFFERENT  # two agents, two rounds, and the last word
AGAIN = "run the same command again to continue; to ask again for replies"


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Study]:
    made = Study(tmp_path)
    with made.endpoint:
        yield made


def refused(done: Result, kind: type[TasksError], *texts: str) -> None:
    assert isinstance(done.exception, kind), (done.output, done.exception)
    for text in texts:
        assert text in str(done.exception)


# --- who gives the ratings, and what they are asked -----------------------------------------------

KEY = {"OPENAI_API_KEY": "sk-planted-0123456789"}
LOCAL = "m@http://localhost:1/v1"
QUESTION = CvrrQuestion("partial_actions/001", "partial_actions", "v.mp4", "Who?", "A dog.")
ONE = AnswerToRate(QUESTION, "Planted", "A cat.", empty=False)
EMPTY = ONE._replace(answer="", empty=True)


def test_who_gives_the_ratings(tmp_path: Path) -> None:
    # Who judges answers is another decision.
    debate = reference.config(None, {**KEY, "LMMS_EVAL_TASKS_JUDGE": "x@http://h/v1"})
    assert debate.provider == DEBATE
    assert [one.model for one in debate.members] == ["gpt-3.5-turbo", "gpt-4o", "gpt-4o"]
    assert reference.config(None, KEY, single=True).model == "gpt-3.5-turbo"
    assert reference.config(LOCAL, {}, single=True).members == ()
    file = tmp_path / "debate.yml"
    a, b, c = (f"{name}@http://localhost:1/v1" for name in "abc")
    file.write_text(f"debate: ['{a}', '{b}']\nconsolidator: '{c}'\nname: three\n")
    own = reference.config(str(file), {})
    assert (own.label, [one.model for one in own.members]) == ("three", ["a", "b", "c"])
    panel = tmp_path / "panel.yml"
    panel.write_text("panel: ['a@http://localhost:1/v1', 'b@http://localhost:1/v1']\n")
    cases: list[tuple[str | None, dict[str, str], bool, str]] = [
        (str(file), {}, True, "three: .* with --single from one"),
        (LOCAL, {}, False, "--single"),
        (None, {}, False, r"gpt-3\.5-turbo and gpt-4o.*OPENAI_API_KEY.*--judge"),
        (" ", {}, True, r"^gpt-3\.5-turbo at OpenAI"),
        ("gpt-4o", {}, False, "--judge MODEL@BASE_URL"),
        ("none", KEY, False, "--judge none"),
        (str(panel), {}, False, "--judge panel"),
    ]
    for spec, env, alone, told in cases:
        with pytest.raises(JudgeError, match=told):
            reference.config(spec, env, single=alone)


def test_a_request_has_the_reference_and_the_rubric_but_no_candidate() -> None:
    system, user = (
        one["content"] for one in render(reference.reference_criterion(), reference.fields(ONE))
    )
    for text in ("Who?", "A dog.", "A cat.", "<candidate-"):
        assert text in user
    for text in (
        judge.load_judge_prompt("rating").text["rubric"].strip(),
        "You do not see the video",
        "JSON",
    ):
        assert text in system
    for text in ("Planted", "partial_actions", "reply is empty"):
        assert text not in system + user
    _, empty = render(reference.reference_criterion(), reference.fields(EMPTY))
    assert "reply is empty" in empty["content"]
    assert "<candidate-e3b0c44298fc1c14>\n\n</candidate-" in empty["content"]


# --- the command ----------------------------------------------------------------------------------


def test_a_debate(study: Study) -> None:
    """Its files, transcripts and console are in tests/golden; the estimate is of what is sent."""
    planned = study("--dry-run").output
    assert study.endpoint.chats == []
    done = study()
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(study.endpoint.chats) == TURNS
    rows = ratings.read_ratings([study.out])
    said = [answer for parts in SAID.values() for part in parts for answer in part]
    assert [(row.rating, row.empty) for row in rows] == [(wanted(one), not one) for one in said]
    # A folder with ratings and transcripts is read as ratings alone.
    assert ratings.read_ratings([study.folder]) == rows
    for output in (planned, done.output):  # before anybody was asked
        assert f"all: {TURNS} calls, unknown price" in output
    tokens = sum(int(n.replace(",", "")) for n in re.findall(r"calls, about ([\d,]+) \+", planned))
    sent = [one["content"] for chat in study.endpoint.chats for one in chat.json["messages"]]
    # Tokens are more than words; the stand-ins' reasons are of the usual length.
    assert 1.0 < tokens / len(" ".join(sent).split()) < 2.2


def test_a_budget_ends_the_run_and_the_rest_follows(study: Study) -> None:
    refused(study("--max-cost", "1"), JudgeError, "price", "unknown")
    first = study("--max-calls", "23", "--judge-concurrency", "1")
    assert (first.exit_code, len(study.endpoint.chats)) == (3, 23)
    assert "INVALID" in first.output
    rows = ratings.read_ratings([study.out])
    assert len(rows) == ANSWERS
    assert {row.status for row in rows} == {"ok", "skipped"}
    lacking = sum(row.rating is None for row in rows)
    assert f"{lacking} without a rating: {AGAIN}" in first.output
    assert study().exit_code == 0
    assert len(study.endpoint.chats) == TURNS
    assert all(row.rating for row in ratings.read_ratings([study.out]))


def test_replies_of_no_use_are_kept_and_asked_for_once_more_with_repairs(study: Study) -> None:
    study.player = lambda request: "I like dogs."
    first = study("--single")
    asked = len(study.endpoint.chats)
    assert asked == 2 * DIFFERENT
    told = f"{ANSWERS} without a rating: {AGAIN}"
    assert told in first.output
    study.player = played
    assert told in study("--single").output
    assert len(study.endpoint.chats) == asked
    file = study.folder / "judge.yml"
    file.write_text(f"model: m\nbase_url: {study.endpoint.url}\nrepairs: 2\n")
    done = study("--single", "--judge", str(file))
    assert done.exit_code == 0, done.output
    assert len(study.endpoint.chats) == asked + DIFFERENT
    assert all(row.rating for row in ratings.read_ratings([study.out]))


def test_other_ratings_are_not_overwritten(study: Study) -> None:
    assert study().exit_code == 0
    kept = study.out.read_bytes()
    refused(study("--single"), DataError, str(study.out), "debate(", "--out")
    every, study.candidates = study.candidates, study.candidates[:1]
    refused(study(), DataError, str(study.out), "Beta's answer", "--out")
    assert study.out.read_bytes() == kept
    study.candidates = every
    study.out.write_text("my notes")
    refused(study(), DataError, str(study.out))
    assert len(study.endpoint.chats) == TURNS
