"""Requests that failed are counted in the results and asked again when a run is repeated."""

import json
from types import SimpleNamespace

import pytest
from loguru import logger

from lmms_eval.api.model import lmms
from lmms_eval.api.task import ConfigurableTask
from lmms_eval.caching.response_cache import ResponseCache
from lmms_eval.evaluator import evaluate
from lmms_eval.models.chat.async_openai import AsyncOpenAIChat

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Connection error."


class _Endpoint(lmms):
    """Fails for the second of three documents as long as it is `down`."""

    down = True

    def __init__(self):
        super().__init__()
        self.asked = []

    def generate_until(self, requests):
        self.asked.append([request.doc_id for request in requests])
        return [FAILED if self.down and request.doc_id == 1 else "yes" for request in requests]

    def loglikelihood(self, requests):
        raise NotImplementedError

    def generate_until_multi_round(self, requests):
        raise NotImplementedError


@pytest.fixture
def task(tmp_path):
    data = tmp_path / "data.json"
    data.write_text(json.dumps([{"question": f"Number {number}?", "answer": "yes"} for number in range(3)]))
    return {
        "task": "three",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}, "cache_dir": str(tmp_path / "cache")},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "question",
        "doc_to_target": "answer",
        "doc_to_visual": lambda doc: [],
        "process_results": lambda doc, results: {"correct": float(results[0] == doc["answer"])},
        "metric_list": [{"metric": "correct", "aggregation": "mean", "higher_is_better": True}],
        "generation_kwargs": {"until": [], "temperature": 0},
    }


def _run(endpoint, task, cache=None):
    warnings = []
    sink = logger.add(lambda line: warnings.append(str(line)), level="WARNING")
    try:
        results = evaluate(endpoint, {"three": ConfigurableTask(config=dict(task))}, bootstrap_iters=0, response_cache=cache, distributed_executor_backend="torchrun")
    finally:
        logger.remove(sink)
    return results, "".join(warnings)


def test_failures_are_counted_and_told(task):
    results, warnings = _run(_Endpoint(), task)
    assert results["n-samples"]["three"]["failed"] == 1
    assert "1 requests failed" in warnings


def test_no_failure_is_zero_and_silent(task):
    endpoint = _Endpoint()
    endpoint.down = False
    results, warnings = _run(endpoint, task)
    assert results["n-samples"]["three"]["failed"] == 0
    assert "failed" not in warnings


def test_a_failure_is_asked_again(task, tmp_path):
    cache = ResponseCache(db_path=str(tmp_path / "cache.db"), audit_path=str(tmp_path / "audit.jsonl"))
    endpoint = _Endpoint()
    _run(endpoint, task, cache)
    endpoint.down = False
    results, _ = _run(endpoint, task, cache)
    assert endpoint.asked == [[0, 1, 2], [1]]
    assert results["n-samples"]["three"]["failed"] == 0


def test_the_failure_of_a_class_is_known_as_one():
    from lmms_eval.api.instance import is_failed_response

    def unreadable(doc):
        raise ValueError("no such clip")

    lm = AsyncOpenAIChat(model="any", base_url="http://127.0.0.1:9", api_key="none", max_retries=1)
    lm.task_dict = {"three": {"test": [{}]}}
    (response,) = lm.generate_until([SimpleNamespace(args=("What is seen?", unreadable, {}, 0, "three", "test"))])
    assert is_failed_response(response)
    assert is_failed_response(response.text)
    assert not is_failed_response("The request failed.")
