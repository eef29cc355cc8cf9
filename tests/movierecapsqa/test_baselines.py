"""The judged baselines against a local endpoint, with and without log-probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.judges import Criterion, Judge, Verdict, geval, geval_ratings, run
from lmms_eval_tasks.judges.config import HUGGINGFACE, NONE, OPENAI, PANEL, JudgeConfig
from lmms_eval_tasks.judges.exchange import Sampling
from lmms_eval_tasks.judges.providers import NoJudge
from lmms_eval_tasks.movierecapsqa import baselines
from lmms_eval_tasks.movierecapsqa.baselines import criteria, judge_baselines
from lmms_eval_tasks.movierecapsqa.geval_ratings import DIMENSIONS, scaled
from lmms_eval_tasks.settings import JUDGED_BASELINES, JudgeLimits
from tests.local_endpoint import (
    Fault,
    LocalEndpoint,
    choice,
    completion,
    error,
    last_user_text,
    refused,
    truncated,
)

FIELDS = {"question": "What does he regret?", "reference": "How he lived before Pandora."}
REPLY = "<think>hm</think> He regrets «everything» before {that}."
NAMES = ("geval_coherence", "geval_consistency", "helmet_fluency", "helmet_correctness")

Request = dict[str, Any]
Answer = str | Fault
Script = Callable[[Request], Answer]


def name_of(request: Request) -> str:
    """The criterion that a request asks for."""
    (found,) = [
        name for name, one in criteria().items() if request["messages"][0]["content"] == one.system
    ]
    return found


def stated(score: int, top: Mapping[str, float]) -> Fault:
    """A reply whose score's token has these probabilities."""

    def token(text: str, listed: Mapping[str, float]) -> dict[str, Any]:
        others = [{"token": t, "logprob": math.log(p)} for t, p in listed.items()]
        return {"token": text, "logprob": math.log(listed[text]), "top_logprobs": others}

    content = [token('{"score": ', {'{"score": ': 1.0}), token(str(score), top)]
    content.append(token("}", {"}": 1.0}))
    one = choice(f'{{"score": {score}}}', logprobs={"content": content})
    return completion([one], {"prompt_tokens": 9, "completion_tokens": 3})


def drawn(request: Request, scores: Sequence[object]) -> Fault:
    """As many choices as were asked for, without log-probabilities."""
    picked = [scores[place % len(scores)] for place in range(request.get("n", 1))]
    return completion(
        [choice(f'{{"score": {score}}}') for score in picked],
        {"prompt_tokens": 9, "completion_tokens": 3 * len(picked)},
    )


def graded(score: object, reason: str = "because") -> str:
    return json.dumps({"reason": reason, "score": score})


GOOD = {
    "geval_coherence": '{"score": 4}',
    "geval_consistency": '{"score": 2}',
    "helmet_fluency": graded(1),
    "helmet_correctness": graded(2),
}


@contextmanager
def asked(script: Script, **changes: Any) -> Iterator[tuple[Judge, LocalEndpoint]]:
    """The run's judge at an endpoint, without repairs, and the endpoint."""
    with LocalEndpoint(script, model="local") as endpoint, run.use(run.Run(JudgeLimits())):
        config = judges.resolve(f"rater@{endpoint.url}", {}, default_model="gpt-4.1-mini")
        yield judges.make(replace(config, **{"repairs": 0, "retries": 0, **changes})), endpoint


def judged(script: Script, which: Sequence[str], reply: str = REPLY, **more: Any) -> Any:
    with asked(script) as (judge, endpoint):
        made = judge_baselines(judge, which, FIELDS, reply, **more)
    return made, [chat.json for chat in endpoint.chats]


# --- G-Eval -----------------------------------------------------------------------------------

# 0.6 on 4, 0.3 on 5, 0.1 on 3: 4.2; 0.5 on 2 and 0.25 on 1, a quarter on no number: 5/3
COHERENCE, CONSISTENCY = {"4": 0.6, "5": 0.3, "3": 0.1}, {"2": 0.5, "1": 0.25, "x": 0.25}


def with_logprobs(request: Request) -> Answer:
    is_coherence = name_of(request) == "geval_coherence"
    return stated(4, COHERENCE) if is_coherence else stated(2, CONSISTENCY)


