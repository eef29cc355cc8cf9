"""The reply cache: its keys, what comes back, who may write at once, what breaks a file."""

import itertools
import json
import math
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import unicodedata
import zlib
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from injections import in_child
from typer.testing import CliRunner

from lmms_eval_tasks.commands import judge_commands
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.cache import Cache, cached_replies
from lmms_eval_tasks.judges.providers import exchange
from lmms_eval_tasks.judges.providers.exchange import JudgeReply, Request, Token
from lmms_eval_tasks.judges.verdict import Sampling
from tests.checks import refused, table

ABOUT = {"criterion": "acceptance", "judge": "gpt-4o", "task": "maia_oevqa"}
IMAGE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["reason", "score"],
}


def ask(text: str = "È una tromba?", **changes: Any) -> Request:
    messages = [{"role": "system", "content": "Giudica."}, {"role": "user", "content": text}]
    return replace(Request(messages, Sampling(0.0, 16), "verdict", SCHEMA), **changes)


def ask_image(url: str = IMAGE) -> Request:
    words = {"type": "text", "text": "data: leggi questo"}
    parts = [words, {"type": "image_url", "image_url": {"url": url}}]
    return ask(messages=[{"role": "user", "content": parts}])


TOKENS = (
    Token("4", -0.1 - 1e-17, (("4", -0.1), ("5", -2.3000000000000003), ("è", -math.inf))),
    Token("\ud83d", -5e-324, ()),
)
REPLIES = [
    JudgeReply("{}"),
    JudgeReply(None, "content_filter", refusal="I cannot."),
    JudgeReply("", finish="length", cached_tokens=7),
    JudgeReply("testo \x00 \u2028 \x85 \ud83d\ude00 e\u0300", "stop", "gpt-4o-2024-11-20"),
    JudgeReply("4", "stop", "m", "", 812, 3, 512, TOKENS),
    JudgeReply("4", tokens=(), batch=True),
]


# Keys

IDENTITY = {"provider": "openai", "model": "gpt-4o", "base_url": "https://api.openai.com/v1"}


def key(request, identity=IDENTITY, sample=0):
    return exchange.key(identity, request, sample)


PLAIN = {"temperature": 0.1, "max_tokens": 17, "top_p": 1.0, "seed": 0, "reasoning_effort": "low"}
CHANGES = {
    **{name: ask(sampling=replace(ask().sampling, **{name: v})) for name, v in PLAIN.items()},
    "no temperature": ask(sampling=Sampling(None, 16)),
    "text": ask("È una tromba? "),
    "decomposed text": ask(unicodedata.normalize("NFD", "È una tromba?")),
    "role": ask(messages=[{"role": "user", "content": "Giudica."}, *ask().messages[1:]]),
    "order": ask(messages=list(reversed(ask().messages))),
    "fewer messages": ask(messages=ask().messages[1:]),
    "image": ask_image(),
    "other image": ask_image(IMAGE + "AAAA"),
    "image by address": ask_image("https://example.org/a.png"),
    "schema_name": ask(schema_name="other"),
    "no schema": ask(schema=None),
    "schema": ask(schema={**SCHEMA, "additionalProperties": False}),
    # A reason after the score is no reason for it.
    "order of the reply's fields": ask(
        schema={**SCHEMA, "properties": dict(reversed(SCHEMA["properties"].items()))}
    ),
    "top_logprobs": ask(top_logprobs=20),
    "surrogate": ask("\ud83d"),
    "their character": ask("\U0001f600"),
    "two surrogates": ask("\ud83d\ude00"),
}


def test_each_part_changes_the_key(monkeypatch):
    keys = {name: key(request) for name, request in CHANGES.items()}
    keys["as it is"] = key(ask())
    keys["sample"] = key(ask(), sample=1)
    keys["model"] = key(ask(), {**IDENTITY, "model": "gpt-4o-mini"})
    keys["no identity"] = key(ask(), {})
    with monkeypatch.context() as patch:
        patch.setattr(exchange, "FORMAT", 2)
        keys["format"] = key(ask())
    assert len(set(keys.values())) == len(keys), keys
    # A changed key makes users pay for everything again: raise FORMAT when this is meant.
    assert exchange.FORMAT == 1
    assert key(ask()) == "85ab76e1b3540f9d8ec56f79f310259634418d9b51f54dedce6839f4c8505283"
    # An exact schema asks for the same reply: what was paid for without it is found again.
    assert key(ask(exact_schema={**SCHEMA, "title": "exact"})) == key(ask())
    # A new field of Request or Sampling must be tried here too.
    named = {field.name for field in (*fields(Request), *fields(Sampling))}
    assert named - {"messages", "sampling", "exact_schema"} <= set(CHANGES)


