"""Judged runs of the host: as many requests at a time as the user set, and what the results say.

An endpoint of the test judges by the answer's text; each run of the host is made once.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import local_endpoint as server
from tests.conftest import HOST, HostRun, Launch, host, ranks_of
from tests.golden.command import tasks_command
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion, last_user_text

pytestmark = pytest.mark.host

THREADS = pytest.mark.skipif(
    "process_docs_parallel" not in (HOST / "evaluator.py").read_text(encoding="utf-8"),
    reason="this host scores one reply at a time",
)
TASK, COUNT, DELAY = "maia_oevqa_1frame", 48, 0.25
MODEL = ["--model", "tasks_scripted", "--tasks", TASK, "--log_samples"]


def verdict_on(request: dict[str, Any], shift: int = 0) -> str:
    """By the request's text alone; a judge with another `shift` says otherwise on some."""
    right = (sum(last_user_text(request).encode()) + shift) % 3 > 0
    return json.dumps({"reason": "so it is", "correct": right})


def judging(request: dict[str, Any]) -> Fault:
    usage = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
    made = completion([choice(verdict_on(request))], usage, "judge-2026")
    return Fault(body=made.body, delay=DELAY)


def quarter_fails(request: dict[str, Any]) -> Fault:
    """Turns down about every fourth answer for good."""
    if sum(last_user_text(request).encode()) % 4 == 0:
        return server.error(404, "no such thing")
    return judging(request)


class Judged:
    """A run and what its endpoint saw."""

    def __init__(self, run: HostRun, endpoint: LocalEndpoint, spec: str, cache: Path) -> None:
        self.run, self.spec, self.cache = run, spec, cache
        self.requests, self.most_in_flight = len(endpoint.chats), endpoint.most_in_flight
        self.section: dict[str, Any] = run.results["lmms_eval_tasks"]
        (self.row,) = self.section["judges"]["usage"]
        self.numbers, self.items = run.numbers[TASK], run.items(TASK)


Start = Callable[..., Judged]


