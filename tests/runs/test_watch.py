"""`watch`: what a run writes of its progress, and what is shown of it in every state."""

from __future__ import annotations

import json
import os
import platform
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.table import Table
from typer.testing import CliRunner

from lmms_eval_tasks import context
from lmms_eval_tasks.commands import cli, watch_command
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.runs import progress
from lmms_eval_tasks.runs.progress import (
    FOLDER,
    JudgeProgress,
    LastReply,
    ProcessProgress,
    TaskProgress,
)
from tests.checks import table
from tests.conftest import BIN, Launch, environment, host
from tests.local_endpoint import Fault, LocalEndpoint

NOW = 1_800_000_000.0
TASK, OTHER = "maia_vsv", "maia_oevqa"
HALF = TaskProgress(requests=100, replies=40, speed=0.5, failed=2)


@pytest.fixture
def gone() -> int:
    """The number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def write(out: Path, **fields: Any) -> ProcessProgress:
    """A process's file; by default of a live one, a minute after its first request."""
    usual: dict[str, Any] = {
        "run": "one",
        "rank": 0,
        "processes": 1,
        "machine": platform.node(),
        "pid": os.getpid(),
        "model": "openai (model=m)",
        "stamp": "20261128_120000",
        "begun": time.time() - 100,
        "at": time.time(),
        "asked_at": time.time() - 60,
        "phase": "generating",
        "tasks": {TASK: HALF},
        "speed": 0.5,
    }
    made = ProcessProgress(**(usual | fields))
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{made.run}.{made.rank}.json").write_text(made.model_dump_json())
    return made


def shown(out: Path, width: int = 120) -> str:
    """What `watch OUT --once` prints."""
    done = CliRunner().invoke(cli.app, ["watch", str(out), "--once"], env={"COLUMNS": str(width)})
    assert done.exit_code == 0, done.output
    return done.output


def test_a_narrow_terminal_splits_the_table_while_it_is_redrawn(tmp_path: Path) -> None:
    run = [write(tmp_path)]
    parts = watch_command.view(run, tmp_path, time.time(), 40)
    tables = [part for part in parts if isinstance(part, Table)]
    headings = [[str(column.header) for column in table.columns] for table in tables]
    assert headings == [["task", "replies", "%", "replies/s"], ["task", "time left", "failed"]]


def cells(text: str, name: str) -> list[str]:
    """The cells of a row of the table."""
    line = next(line for line in text.splitlines() if line.startswith(f" {name} "))
    return line.split()[1:]


# --- what is shown of written files ---------------------------------------------------------------


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    write(
        tmp_path,
        tasks={TASK: HALF, OTHER: TaskProgress(requests=50)},
        last=[LastReply(task=TASK, doc="v1/3", text="A\x1b[31m [red]is[/] " + 300 * "l", at=NOW)],
        judge=JudgeProgress(verdicts=7, failed=1, tokens=1234, cost=0.25, reason="HTTP 500"),
    )
    text = shown(tmp_path, 80)
    assert "openai (model=m)" in text
    assert "generating, 2 min since" in text
    assert cells(text, TASK) == ["40", "of", "100", "42", "0.50", "2", "min", "2"]
    assert cells(text, OTHER) == ["0", "of", "50", "0", "0.00", "-", "0"]
    assert cells(text, "all") == ["40", "of", "150", "28", "0.50", "4", "min", "2"]
    assert "judge: 7 verdicts, 1 failed (such as: HTTP 500), 1,234 tokens, $0.25" in text
    (reply,) = [line for line in text.splitlines() if line.startswith(f"  {TASK} v1/3: ")]
    assert reply.startswith(rf"  {TASK} v1/3: A\x1b[31m [red]is[/] lll")
    assert len(reply) == 80
    assert reply.endswith("…")
    assert max(map(len, text.splitlines())) <= 80