def test_same_request_in_other_types_has_the_same_key():
    turned = [OrderedDict(reversed(message.items())) for message in ask().messages]
    same = ask(messages=tuple(MappingProxyType(message) for message in turned))
    assert key(same, OrderedDict(reversed(IDENTITY.items()))) == key(ask())
    assert key(ask(sampling=Sampling(0, 16))) == key(ask(sampling=Sampling(-0.0, 16))) == key(ask())


# One file


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
    first, second, third = JudgeReply("first"), JudgeReply("second"), JudgeReply("first")
    for reply in (first, second, third):
        assert cache.put("a", reply, ask(), ABOUT) == cache.get("a") == first
    cache.close()
    assert [cache.get(str(number)) for number in range(len(REPLIES))] == REPLIES  # opened again
    cache.close()
    assert [one["reply"]["text"] for one in cached_replies(file) if one["key"] == "a"] == ["first"]


# Threads and forks


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork among threads is what is tried
def test_fork_among_writing_threads(cache, file, capsys):
    cache.put("before", JudgeReply("parent"), ask(), ABOUT)
    stop = threading.Event()

    def work() -> None:
        for number in itertools.count():
            cache.put(f"p{number}", JudgeReply("parent"), ask(), ABOUT)
            if stop.is_set():
                return

    def child() -> object:
        own = Cache(file)  # SQLite's state does not survive a fork
        for i in range(20):
            own.put(f"c{os.getpid()}-{i}", JudgeReply("child"), ask(), ABOUT)
        found = own.get("before"), own._warned
        own.close()
        return found

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work)
        said = {in_child(child) for _ in range(6)}
        stop.set()
    cache.close()
    assert said == {str((JudgeReply("parent"), False))}
    assert sum(line["key"].startswith("c") for line in cached_replies(file)) == 120
    assert capsys.readouterr().err == ""


# Files that cannot be used


def cut(file: Path) -> None:
    cache = Cache(file)
    for i in range(50):
        cache.put(f"{i}", JudgeReply("x"), ask(os.urandom(2000).hex()), ABOUT)
    cache.close()
    file.write_bytes(file.read_bytes()[: 4096 * 3])


def newer(file: Path) -> None:
    Cache(file).close()
    sqlite3.connect(file).execute("PRAGMA user_version = 2").connection.close()


def foreign(file: Path) -> None:
    sqlite3.connect(file).execute("CREATE TABLE theirs (x)").connection.close()


def text(file: Path) -> None:
    file.write_text("not a database, but a long enough text " * 100)


def planted(statement: str) -> Callable[[Path], None]:
    """A cache that somebody put a statement's work into."""

    def plant(file: Path) -> None:
        Cache(file).close()
        with closing(sqlite3.connect(file)) as opened:
            opened.executescript(f"{statement}; PRAGMA journal_mode = DELETE")

    return plant


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
PLANTED = (
    f"DROP TABLE replies; CREATE VIEW replies (key, copy, reply, rest) AS {ENDLESS} "
    "SELECT i, 0, x'00', x'00' FROM n",
    "CREATE TRIGGER t AFTER INSERT ON replies BEGIN DELETE FROM replies; END",
    "CREATE VIEW other AS SELECT 1",
    "ALTER TABLE replies ADD COLUMN more TEXT AS (hex(zeroblob(1000000000)))",
)


@table("spoil", [text, cut, foreign, newer, *map(planted, PLANTED)])
def test_unusable_file_is_said_at_once_and_left(tmp_path, spoil):
    file = tmp_path / "replies.sqlite3"
    spoil(file)
    before = file.read_bytes()
    for attempt in (Cache, lambda path: [*cached_replies(path)]):
        message = refused(JudgeError, "--judge-cache DIR .* --judge-cache off", attempt, file)
        assert str(file) in message
    assert file.read_bytes() == before
    with closing(Cache(tmp_path / "own.sqlite3")) as cache:
        assert str(file) in refused(JudgeError, "cannot be used", cache.load, file)
    refused(JudgeError, "unable to open", lambda path: [*cached_replies(path)], tmp_path / "none")
    assert not (tmp_path / "none").exists()  # reading makes none
    refused(JudgeError, "--judge-cache DIR", Cache, file / "a.sqlite3")