@pytest.fixture(scope="module")
def start(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Start:
    def run(
        *arguments: str,
        code: int = 0,
        reply: server.Reply = judging,
        env: dict[str, str] | None = None,
        processes: int = 1,
    ) -> Judged:
        """With `env` by lmms-eval's own command."""
        out, cache = (tmp_path_factory.mktemp(name) for name in ("judged", "replies"))
        with LocalEndpoint(reply) as endpoint:
            spec = f"m@{endpoint.url}"
            given = [*MODEL, "--output_path", str(out), *arguments]
            command = host(*given, "--judge", spec, "--judge-cache", str(cache))
            if env is not None:
                command = [sys.executable, "-m", "lmms_eval", *given]
                names = ("LMMS_EVAL_TASKS_JUDGE", "LMMS_EVAL_TASKS_JUDGE_CACHE")
                env = {**env, **dict(zip(names, (spec, str(cache)), strict=True))}
            done = launch(command, out, env=env, processes=processes)
            assert done.code == code, done.stderr[-3000:]
            return Judged(done, endpoint, spec, cache)

    return run


@pytest.fixture(scope="module")
def sixteen(start: Start) -> Judged:
    return start("--judge-concurrency", "16")


@THREADS
def test_the_limit_is_reached_and_not_passed(sixteen: Judged) -> None:
    assert sixteen.most_in_flight == 16  # the host alone would score in four threads
    assert 40 <= sixteen.requests <= COUNT


@THREADS
def test_the_hosts_own_command_takes_variables_and_options(start: Start) -> None:
    """As `lmms_eval` does, it ends with the code of an invalid run and shows our first screen."""
    found = start("--max-calls", "30", env={"LMMS_EVAL_TASKS_JUDGE_CONCURRENCY": "12"}, code=3)
    assert "MAIA: INVALID" in found.run.stdout
    assert found.most_in_flight == 12
    # The budget's run is kept: what is over it is skipped, which makes it invalid in the table.
    assert found.requests == 30 == found.row["paid_calls"]
    skipped = found.row["by_status"]["skipped"]
    assert found.row["by_status"] == {"ok": 30, "skipped": found.row["verdicts"] - 30}
    assert found.numbers["judge_acc_failed"] >= skipped
    assert f"{TASK} [INVALID]" in found.run.stdout
    assert "30 calls" in found.run.stderr
    statuses = [item["status"] for item in found.items]
    assert (len(statuses), statuses.count("judge_skipped")) == (COUNT, skipped)


@THREADS
def test_a_thread_count_of_the_user_stands(start: Start) -> None:
    """And so does the share of verdicts that may fail."""
    arguments = ["--judge-concurrency", "16", "--process_docs_parallel", "3", "--limit", "12"]
    found = start(*arguments, "--max-failed", "0.6", reply=quarter_fails)
    assert found.most_in_flight == 3
    assert found.row["by_status"]["api_error"]
    assert found.section["invalid"] == {}
    assert "INVALID" not in found.run.stdout + found.run.stderr


@THREADS
def test_two_processes_share_the_limit_and_their_usage_adds_up(
    sixteen: Judged, start: Start
) -> None:
    found = start(env={"LMMS_EVAL_TASKS_JUDGE_CONCURRENCY": "10"}, processes=2)
    assert 5 < found.most_in_flight <= 10
    assert found.row["verdicts"] == sixteen.row["verdicts"]
    # A question that both ranks ask at the same moment would be paid for twice; here none is.
    assert found.row["paid_calls"] == found.requests == sixteen.requests
    assert found.section["maia"]["judge"]["run"]["concurrency"] == 10
    assert found.numbers == sixteen.numbers
    (said,) = [x for x in found.run.stderr.splitlines() if "10 requests at a time" in x]
    assert "over 2 processes" in said


def test_the_results_say_what_the_judge_did(sixteen: Judged) -> None:
    row, count = sixteen.row, sixteen.requests
    assert (row["task"], row["judge"]) == (TASK, sixteen.spec)
    assert row["by_status"] == {"ok": row["verdicts"]}
    assert row["paid_calls"] + row["cached_calls"] == row["verdicts"]
    tokens = (row["prompt_tokens"], row["completion_tokens"])
    assert tokens == (300 * row["verdicts"], 20 * row["verdicts"])
    assert (row["paid_calls"], row["cost"]) == (count, None)
    assert row["models"] == {"judge-2026": row["verdicts"]}
    judge = sixteen.section["maia"]["judge"]
    assert f"{judge['model']}@{judge['base_url']}" == sixteen.spec
    assert judge["run"]["concurrency"] == 16
    assert judge["run"]["cache"] == str(sixteen.cache / "replies.sqlite3")
    assert judge["prompt"]["hash"]
    assert (sixteen.section["invalid"], sixteen.section["judges"]["given_up"]) == ({}, [])
    # The usage is printed below the tables.
    (line,) = [x for x in sixteen.run.stdout.splitlines() if x.startswith("judge m@")]
    for part in (f"{row['verdicts']} verdicts", f"{count} calls paid", "unknown price"):
        assert part in line
    assert sixteen.run.stderr.count("up to 16 requests at a time") == 1
    assert "INVALID" not in sixteen.run.stdout + sixteen.run.stderr


def test_too_many_failures_mark_the_run(start: Start) -> None:
    found = start(reply=quarter_fails, code=3)
    failed = found.row["by_status"]["api_error"]
    assert failed / found.row["verdicts"] > 0.05
    (line,) = found.section["invalid"].values()
    assert f"{failed} of {found.row['verdicts']} verdicts failed ({failed} api_error)" in line
    assert sum(f"INVALID: {line}" in said for said in found.run.stderr.splitlines()) == 1
    # In the host's own table, and in the paper's.
    rows = [x for x in found.run.stdout.splitlines() if x.startswith("|") and "INVALID" in x]
    assert any(TASK in row for row in rows)
    assert re.search(r"^ 1frame INVALID ", found.run.stdout, re.MULTILINE)
    # Nothing is scored by a failure.
    lost = [item for item in found.items if item["status"] == "judge_api_error"]
    assert len(lost) == failed
    verdicts = [verdict for item in lost for verdict in item["verdicts"].values()]
    assert {one["score"] for one in verdicts} == {item["right"] for item in lost} == {None}


def test_a_dead_judge_keeps_the_run_and_judge_completes_it(
    sixteen: Judged, launch: Launch, cache: Path, tmp_path: Path
) -> None:
    port = int(ranks_of(1)[0]["MASTER_PORT"])  # a free one
    spec, env = f"m@http://127.0.0.1:{port}/v1", {"LMMS_EVAL_TASKS_JUDGE_CACHE": str(tmp_path)}
    arguments = ["--output_path", str(tmp_path), "--judge", spec, "--judge-stop-after", "3"]
    run = launch(host(*MODEL, *arguments), tmp_path, env=env)
    assert run.code == 3, run.stderr[-3000:]
    assert "Traceback" not in run.stderr
    judges = run.results["lmms_eval_tasks"]["judges"]
    (gone,) = judges["given_up"]
    assert "3 requests in a row failed" in gone
    (line,) = [x for x in run.stderr.splitlines() if "stopped asking the judge" in x]
    assert "lmms-eval-tasks judge LOGS" in line
    by_status = judges["usage"][0]["by_status"]
    assert set(by_status) == {"api_error", "skipped"}
    assert by_status["skipped"] > by_status["api_error"]
    replies = {item["id"]: item["reply"] for item in run.items(TASK)}
    assert replies == {item["id"]: item["reply"] for item in sixteen.items}
    assert run.numbers[TASK]["rouge_l"] > 0  # what needs no judge is there

    command = ("judge", tmp_path, "--judge", spec, "--output", tmp_path / "judged.json")
    with LocalEndpoint(judging, port=port) as endpoint:
        done = tasks_command(*command, cache=cache, env=env)
        assert done.code == 0, done.stderr
        assert endpoint.most_in_flight == 16  # the default
        assert len(endpoint.chats) == sixteen.requests
        made = json.loads((tmp_path / "judged.json").read_text(encoding="utf-8"))["maia"]
        for name, value in made["numbers"][TASK].items():  # as if it had been there from the start
            assert sixteen.numbers[name] == value, name
        assert f"{sixteen.requests} verdicts ({sixteen.requests} ok)" in done.stdout