def test_two_processes_are_one_run(tmp_path: Path) -> None:
    for rank in range(2):
        judge = JudgeProgress(verdicts=2, skipped=rank, tokens=5, cost=[0.5, None][rank])
        write(tmp_path, rank=rank, processes=3, judge=judge)
    text = shown(tmp_path)
    assert cells(text, TASK) == ["80", "of", "200", "42", "1.00", "2", "min", "4"]
    assert "judge: 4 verdicts, 0 failed, 1 skipped, 10 tokens, unknown price" in text
    assert "1 of 3 processes have not written anything yet" in text
    with (tmp_path / FOLDER / "one.1.json").open("r+") as file:
        file.truncate(200)  # half of it: as of a file system over a network
    assert cells(shown(tmp_path), TASK)[0] == "40"


def test_a_killed_run_shows_what_is_kept(tmp_path: Path, gone: int) -> None:
    kept = tmp_path / "replies"
    kept.mkdir()
    rows = [json.dumps({"key": str(n), "reply": "A"}) for n in range(45)]
    (kept / f"{TASK}.0.run.jsonl").write_text("\n".join([*rows, rows[0][:9]]))
    write(tmp_path, pid=gone, replies_in=str(kept), at=time.time() - 30)
    text = shown(tmp_path)
    assert "killed while generating, 1 min since" in text
    assert cells(text, TASK) == ["45", "of", "100", "47", "2"]
    assert f"no news for 30 s: process {gone} is gone" in text
    assert f"45 replies are saved in {kept}: run the same command" in " ".join(text.split())


def test_one_of_two_processes_is_gone(tmp_path: Path, gone: int) -> None:
    write(tmp_path, processes=2, at=time.time() - 40)
    write(tmp_path, rank=1, processes=2, pid=gone)
    text = shown(tmp_path)
    assert f"rank 0: no news for 40 s: process {os.getpid()} still exists" in text
    assert f"process {gone} is gone" in text
    assert "generating" in text
    assert "killed" not in text


def test_a_run_on_another_machine(tmp_path: Path) -> None:
    write(tmp_path, machine="node7", at=time.time() - 40)
    assert "no news for 40 s: node7 is another machine, see there" in shown(tmp_path)
    write(tmp_path, machine="node7", at=time.time() - 4000)
    text = shown(tmp_path)
    assert "no longer heard of while generating" in text
    assert "node7 is another machine" in text
    assert "no reply is saved: run the same command again" in text


def test_a_finished_run_names_its_results(tmp_path: Path) -> None:
    done = TaskProgress(requests=100, earlier=90, replies=10, scored=100, unparsed=3)
    write(tmp_path, phase="scored", tasks={TASK: done})
    text = shown(tmp_path)
    assert "finished, 2 min since" in text
    assert cells(text, TASK) == ["100", "of", "100", "100", "0", "3", "of", "100", "90"]
    assert "its results are not saved (yet)" in text
    (tmp_path / "m").mkdir()
    results = tmp_path / "20261128_120000_results.json"
    results.touch()
    text = shown(tmp_path)
    assert f"results: {results}" in text.replace("\n", "")
    assert "its samples are not saved" in text
    results = results.rename(tmp_path / "m" / results.name)
    results.with_name(f"20261128_120000_samples_{TASK}.jsonl").touch()
    text = shown(tmp_path)
    assert f"results: {results}" in text.replace("\n", "")
    assert f"all numbers: lmms-eval-tasks report {tmp_path}" in text.replace("\n", "")


def test_a_stopped_run_says_why(tmp_path: Path, gone: int) -> None:
    write(tmp_path, phase="stopped", reason="[error] no such video", pid=gone)
    text = shown(tmp_path)
    assert "\nstopped, 2 min since" in text
    assert "stopped by: [error] no such video" in text
    assert "same command" not in text


def test_before_the_first_request(tmp_path: Path) -> None:
    write(tmp_path, phase="preparing", asked_at=None, tasks={TASK: TaskProgress()})
    assert "preparing (data, media, the model), 2 min since" in shown(tmp_path)
    assert f"tasks: {TASK}" in shown(tmp_path)


