"""The reply cache: what comes back, who may write at once, and what breaks a file."""

from __future__ import annotations

import os
import sqlite3
import threading
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
    killed_writer,
    text_file,
)
from forking import in_child

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.cache import Cache
from lmms_eval_tasks.judges.verdict import Reply
from tests.checks import table


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a b%20?#è" / "replies.sqlite3"


@pytest.fixture
def cache(file):
    opened = Cache(file)
    yield opened
    opened.close()


def test_every_field_comes_back_and_the_first_reply_wins(cache, file):
    for number, reply in enumerate(REPLIES):
        assert cache.get(str(number)) is None
        assert cache.put(str(number), reply, ask(), ABOUT) == reply
        assert cache.get(str(number)) == reply
    first, second, third = Reply("first"), Reply("second"), Reply("first")
    for reply in (first, second, third):
        assert cache.put("a", reply, ask(), ABOUT) == cache.get("a") == first
    cache.close()
    assert [cache.get(str(number)) for number in range(len(REPLIES))] == REPLIES  # opened again
    cache.close()
    kept = [(line["copy"], line["reply"]["text"]) for line in exported(file) if line["key"] == "a"]
    assert kept == [(0, "first"), (1, "second"), (2, "first")]


def test_request_is_kept_for_people_with_images_as_digests(cache, file):
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


# Threads, processes, forks, kills


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork among threads is what is tried
def test_fork_among_writing_threads(cache, file, capsys):
    cache.put("before", Reply("parent"), ask(), ABOUT)
    stop = threading.Event()

    def work(thread: int) -> None:
        i = 0
        while not stop.is_set():
            cache.put(f"p{thread}-{i}", Reply("parent"), ask(), ABOUT)
            i += 1

    def child() -> object:
        assert cache._files == []  # SQLite's state does not survive a fork
        for i in range(20):
            cache.put(f"c{os.getpid()}-{i}", Reply("child"), ask(), ABOUT)
        found = cache.get("before"), cache._warned
        cache.close()
        return found

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    said = {in_child(child) for _ in range(6)}
    stop.set()
    for thread in threads:
        thread.join()
    cache.close()
    assert said == {str((Reply("parent"), False))}
    assert sum(line["key"].startswith("c") for line in exported(file)) == 120
    assert capsys.readouterr().err == ""


def test_kill_loses_nothing_that_was_kept(file):
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


def changed(*statements: str) -> Any:
    def change(file: Path) -> None:
        with sqlite3.connect(file) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return change


FOREIGN = changed("CREATE TABLE theirs (x)")
SAME_TABLE = changed(
    "CREATE TABLE replies (key, copy, reply, rest)", f"PRAGMA user_version = {replies.FORMAT}"
)


def newer(file: Path) -> None:
    Cache(file).close()
    changed("PRAGMA user_version = 2")(file)


@table("spoil", [damaged, text_file, cut, FOREIGN, SAME_TABLE, newer])
def test_unusable_file_is_said_at_once_and_left(tmp_path, spoil):
    file = tmp_path / "replies.sqlite3"
    spoil(file)
    before = file.read_bytes()
    for attempt in (Cache, replies.summary, exported):
        with pytest.raises(JudgeError) as error:
            attempt(file)
        message = str(error.value)
        assert all(word in message for word in (str(file), "LMMS_EVAL_TASKS_JUDGE_CACHE", "off"))
        assert "\n" not in message
    assert file.read_bytes() == before
    assert spoil is not newer or "format 2" in message


def test_places_where_no_file_can_be(tmp_path, file):
    for attempt in (replies.summary, exported):
        with pytest.raises(JudgeError, match="unable to open"):
            attempt(file)
    assert not file.exists()  # reading makes none
    (tmp_path / "file").write_text("")
    with pytest.raises(JudgeError, match="LMMS_EVAL_TASKS_JUDGE_CACHE"):
        Cache(tmp_path / "file" / "folder" / "replies.sqlite3")
    (tmp_path / "replies.sqlite3").mkdir()
    with pytest.raises(JudgeError, match="unable to open"):
        Cache(tmp_path / "replies.sqlite3")


def test_full_disk_loses_no_verdict(cache, capsys):
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


def test_trouble_with_a_row(cache, monkeypatch, capsys):
    def fail(*_: Any) -> bool:
        raise sqlite3.OperationalError("disk I/O error")

    cache.put("a", Reply("first"), ask(), ABOUT)
    with monkeypatch.context() as patch:
        patch.setattr(replies, "_add", fail)
        assert cache.put("a", Reply("second"), ask(), ABOUT) == Reply("second")
    assert not cache._files[0].in_transaction
    assert cache.put("b", Reply("next"), ask(), ABOUT) == Reply("next")
    cache._files[0].execute("UPDATE replies SET reply = x'00'")
    assert cache.get("a") is None  # a damaged row is a miss
    assert capsys.readouterr().err.count("disk I/O error") == 1  # trouble is said once
    assert cache.put("a", Reply("y"), ask(), ABOUT) == Reply("y")
