"""An item that the judge did not judge is counted, and is in no mean."""

import math
from pathlib import Path

import pytest
import requests

from lmms_eval.evaluator_utils import TaskOutput
from lmms_eval.tasks.cvrr import utils

DOC = {"Q": "What is done?", "A": "A cup is washed.", "VideoID": "1.mp4", "DimensionName": "Partial actions"}
RIGHT = '{"pred": "correct", "score": 4, "reason": "same"}'
WRONG = '{"pred": "incorrect", "score": 1, "reason": "other"}'
NO_VERDICTS = ["", "The prediction is correct.", "```python\n" + RIGHT + "\n```", '{"score": 4}', '{"pred": "correct", "score": "four"}', "[1, 2]"]


def _judged(monkeypatch, review):
    monkeypatch.setattr(utils, "get_gpt_eval", lambda *args: (review, "judge"))
    return utils.cvrr_process_results(DOC, ["A cup is washed."])


def _aggregated(items):
    of = {name: [item[name] for item in items] for name in items[0]}
    return utils.cvrr_aggregate_accuracy(of["gpt_eval_accuracy"], None), utils.cvrr_aggregate_score(of["gpt_eval_score"], None), utils.cvrr_aggregate_failed(of["gpt_eval_failed"])


@pytest.mark.parametrize("review", NO_VERDICTS)
def test_a_review_without_a_verdict_is_left_out(monkeypatch, review):
    items = [_judged(monkeypatch, one) for one in (RIGHT, WRONG, review)]
    assert _aggregated(items) == (50.0, 2.5, 1)


def test_an_endpoint_that_is_down_judges_nothing(monkeypatch):
    def refuse(*args, **kwargs):
        raise requests.exceptions.ConnectionError("refused")

    monkeypatch.setattr(utils.requests, "post", refuse)
    monkeypatch.setattr(utils, "NUM_SECONDS_TO_SLEEP", 0)
    accuracy, score, failed = _aggregated([utils.cvrr_process_results(DOC, ["A cup is washed."])])
    assert math.isnan(accuracy)
    assert math.isnan(score)
    assert failed == 1


def test_standard_errors_are_of_what_was_judged(monkeypatch):
    output = TaskOutput(task=type("Task", (), {"aggregation": lambda self: {"gpt_eval_score": utils.cvrr_aggregate_score}})(), task_config={})
    output.sample_metrics[("gpt_eval_score", "none")] = [_judged(monkeypatch, one)["gpt_eval_score"] for one in (RIGHT, WRONG, "")]
    output.calculate_clt_aggregate_metric()
    assert output.agg_metrics["gpt_eval_score_stderr_clt,none"] == pytest.approx(1.5)


def test_every_task_shows_the_count():
    files = list(Path(utils.__file__).parent.glob("cvrr_*.yaml"))
    assert len(files) == 11
    assert all("metric: gpt_eval_failed" in file.read_text(encoding="utf-8") for file in files)
