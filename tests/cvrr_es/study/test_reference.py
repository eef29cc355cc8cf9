"""Reference ratings: who gives them, what they are asked, what is kept, what it would cost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lmms_eval_tasks import judges
from lmms_eval_tasks.cvrr_es import candidates, judge, release
from lmms_eval_tasks.cvrr_es.study import reference
from lmms_eval_tasks.cvrr_es.study.reference import Asked
from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import JudgeConfig, reader, run
from lmms_eval_tasks.judges.config import DEBATE, OPENAI
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.settings import JudgeLimits
from tests.cvrr_es.study.debating import (
    ANSWERS,
    DIFFERENT,
    DIMENSIONS,
    SAID,
    Player,
    wanted,
    write_study,
)
from tests.local_endpoint import Fault, LocalEndpoint

KEY = {"OPENAI_API_KEY": "sk-planted-0123456789"}
ONE = Asked(
    "partial_actions", "partial_actions/001", "v", "Planted", "Who?", "A dog.", "A cat.", False
)
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


@pytest.mark.parametrize("spec", ["none", "offline"])
@pytest.mark.parametrize("single", [True, False])
def test_no_judge_no_reference(spec: str, single: bool) -> None:
    with pytest.raises(JudgeError, match=f"--judge {spec}"):
        reference.config(spec, KEY, single=single)


def test_what_cannot_be_used(tmp_path: Path) -> None:
    for spec in (None, "", " "):
        with pytest.raises(JudgeError, match=r"gpt-4o and gpt-3\.5-turbo.*OPENAI_API_KEY.*--judge"):
            reference.config(spec, {})
    with pytest.raises(JudgeError, match=r"^gpt-3\.5-turbo at OpenAI"):
        reference.config(None, {}, single=True)
    with pytest.raises(JudgeError, match="--judge=MODEL@BASE_URL"):
        reference.config("gpt-4o", {})
    file = tmp_path / "panel.yml"
    file.write_text("panel: ['a@http://localhost:1/v1', 'b@http://localhost:1/v1']\n")
    with pytest.raises(JudgeError, match="--judge panel"):
        reference.config(str(file), {})


def test_a_request_has_the_reference_and_the_rubric_but_no_candidate() -> None:
    system, user = render(reference.criterion(), reference.fields(ONE))
    for text in ("Who?", "A dog.", "A cat.", "<candidate-"):
        assert text in user["content"]
    assert judge.rating_prompt().text["rubric"].strip() in system["content"]
    whole = system["content"] + user["content"]
    assert "Planted" not in whole
    assert "partial_actions" not in whole
    assert "You do not see the video" in system["content"]
    assert "reply is empty" not in whole
    assert "JSON" in system["content"]
    _, empty = render(reference.criterion(), reference.fields(EMPTY))
    assert "reply is empty" in empty["content"]
    assert "<candidate-e3b0c44298fc1c14>\n\n</candidate-" in empty["content"]


@pytest.mark.parametrize("rating", range(1, 6))
def test_score(rating: int) -> None:
    criterion = reference.criterion()
    for text in (json.dumps({"reason": "r", "rating": rating}), f"Rating: {rating}"):
        assert criterion.score(reader.read(text, criterion.schema, bare=criterion.bare)) == rating


@pytest.mark.parametrize("rating", ["0", "6", "4.5", '"four"'])
def test_ratings_off_the_scale_are_failures(rating: str) -> None:
    criterion = reference.criterion()
    with pytest.raises(reader.UnreadableError):
        reader.read(f'{{"reason": "r", "rating": {rating}}}', criterion.schema)


def test_the_users_prompt_replaces_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {
        "system": "mine {rubric}",
        "rubric": "1 to 5",
        "user": "{question} {reference} {candidate} {remark}",
        "empty": "(nothing)",
    }
    file = tmp_path / "cvrr_es" / "reference.yml"
    file.parent.mkdir()
    file.write_text(yaml.safe_dump(ours))
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(tmp_path))
    assert reference.criterion().system == "mine 1 to 5"
    assert "(nothing)" in render(reference.criterion(), reference.fields(EMPTY))[1]["content"]
    assert str(file) in reference.prompt_name()
    assert reference.criterion().prompt_hash in reference.prompt_name()
    other = tmp_path / "other"
    (other / "cvrr_es").mkdir(parents=True)
    (other / "cvrr_es" / "reference.yml").write_text(yaml.safe_dump({**ours, "user": "{question}"}))
    monkeypatch.setenv("LMMS_EVAL_TASKS_PROMPTS", str(other))
    with pytest.raises(PromptError, match=r"\{candidate\}"):
        reference.criterion()


@pytest.fixture
def asked(tmp_path: Path) -> list[Asked]:
    root, folders = write_study(tmp_path)
    found = release.read(root / "cvrr_es")
    aligned = [candidates.align(one, found) for one in candidates.read(folders)]
    return reference.asked_about(found, aligned)


def test_every_answer_is_rated_also_an_empty_one(asked: list[Asked]) -> None:
    assert [(one.candidate, one.answer) for one in asked] == [
        (name, answer) for name, parts in SAID.items() for part in parts for answer in part
    ]
    assert [one.id for one in asked if one.empty] == ["time_order_understanding/002"]
    assert len(asked) == ANSWERS


def test_videos_are_called_as_judges_call_them(asked: list[Asked]) -> None:
    """`reliability` takes a question on two videos for a mistake."""
    assert {one.id: one.video for one in asked} == {
        f"{one}/{place + 1:03d}": f"{one}/{number}{place}.mp4"
        for number, one in enumerate(DIMENSIONS)
        for place in range(3)
    }


@pytest.mark.parametrize("single", [True, False])
def test_rows_and_transcripts(asked: list[Asked], single: bool) -> None:
    with LocalEndpoint(Player()) as endpoint:
        config = reference.config(f"m@{endpoint.url}", {}, single=single)
        rated = reference.rate(judges.make(config), asked)
        requests = [request.json["messages"] for request in endpoint.chats]
    assert len(requests) == ANSWERS * (1 if single else 5)  # without a cache
    assert [one.asked for one in rated] == asked
    for one in rated:
        row = one.row(config.label)
        assert (row.rating, row.status) == (wanted(one.asked.answer), "ok")
        assert (row.round, row.judge, row.empty) == (
            "reference",
            config.label,
            not one.asked.answer,
        )
        assert (row.question, row.candidate, row.video) == (
            one.asked.id,
            one.asked.candidate,
            one.asked.video,
        )
        told = json.loads(json.dumps(one.transcript(config.label)))
        assert told["rating"] == row.rating
        assert told["asked"]["reference"] == one.asked.reference
        assert row.reason == told["turns"][-1]["reason"]
        speakers = [(turn["agent"], turn["round"]) for turn in told["turns"]]
        agents = [(f"Agent {name}", number) for number in (1, 2) for name in "AB"]
        assert speakers == ([("Judge", None)] if single else [*agents, ("Consolidator", None)])
        assert all(json.loads(turn["raw"])["rating"] == turn["score"] for turn in told["turns"])
    for name in (*SAID, "partial_actions"):
        assert name not in json.dumps(requests)


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
    assert found.calls == 5 * DIFFERENT
    assert found.cost is None
    ((_, plan),) = found.plans
    # Without a cache the answer of both candidates is sent twice; tokens are more than words.
    assert 1.0 < plan.judge_tokens / (sent * DIFFERENT / ANSWERS) < 2.2
    lines = "\n".join(found.lines())
    assert "all: 55 calls, unknown price" in lines
    assert "1 answers are another candidate's too" in lines


def test_the_estimate_counts_every_model_at_its_price(asked: list[Asked]) -> None:
    with run.use(run.Run(JudgeLimits())):
        debate = reference.estimate(reference.config(None, KEY), asked)
        single = reference.estimate(reference.config(None, KEY, single=True), asked)
    plans = dict(debate.plans)
    assert {label: plan.calls for label, plan in plans.items()} == {
        "gpt-4o": 3 * DIFFERENT,  # two turns and the last word
        "gpt-3.5-turbo": 2 * DIFFERENT,
    }
    assert debate.cost is not None
    assert debate.cost == pytest.approx(sum(plan.cost or 0 for plan in plans.values()))
    assert debate.cost > (plans["gpt-4o"].cost or 0) > 0
    ((_, one),) = single.plans
    assert one.calls == DIFFERENT
    # Later turns hold the earlier ones.
    assert plans["gpt-3.5-turbo"].judge_tokens > 2.2 * one.judge_tokens


def test_many_answers_are_estimated_on_a_part() -> None:
    many = [
        ONE._replace(id=f"partial_actions/{n:03d}", answer=f"number {n:04d}") for n in range(700)
    ]
    with run.use(run.Run(JudgeLimits())):
        config = reference.config(None, KEY, single=True)
        whole = reference.estimate(config, many)
        part = reference.estimate(config, many[:300])
    assert whole.calls == 700
    ((_, found),) = whole.plans
    ((_, exact),) = part.plans
    assert found.judge_tokens == pytest.approx(exact.judge_tokens * 7 / 3, rel=0.01)
    assert "estimated on 234 of 700 different answers" in whole.lines()
    assert not any("estimated on" in line for line in part.lines())


def test_agents_with_one_label_and_other_settings_are_both_counted(tmp_path: Path) -> None:
    file = tmp_path / "debate.yml"
    model = "{model: m, base_url: 'http://localhost:1/v1', temperature: %s}"
    file.write_text(f"debate: [{model % 0.0}, {model % 1.0}]\nrounds: 1\n")
    with run.use(run.Run(JudgeLimits())):
        found = reference.estimate(reference.config(str(file), {}), [ONE])
        assert [plan.calls for _, plan in found.plans] == [2, 1]
        assert found.calls == 3
        file.write_text(f"{file.read_text()}consolidator: {model % 0.5}\n")
        found = reference.estimate(reference.config(str(file), {}), [ONE])
        assert [plan.calls for _, plan in found.plans] == [1, 1, 1]


def test_recordings_cost_nothing() -> None:
    with run.use(run.Run(JudgeLimits())):
        found = reference.estimate(JudgeConfig("replay", "x.jsonl"), [ONE])
    assert (found.calls, found.cost) == (0, 0.0)


def test_importing_is_light() -> None:
    heavy = ("torch", "decord", "av", "openai", "h5py", "ruptures", "scipy")
    modules = ("judge", "study.replies", "study.reference")
    code = "; ".join(
        [
            "import sys",
            "import lmms_eval_tasks.commands.debate_command",
            *(f"import lmms_eval_tasks.cvrr_es.{name}" for name in modules),
            f"print([m for m in {heavy!r} if m in sys.modules])",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