def test_the_last_run_or_those_that_go_on(tmp_path: Path, gone: int) -> None:
    write(tmp_path, run="a", pid=gone, model="first", begun=1)
    write(tmp_path, run="b", pid=gone, model="second", begun=2)
    assert "second" in shown(tmp_path)
    assert "first" not in shown(tmp_path)
    write(tmp_path, run="a", model="first", begun=1)
    assert "first" in shown(tmp_path)
    assert "second" not in shown(tmp_path)


@table(
    "files, line",
    {
        "nothing": ([], "no run of our tasks began with this --output_path"),
        "a run of lmms-eval": (["m/20261128_120000_results.json"], "lmms-eval-tasks report"),
        "without a name": (["20261128_120000_results.json"], "lmms-eval-tasks report"),
        "parts": ([f"{n}/{FOLDER}/a.0.json" for n in (0, 1)], "watch {out}/1 (of 0, 1)"),
        "damaged": ([f"{FOLDER}/one.0.json"], "no run of our tasks began"),
    }.values(),
)
def test_no_run_is_one_line(files: list[str], line: str, tmp_path: Path) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"run": ')
    done = CliRunner().invoke(cli.app, ["watch", str(tmp_path)])
    assert isinstance(done.exception, TasksError)
    assert str(done.exception).startswith(f"{tmp_path}: ")
    assert line.format(out=tmp_path) in str(done.exception)
    assert "\n" not in str(done.exception)


# --- what a run writes ----------------------------------------------------------------------------


def arguments(out: Path | None) -> dict[str, Any]:
    options = SimpleNamespace(output_path=out and str(out))
    return {
        "cli_args": options,
        "model": "openai",
        "model_args": "model=m,api_key=sk-secret,base_url=http://me:pw@h/v1,max_tokens=5",
        "datetime_str": "2026:1",
    }


def test_a_process_counts_what_happens(tmp_path: Path) -> None:
    with context.begun(), progress.written(arguments(tmp_path), [TASK]):
        ((process,),) = progress.read_progress(tmp_path)
        assert (process.phase, process.stamp) == ("preparing", "2026-1")
        assert (
            process.model
            == "openai (model=m,api_key=[key],base_url=http://[key]@h/v1,max_tokens=5)"
        )
        own = progress.of_run()
        own.ask({TASK: 9}, {TASK: 2}, tmp_path)
        for number in range(5):
            own.add_reply(TASK, str(number), "a\nb" + 1000 * "c", failed=number == 3)
        own.score()
        own.add_item(TASK, "ok")
        own.add_item(TASK, "unparsed")
    ((process,),) = progress.read_progress(tmp_path)
    assert process.phase == "scored"
    assert process.tasks[TASK] == TaskProgress(
        requests=9, earlier=2, replies=4, speed=4.0, failed=1, scored=2, unparsed=1
    )
    assert [reply.doc for reply in process.last] == ["2", "3", "4"]
    assert all(reply.text.startswith("a b") and len(reply.text) <= 400 for reply in process.last)


@table(
    "error, reason",
    {
        "ours": (TasksError("first\nsecond"), "first"),
        "another": (ValueError("x"), "ValueError('x')"),
        "Ctrl-C": (KeyboardInterrupt(), "KeyboardInterrupt()"),
    }.values(),
)
def test_an_error_is_the_reason(error: BaseException, reason: str, tmp_path: Path) -> None:
    with suppress(type(error)), context.begun(), progress.written(arguments(tmp_path), [TASK]):
        raise error
    ((process,),) = progress.read_progress(tmp_path)
    assert (process.phase, process.reason) == ("stopped", reason)


@table("fields", [{"pid": 2**63}, {"pid": 0}, {"begun": 1e18}, {"at": "nan"}, {"at": -1}])
def test_a_file_of_impossible_numbers_is_skipped(fields: dict[str, Any], tmp_path: Path) -> None:
    write(tmp_path)
    file = tmp_path / FOLDER / "one.0.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    assert progress.read_progress(tmp_path) == []