def test_full_disk_loses_no_verdict(cache, capsys):
    cache.put("a", JudgeReply("kept"), ask(), ABOUT)
    # SQLite's own "database or disk is full", at the size that the file has now.
    cache._file.execute("PRAGMA max_page_count = 1")
    big = ask(os.urandom(20_000).hex())
    for i in range(3):
        assert cache.put(f"b{i}", JudgeReply(f"paid {i}"), big, ABOUT) == JudgeReply(f"paid {i}")
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "full" in said
    assert str(cache.path) in said
    assert cache.get("a") == JudgeReply("kept")
    assert cache.get("b0") == JudgeReply("paid 0")
    assert Cache(cache.path).get("b0") is None  # not in the file
    cache._file.execute("PRAGMA max_page_count = 100000")
    cache.put("c", JudgeReply("room again"), big, ABOUT)
    assert [line["key"] for line in cached_replies(cache.path)] == ["a", "b0", "b1", "b2", "c"]


@table("packed", [b"\0", zlib.compress(b" " * 2**27)])
def test_a_damaged_reply_is_paid_for_once_more(packed, cache, capsys):
    """So is one that would unpack to gigabytes."""
    cache.put("a", JudgeReply("first"), ask(), ABOUT)
    cache._file.execute("UPDATE replies SET reply = ?", (packed,))
    assert cache.get("a") is None
    assert cache.put("a", JudgeReply("again"), ask(), ABOUT) == JudgeReply("again")
    assert cache.get("a") == JudgeReply("again")
    (line,) = capsys.readouterr().err.splitlines()
    assert "cut off or too long" in line


def other(file: Path) -> None:
    """Another cache's file in its place."""
    theirs = Cache(file.with_name("theirs.sqlite3"))
    theirs.put("theirs", JudgeReply("theirs"), ask(), ABOUT)
    theirs.close()
    theirs.path.replace(file)


@table("remove", [Path.unlink, lambda file: shutil.rmtree(file.parent), other])
@table("then", ["put", "get", "close"])
def test_a_file_that_is_removed_in_mid_run_is_written_again(remove, then, cache, file, capsys):
    """By two who use it; what a third finds."""
    second = Cache(file)
    before = {str(number): JudgeReply(f"paid {number}") for number in range(3)}
    for key, reply in before.items():
        cache.put(key, reply, ask(), ABOUT)
    second.put("3", JudgeReply("of the second"), ask(), ABOUT)
    remove(file)
    for place, one in enumerate((second, cache)):
        if then == "put":
            one.put(f"new {place}", JudgeReply("new"), ask(), ABOUT)
        elif then == "get":
            assert one.get("3") == JudgeReply("of the second")
    for one in (second, cache):
        one.close()
    kept = {*before, "3", *(("new 0", "new 1") if then == "put" else ())}
    assert {line["key"] for line in cached_replies(file)} == kept | (
        {"theirs"} if remove is other else set()
    )
    said = capsys.readouterr().err
    assert said.count(f"{file} was removed or replaced while the run used it") == 2
    assert all(line.endswith("so none is paid for twice") for line in said.splitlines())
    assert [cache.get(key) for key in before] == [*before.values()]


def test_a_file_that_cannot_be_written_again_is_still_read(cache, file, capsys):
    cache.put("a", JudgeReply("first"), ask(), ABOUT)
    shutil.rmtree(file.parent)
    file.parent.write_text("a file in the folder's place")
    assert cache.put("b", JudgeReply("second"), ask(), ABOUT) == JudgeReply("second")
    assert [cache.get(key) for key in "ab"] == [JudgeReply("first"), JudgeReply("second")]
    assert capsys.readouterr().err.count("\n") == 1