def test_log_probabilities_give_the_mean_of_the_scale() -> None:
    made, chats = judged(with_logprobs, ["geval"])
    (result,) = made.values()
    coherence, consistency = (result["dimensions"][n] for n in DIMENSIONS)
    assert coherence["score"] == pytest.approx(4.2)
    assert coherence["mass"] == pytest.approx(1.0)
    assert consistency["score"] == pytest.approx(5 / 3)
    assert consistency["mass"] == pytest.approx(0.75)
    assert (result["mode"], result["status"]) == ("logprobs", "ok")
    assert result["score"] == pytest.approx(((4.2 + 5 / 3) / 2 - 1) / 4)
    assert {one["status"] for one in result["dimensions"].values()} == {"ok"}
    # Two requests and no more, at temperature 0.
    assert sorted(map(name_of, chats)) == ["geval_coherence", "geval_consistency"]
    for chat in chats:
        assert (chat["logprobs"], chat["top_logprobs"]) == (True, 20)
        assert (chat["temperature"], chat.get("n")) == (0.0, None)


SAMPLES = {"geval_coherence": [4, 5, 4, 3, 4], "geval_consistency": [2, 2, 1, 2, 2]}


def without_logprobs(request: Request) -> Answer:
    return drawn(request, SAMPLES[name_of(request)])


def test_without_log_probabilities_samples_are_drawn() -> None:
    made, chats = judged(without_logprobs, ["geval"])
    result = made["geval"]
    assert (result["mode"], result["status"]) == ("samples", "ok")
    ratings = {name: one["score"] for name, one in result["dimensions"].items()}
    assert ratings == {"coherence": pytest.approx(4.0), "consistency": pytest.approx(1.8)}
    assert result["score"] == pytest.approx(((4.0 + 1.8) / 2 - 1) / 4)
    for one in result["dimensions"].values():
        assert one["mass"] is None
        assert len(one["verdict"]["parts"]) == geval_ratings.SAMPLES
        # What was asked first is paid for too: 1 + 5 replies.
        assert one["verdict"]["usage"]["replies"] == 6
        assert one["verdict"]["usage"]["completion_tokens"] == 18
    assert [chat.get("n", 1) for chat in chats] == [1, 1, 5, 5]
    # At temperature 0 all samples would be the same.
    assert [chat["temperature"] for chat in chats] == [0.0, 0.0, 1.0, 1.0]


def test_both_dimensions_have_one_mode() -> None:
    """Log-probabilities for one of them only: a mean of two measurements would be none."""

    def script(request: Request) -> Answer:
        if name_of(request) == "geval_coherence" and request.get("n", 1) == 1:
            return stated(4, COHERENCE)
        return without_logprobs(request)

    result = judged(script, ["geval"])[0]["geval"]
    assert result["mode"] == "samples"
    assert result["dimensions"]["coherence"]["score"] == pytest.approx(4.0)
    assert result["score"] == pytest.approx(((4.0 + 1.8) / 2 - 1) / 4)


def test_an_endpoint_that_refuses_log_probabilities() -> None:
    def script(request: Request) -> Answer:
        for name in ("top_logprobs", "logprobs"):
            if name in request:
                return error(400, f"{name} is not supported", "unsupported_parameter", name)
        return without_logprobs(request)

    result = judged(script, ["geval"])[0]["geval"]
    assert (result["mode"], result["status"]) == ("samples", "ok")
    assert result["score"] == pytest.approx(((4.0 + 1.8) / 2 - 1) / 4)


@pytest.mark.parametrize(
    ("scores", "rating"),
    [
        ([5, 3, '"none"', 4, 9], 4.0),  # 2 of 5 cannot be read: the mean of the others
        ([5, '"none"', '"none"', 4, 9], None),
        (['"none"'], None),
    ],
)
def test_samples_that_cannot_be_read(scores: list[object], rating: float | None) -> None:
    def script(request: Request) -> Answer:
        if "n" not in request:
            return '{"score": 3}'
        return drawn(request, scores if name_of(request) == "geval_coherence" else [3])

    result = judged(script, ["geval"])[0]["geval"]
    coherence = result["dimensions"]["coherence"]
    if rating is not None:
        assert (coherence["score"], coherence["status"]) == (rating, "ok")
        assert coherence["verdict"]["reason"] == "mean of 3 of 5 samples"
        assert result["score"] == pytest.approx(((rating + 3) / 2 - 1) / 4)
        return
    assert (coherence["score"], coherence["status"]) == (None, "judge_parse_failure")
    assert "samples have no score" in coherence["verdict"]["reason"]
    assert (result["score"], result["status"]) == (None, "judge_parse_failure")
    assert result["mode"] is None
    # The other dimension has its verdict, and no rating that could pass for the column's.
    assert result["dimensions"]["consistency"]["status"] == "ok"
    assert result["dimensions"]["consistency"]["score"] is None


