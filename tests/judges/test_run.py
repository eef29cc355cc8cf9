"""A run: what its judges share, how its processes divide it, and which one is the process's own."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import faults
import pytest
from faults import RATING, Player, judge_of

from lmms_eval_tasks import judges
from lmms_eval_tasks.errors import JudgeError, TasksError
from lmms_eval_tasks.judges import resolve, run
from lmms_eval_tasks.judges.ledger import task
from lmms_eval_tasks.judges.run import Run, from_settings
from lmms_eval_tasks.settings import JudgeLimits
from tests import local_endpoint as server
from tests.local_endpoint import Fault, LocalEndpoint

FIELDS = {"number": "1", "candidate": "x"}


def of_rank(rank: int, world: int, **limits: Any) -> Run:
    env = {"RANK": str(rank), "WORLD_SIZE": str(world)}
    return Run(JudgeLimits(**limits), env=env)


# --- shares -------------------------------------------------------------------------------------


@pytest.mark.parametrize("world", [1, 2, 3, 8])
def test_the_processes_of_a_run_divide_its_limits(world: int) -> None:
    runs = [of_rank(r, world, concurrency=16, max_calls=25, max_cost=1.0) for r in range(world)]
    assert sum(one.concurrency for one in runs) == 16
    assert sum(one.budget.max_calls or 0 for one in runs) == 25
    assert sum(one.budget.max_cost or 0 for one in runs) == pytest.approx(1.0)
    config = resolve("m@http://localhost/v1", {}, default_model="gpt-4o")
    rated = [of_rank(r, world, requests_per_minute=90) for r in range(world)]
    rates = [one.endpoint(config).requests.per_minute or 0 for one in rated]
    assert sum(rates) == pytest.approx(90)
    assert all(one.endpoint(config).tokens.per_minute is None for one in rated)


def test_every_process_may_ask_at_least_once_at_a_time() -> None:
    assert [of_rank(rank, 4, concurrency=2).concurrency for rank in range(4)] == [1, 1, 1, 1]


def test_a_process_whose_share_of_the_budget_is_nothing_asks_nobody() -> None:
    player = Player()
    with LocalEndpoint(player) as endpoint:
        last = of_rank(3, 4, max_calls=3)
        verdict = judge_of(endpoint.url, last).verdict(RATING, FIELDS)
        assert verdict.status == "skipped"
        first = of_rank(0, 4, max_calls=3)
        assert judge_of(endpoint.url, first).verdict(RATING, FIELDS).status == "ok"
    assert sum(player.seen.values()) == 1


# --- what judges share --------------------------------------------------------------------------


def test_two_judges_at_one_endpoint_share_its_limits() -> None:
    made = Run(JudgeLimits(stop_after=1))
    dead = server.error(500)
    with LocalEndpoint(lambda request: dead) as endpoint:
        one = judge_of(endpoint.url, made, retries=0)
        other = judge_of(endpoint.url, made, retries=0, repairs=0)
        assert one is not other
        assert made.endpoint(one.config) is made.endpoint(other.config)
        assert one.verdict(RATING, FIELDS).status == "api_error"
        assert other.verdict(RATING, FIELDS).status == "skipped"
        assert len(endpoint.chats) == 1
    (line,) = made.stopped()
    assert line.startswith(f"m@{endpoint.url}: ")


def test_a_panels_verdict_is_counted_once_and_its_members_apart() -> None:
    """The bar counts what the benchmark asked for; the ledger also who was asked for it."""
    made = Run(JudgeLimits())
    shown: list[tuple[bool, bool]] = []
    made.progress.done = lambda cached, failed: shown.append((cached, failed))  # type: ignore[method-assign]
    with LocalEndpoint(Player()) as endpoint:
        member = resolve(f"a@{endpoint.url}", {}, default_model="gpt-4o")
        others = [dataclasses.replace(member, model=name) for name in ("b", "c")]
        panel = judges.JudgeConfig("panel", members=(member, *others), rule="median")
        with task("t"):
            verdict = made.outermost(panel).verdict(RATING, FIELDS)
    assert verdict.status == "ok"
    assert shown == [(False, False)]
    rows = {row.judge: row for row in made.ledger.rows()}
    assert set(rows) == {panel.label, *(one.label for one in panel.members)}
    assert all((row.task, row.verdicts) == ("t", 1) for row in rows.values())
    assert [rows[one.label].paid_calls for one in panel.members] == [1, 1, 1]
    assert rows[panel.label].paid_calls == 0


def test_the_bar_tells_cached_and_failed_verdicts(tmp_path: Path) -> None:
    shown: list[tuple[bool, bool]] = []
    script: list[str | Fault] = [faults.right("rating 1"), server.error(404)]
    replies = iter(script)
    with LocalEndpoint(lambda request: next(replies)) as endpoint:
        made = Run(JudgeLimits(), cache=tmp_path)
        made.progress.done = lambda cached, failed: shown.append((cached, failed))  # type: ignore[method-assign]
        asked = made.outermost(resolve(f"m@{endpoint.url}", {}, default_model="gpt-4o"))
        for number in ("1", "1", "2"):
            asked.verdict(RATING, {**FIELDS, "number": number})
    assert shown == [(False, False), (True, False), (False, True)]


def test_what_a_run_says_of_itself(tmp_path: Path) -> None:
    limits = JudgeLimits(requests_per_minute=90, max_calls=5, max_cost=0.5)
    made = Run(limits, cache=tmp_path, env={"RANK": "1", "WORLD_SIZE": "2"})
    said = made.summary()
    for part in ("16 requests in flight over 2 processes", "90 requests a minute", "5 calls"):
        assert part in said
    assert "$0.5" in said
    assert str(tmp_path / "replies.sqlite3") in said
    described = made.describe()
    assert json.loads(json.dumps(described)) == described
    assert (described["concurrency"], described["max_calls"]) == (16, 5)  # the whole run's
    assert "no cache" in Run(JudgeLimits()).summary()


def test_parameters_that_were_left_out_are_in_the_results() -> None:
    def reply(request: dict[str, Any]) -> str | Fault:
        if "temperature" in request:
            return server.error(400, "temperature is not supported", param="temperature")
        return faults.right("rating 1")

    with LocalEndpoint(reply) as endpoint, run.use(Run(JudgeLimits())):
        config = resolve(f"m@{endpoint.url}", {}, default_model="gpt-4o")
        assert "parameters_left_out" not in judges.describe(config)
        assert judges.make(config).verdict(RATING, FIELDS).status == "ok"
        described = judges.describe(config)
    assert described["parameters_left_out"] == {config.label: ["temperature"]}


# --- the process's own run ----------------------------------------------------------------------


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's settings: a cache and a budget."""
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_CACHE", str(tmp_path))
    monkeypatch.setenv("LMMS_EVAL_TASKS_MAX_CALLS", "7")
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_CONCURRENCY", "3")
    run.forget()
    return tmp_path


