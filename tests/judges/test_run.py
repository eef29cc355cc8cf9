"""A run: what its judges share, how its processes divide it, and which one is the process's own."""

import dataclasses
import subprocess
import sys
from typing import Any

import faults
import pytest
from faults import RATING, Player, judge_of
from injections import in_child

from lmms_eval_tasks import context, judges
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import resolve, run
from lmms_eval_tasks.judges.report import task
from lmms_eval_tasks.judges.run import JudgeSession, from_settings
from lmms_eval_tasks.settings import JudgeLimits
from tests.checks import in_threads, table
from tests.local_endpoint import LocalEndpoint

FIELDS = {"number": "1", "candidate": "x"}
LOCAL = resolve("m@http://localhost/v1", {}, default_model="gpt-4o")


def of_rank(rank: int, world: int, **limits: Any) -> JudgeSession:
    return JudgeSession(JudgeLimits(**limits), env={"RANK": str(rank), "WORLD_SIZE": str(world)})


# --- shares -------------------------------------------------------------------------------------


@table("world", [1, 2, 3, 8])
def test_the_processes_of_a_run_divide_its_limits(world):
    runs = [of_rank(r, world, concurrency=16, max_calls=25, max_cost=1.0) for r in range(world)]
    assert sum(one.concurrency for one in runs) == 16
    assert sum(one.budget.max_calls or 0 for one in runs) == 25
    assert sum(one.budget.max_cost or 0 for one in runs) == pytest.approx(1.0)
    rated = [of_rank(r, world, requests_per_minute=90) for r in range(world)]
    rates = [one.endpoint(LOCAL).requests.per_minute or 0 for one in rated]
    assert sum(rates) == pytest.approx(90)


def test_a_share_of_nothing():
    """Every process may ask at least once at a time; one without a budget asks nobody."""
    assert [of_rank(rank, 4, concurrency=2).concurrency for rank in range(4)] == [1, 1, 1, 1]
    with LocalEndpoint(Player()) as endpoint:
        for rank, status in ((3, "skipped"), (0, "ok")):
            judge = judge_of(endpoint.url, of_rank(rank, 4, max_calls=3))
            assert judge.verdict(RATING, FIELDS).status == status


# --- what judges share --------------------------------------------------------------------------


def test_a_debates_verdict_is_counted_once_and_its_agents_apart():
    """The bar counts what the benchmark asked for; the usage also who was asked for it."""
    made = JudgeSession(JudgeLimits())
    with LocalEndpoint(Player()) as endpoint:
        member = resolve(f"a@{endpoint.url}", {}, default_model="gpt-4o")
        others = [dataclasses.replace(member, model=name) for name in ("b", "c")]
        debate = judges.JudgeConfig("debate", members=(member, *others))
        with task("t"):
            assert made.judge(debate, outermost=True).verdict(RATING, FIELDS).status == "ok"
    assert (made.progress.n_done, made.progress.failed) == (1, 0)
    rows = {row.judge: row for row in made.usage.rows()}
    labels = [one.label for one in debate.members[:2]]  # they agree at once
    assert set(rows) == {debate.label, *labels}
    assert all((row.task, row.verdicts) == ("t", 1) for row in rows.values())
    assert [rows[label].paid_calls for label in (debate.label, *labels)] == [0, 1, 1]


# --- the process's own run ----------------------------------------------------------------------


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user's settings: a cache and a budget."""
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_CACHE", str(tmp_path))
    monkeypatch.setenv("LMMS_EVAL_TASKS_MAX_CALLS", "7")
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE_CONCURRENCY", "3")
    return tmp_path


def test_the_users_settings_make_the_processs_run(own):
    found = in_threads(8, lambda _: run.current())
    before = found[0]
    assert all(one is before for one in found)
    assert (before.budget.max_calls, before.concurrency) == (7, 3)
    assert before.cache.path.parent == own
    with run.use(from_settings(stop_after=0)) as mine:  # a command puts its own in place
        assert run.current() is mine
        assert (mine.limits.stop_after, mine.limits.max_calls) == (0, 7)
    assert run.current() is before
    with context.begun():
        assert run.current() is not before


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_run_of_its_own(own):
    with LocalEndpoint(Player()) as endpoint:
        mine = run.current()
        assert judge_of(endpoint.url, mine).verdict(RATING, FIELDS).status == "ok"

        def child() -> object:
            made = run.current()
            verdict = judge_of(endpoint.url, made).verdict(RATING, FIELDS)
            return made is mine, verdict.score, made.usage.total().verdicts

        assert in_child(child) == str((False, faults.right_score("rating 1"), 1))
        assert len(endpoint.chats) == 1  # the child found the reply in the parent's cache
        assert run.current() is mine
        assert judge_of(endpoint.url, mine).verdict(RATING, FIELDS).status == "ok"


@table("soft, hard, flight, says", [(64, 600, 300, ""), (400, 400, 144, "144 requests at a time")])
def test_requests_in_flight_take_no_more_descriptors_than_there_are(soft, hard, flight, says):
    """In a process of its own: a hard limit cannot be raised again."""
    code = (
        "import resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "from lmms_eval_tasks.judges import resolve\n"
        "from lmms_eval_tasks.judges.run import JudgeSession\n"
        "from lmms_eval_tasks.settings import JudgeLimits\n"
        "run = JudgeSession(JudgeLimits(concurrency=300))\n"
        "end = run.endpoint(resolve('m@http://localhost/v1', {}, default_model='gpt-4o'))\n"
        "print(end.flight.most)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == flight
    assert says in done.stderr
    assert done.stderr.count("\n") == bool(says)


def test_a_budget_in_dollars_needs_a_price():
    with run.use(JudgeSession(JudgeLimits(max_cost=1.0))) as made:
        with pytest.raises(JudgeError, match="price of m@http://localhost/v1, which is unknown"):
            judges.preflight(LOCAL, [RATING])
        verdict = made.judge(LOCAL).verdict(RATING, FIELDS)  # a host without our check
        assert (verdict.status, verdict.score) == ("skipped", None)