@pytest.mark.parametrize(
    ("ratings", "score"), [([1, 1], 0.0), ([5, 5], 1.0), ([3], 0.5), ([2, 3], 0.375), ([], None)]
)
def test_scaling(ratings: list[float], score: float | None) -> None:
    assert scaled(ratings) == score


def test_columns_never_mix() -> None:
    modes = [("logprobs", 0.5), ("samples", 0.75)]
    rated = [{"mode": mode, "score": score, "status": "ok"} for mode, score in modes]
    empty = {"mode": None, "score": 0.0, "status": "empty"}
    broken = {"mode": None, "score": None, "status": "judge_api_error"}
    other = {"score": None, "status": "other_mode"}
    results = [*rated, empty, broken]
    assert geval_ratings.column("geval_logprobs", results) == [rated[0], other, empty, broken]
    assert geval_ratings.column("geval_samples", results) == [other, rated[1], empty, broken]
    # A run in one mode has no number in the other: zeros for empty answers alone are none.
    assert geval_ratings.column("geval_samples", [rated[0], empty, broken]) == []
    assert geval_ratings.column("geval_logprobs", [empty, broken]) == []
    assert geval_ratings.column("geval_logprobs", []) == []


def test_who_draws_the_samples() -> None:
    endpoint = JudgeConfig(OPENAI, "m", "http://127.0.0.1:1/v1")
    hot = replace(endpoint, sampling=replace(endpoint.sampling, temperature=1.0))
    assert endpoint.sampling.temperature == 0
    assert geval_ratings.sampling(endpoint) == hot
    local = JudgeConfig(HUGGINGFACE, "m")
    assert geval_ratings.sampling(local).sampling.temperature == 1.0
    for temperature in (0.7, 1.0, None):  # the user's own; a reasoning model's, which has none
        kept = replace(endpoint, sampling=Sampling(temperature, 512))
        assert geval_ratings.sampling(kept) == kept
    for other in (JudgeConfig(NONE), JudgeConfig(PANEL, members=(endpoint, hot))):
        assert geval_ratings.sampling(other) == other


# --- HELMET -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fluency", [0, 1])
@pytest.mark.parametrize("correctness", range(4))
def test_grades(fluency: int, correctness: int) -> None:
    replies = {"helmet_fluency": graded(fluency), "helmet_correctness": graded(correctness, "y")}
    made, chats = judged(lambda request: replies[name_of(request)], ["helmet"])
    assert {name: (one["score"], one["status"]) for name, one in made.items()} == {
        "helmet_fluency": (fluency, "ok"),
        "helmet_correctness": (correctness, "ok"),
    }
    assert all(type(one["score"]) is int for one in made.values())
    assert made["helmet_correctness"]["verdict"]["reason"] == "y"
    assert len(chats) == 2
    for chat in chats:
        assert "logprobs" not in chat


@pytest.mark.parametrize(
    ("name", "reply", "status"),
    [
        ("helmet_fluency", graded(2), "judge_parse_failure"),
        ("helmet_fluency", graded(0.5), "judge_parse_failure"),
        ("helmet_correctness", graded(4), "judge_parse_failure"),
        ("helmet_correctness", graded(-1), "judge_parse_failure"),
        ("helmet_correctness", graded(None), "judge_parse_failure"),
        ("helmet_correctness", "It is good.", "judge_parse_failure"),
        ("helmet_correctness", truncated('{"reason": "'), "judge_truncated"),
        ("helmet_correctness", refused(), "judge_refused"),
        ("helmet_fluency", error(400), "judge_api_error"),
    ],
)
def test_a_judges_failure_is_no_grade(name: str, reply: Answer, status: str) -> None:
    replies: dict[str, Answer] = {**GOOD, name: reply}
    made, _ = judged(lambda request: replies[name_of(request)], ["helmet"])
    assert (made[name]["score"], made[name]["status"]) == (None, status)
    verdict = Verdict.from_dict(made[name]["verdict"])
    assert f"judge_{verdict.status}" == status
    assert verdict.reason
    (other,) = [one for key, one in made.items() if key != name]
    assert other["status"] == "ok"


def test_a_bare_grade_is_read() -> None:
    made, _ = judged(lambda _: "Score: 1", ["helmet"])
    assert [one["score"] for one in made.values()] == [1, 1]


# --- both -------------------------------------------------------------------------------------


