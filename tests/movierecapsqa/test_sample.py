"""MovieRecapsQA's packaged sample: the released form, every label, answers of a known worth."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import names
from lmms_eval_tasks.judges import Judge
from lmms_eval_tasks.movierecapsqa import demo, sample, schema
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS, Context
from lmms_eval_tasks.movierecapsqa.sample import Claim, replies, score, text
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, UNLABELLED
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.sample import players
from lmms_eval_tasks.sample.second_code import PALETTE
from tests.movierecapsqa.asking import judge_reply


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "movierecapsqa"


@pytest.fixture(scope="module")
def release(folder: Path) -> schema.Release:
    return schema.read(folder)


@pytest.fixture(scope="module")
def key(folder: Path) -> players.AnswerKey:
    return players.AnswerKey.load(folder / "key.json")


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


def test_oracle_and_coin_see_the_prompt_alone(
    key: players.AnswerKey,
    release: schema.Release,
    sample_root: Path,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = {question.question: question.reference for _, question in release.questions()}
    assert key.answers == asked
    assert set(key.lures) == set(asked)
    assert all(key.lures[question] != asked[question] for question in asked)
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setattr(before, "_checked", {})
    drawn = []
    for end in ("", "_frames", "_dialogue"):
        docs = before.docs(BENCHMARK, f"movierecapsqa_segment{end}")
        for doc in docs:
            told = names.doc_to_text(doc)
            assert players.oracle(told, key) == doc["reference"]
            drawn.append(players.coin(told, key) == doc["reference"])
    assert 20 < sum(drawn) < 52
    # The lure of a doc answers a question of another segment; replay.jsonl has it as well.
    lures = [sample.lure(n) for n, part in enumerate(sample.parts()) for _ in part.questions]
    assert [doc["lure"] for doc in docs] == lures


def test_two_builds_are_the_same(folder: Path, tmp_path: Path) -> None:
    sample.write(tmp_path)
    files = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(files) == 7
    for name in files:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name


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


def test_what_the_demo_checks_of_the_coin(
    tmp_path: Path, judge: Judge, release: schema.Release, folder: Path
) -> None:
    asked = list(every())
    for task in demo.ORACLE:
        items = []
        for number, (segment, question) in enumerate(release.questions()):
            one = asked[number][2]
            reply = one.wrong if (number + len(task)) % 2 else one.reference
            about = {"question": question.question, "reference": question.reference}
            found = ask(judge, segment, question.question, reply)
            items.append({"id": segment.question_id(question), **about, **found})
        lines = [json.dumps({"failed": item}) for item in items]
        (tmp_path / f"now_samples_{task}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    chance, false = demo.check_coin({}, tmp_path, folder / "key.json")
    assert chance == "coin: 50.0% of 72 MovieRecapsQA answers (chance 50.0%)"
    assert false.startswith("coin: gave 36 false answers about the right thing")
    file = min(tmp_path.glob("*.jsonl"))
    first, _, rest = file.read_text(encoding="utf-8").partition("\n")
    fours = {name: {"score": 4} for name in DIMENSIONS}
    for changes, said in (
        ({"dimensions": fours}, r"\['recap-lantern\.1/0'\]"),
        ({"candidate": "Nobody knows."}, "its key does not hold"),
    ):
        changed = json.dumps({"failed": {**json.loads(first)["failed"], **changes}})
        file.write_text(f"{changed}\n{rest}", encoding="utf-8")
        with pytest.raises(TasksError, match=said):
            demo.check_coin({}, tmp_path, folder / "key.json")
