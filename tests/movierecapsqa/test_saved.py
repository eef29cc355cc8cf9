"""Saved runs: every number again, another judge, the same one for what is missing, commands."""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import context, settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from lmms_eval_tasks.movierecapsqa.settings import BASELINES
from lmms_eval_tasks.movierecapsqa.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from tests.local_endpoint import choice, completion
from tests.movierecapsqa.asking import (
    EVERYTHING,
    GEVAL,
    TASK,
    Rater,
    again,
    asked,
    asked_for,
    items_of,
    judged_at,
    judged_run,
    reply,
    saved_run,
    score,
)

pytestmark = pytest.mark.usefixtures("user")
BOTH = "geval,helmet"


numbers = functools.partial(aggregation.numbers, BENCHMARK.tasks[TASK])


@pytest.mark.parametrize(
    ("fails", "missing"),
    [
        # What rests on other verdicts stays: the baselines know nothing of claims.
        ("claims", EVERYTHING),
        # G-Eval's two have to be of one mode: both are asked, then sampled.
        ("geval_coherence", dict.fromkeys(GEVAL, 3 + 3)),
    ],
)
def test_missing_only(fails: str, missing: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rater = Rater(fails=fails)
    with judged_at(rater, monkeypatch, baselines=BOTH) as endpoint:
        run = saved_run(TASK, score(TASK, reply))
        rater.fails, before = "", len(endpoint.chats)
        # The baselines that a run has are kept.
        monkeypatch.setenv(BASELINES, "")
        values = again(run, judge=f"one@{endpoint.url}").numbers[0].values
        assert asked(endpoint, before) == missing
    failed = [values[f"{name}_failed"] for name in DIMENSIONS]
    assert failed == [values["empty"]] * len(DIMENSIONS)  # empty answers alone
    assert values == numbers(items_of(judged_run(monkeypatch, baselines=BOTH)))


def command(*arguments: object, code: int = 0) -> str:
    with context.begun():
        done = CliRunner().invoke(app, [str(one) for one in arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_a_batch_takes_two_rounds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The dimensions need the claims, and half of what is paid for twice is no half price."""
    logs, requests = tmp_path / "logs", tmp_path / "requests.jsonl"
    output = tmp_path / "made.json"
    logs.mkdir()
    samples = saved_run(TASK, score(TASK, reply)).samples
    file = logs / f"20260101_samples_{TASK}.jsonl"
    file.write_text("\n".join(map(json.dumps, samples)), encoding="utf-8")
    results = {"config": {"model": "m", "model_args": "x"}, "results": {TASK: {}}}
    (logs / "20260101_results.json").write_text(json.dumps(results), encoding="utf-8")
    monkeypatch.setenv(settings.JUDGE_CACHE, str(tmp_path / "cache"))
    judge = ("judge", logs, "--judge", "m@http://127.0.0.1:9/v1")
    for number, kinds in enumerate([{"claims": 3}, dict.fromkeys(DIMENSIONS, 3)]):
        command(*judge, "--batch", requests)
        results = tmp_path / f"results{number}.jsonl"
        assert _answered(requests, results) == kinds
        # Until the second round the dimensions have failed: the run says that it is invalid.
        code = 0 if number else 3
        command(*judge, "--batch-results", results, "--output", output, code=code)
        made = json.loads(output.read_text(encoding="utf-8"))["movierecapsqa"]["numbers"][TASK]
        assert made["factuality_failed"] - made["empty"] == (0 if number else 3)
    assert made == numbers(items_of(judged_run(monkeypatch)))
    assert "every answer has a verdict already" in command(*judge, "--batch", requests)


def _answered(requests: Path, results: Path) -> dict[str, int]:
    """Write a batch's results; what was asked for."""
    found: Counter[str] = Counter()
    with results.open("w", encoding="utf-8") as out:
        for line in requests.read_text(encoding="utf-8").splitlines():
            request = json.loads(line)
            found[asked_for(request["body"])] += 1
            text = Rater()(request["body"])
            assert isinstance(text, str)
            body = completion([choice(text)], {"prompt_tokens": 9, "completion_tokens": 9}).body
            response = {"status_code": 200, "body": json.loads(body or b"")}
            out.write(json.dumps({"custom_id": request["custom_id"], "response": response}) + "\n")
    return dict(found)
