"""The numbers are those of the benchmark's scripts; a failure of the judge is counted, and is in no mean."""

import math
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import requests

from lmms_eval.api.group import ConfigurableGroup
from lmms_eval.api.task import Task
from lmms_eval.evaluator_utils import TaskOutput, consolidate_group_results
from lmms_eval.tasks.cvrr import utils
from lmms_eval.utils import load_yaml_config

DOC = {"Q": "What is done?", "A": "A cup is washed.", "VideoID": "1.mp4", "DimensionName": "Partial actions"}
RIGHT = '{"pred": "correct", "score": 4, "reason": "same"}'
WRONG = '{"pred": "incorrect", "score": 1, "reason": "other"}'
NO_VERDICTS = ["", "The prediction is correct.", "```python\n" + RIGHT + "\n```", '{"score": 4}', '{"pred": "correct", "score": "four"}', '{"pred": "correct", "score": 9}', '{"pred": 1, "score": 4}', "[1, 2]"]


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


def test_an_empty_answer_is_left_out_and_no_failure(monkeypatch):
    items = [_judged(monkeypatch, one) for one in (RIGHT, WRONG)] + [utils.cvrr_process_results(DOC, [" "])]
    assert _aggregated(items) == (50.0, 2.5, 0)


def test_another_label_counts_in_the_score_alone(monkeypatch):
    items = [_judged(monkeypatch, one) for one in (RIGHT, WRONG, '{"pred": "partially correct", "score": 4.5}')]
    assert _aggregated(items) == (50.0, 3.0, 0)


def test_a_label_in_capitals_is_the_label(monkeypatch):
    items = [_judged(monkeypatch, one) for one in ('{"pred": "Correct", "score": 4}', '{"pred": " INCORRECT", "score": 0}')]
    assert _aggregated(items) == (50.0, 2.0, 0)


def test_the_group_is_the_mean_of_the_dimensions():
    config = load_yaml_config(str(Path(utils.__file__).parent / "_cvrr.yaml"), mode="full")
    tasks = {name: MagicMock(spec=Task, task_name=name) for name in config["task"]}
    group = {ConfigurableGroup(config=config): tasks}
    results = {"cvrr": {}} | {name: {"samples": 1 + n, "gpt_eval_accuracy,none": 10.0 * n, "gpt_eval_score,none": n / 2, "gpt_eval_failed,none": 1} for n, name in enumerate(tasks)}
    for name in tasks:
        results[name] |= {f"{metric}_stderr,none": "N/A" for metric in ("gpt_eval_accuracy", "gpt_eval_score", "gpt_eval_failed")}
    consolidate_group_results(results, {}, group)
    assert [results["cvrr"][f"gpt_eval_{name},none"] for name in ("accuracy", "score", "failed")] == [50.0, 2.5, 11]


def test_standard_errors_are_of_what_was_judged(monkeypatch):
    output = TaskOutput(task=type("Task", (), {"aggregation": lambda self: {"gpt_eval_score": utils.cvrr_aggregate_score}})(), task_config={})
    output.sample_metrics[("gpt_eval_score", "none")] = [_judged(monkeypatch, one)["gpt_eval_score"] for one in (RIGHT, WRONG, "")]
    output.calculate_clt_aggregate_metric()
    assert output.agg_metrics["gpt_eval_score_stderr_clt,none"] == pytest.approx(1.5)


def test_every_task_shows_the_count():
    files = list(Path(utils.__file__).parent.glob("cvrr_*.yaml"))
    assert len(files) == 11
    assert all("metric: gpt_eval_failed" in file.read_text(encoding="utf-8") for file in files)