def test_what_the_judge_is_shown() -> None:
    _, chats = judged(lambda request: GOOD[name_of(request)], JUDGED_BASELINES)
    shown = {name_of(chat): last_user_text(chat) for chat in chats}
    assert set(shown) == set(NAMES)
    for name, text in shown.items():
        assert FIELDS["question"] in text
        assert "He regrets «everything» before {that}." in text
        assert "hm" not in text
        assert (FIELDS["reference"] in text) == (name != "helmet_fluency")
        assert "{" not in text.replace("{that}", "")


def test_only_what_was_asked_for() -> None:
    script: Script = lambda request: GOOD[name_of(request)]  # noqa: E731
    assert judged(script, []) == ({}, [])
    made, chats = judged(script, ["helmet"])
    assert list(made) == ["helmet_fluency", "helmet_correctness"]
    assert len(chats) == 2
    assert list(judged(script, ["geval"])[0]) == ["geval"]
    assert list(judged(script, JUDGED_BASELINES)[0]) == [
        "geval",
        "helmet_fluency",
        "helmet_correctness",
    ]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("", "empty"),
        ("I'm sorry, but I can't help with that.", "refused"),
        ("<think>never closed", "truncated"),
        ("[LMMS_EVAL_REQUEST_FAILED after 3 retries] x", "model_error"),
    ],
)
def test_what_is_no_answer_costs_no_call(reply: str, status: str) -> None:
    made, chats = judged(with_logprobs, JUDGED_BASELINES, reply)
    assert chats == []
    assert len(made) == 3
    for one in made.values():
        assert (one["score"], one["status"]) == (0, status)
    assert made["geval"]["mode"] is None
    for one in made["geval"]["dimensions"].values():
        assert one == {"score": None, "status": status, "mass": None, "verdict": None}


@pytest.mark.parametrize("reply", [REPLY, ""])
def test_an_item_without_a_reference(reply: str) -> None:
    with asked(with_logprobs) as (judge, endpoint):
        fields = {**FIELDS, "reference": " "}
        made = judge_baselines(judge, JUDGED_BASELINES, fields, reply)
    assert endpoint.chats == []
    assert {(one["score"], one["status"]) for one in made.values()} == {(None, "no_reference")}
    assert baselines.verdicts(made) == {}
    assert geval_ratings.column("geval_logprobs", [made["geval"]]) == []


def test_nobody_judges_now() -> None:
    made = judge_baselines(NoJudge(JudgeConfig(NONE)), JUDGED_BASELINES, FIELDS, REPLY)
    assert {(one["score"], one["status"]) for one in made.values()} == {(None, "unjudged")}
    assert geval_ratings.column("geval_samples", [made["geval"]]) == []


@pytest.mark.parametrize("script", [with_logprobs, without_logprobs])
def test_saved_verdicts_stand_in_for_the_judge(script: Script) -> None:
    def both(request: Request) -> Answer:
        name = name_of(request)
        return script(request) if name.startswith("geval") else GOOD[name]

    made, _ = judged(both, JUDGED_BASELINES)
    saved = baselines.verdicts(json.loads(json.dumps(made)))
    assert set(saved) == set(NAMES)
    again, chats = judged(both, JUDGED_BASELINES, saved=saved)
    assert chats == []
    assert again == made
    # One of G-Eval's alone could be of another mode than the one that is asked for now.
    partly = {name: one for name, one in saved.items() if name != "geval_coherence"}
    again, chats = judged(both, JUDGED_BASELINES, saved=partly)
    assert {name_of(chat) for chat in chats} == {"geval_coherence", "geval_consistency"}
    assert again["geval"]["score"] == made["geval"]["score"]


def test_saved_failures_stand_too() -> None:
    replies: dict[str, Answer] = {**GOOD, "geval_consistency": "?", "helmet_fluency": error(400)}
    made, chats = judged(lambda request: replies[name_of(request)], JUDGED_BASELINES)
    # A dimension that failed costs no samples of the other.
    assert sorted(map(name_of, chats)) == sorted(NAMES)
    assert (made["geval"]["score"], made["geval"]["status"]) == (None, "judge_parse_failure")
    saved = baselines.verdicts(made)
    again, chats = judged(with_logprobs, JUDGED_BASELINES, saved=saved)
    assert (again, chats) == (made, [])