def test_half_a_character_ends_no_run(tmp_path: Path) -> None:
    """A server that cuts a reply inside an emoji sends half of it, which UTF-8 cannot write."""
    with context.begun(), progress.written(arguments(tmp_path), [TASK]):
        progress.of_run().add_reply(TASK, "1\udcff", "A\ud83d", failed=False)
    ((process,),) = progress.read_progress(tmp_path)
    assert [(reply.doc, reply.text) for reply in process.last] == [("1?", "A?")]


@table("out", ["file", "nul\0", None])
def test_a_run_goes_on_without_its_file(out: str | None, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with context.begun(), progress.written(arguments(out and tmp_path / out), [TASK]):
        progress.of_run().add_reply(TASK, "1", "A", failed=False)
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


# --- a real run, watched from other processes -----------------------------------------------------


def until(holds: Callable[[], Any], seconds: float = 240) -> Any:
    """The first true value; the machine may be busy."""
    end = time.monotonic() + seconds
    while not (value := holds()):
        assert time.monotonic() < end
        time.sleep(0.3)
    return value


@contextmanager
def in_terminal(command: list[str], **more: Any) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process whose output is a terminal, and the other end of that terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, **more) as process:
        os.close(theirs)
        try:
            yield process, ours
        finally:
            process.kill()
            os.close(ours)


def read_all(end: int) -> str:
    text = b""
    with suppress(OSError):  # the terminal is closed
        while part := os.read(end, 65536):
            text += part
    return text.decode()


def pid_that_asks(out: Path) -> int:
    """The process of a run that has replies; 0 before."""
    written = (one for run in progress.read_progress(out) for one in run)
    return next((one.pid for one in written if one.last), 0)


@pytest.mark.host
def test_a_run_is_watched_from_another_process(tmp_path: Path, cache: Path, launch: Launch) -> None:
    env = environment(cache)
    env.pop("COLUMNS")
    watch, out = [str(BIN / "lmms-eval-tasks"), "watch", "out"], tmp_path / "out"
    with LocalEndpoint(lambda _: Fault(content="A. slow", delay=0.4)) as endpoint:
        command = host(
            *("--model", "openai", "--tasks", TASK, "--limit", "200"),
            *("--model_args", f"model_version=m,base_url={endpoint.url},num_concurrent=2"),
            *("--log_samples", "--output_path", "out"),
        )
        with ThreadPoolExecutor(1) as pool:
            run = pool.submit(launch, command, tmp_path, {"OPENAI_API_KEY": "none", "COLUMNS": ""})
            until(lambda: pid_that_asks(out) or run.done())
            assert not run.done(), run.result().stderr[-3000:]
            pid = pid_that_asks(out)
            before = set(out.rglob("*"))
            once = subprocess.run(
                watch, env=env, cwd=tmp_path, capture_output=True, text=True, check=True
            ).stdout
            assert "\x1b" not in once  # not a terminal
            assert "generating" in once
            assert 0 < int(cells(once, TASK)[0]) < 200
            assert ": A. slow" in once
            assert all(one.suffix in (".part", ".json") for one in set(out.rglob("*")) - before)
            with in_terminal([*watch, "--every", "0.2"], env=env, cwd=tmp_path) as (view, end):
                assert os.read(end, 1)  # it has begun to show
                time.sleep(1)
                view.send_signal(signal.SIGINT)
                text = read_all(end)
                assert view.wait(20) == 0
            assert "Traceback" not in text
            assert not run.done()
            os.kill(pid, signal.SIGKILL)
    killed = subprocess.run(
        watch, check=True, env=env, cwd=tmp_path, capture_output=True, text=True
    ).stdout
    assert "killed while generating" in killed
    assert f"process {pid} is gone" in killed
    assert "run the same command again to continue" in killed
