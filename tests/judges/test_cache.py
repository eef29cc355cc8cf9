"""The reply cache: what comes back, who may write at once, and what breaks a file."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from cache_cases import (
    ABOUT,
    REPLIES,
    SCHEMA,
    ask,
    ask_image,
    exported,
    key,
    killed_writer,
    text_file,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges import cache_files, cache_form, resolve
from lmms_eval_tasks.judges.cache import Cache
from lmms_eval_tasks.judges.exchange import Reply, Token


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite3"


@pytest.fixture
def cache(file: Path) -> Iterator[Cache]:
    opened = Cache(file)
    yield opened
    opened.close()


@pytest.mark.parametrize("reply", REPLIES)
def test_every_field_comes_back(cache: Cache, file: Path, reply: Reply) -> None:
    name = key(ask())
    assert cache.get(name) is None
    assert cache.put(name, reply, ask(), ABOUT) == reply
    assert cache.get(name) == reply
    cache.close()
    again = Cache(file)
    found = again.get(name)
    assert found == reply
    assert found is not None
    assert type(found.tokens) is type(reply.tokens)
    again.close()


def test_all_fields_of_a_reply_are_tried() -> None:
    default = Reply("{}")
    for field in fields(Reply):
        assert any(getattr(r, field.name) != getattr(default, field.name) for r in REPLIES)


@hypothesis_settings(max_examples=60, deadline=None)
@given(
    text=st.none() | st.text(st.characters()),
    logprobs=st.lists(st.floats(allow_nan=False), max_size=4),
    token=st.text(st.characters()),
)
def test_any_reply_comes_back(
    tmp_path_factory: pytest.TempPathFactory, text: str | None, logprobs: list[float], token: str
) -> None:
    tokens = tuple(Token(token, value, ((token, value),)) for value in logprobs)
    reply = Reply(text, refusal=token, tokens=tokens)
    assert cache_form.reply_of(cache_form.unpack(cache_form.pack(cache_form.plain(reply)))) == reply


def test_first_reply_wins_and_the_second_is_kept(cache: Cache, file: Path) -> None:
    first, second, third = Reply("first"), Reply("second"), Reply("first")
    assert cache.put("a", first, ask(), ABOUT) == first
    assert cache.put("a", second, ask(), ABOUT) == first
    assert cache.put("a", third, ask(), ABOUT) == first
    assert cache.get("a") == first
    cache.close()
    kept = [(line["copy"], line["reply"]["text"]) for line in exported(file)]
    assert kept == [(0, "first"), (1, "second"), (2, "first")]


def test_request_is_kept_for_people_with_images_as_digests(cache: Cache, file: Path) -> None:
    cache.put("a", Reply("ok"), ask_image(), {**ABOUT, "judge": "bytes \udce8 of a label"})
    cache.close()
    (line,) = exported(file)
    text, image = line["request"]["messages"][0]["content"]
    assert text["text"] == "data: leggi questo"
    assert image["image_url"]["url"].startswith("sha256:")
    assert line["request"]["sampling"]["max_tokens"] == 16
    assert line["request"]["schema"] == SCHEMA
    assert (line["criterion"], line["task"]) == ("acceptance", "maia_oevqa")
    assert line["stored"].endswith("+00:00")


def test_no_key_of_a_config_reaches_the_file(cache: Cache, file: Path) -> None:
    planted = "sk-planted-0123456789"
    config = resolve("gpt-4o", {"OPENAI_API_KEY": planted}, default_model="gpt-4o")
    assert config.authorization is not None
    assert planted in config.authorization.get_secret_value()
    told = {**ABOUT, "judge": config.label}
    cache.put("a", Reply("testimone"), ask("testimone"), told)
    cache.close()
    packed = b"".join(part.read_bytes() for part in file.parent.glob("replies*"))
    # Texts are packed in the file: the export shows what is in it.
    assert planted.encode() not in packed
    shown = json.dumps(exported(file))
    assert "testimone" in shown
    assert planted not in shown


# Threads, processes, forks, kills


def test_threads(cache: Cache, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong: list[str] = []

    def work(thread: int) -> None:
        for i in range(200):
            name = f"{(thread + i) % 16}-{i}"  # each key is written by several threads
            got = cache.put(name, Reply(f"{thread}"), ask(name), ABOUT)
            if cache.get(name) != got:
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache.close()
    assert wrong == []
    assert len(exported(file)) == 16 * 200
    assert capsys.readouterr().err == ""


def write_shared_keys(path: Path, name: str, barrier: Any, results: Any) -> None:
    barrier.wait()
    cache = Cache(path)
    about = {**ABOUT, "judge": name}
    got = [cache.put(f"k{i}", Reply(f"{name} {i}"), ask(), about).text for i in range(100)]
    cache.close()
    results.put((name, got))


def test_two_processes_go_on_with_the_same_replies(file: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    processes = [
        context.Process(target=write_shared_keys, args=(file, name, barrier, results))
        for name in ("a", "b")
    ]
    for process in processes:
        process.start()
    got = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    assert got["a"] == got["b"]
    lines = exported(file)
    assert [line["reply"]["text"] for line in lines if line["copy"] == 0] == sorted(
        got["a"], key=lambda text: f"k{text.split()[1]}"
    )
    paid = {line["reply"]["text"] for line in lines}
    assert paid == {f"{name} {i}" for name in "ab" for i in range(100)}


def wait_for(pid: int) -> int:
    """Exit code of a forked child; a child that hangs is killed."""
    for _ in range(1000):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError("the forked child hangs")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork among threads is what is tried
def test_fork_among_writing_threads(
    cache: Cache, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache.put("before", Reply("parent"), ask(), ABOUT)
    stop = threading.Event()

    def work(thread: int) -> None:
        i = 0
        while not stop.is_set():
            cache.put(f"p{thread}-{i}", Reply("parent"), ask(), ABOUT)
            i += 1

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    codes = []
    for child in range(6):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                assert cache._files == []  # SQLite's state does not survive a fork
                for i in range(20):
                    cache.put(f"c{child}-{i}", Reply("child"), ask(), ABOUT)
                code = 0 if cache.get("before") == Reply("parent") and not cache._warned else 2
                cache.close()
            finally:
                os._exit(code)
        codes.append(wait_for(pid))
    stop.set()
    for thread in threads:
        thread.join()
    cache.close()
    assert codes == [0] * 6
    kept = [line["key"] for line in exported(file)]
    assert sum(name.startswith("c") for name in kept) == 120
    assert capsys.readouterr().err == ""


def test_kill_loses_nothing_that_was_kept(file: Path) -> None:
    kept = killed_writer(file)
    assert len(kept) >= 400
    cache = Cache(file)
    assert [name for name in kept if cache.get(name) != Reply(name)] == []
    cache.put("after", Reply("ok"), ask(), ABOUT)
    assert cache.get("after") == Reply("ok")
    cache.close()
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# Files that cannot be used


def damaged(file: Path) -> None:
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)


def cut(file: Path) -> None:
    cache = Cache(file)
    for i in range(50):
        cache.put(f"{i}", Reply("x"), ask(os.urandom(2000).hex()), ABOUT)
    cache.close()
    file.write_bytes(file.read_bytes()[: 4096 * 3])


def foreign(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def foreign_same_table(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE replies (key, copy, reply, rest)")
        connection.execute(f"PRAGMA user_version = {replies.FORMAT}")
    connection.close()


def newer(file: Path) -> None:
    Cache(file).close()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()


@pytest.mark.parametrize("spoil", [damaged, text_file, cut, foreign, foreign_same_table, newer])
def test_unusable_file_is_said_at_once_and_left(file: Path, spoil: Any) -> None:
    spoil(file)
    before = file.read_bytes()
    for attempt in (lambda: Cache(file), lambda: cache_files.summary(file), lambda: exported(file)):
        with pytest.raises(JudgeError) as error:
            attempt()
        message = str(error.value)
        assert str(file) in message
        assert "LMMS_EVAL_TASKS_JUDGE_CACHE" in message
        assert "off" in message
        assert "\n" not in message
    assert file.read_bytes() == before
    if spoil is newer:
        assert "format 2" in message


def test_folder_that_cannot_be_made_or_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JudgeError, match="LMMS_EVAL_TASKS_JUDGE_CACHE"):
        Cache(tmp_path / "file" / "folder" / "replies.sqlite3")
    (tmp_path / "replies.sqlite3").mkdir()
    with pytest.raises(JudgeError, match="unable to open"):
        Cache(tmp_path / "replies.sqlite3")
    if os.geteuid() != 0:  # root may write everywhere
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o500)
        with pytest.raises(JudgeError, match="LMMS_EVAL_TASKS_JUDGE_CACHE"):
            Cache(closed / "replies.sqlite3")


def test_missing_file_is_not_made_by_reading(file: Path) -> None:
    for attempt in (cache_files.summary, exported):
        with pytest.raises(JudgeError, match="unable to open"):
            attempt(file)
    assert not file.exists()


def test_odd_names(tmp_path: Path) -> None:
    file = tmp_path / "a b%20?#è" / "replies.sqlite3"
    cache = Cache(file)
    cache.put("a", Reply("x"), ask(), ABOUT)
    cache.close()
    assert file.exists()
    assert exported(file)[0]["key"] == "a"


def test_full_disk_loses_no_verdict(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    cache.put("a", Reply("kept"), ask(), ABOUT)
    # SQLite's own "database or disk is full", at the size that the file has now.
    cache._files[0].execute("PRAGMA max_page_count = 1")
    big = ask(os.urandom(20_000).hex())
    for i in range(3):
        assert cache.put(f"b{i}", Reply(f"paid {i}"), big, ABOUT) == Reply(f"paid {i}")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "full" in said
    assert str(cache.path) in said
    assert cache.get("a") == Reply("kept")
    assert cache.get("b0") is None
    cache._files[0].execute("PRAGMA max_page_count = 100000")
    cache.put("c", Reply("room again"), big, ABOUT)
    assert cache.get("c") == Reply("room again")


def test_failing_second_copy_leaves_no_transaction(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> bool:
        raise sqlite3.OperationalError("disk I/O error")

    cache.put("a", Reply("first"), ask(), ABOUT)
    monkeypatch.setattr(replies, "_add", fail)
    assert cache.put("a", Reply("second"), ask(), ABOUT) == Reply("second")
    monkeypatch.undo()
    assert not cache._files[0].in_transaction
    assert "disk I/O error" in capsys.readouterr().err
    assert cache.put("b", Reply("next"), ask(), ABOUT) == Reply("next")


def test_damaged_row_is_a_miss_and_said(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    cache.put("a", Reply("x"), ask(), ABOUT)
    cache._files[0].execute("UPDATE replies SET reply = x'00'")
    assert cache.get("a") is None
    assert cache.get("a") is None
    assert capsys.readouterr().err.count("\n") == 1
    assert cache.put("a", Reply("y"), ask(), ABOUT) == Reply("y")
