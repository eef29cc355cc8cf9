"""The sample's answers of people and models, their published scores, and what replay.jsonl says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges import Judge
from lmms_eval_tasks.movierecapsqa import demo, sample_answers, sample_texts, schema, scores
from lmms_eval_tasks.movierecapsqa import judge as judging
from lmms_eval_tasks.movierecapsqa.answer_judging import Context, judge_reply
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.sample_answers import (
    MODELS,
    NO_CLAIMS,
    Claim,
    replies,
    score,
    text,
)

RIGHT = Claim("r", "supported", "relevant")
FALSE = Claim("f", "contradictory", "relevant", "contradictory")
HALF = Claim("h", "partially_supported", "relevant")
BESIDE = Claim("b", "unsupported", "irrelevant")


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "movierecapsqa"


@pytest.fixture(scope="module")
def release(folder: Path) -> schema.Release:
    return schema.read(folder)


@pytest.fixture
def judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", demo.judge("oracle", folder))
    judging.check()
    return judges.make(judging.config())


def every() -> Iterator[tuple[int, int, sample_texts.Asked, str]]:
    for number, part in enumerate(sample_texts.parts()):
        for qid, one in enumerate(part.questions):
            yield number, qid, one, sample_texts.lure(number)


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ((RIGHT,), (5, 5, 5)),
        ((RIGHT, RIGHT._replace(coherence="redundant")), (5, 5, 4)),
        ((FALSE,), (0, 5, 0)),
        ((RIGHT, RIGHT, FALSE), (2, 5, 2)),
        ((HALF,), (3, 5, 5)),
        ((RIGHT, HALF), (4, 5, 5)),
        ((BESIDE,), (0, 0, 5)),
        ((RIGHT, RIGHT, BESIDE), (3, 2, 5)),
    ],
)
def test_score(claims: tuple[Claim, ...], expected: tuple[int, int, int]) -> None:
    assert tuple(score(name, claims) for name in DIMENSIONS) == expected


def test_every_built_answer_gets_its_labels_and_score(
    judge: Judge, release: schema.Release
) -> None:
    seen: Counter[str] = Counter()
    for number, qid, one, lure in every():
        segment = release.segments[number]
        context = Context(segment.id, segment.facts, segment.dialogue)
        question = segment.questions[qid].question
        for claims in replies(one, lure).values():
            found = judge_reply(judge, context, question, text(claims))
            assert found.status == "ok"
            assert found.claims == [claim.text for claim in claims]
            for name in DIMENSIONS:
                rated = found.dimensions[name]
                assert rated["labels"] == sample_answers.labels(name, claims)
                assert rated["score"] == score(name, claims)
                assert rated["consistent"] is True
                seen.update(rated["labels"])
    assert set(seen) == set(sample_answers._WORTH) - {"partially_relevant"}


def test_nothing_else_has_a_verdict(judge: Judge, release: schema.Release) -> None:
    segment = release.segments[0]
    question = segment.questions[0]
    context = Context(segment.id, segment.facts, segment.dialogue)
    found = judge_reply(judge, context, question.question, "Ada has waited since May.")
    assert found.status == "judge_skipped"
    other = Context(segment.id, (*segment.facts, "One more."), segment.dialogue)
    found = judge_reply(judge, other, question.question, question.reference)
    assert found.status == "judge_skipped"
    assert found.claims == [question.reference]


def test_released_answers_and_published_scores(judge: Judge, release: schema.Release) -> None:
    gaps: Counter[tuple[str, int]] = Counter()
    kinds: Counter[str] = Counter()
    people: Counter[int] = Counter()
    for segment, question in release.questions():
        assert [answer.model for answer in question.model_answers] == list(MODELS)
        people[len(question.human_answers)] += 1
        context = Context(segment.id, segment.facts, segment.dialogue)
        for answer in (*question.human_answers, *question.model_answers):
            found = judge_reply(judge, context, question.question, answer.answer)
            kinds[found.status] += 1
            if found.status == "empty":
                assert answer.scores.factuality is None
                assert answer.scores.relevance is None
                continue
            for name in ("factuality", "relevance"):
                published = getattr(answer.scores, name)
                assert 0 <= published <= 5
                gaps[name, abs(published - found.dimensions[name]["score"])] += 1
    assert set(people) == {0, 1, 2}
    assert set(kinds) == {"ok", "empty", "refused", "no_claims"}
    assert min(kinds.values()) >= 3
    # Not the recorded judge's own scores, or agreement with them would prove nothing.
    assert {gap for _, gap in gaps} == {0, 1}
    assert min(gaps["factuality", 1], gaps["relevance", 1]) > 10


def test_models_differ(release: schema.Release) -> None:
    means = {}
    for place, model in enumerate(MODELS):
        found = [q.model_answers[place].scores.factuality for _, q in release.questions()]
        scored = [value for value in found if value is not None]
        means[model] = sum(scored) / len(scored)
    careful, hasty = means.values()
    assert careful > hasty + 1


def test_each_kind_of_answer_is_in_the_release(release: schema.Release) -> None:
    given = {a.answer for _, q in release.questions() for a in (*q.human_answers, *q.model_answers)}
    assert set(NO_CLAIMS.values()) <= given
    for kind in ("right", "wrong", "partly", "twice", "torn", "padded", "dreamy", "lure"):
        assert {text(replies(one, lure)[kind]) for *_, one, lure in every()} & given, kind


class TestDemo:
    """What the demo checks of the coin, on samples as a run saves them."""

    @pytest.fixture
    def samples(self, tmp_path: Path, judge: Judge, release: schema.Release) -> Path:
        for task in demo.ORACLE:
            lines = []
            for number, (segment, question) in enumerate(release.questions()):
                one = list(every())[number][2]
                reply = one.wrong if (number + len(task)) % 2 else one.reference
                context = Context(segment.id, segment.facts, segment.dialogue)
                found = judge_reply(judge, context, question.question, reply)
                item = {
                    "id": segment.question_id(question),
                    "question": question.question,
                    "reference": question.reference,
                    "candidate": found.candidate,
                    "dimensions": found.dimensions,
                }
                lines.append(json.dumps({scores.FIRST: item}) + "\n")
            (tmp_path / f"now_samples_{task}.jsonl").write_text("".join(lines), encoding="utf-8")
        return tmp_path

    def changed(self, samples: Path, **fields: Any) -> None:
        file = next(iter(sorted(samples.glob("*.jsonl"))))
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        lines[0][scores.FIRST] |= fields
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")

    def test_a_fair_coin_passes(self, samples: Path, folder: Path) -> None:
        chance, false = demo.check_coin({}, samples, folder / "key.json")
        assert chance == "coin: 50.0% of 72 MovieRecapsQA answers (chance 50.0%)"
        assert false.startswith("coin: gave 36 false answers about the right thing")

    def test_a_wrong_score_is_named(self, samples: Path, folder: Path) -> None:
        rated = {name: {"score": 4} for name in DIMENSIONS}
        self.changed(samples, dimensions=rated)
        with pytest.raises(TasksError, match=r"relevance: \['recap-lantern\.1/0'\]"):
            demo.check_coin({}, samples, folder / "key.json")

    def test_an_answer_from_nowhere_is_found(self, samples: Path, folder: Path) -> None:
        self.changed(samples, candidate="Nobody knows.")
        with pytest.raises(TasksError, match="its key does not hold"):
            demo.check_coin({}, samples, folder / "key.json")

    def test_the_tiny_model_is_not_judged(self, folder: Path) -> None:
        from lmms_eval_tasks.sample.demo import TINY

        assert demo.judge(TINY, folder) == "none"
        assert set(demo.ORACLE) == {
            "movierecapsqa_segment",
            "movierecapsqa_segment_frames",
            "movierecapsqa_segment_dialogue",
        }
        for metrics in demo.ORACLE.values():
            assert set(metrics) <= set(scores.SCORES)
