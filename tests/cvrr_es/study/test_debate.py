"""`lmms-eval-tasks debate` on a small study, against an endpoint that plays all agents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import Result

from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.errors import DataError, JudgeError, TasksError
from tests.conftest import REPOSITORY
from tests.cvrr_es.study.debating import ANSWERS, DIFFERENT, DIMENSIONS, SAID, Player, Study, wanted
from tests.local_endpoint import error

TURNS = 5 * DIFFERENT  # two agents, two rounds, and the last word
AGAIN = "when what stopped them is mended (see above), run the same command again;"
SCRIPT = "from lmms_eval_tasks.commands.cli import app; app()"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Study]:
    # The command writes options into the environment, as all commands do.
    monkeypatch.setattr(os, "environ", os.environ.copy())
    made = Study(tmp_path)
    with made.endpoint:
        yield made


def refused(done: Result, kind: type[TasksError], *texts: str) -> None:
    assert isinstance(done.exception, kind), (done.output, done.exception)
    for text in texts:
        assert text in str(done.exception)


def missing(rows: Sequence[RatingRow]) -> int:
    return sum(row.rating is None for row in rows)


def test_a_debate(study: Study) -> None:
    """Its files, transcripts and console are in tests/golden."""
    done = study()
    assert done.exit_code == 0, (done.output, done.exception)
    assert len(study.endpoint.chats) == TURNS
    rows = ratings.read([study.out])
    assert {(row.candidate, row.question): row.rating for row in rows} == {
        (name, f"{dimension}/{place:03d}"): wanted(answer)
        for name, parts in SAID.items()
        for dimension, part in zip(DIMENSIONS, parts, strict=True)
        for place, answer in enumerate(part, 1)
    }
    assert [row.question for row in rows if row.empty] == ["time_order_understanding/002"]
    assert f"all: {TURNS} calls, unknown price" in done.output  # before anybody was asked
    # A folder with ratings and transcripts is read as ratings alone.
    assert ratings.read([study.folder]) == rows


def test_a_budget_ends_the_run_and_the_rest_follows(study: Study) -> None:
    first = study("--max-calls", "23", "--judge-concurrency", "1")
    assert first.exit_code == 3
    assert "INVALID" in first.output
    assert len(study.endpoint.chats) == 23
    rows = ratings.read([study.out])
    assert len(rows) == ANSWERS
    assert 0 < sum(row.rating is not None for row in rows) < ANSWERS
    assert {row.status for row in rows} == {"ok", "skipped"}
    os.environ.pop("LMMS_EVAL_TASKS_MAX_CALLS")
    assert f"{missing(rows)} without a rating: {AGAIN} what" in first.output
    second = study()
    assert second.exit_code == 0, second.output
    assert len(study.endpoint.chats) == TURNS
    assert all(row.rating is not None for row in ratings.read([study.out]))


def test_a_cost_limit_needs_a_price(study: Study) -> None:
    refused(study("--max-cost", "1"), JudgeError, "price", "unknown")
    assert study.endpoint.chats == []


def test_killed_and_resumed_nothing_is_paid_twice(study: Study) -> None:
    player = Player(delay=0.03)
    study.player = player
    env = {**os.environ, **study.env, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", SCRIPT, *study.arguments("--judge-concurrency", "2")]

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, env=env, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    process = started()
    limit = time.monotonic() + 60
    while sum(player.seen.values()) < 20 and process.poll() is None:
        assert time.monotonic() < limit
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL
    assert not study.out.exists()
    before = sum(player.seen.values())
    assert 20 <= before < TURNS
    assert started().wait(120) == 0
    total = sum(player.seen.values())
    assert len(study.transcripts()) == ANSWERS
    # At most what was in flight in the killed process, two requests, is asked again.
    assert TURNS <= total <= TURNS + 2
    assert total - before < TURNS


def test_failures_are_rows_and_make_the_run_invalid(study: Study) -> None:
    study.player = lambda request: error(400, "no such model")
    done = study()
    assert done.exit_code == 3
    rows = ratings.read([study.out])
    assert {(row.rating, row.status) for row in rows} <= {(None, "api_error"), (None, "skipped")}
    assert "Alpha: no rating; failed: " in done.output
    assert "INVALID" in done.output


def test_replies_of_no_use_are_kept_and_asked_for_once_more_with_repairs(study: Study) -> None:
    study.player = lambda request: "I like dogs."
    first = study("--single")
    asked = len(study.endpoint.chats)
    assert asked == 2 * DIFFERENT
    told = f"{ANSWERS} without a usable reply: replies are kept"
    assert told in first.output
    assert "run the same command again" not in first.output
    study.player = Player()
    assert told in study("--single").output
    assert len(study.endpoint.chats) == asked
    judge = study.folder / "judge.yml"
    judge.write_text(f"model: m\nbase_url: {study.endpoint.url}\nrepairs: 2\n")
    done = study("--single", "--judge", str(judge))
    assert done.exit_code == 0, done.output
    assert len(study.endpoint.chats) == asked + DIFFERENT
    assert missing(ratings.read([study.out])) == 0


def test_other_ratings_are_not_overwritten(study: Study) -> None:
    assert study().exit_code == 0
    kept = study.out.read_bytes()
    refused(study("--single"), DataError, str(study.out), "debate(", "--out")
    study.candidates = study.candidates[:1]
    refused(study(), DataError, str(study.out), "Beta's answer", "--out")
    assert study.out.read_bytes() == kept
    assert len(study.endpoint.chats) == TURNS
    study.out.write_text("my notes")
    refused(study(), DataError, f"--out {study.out}: is there already", "remove it")
    # More candidates than before are welcome.
    study.out.unlink()
    assert study().exit_code == 0
    study.candidates = [study.folder / "candidates"]
    assert study().exit_code == 0
    assert len(ratings.read([study.out])) == ANSWERS


def test_bad_input(study: Study, tmp_path: Path) -> None:
    refused(study("--out", str(tmp_path / "none" / "x.jsonl")), TasksError, "none/x.jsonl")
    refused(study("--transcripts", str(tmp_path / "nowhere")), TasksError, "nowhere")
    refused(study("--data", str(tmp_path / "empty")), DataError, "no CVRR-ES data")
    refused(study("--judge", "none"), JudgeError, "--judge none")
    refused(study("--max-calls", "-1"), TasksError, "MAX_CALLS")
    os.environ.pop("LMMS_EVAL_TASKS_MAX_CALLS")
    study.candidates.append(tmp_path / "missing")
    refused(study(), DataError, "missing")
    study.candidates.pop()
    file = study.candidates[0] / "partial_actions.json"
    rows = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(rows[:2]))
    refused(study(), DataError, "Alpha", "partial_actions")
    assert study.endpoint.chats == []