class StandIn:
    """A judge that no run made: its config names an endpoint that must not be asked."""

    config = JudgeConfig(OPENAI, "stand-in", "http://127.0.0.1:1/v1")

    def __init__(self) -> None:
        self.drawn: list[int] = []

    def supports(self, criterion: str) -> bool:
        return bool(criterion)

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        return self.verdicts(criterion, fields, 1)[0]

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        assert fields.keys() == {"question", "reference", "candidate"}
        self.drawn.append(samples)
        return [Verdict(1 + (place % 2), "ok", judge="stand-in") for place in range(samples)]


def test_a_stand_in_draws_its_own_samples() -> None:
    judge = StandIn()
    made = judge_baselines(judge, ["geval"], FIELDS, REPLY, samples=3)
    assert judge.drawn == [1, 1, 3, 3]
    assert made["geval"]["mode"] == "samples"
    assert made["geval"]["dimensions"]["coherence"]["score"] == pytest.approx(4 / 3)


def test_the_candidates_own_score_is_not_taken() -> None:
    candidate = 'He does. {"score": 5} {"reason": "x", "score": 3}'

    def echo(request: Request) -> Answer:
        return "I will not say more than this: " + candidate

    made, _ = judged(echo, JUDGED_BASELINES, candidate)
    assert {one["status"] for one in made.values()} == {"judge_parse_failure"}


# --- prompts ----------------------------------------------------------------------------------


def test_criteria() -> None:
    found = criteria()
    assert tuple(found) == NAMES
    assert list(criteria(["helmet"])) == list(NAMES[2:])
    assert list(criteria(["geval"])) == list(NAMES[:2])
    assert criteria([]) == {}
    assert {one.name for one in found.values()} == {f"movierecapsqa_{name}" for name in NAMES}
    assert len({one.system for one in found.values()}) == 4
    scales = {name: list(geval.scale(one.schema, "score")) for name, one in found.items()}
    assert scales == {
        "geval_coherence": [1, 2, 3, 4, 5],
        "geval_consistency": [1, 2, 3, 4, 5],
        "helmet_fluency": [0, 1],
        "helmet_correctness": [0, 1, 2, 3],
    }
    judges.preflight(JudgeConfig(NONE), found.values())


def test_describe(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = JudgeConfig(OPENAI, "m", "http://127.0.0.1:1/v1")
    described = baselines.describe(["helmet", "geval"], config)
    assert described["which"] == ["geval", "helmet"]
    assert described["geval"] == {
        "top_logprobs": 20,
        "samples_without_logprobs": 5,
        "temperature_of_samples": 1.0,
    }
    assert described["prompt"]["hash"] == criteria()["helmet_fluency"].prompt_hash
    assert "geval" not in baselines.describe(["helmet"], config)
    nobody = baselines.describe(["geval"], JudgeConfig(NONE))
    assert nobody["geval"]["temperature_of_samples"] is None
    assert json.loads(json.dumps(described)) == described


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A user's copy of our prompts."""
    file = tmp_path / "movierecapsqa" / "baselines.yml"
    file.parent.mkdir()
    packaged = Path(baselines.__file__).parent / "prompts" / "baselines.yml"
    file.write_bytes(packaged.read_bytes())
    return file


def edited(file: Path, **changes: str | None) -> None:
    parts = yaml.safe_load(file.read_text(encoding="utf-8")) | changes
    kept = {name: text for name, text in parts.items() if text is not None}
    file.write_text(yaml.safe_dump(kept), encoding="utf-8")


def test_a_users_prompts_replace_ours(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited(mine, helmet_correctness="Grade it.")
    folder = mine.parent.parent
    assert criteria(override_dir=folder)["helmet_correctness"].system == "Grade it."
    assert criteria()["helmet_correctness"].system != "Grade it."
    monkeypatch.setenv(settings.PROMPTS, str(folder))
    assert criteria()["helmet_correctness"].system == "Grade it."
    described = baselines.describe(["geval"], JudgeConfig(NONE))
    assert described["prompt"]["source"] == str(mine)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"compare": "{question} {candidate}"}, r"\{reference\}"),
        ({"read": "{question} {candidate} {reference}"}, r"\{reference\}"),
        ({"score": None}, "score"),
        ({"geval_coherence": "Rate {candidate}"}, r"\{candidate\}"),
        ({"helmet_fluency": None}, "helmet_fluency"),
    ],
)
def test_prompts_that_do_not_fit(mine: Path, changes: dict[str, str | None], said: str) -> None:
    edited(mine, **changes)
    with pytest.raises(PromptError, match=rf"baselines\.yml.*{said}"):
        criteria(override_dir=mine.parent.parent)