def test_the_users_settings_make_the_processs_run(own: Path) -> None:
    try:
        found: list[Run] = []
        threads = [threading.Thread(target=lambda: found.append(run.current())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(one) for one in found}) == 1
        assert (found[0].budget.max_calls, found[0].concurrency) == (7, 3)
        assert found[0].cache is not None
        assert found[0].cache.path.parent == own
        run.forget()
        assert run.current() is not found[0]
    finally:
        run.forget()


def test_a_command_puts_its_own_run_in_place(own: Path) -> None:
    before = run.current()
    try:
        with run.use(from_settings(stop_after=0)) as inside:
            assert run.current() is inside
            assert inside.limits.stop_after == 0
            assert inside.limits.max_calls == 7
        assert run.current() is before
        with pytest.raises(ValueError, match="the block's"), run.use(Run(JudgeLimits())):
            raise ValueError("the block's")
        assert run.current() is before
    finally:
        run.forget()


def _in_child(url: str, results: Any) -> None:
    made = run.current()
    verdict = judge_of(url, made).verdict(RATING, FIELDS)
    results.put((id(made), verdict.score, made.ledger.total().verdicts, os.getpid()))
    run.forget()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_run_of_its_own(own: Path) -> None:
    with LocalEndpoint(Player()) as endpoint:
        try:
            mine = run.current()
            assert judge_of(endpoint.url, mine).verdict(RATING, FIELDS).status == "ok"
            context = multiprocessing.get_context("fork")
            results = context.Queue()
            child = context.Process(target=_in_child, args=(endpoint.url, results))
            child.start()
            other, score, verdicts, process = results.get(timeout=20)
            child.join(20)
            assert child.exitcode == 0
            assert (other, process) != (id(mine), os.getpid())
            assert (score, verdicts) == (faults.right_score("rating 1"), 1)
            assert len(endpoint.chats) == 1  # the child found the reply in the parent's cache
            assert run.current() is mine
            assert judge_of(endpoint.url, mine).verdict(RATING, FIELDS).status == "ok"
        finally:
            run.forget()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LMMS_EVAL_TASKS_JUDGE_CONCURRENCY", "0"),
        ("LMMS_EVAL_TASKS_JUDGE_CONCURRENCY", "many"),
        ("LMMS_EVAL_TASKS_JUDGE_RPM", "0"),
        ("LMMS_EVAL_TASKS_JUDGE_TPM", "-1"),
        ("LMMS_EVAL_TASKS_JUDGE_STOP_AFTER", "-1"),
        ("LMMS_EVAL_TASKS_MAX_CALLS", "1.5"),
        ("LMMS_EVAL_TASKS_MAX_COST", "nan"),
        ("LMMS_EVAL_TASKS_PRICES", "/no/such/prices.yml"),
    ],
)
def test_a_wrong_setting_is_one_line(
    variable: str, value: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(TasksError) as caught:
        from_settings()
    assert variable in str(caught.value) or value in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_budget_in_dollars_needs_a_price() -> None:
    config = resolve("m@http://localhost/v1", {}, default_model="gpt-4o")
    with run.use(Run(JudgeLimits(max_cost=1.0))) as made:
        with pytest.raises(JudgeError, match="price of m@http://localhost/v1 is unknown"):
            judges.preflight(config, [RATING])
        verdict = made.judge(config).verdict(RATING, FIELDS)  # a host without our check
        assert (verdict.status, verdict.score) == ("skipped", None)


def test_a_judge_is_resolved_once_in_a_run(tmp_path: Path) -> None:
    file = tmp_path / "judge.yml"
    file.write_text("model: first@http://localhost:1/v1\n", encoding="utf-8")
    run = Run(JudgeLimits())
    before = run.resolved(str(file), "gpt-4o")
    file.write_text("model: second@http://localhost:1/v1\n", encoding="utf-8")
    assert run.resolved(str(file), "gpt-4o") is before
    assert Run(JudgeLimits()).resolved(str(file), "gpt-4o").model == "second"
