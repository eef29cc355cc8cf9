"""Reference ratings: who gives them, what they are asked, what is kept, what it would cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.cvrr_es import candidates, judge, release
from lmms_eval_tasks.cvrr_es.release import Question
from lmms_eval_tasks.cvrr_es.study import reference
from lmms_eval_tasks.cvrr_es.study.reference import Asked
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.verdict import DEBATE, OPENAI
from lmms_eval_tasks.settings import JudgeLimits
from tests.cvrr_es.study.debating import (
    ANSWERS,
    DIFFERENT,
    Player,
    write_study,
)
from tests.local_endpoint import Fault, LocalEndpoint

KEY = {"OPENAI_API_KEY": "sk-planted-0123456789"}
QUESTION = Question("partial_actions/001", "partial_actions", "v.mp4", "Who?", "A dog.")
ONE = Asked(QUESTION, "Planted", "A cat.", empty=False)
EMPTY = ONE._replace(answer="", empty=True)


def test_the_papers_debate_and_single_judge() -> None:
    debate = reference.config(None, KEY)
    assert (debate.provider, debate.rounds) == (DEBATE, 2)
    assert [one.model for one in debate.members] == ["gpt-4o", "gpt-3.5-turbo", "gpt-4o"]
    single = reference.config(None, KEY, single=True)
    assert (single.provider, single.model) == (OPENAI, "gpt-3.5-turbo")
    # Who judges answers is another decision.
    assert reference.config(None, {**KEY, "LMMS_EVAL_TASKS_JUDGE": "x@http://h/v1"}) == debate


def test_one_model_debates_with_itself_and_a_file_says_more(tmp_path: Path) -> None:
    debate = reference.config("m@http://localhost:1/v1", {})
    assert debate.provider == DEBATE
    assert {one.label for one in debate.members} == {"m@http://localhost:1/v1"}
    assert len(debate.members) == 3
    file = tmp_path / "debate.yml"
    model = "{model: MODEL, base_url: 'http://localhost:1/v1'}"
    file.write_text(
        f"debate: [{model.replace('MODEL', 'a')}, {model.replace('MODEL', 'b')}]\n"
        f"consolidator: {model.replace('MODEL', 'c')}\nrounds: 3\nname: three\n"
    )
    own = reference.config(str(file), {})
    assert (own.label, own.rounds) == ("three", 3)
    assert [one.model for one in own.members] == ["a", "b", "c"]
    with pytest.raises(JudgeError, match="three is a debate"):
        reference.config(str(file), {}, single=True)
    assert reference.config("m@http://localhost:1/v1", {}, single=True).members == ()


def test_what_cannot_be_used(tmp_path: Path) -> None:
    for spec in (None, "", " "):
        with pytest.raises(JudgeError, match=r"gpt-4o and gpt-3\.5-turbo.*OPENAI_API_KEY.*--judge"):
            reference.config(spec, {})
    with pytest.raises(JudgeError, match=r"^gpt-3\.5-turbo at OpenAI"):
        reference.config(None, {}, single=True)
    with pytest.raises(JudgeError, match="--judge=MODEL@BASE_URL"):
        reference.config("gpt-4o", {})
    for single in (True, False):
        with pytest.raises(JudgeError, match="--judge none"):
            reference.config("none", KEY, single=single)
    file = tmp_path / "panel.yml"
    file.write_text("panel: ['a@http://localhost:1/v1', 'b@http://localhost:1/v1']\n")
    with pytest.raises(JudgeError, match="--judge panel"):
        reference.config(str(file), {})


def test_a_request_has_the_reference_and_the_rubric_but_no_candidate() -> None:
    system, user = render(reference.criterion(), reference.fields(ONE))
    for text in ("Who?", "A dog.", "A cat.", "<candidate-"):
        assert text in user["content"]
    assert judge.prompt("rating").text["rubric"].strip() in system["content"]
    whole = system["content"] + user["content"]
    assert "Planted" not in whole
    assert "partial_actions" not in whole
    assert "You do not see the video" in system["content"]
    assert "reply is empty" not in whole
    assert "JSON" in system["content"]
    _, empty = render(reference.criterion(), reference.fields(EMPTY))
    assert "reply is empty" in empty["content"]
    assert "<candidate-e3b0c44298fc1c14>\n\n</candidate-" in empty["content"]


@pytest.fixture
def asked(tmp_path: Path) -> list[Asked]:
    root, folders = write_study(tmp_path)
    found = release.read(root / "cvrr_es")
    aligned = [candidates.align(one, found) for one in candidates.read(folders)]
    return reference.asked_about(found, aligned)


def test_a_failed_debate_is_a_row_without_rating() -> None:
    with LocalEndpoint(lambda request: Fault(content="I like dogs.")) as endpoint:
        config = reference.config(f"m@{endpoint.url}", {})
        (rated,) = reference.rate(judges.make(config), [ONE])
    row = rated.row("label")
    assert (row.rating, row.status, row.reason) == (None, "parse_failure", "")
    told = rated.transcript("label")
    assert [turn["raw"] for turn in told["turns"]] == ["I like dogs."] * 4
    assert "no agent has a usable turn" in told["reason"]


def words(messages: list[dict[str, str]]) -> int:
    return sum(len(message["content"].split()) for message in messages)


def test_the_estimate_is_of_what_is_sent(asked: list[Asked]) -> None:
    """The stand-ins' requests are the debate's own but for the reasons in them."""
    with LocalEndpoint(Player()) as endpoint, run.use(run.Run(JudgeLimits())):
        config = reference.config(f"m@{endpoint.url}", {})
        found = reference.estimate(config, asked)
        assert endpoint.chats == []
        reference.rate(judges.make(config), asked)
        sent = sum(words(request.json["messages"]) for request in endpoint.chats)
    lines = "\n".join(found)
    assert f"all: {5 * DIFFERENT} calls, unknown price" in lines
    assert "1 answers are another candidate's too" in lines
    tokens = int(lines.partition(" calls, about ")[2].partition(" + ")[0].replace(",", ""))
    # Without a cache the answer of both candidates is sent twice; tokens are more than words.
    assert 1.0 < tokens / (sent * DIFFERENT / ANSWERS) < 2.2
