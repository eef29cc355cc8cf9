"""Judged runs of the host: as many requests in flight as the user set, and what the results say.

An endpoint of the test judges by the answer's text; each run of the host is made once.
"""

from __future__ import annotations

import json
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lmms_eval_tasks.runs.rescore import plain_names
from tests import local_endpoint as server
from tests.conftest import BIN, HostRun, Launch, host, torchrun
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion, last_user_text

pytestmark = pytest.mark.host

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


class Judged(NamedTuple):
    """A run and what its endpoint saw."""

    run: HostRun
    requests: int
    most_in_flight: int
    spec: str
    cache: Path

    @property
    def section(self) -> dict[str, Any]:
        found: dict[str, Any] = self.run.results["lmms_eval_tasks"]
        return found

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.section["judges"]["usage"]
        found: dict[str, Any] = row
        return found

    @property
    def numbers(self) -> dict[str, Any]:
        found: dict[str, Any] = self.run.results["results"][TASK]
        return found


Start = Callable[..., Judged]


@pytest.fixture(scope="module")
def start(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Start:
    def run(
        command: Callable[..., list[str]],
        *arguments: str,
        reply: server.Reply = judging,
        env: dict[str, str] | None = None,
        option: bool = True,
    ) -> Judged:
        out = tmp_path_factory.mktemp("judged")
        cache = tmp_path_factory.mktemp("replies")
        with LocalEndpoint(reply) as endpoint:
            spec = f"m@{endpoint.url}"
            own = {"LMMS_EVAL_TASKS_JUDGE": spec, "LMMS_EVAL_TASKS_JUDGE_CACHE": str(cache)}
            given = [*MODEL, "--output_path", str(out), *arguments]
            if option:
                del own["LMMS_EVAL_TASKS_JUDGE"]
                given += ["--judge", spec]
            done = launch(command(*given), out, env={**own, **(env or {})})
            return Judged(done, len(endpoint.chats), endpoint.most_in_flight, spec, cache)

    return run


def module(*arguments: str) -> list[str]:
    """The host's own command, which knows none of our options."""
    return [sys.executable, "-m", "lmms_eval", *arguments]


@pytest.fixture(scope="module")
def sixteen(start: Start) -> Judged:
    found = start(host, "--judge-concurrency", "16")
    assert found.run.code == 0, found.run.stderr[-3000:]
    return found


# --- concurrency --------------------------------------------------------------------------------


def test_the_limit_is_reached_and_not_passed(sixteen: Judged) -> None:
    assert sixteen.most_in_flight == 16  # the host alone would score in four threads
    assert 40 <= sixteen.requests <= COUNT


def test_the_hosts_own_command_obeys_the_variables(start: Start) -> None:
    env = {"LMMS_EVAL_TASKS_JUDGE_CONCURRENCY": "12", "LMMS_EVAL_TASKS_MAX_CALLS": "30"}
    found = start(module, env=env, option=False)
    assert found.run.code == 0, found.run.stderr[-3000:]
    assert found.most_in_flight == 12
    # The budget's run is kept: what is over it is skipped, which makes it invalid in the table.
    assert found.requests == 30 == found.row["paid_calls"]
    assert found.row["by_status"] == {"ok": 30, "skipped": found.row["verdicts"] - 30}
    assert found.numbers["judge_acc_failed,none"] >= found.row["verdicts"] - 30
    assert f"{TASK} [INVALID]" in found.run.stdout
    assert "30 calls" in found.run.stderr
    samples = found.run.samples(TASK)
    assert len(samples) == COUNT
    statuses = [sample["judge_acc"]["status"] for sample in samples]
    assert statuses.count("judge_skipped") == found.row["by_status"]["skipped"]


def test_a_thread_count_of_the_user_stands_and_that_is_said(start: Start) -> None:
    found = start(
        host, "--judge-concurrency", "16", "--process_docs_parallel", "3", "--limit", "12"
    )
    assert found.run.code == 0, found.run.stderr[-3000:]
    assert found.most_in_flight == 3
    (line,) = [line for line in found.run.stderr.splitlines() if "is ignored" in line]
    assert "--process_docs_parallel 3" in line


# --- results ------------------------------------------------------------------------------------


def test_the_results_say_what_the_judge_did(sixteen: Judged) -> None:
    row, count = sixteen.row, sixteen.requests
    assert (row["task"], row["judge"]) == (TASK, sixteen.spec)
    assert row["by_status"] == {"ok": row["verdicts"]}
    assert row["paid_calls"] + row["cached_calls"] == row["verdicts"]
    assert row["paid_calls"] == count
    assert row["paid_prompt_tokens"] == 300 * count
    assert row["paid_completion_tokens"] == 20 * count
    assert row["unknown_cost"] == row["verdicts"]
    assert row["models"] == {"judge-2026": row["verdicts"]}
    judge = sixteen.section["maia"]["judge"]
    assert (judge["provider"], judge["model"]) == ("openai", "m")
    assert judge["base_url"] == sixteen.spec.partition("@")[2]
    assert judge["run"]["concurrency"] == 16
    assert judge["run"]["cache"] == str(sixteen.cache / "replies.sqlite3")
    assert judge["prompt"]["hash"]
    assert judge["openai_version"]
    assert sixteen.section["invalid"] == {}
    assert sixteen.section["judges"]["given_up"] == []


def test_the_ledger_is_printed_below_the_tables(sixteen: Judged) -> None:
    (line,) = [x for x in sixteen.run.stdout.splitlines() if x.startswith("judge m@")]
    row = sixteen.row
    assert f"{TASK}: {row['verdicts']} verdicts ({row['verdicts']} ok)" in line
    assert f"{sixteen.requests} calls paid" in line
    assert "unknown price" in line
    assert f"{row['prompt_tokens']:,} + {row['completion_tokens']:,} tokens" in line
    announced = [x for x in sixteen.run.stderr.splitlines() if "up to 16 requests in flight" in x]
    assert len(announced) == 1
    assert "INVALID" not in sixteen.run.stdout + sixteen.run.stderr


def test_two_processes_share_the_limit_and_their_usage_adds_up(
    sixteen: Judged, start: Start
) -> None:
    env = {"LMMS_EVAL_TASKS_JUDGE_CONCURRENCY": "10"}
    found = start(lambda *more: torchrun(2, *more), env=env, option=False)
    assert found.run.code == 0, found.run.stderr[-3000:]
    assert 5 < found.most_in_flight <= 10
    assert found.row["verdicts"] == sixteen.row["verdicts"]
    assert found.row["paid_calls"] == found.requests
    # A question that both ranks ask at the same moment would be paid for twice; here none is.
    assert found.requests == sixteen.requests
    assert found.row["paid_prompt_tokens"] == 300 * found.requests
    assert found.section["maia"]["judge"]["run"]["concurrency"] == 10
    assert plain_names(found.numbers) == plain_names(sixteen.numbers)
    announced = [x for x in found.run.stderr.splitlines() if "10 requests in flight" in x]
    assert len(announced) == 1
    assert "over 2 processes" in announced[0]


# --- failures -----------------------------------------------------------------------------------


def failing_every(nth: int) -> server.Reply:
    """An endpoint that turns down every nth answer for good."""

    def reply(request: dict[str, Any]) -> Fault:
        if sum(last_user_text(request).encode()) % nth == 0:
            return server.error(404, "no such thing")
        return Fault(body=judging(request).body)

    return reply


@pytest.fixture(scope="module")
def quarter(start: Start) -> dict[str, Judged]:
    """A quarter of the verdicts fails: too many by default, not with --max-failed 0.6."""
    return {
        "default": start(host, reply=failing_every(4)),
        "allowed": start(host, "--max-failed", "0.6", reply=failing_every(4)),
    }


def test_too_many_failures_mark_the_run(quarter: dict[str, Judged]) -> None:
    found = quarter["default"]
    assert found.run.code == 3
    failed = found.row["by_status"]["api_error"]
    assert failed / found.row["verdicts"] > 0.05
    (line,) = found.section["invalid"].values()
    assert f"{failed} of {found.row['verdicts']} verdicts failed ({failed} api_error)" in line
    assert sum(f"INVALID: {line}" in said for said in found.run.stderr.splitlines()) == 1
    # In the host's own table, and in the paper's.
    host_rows = [x for x in found.run.stdout.splitlines() if x.startswith("|") and "INVALID" in x]
    assert host_rows
    assert any(TASK in row for row in host_rows)
    assert re.search(rf"{TASK} INVALID", found.run.stdout)
    # Nothing is scored by a failure.
    samples = [sample["judge_acc"] for sample in found.run.samples(TASK)]
    lost = [item for item in samples if item["status"] == "judge_api_error"]
    assert len(lost) == failed
    assert all(item["right"] is None and item["verdict"]["score"] is None for item in lost)


def test_the_same_failures_within_the_users_limit(quarter: dict[str, Judged]) -> None:
    strict, found = quarter["default"], quarter["allowed"]
    assert found.run.code == 0, found.run.stderr[-3000:]
    assert found.row["by_status"] == strict.row["by_status"]
    assert found.section["invalid"] == {}
    assert "INVALID" not in found.run.stdout + found.run.stderr
    assert plain_names(found.numbers) == plain_names(strict.numbers)


# --- a dead endpoint, and afterwards ------------------------------------------------------------


class Dead(NamedTuple):
    run: HostRun
    port: int
    cache: Path


@pytest.fixture(scope="module")
def dead(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Dead:
    """A run whose judge nobody answers."""
    out, cache = tmp_path_factory.mktemp("dead"), tmp_path_factory.mktemp("dead-replies")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    spec = ["--judge", f"m@http://127.0.0.1:{port}/v1", "--judge-cache", str(cache)]
    arguments = [*MODEL, "--output_path", str(out), *spec, "--judge-stop-after", "3"]
    return Dead(launch(host(*arguments), out, timeout=300), port, cache)


def test_a_dead_judge_ends_the_judging_and_keeps_the_run(dead: Dead, sixteen: Judged) -> None:
    run = dead.run
    assert run.code == 3, run.stderr[-3000:]
    assert "Traceback" not in run.stderr
    section = run.results["lmms_eval_tasks"]
    (gone,) = section["judges"]["given_up"]
    assert "3 requests in a row failed" in gone
    (line,) = [x for x in run.stderr.splitlines() if "gave up on the judge" in x]
    assert "lmms-eval-tasks judge LOGS" in line
    (row,) = section["judges"]["usage"]
    assert set(row["by_status"]) == {"api_error", "skipped"}
    assert row["by_status"]["skipped"] > row["by_status"]["api_error"]
    samples = [sample["judge_acc"] for sample in run.samples(TASK)]
    assert len(samples) == COUNT
    replies = {s["judge_acc"]["id"]: s["judge_acc"]["reply"] for s in sixteen.run.samples(TASK)}
    assert {item["id"]: item["reply"] for item in samples} == replies
    # What needs no judge is there.
    assert run.results["results"][TASK]["rouge_l,none"] > 0
    assert run.results["results"][TASK]["judge_acc_valid,none"] in (None, 0.0)


def test_judge_completes_it_and_rescore_compares(
    dead: Dead, sixteen: Judged, launch: Launch, tmp_path: Path
) -> None:
    tool, env = str(BIN / "lmms-eval-tasks"), {"LMMS_EVAL_TASKS_JUDGE_CACHE": str(dead.cache)}
    logs = str(dead.run.out)
    with LocalEndpoint(judging, port=dead.port) as endpoint:
        spec = f"m@{endpoint.url}"
        command = [tool, "judge", logs, "--judge", spec, "--output", str(tmp_path / "judged.json")]
        done = launch(command, tmp_path, env=env)
        assert done.code == 0, done.stderr
        assert endpoint.most_in_flight == 16  # the default
        assert len(endpoint.chats) == sixteen.requests
        numbers = json.loads((tmp_path / "judged.json").read_text(encoding="utf-8"))
        found = numbers["maia"]["numbers"][TASK]
        for name, value in found.items():  # as if the endpoint had been there from the start
            assert sixteen.numbers[f"{name},none"] == value, name
        assert f"{sixteen.requests} verdicts ({sixteen.requests} ok)" in done.stdout
        again = launch(command, tmp_path, env=env)
        assert len(endpoint.chats) == sixteen.requests  # all from the cache
        assert "0 calls paid" in again.stdout

    def otherwise(request: dict[str, Any]) -> str:
        return verdict_on(request, shift=1)

    judged = str(sixteen.run.out)
    with LocalEndpoint(otherwise) as endpoint:
        spec, out = f"other@{endpoint.url}", tmp_path / "other.json"
        done = launch(
            [tool, "rescore", judged, "--judge", spec, "--output", str(out)], tmp_path, env=env
        )
        assert done.code == 0, done.stderr
        assert len(endpoint.chats) == sixteen.requests
    assert "Two judges on the same answers" in done.stdout
    assert f"judge {spec}" in done.stdout  # its ledger line
    compared = json.loads(out.read_text(encoding="utf-8"))["maia"]["judges_compared"][TASK]
    before = {s["judge_acc"]["id"]: s["judge_acc"] for s in sixteen.run.samples(TASK)}
    verdicts = json.loads(out.read_text(encoding="utf-8"))["maia"]["verdicts"][TASK]
    pairs = [(before[v["id"]]["verdict"], v) for v in verdicts if "score" in v]
    up = sum(new["score"] > old["score"] for old, new in pairs)
    down = sum(new["score"] < old["score"] for old, new in pairs)
    assert (compared["n"], compared["up"], compared["down"]) == (len(pairs), up, down)
    assert up > 0
    assert down > 0
    assert compared["agreement"] == pytest.approx(1 - (up + down) / len(pairs))
    assert (compared["before"], compared["after"]) == (sixteen.spec, spec)
    row = next(x for x in done.stdout.splitlines() if f"{len(pairs)} " in x and "%" in x)
    assert f"{compared['agreement']:.1%}" in row
