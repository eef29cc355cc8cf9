"""MovieRecapsQA's packaged sample: the released form, every label, a judge's recorded replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.movierecapsqa import tasks
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.runs import before
from tests.movierecapsqa.asking import judge_reply


@pytest.fixture
def folder(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = sample_root / "movierecapsqa"
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setenv(settings.JUDGE, f"replay:{folder / 'replay.jsonl'}")
    monkeypatch.setattr(before, "_checked", {})
    return folder


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
