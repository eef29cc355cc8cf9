"""MovieRecapsQA's packaged sample: the released form, every label, answers of a known worth."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.judges import Judge
from lmms_eval_tasks.movierecapsqa import sample, schema
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, Context
from lmms_eval_tasks.movierecapsqa.sample import Claim, replies, score, text
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, UNLABELLED
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.sample.second_code import PALETTE
from tests.movierecapsqa.asking import judge_reply


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "movierecapsqa"


@pytest.fixture(scope="module")
def release(folder: Path) -> schema.Release:
    return schema.read(folder)


@pytest.fixture
def judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setenv(settings.JUDGE, f"replay:{folder / 'replay.jsonl'}")
    before.check_judge(BENCHMARK)
    return judges.make(before.judge_config(BENCHMARK))


# --- segments -----------------------------------------------------------------------------------


def test_the_forms_of_the_release_and_of_our_schema(release: schema.Release) -> None:
    assert release.problems == {}
    expected = {"videos": 2, "segments": 5, "questions": 24, "facts": 37, "bad_segments": 0}
    assert release.counts == expected
    for split, slugs in SPLITS.items():
        found = Counter(getattr(q, split) or UNLABELLED for _, q in release.questions())
        assert set(found) == set(slugs)
    shapes = {"circle", "square", "triangle", *PALETTE}
    for segment, part in zip(release.segments, sample.parts(), strict=True):
        assert segment.facts == tuple(fact for _, fact in part.facts)
        # A vision question must not be answered by the dialogue: no colour or shape is named.
        assert not shapes & set(re.findall(r"\w+", segment.dialogue.lower()))


def test_a_lure_answers_a_question_of_another_segment(
    release: schema.Release, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    """In the docs as in replay.jsonl."""
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setattr(before, "_checked", {})
    docs = before.docs(BENCHMARK, "movierecapsqa_segment_dialogue")
    lures = [sample.lure(n) for n, part in enumerate(sample.parts()) for _ in part.questions]
    assert [doc["lure"] for doc in docs] == lures


# --- answers and the recorded judge -------------------------------------------------------------


def every() -> Iterator[tuple[int, int, sample.Asked, str]]:
    for number, part in enumerate(sample.parts()):
        for qid, one in enumerate(part.questions):
            yield number, qid, one, sample.lure(number)


def ask(judge: Judge, segment: schema.Segment, question: str, answer: str) -> dict[str, Any]:
    context = Context(segment.id, segment.facts, segment.dialogue)
    return judge_reply(judge, answer, context=context, question=question)


def test_every_built_answer_gets_its_labels_and_score(
    judge: Judge, release: schema.Release
) -> None:
    right = Claim("r", "supported", "relevant")
    false = Claim("f", "contradictory", "relevant", "contradictory")
    half = Claim("h", "partially_supported", "relevant")
    beside = Claim("b", "unsupported", "irrelevant")
    worth: list[tuple[tuple[Claim, ...], tuple[int, int, int]]] = [
        ((right, right._replace(coherence="redundant")), (5, 5, 4)),
        ((false,), (0, 5, 0)),
        ((right, right, false), (2, 5, 2)),
        ((right, half), (3, 5, 5)),
        ((right, right, beside), (3, 2, 5)),
    ]
    for claims, expected in worth:
        assert tuple(score(name, claims) for name in DIMENSIONS) == expected
    seen: Counter[str] = Counter()
    for number, qid, one, lure in every():
        segment = release.segments[number]
        for claims in replies(one, lure).values():
            found = ask(judge, segment, segment.questions[qid].question, text(claims))
            assert (found["status"], found["claims"]) == ("ok", [claim.text for claim in claims])
            for name, rated in found["dimensions"].items():
                assert rated["labels"] == sample.labels(name, claims)
                assert rated["score"] == score(name, claims)
                assert rated["consistent"] is True
                seen.update(rated["labels"])
    assert set(seen) == set(sample._WORTH) - {"partially_relevant"}
    # Nothing else has a verdict.
    segment, question = release.segments[0], release.segments[0].questions[0]
    assert ask(judge, segment, question.question, "Since May.")["status"] == "judge_skipped"
    other = segment.model_copy(update={"facts": (*segment.facts, "One more.")})
    found = ask(judge, other, question.question, question.reference)
    assert (found["status"], found["claims"]) == ("judge_skipped", [question.reference])
