"""Saved runs as logs of Inspect: what its own reader finds in them."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks.benchmark import Doc, Task
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.report import compare, compared_runs
from lmms_eval_tasks.report.exchange import inspect_logs
from lmms_eval_tasks.utils.conditions import Condition, Kind, as_dicts
from tests.report import made

TASKS = ["maia_vsv", "maia_oevqa", "movierecapsqa_segment", "haven_temporal"]
HALF = "the half \ud83d of a character"
FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] no route"


def some_fail(task: Task, doc: Doc, number: int) -> str:
    """The key's replies; of each task's first two docs what Inspect has to be spared."""
    return {0: HALF, 1: FAILED}.get(number) or made.any_reply(task, doc, number)


@pytest.fixture
def run(on_sample: None, sample_root: Path, tmp_path: Path) -> Path:
    judge = made.recorded(sample_root, tmp_path / "replay.jsonl")
    return made.saved_run(tmp_path / "run", "one/model", TASKS, some_fail, judge)


def test_inspect_reads_what_the_items_say(run: Path, tmp_path: Path) -> None:
    reason = "inspect-ai is not installed: pip install 'lmms-eval-tasks[inspect]'"
    log: Any = pytest.importorskip("inspect_ai.log", reason=reason)
    folder = tmp_path / "logs"
    done = CliRunner().invoke(
        cli.app, ["report", str(run), "--format", "inspect", "-o", str(folder)]
    )
    assert done.exit_code == 0, done.output
    assert f"{folder}: {len(TASKS)} logs" in done.output
    listed = log.list_eval_logs(str(folder))
    found = {one.eval.task: one for one in map(log.read_eval_log, listed)}
    (side,) = compared_runs.read_sides([run])
    assert found.keys() == set(TASKS)
    for name, own in found.items():
        items = {item["id"]: item for item in side.items[name]}
        assert (own.status, own.eval.model, own.eval.config.limit) == ("success", "model", 3)
        assert own.eval.created.startswith("2026-01-01T00:00:00")
        assert {one.id for one in own.samples} == items.keys()
        assert own.results.completed_samples == len(items) - 1
        for one in own.samples:
            reply = items[one.id]["reply"].replace("\ud83d", "?")
            assert one.output.completion == reply
            assert one.input == side.prompts[name, one.id]
            assert (one.error is not None) == (reply == FAILED)
            first = next(iter(one.scores.values()))
            assert first.metadata["status"] == items[one.id]["status"]
        for line in compare.headlines(*compared_runs.tasks_of([side])[0], [side]):
            if line.quantity.row == name:
                told = own.results.scores
                numbers = next(one.metrics for one in told if one.name == line.quantity.metric)
                interval = line.numbers["model"]
                assert numbers["mean"].value == pytest.approx(interval.estimate)
                assert numbers["stderr"].value == pytest.approx(interval.se)
    pairs, open_ended = found["maia_vsv"].samples, found["maia_oevqa"].samples
    assert all(len(one.choices) == 2 and one.target in "AB" for one in pairs)
    assert {one.scores["pair_acc"].value for one in pairs if not one.error} == {0, 1}
    assert all(math.isnan(one.scores["pair_acc"].value) for one in pairs if one.error)
    assert all(len(one.target) == 8 for one in open_ended)
    told = {one.scores["judge_acc"].explanation for one in open_ended}
    assert {"agrees: Correct", "agrees: Incorrect"} <= told
    by_id = log.read_eval_log_sample(listed[0], id=log.read_eval_log(listed[0]).samples[-1].id)
    assert by_id.scores


def test_without_inspect_one_line_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    arguments = ["report", str(tmp_path), "--format", "inspect", "-o", str(tmp_path / "logs")]
    done = CliRunner().invoke(cli.app, arguments)
    assert isinstance(done.exception, TasksError)
    assert "pip install 'lmms-eval-tasks[inspect]'" in str(done.exception)
    assert not (tmp_path / "logs").exists()


def test_an_invalid_run_is_an_error(run: Path, tmp_path: Path) -> None:
    log: Any = pytest.importorskip("inspect_ai.log", reason="inspect-ai is not installed")
    (side,) = compared_runs.read_sides([run])
    invalid = Condition(Kind.INVALID, "too few answered", ("maia_vsv",))
    told = {"maia": {"conditions": as_dicts([invalid])}}
    side.runs["maia_vsv"].results.update(lmms_eval_tasks=told)
    files = inspect_logs.write_logs([side], tmp_path)
    heads = [log.read_eval_log(str(file), header_only=True) for file in files]
    found = {one.eval.task: one.status for one in heads}
    assert [name for name, status in found.items() if status == "error"] == ["maia_vsv"]
    assert len(found) == 4
    assert next(one for one in heads if one.status == "error").error.message == "too few answered"