def test_another_process_waits_for_a_reply_under_way(cache, file):
    """It ends with the process that asks; and where it takes for ever, nobody waits."""
    code = (
        "import pathlib, sys, time; from lmms_eval_tasks.judges.cache import Cache\n"
        "with Cache(pathlib.Path(sys.argv[1])).alone('a' * 64, lambda _: True):\n"
        " print('asks', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(file)]
    looks: list[float] = []

    def wait(seconds: float, last: int) -> bool:
        looks.append(seconds)
        if len(looks) == 3:
            other.kill()
            other.wait()
        return len(looks) < last

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "asks\n"
        with cache.alone("b" * 64, lambda _: False):  # another question
            pass
        with cache.alone("a" * 64, lambda one: wait(one, 2)):
            assert len(looks) == 2  # given up
        with cache.alone("a" * 64, lambda one: wait(one, 99)):
            assert len(looks) == 3


@table("has_locks", [True, False])
def test_a_thread_waits_too_and_all_questions_share_one_descriptor(has_locks, cache, monkeypatch):
    """Also where the system has no locks of an open file (macOS, Windows)."""
    if not has_locks:
        monkeypatch.delattr("fcntl.F_OFD_SETLK")
    looks: list[float] = []

    def wait(seconds: float) -> bool:
        looks.append(seconds)
        return len(looks) < 3

    with cache.alone("0" * 64, lambda _: True), ExitStack() as stack:
        before = len(os.listdir("/proc/self/fd"))
        for number in range(1, 200):
            stack.enter_context(cache.alone(f"{number:064x}", lambda _: False))
        assert len(os.listdir("/proc/self/fd")) == before
        with cache.alone("0" * 64, wait):
            assert len(looks) == 3
    with cache.alone("0" * 64, wait):
        assert len(looks) == 3


# Whole files


def test_each_of_several_nodes_writes_its_own_file(tmp_path, monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "gpu07")
    common, alone = tmp_path / "replies.sqlite3", {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}
    for env in ({}, {"WORLD_SIZE": "8"}, alone):
        assert replies.file_of(tmp_path, env) == common
    own = replies.file_of(tmp_path, {**alone, "WORLD_SIZE": "16"})
    assert own == replies.file_of(tmp_path, {"SLURM_ARRAY_TASK_ID": "3"})
    assert own == tmp_path / "replies-gpu07.sqlite3"
    cache, other = Cache(common), Cache(own)
    for name in ("a", "b", "c"):
        other.put(name, JudgeReply(name), ask(), ABOUT)
    cache.put("a", JudgeReply("mine"), ask(), ABOUT)
    assert [cache.load(own), cache.load(own)] == [2, 0]  # also while it is written
    assert cache.get("b") == JudgeReply("b")
    assert cache.get("a") == JudgeReply("mine")  # what is loaded does not replace what is in use
    text(tmp_path / "spoilt.sqlite3")
    for name in ("spoilt.sqlite3", "none.sqlite3"):
        refused(JudgeError, name, cache.load, tmp_path / name)
    cache.close()
    other.close()


def test_the_commands(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    cache = Cache(here / "replies.sqlite3")
    for i, reply in enumerate(REPLIES):
        cache.put(f"{i:064x}", reply, ask_image(), ABOUT)
    cache.close()

    def command(*arguments):
        done = CliRunner().invoke(app, ["cache", *map(str, arguments)])
        assert done.exit_code == 0, done.exception
        return done.output

    assert command("load", here / "replies.sqlite3", "--cache", there) == "6 new replies\n"
    gone = CliRunner().invoke(app, ["cache", "load", str(tmp_path / "gone"), "--cache", str(there)])
    assert str(gone.exception) == f"{tmp_path / 'gone'}: no such file"
    command("export", "--cache", there, "--out", tmp_path / "all.jsonl")
    written = (tmp_path / "all.jsonl").read_text()
    assert command("export", "--cache", here) == written
    found = [json.loads(line) for line in written.splitlines()]
    assert [line["reply"]["text"] for line in found[:3]] == [one.text for one in REPLIES[:3]]
    request = found[0].pop("request")
    assert request["messages"][0]["content"][1]["image_url"]["url"].startswith("sha256:")
    assert request["schema"] == SCHEMA
    assert ABOUT.items() <= found[0].items()
    assert found[0]["stored"].endswith("+00:00")
    refused(JudgeError, "no cache", judge_commands.export, tmp_path / "empty")
