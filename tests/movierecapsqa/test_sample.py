"""MovieRecapsQA's packaged sample: the released form, every label, a judge's recorded replies."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.movierecapsqa import schema, tasks
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.schema import SPLITS, UNLABELLED
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.sample.second_code import PALETTE
from tests.movierecapsqa.asking import judge_reply


@pytest.fixture
def folder(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = sample_root / "movierecapsqa"
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setenv(settings.JUDGE, f"replay:{folder / 'replay.jsonl'}")
    monkeypatch.setattr(before, "_checked", {})
    return folder


def test_the_forms_of_the_release_and_of_our_schema(folder: Path) -> None:
    release = schema.read(folder)
    assert release.problems == {}
    expected = {"videos": 2, "segments": 5, "questions": 24, "facts": 37, "bad_segments": 0}
    assert release.counts == expected
    for split, slugs in SPLITS.items():
        found = Counter(getattr(q, split) or UNLABELLED for _, q in release.questions())
        assert set(found) == set(slugs)
    shapes = {"circle", "square", "triangle", *PALETTE}
    for segment in release.segments:
        # A vision question must not be answered by the dialogue: no colour or shape is named.
        assert not shapes & set(re.findall(r"\w+", segment.dialogue.lower()))
        assert all(set(one.aligned or ()) <= set(segment.facts) for one in segment.questions)


def test_the_recorded_judge_knows_what_is_right_and_the_lure(folder: Path) -> None:
    before.check_judge(BENCHMARK)
    judge = judges.make(before.judge_config(BENCHMARK))
    docs = before.docs(BENCHMARK, "movierecapsqa_segment_dialogue")
    assert len(docs) == 24
    for doc in docs:
        context = tasks.shown(tasks.keep(doc))
        for reply, scores in ((doc["reference"], [5, 5, 5]), (doc["lure"], [0, 0, 5])):
            found = judge_reply(judge, reply, context=context, question=doc["question"])
            assert [found["dimensions"][name]["score"] for name in DIMENSIONS] == scores
    # Nothing else has a verdict.
    found = judge_reply(judge, "Since May.", context=context, question=doc["question"])
    assert found["status"] == "judge_skipped"
