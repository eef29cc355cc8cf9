"""MAIA's requests, and an answer that cannot be scored."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.models import fake_replies
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.metrics import text_metrics

pytestmark = pytest.mark.usefixtures("on_sample")


def test_one_answer_that_cannot_be_scored_does_not_take_the_others_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = prepare.usable_docs(BENCHMARK, "maia_oevqa")[:3]
    similar = text_metrics.meteor

    def broken(candidate: str, references: Any) -> float:
        if candidate == "rotta":
            raise ZeroDivisionError
        return similar(candidate, references)

    monkeypatch.setattr(text_metrics, "meteor", broken)
    replies = ["rotta", docs[1]["references"][0], fake_replies.UNKNOWN]
    scored = [
        task_functions.process_results(doc, [reply])
        for doc, reply in zip(docs, replies, strict=True)
    ]
    assert "saved with status error" in capsys.readouterr().err
    items = [one["failed"] for one in scored]
    assert [item["status"] for item in items] == ["error", "ok", "ok"]
    found = aggregation.numbers(BENCHMARK.tasks["maia_oevqa"], items)
    assert (found["judge_acc"], found["judge_acc_failed"]) == (1 / 3, 1)
    for name in ("rouge_l", "meteor", "bleu", "cider"):  # of the two that were scored
        assert found[name] > 0
    assert found["rouge_l"] == sum(item["rouge_l"] for item in items[1:]) / 2
