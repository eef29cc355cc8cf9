"""The reply cache: keys, what comes back, who may write at once, and what breaks a file."""

from __future__ import annotations

import io
import json
import math
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges import cache_files, cache_form, resolve
from lmms_eval_tasks.judges.cache import Cache
from lmms_eval_tasks.judges.exchange import Reply, Request, Sampling, Token

IDENTITY = {"provider": "openai", "model": "gpt-4o", "base_url": "https://api.openai.com/v1"}
ABOUT = {"criterion": "acceptance", "judge": "gpt-4o", "task": "maia_oevqa"}
IMAGE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["reason", "score"],
}


def ask(text: str = "È una tromba?", **changes: Any) -> Request:
    messages = [{"role": "system", "content": "Giudica."}, {"role": "user", "content": text}]
    request = Request(messages, Sampling(0.0, 16), "verdict", SCHEMA)
    return replace(request, **changes)


def ask_image(url: str = IMAGE) -> Request:
    parts = [
        {"type": "text", "text": "data: leggi questo"},
        {"type": "image_url", "image_url": {"url": url}},
    ]
    return ask(messages=[{"role": "user", "content": parts}])


def key(request: Request, identity: Mapping[str, Any] = IDENTITY, sample: int = 0) -> str:
    return cache_form.key(identity, request, sample)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "replies.sqlite3"


@pytest.fixture
def cache(file: Path) -> Iterator[Cache]:
    opened = Cache(file)
    yield opened
    opened.close()


def exported(path: Path) -> list[dict[str, Any]]:
    out = io.StringIO()
    count = cache_files.export(path, out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert len(lines) == count
    return lines


# Keys


def test_key_is_the_same_in_every_process_and_release() -> None:
    """A changed key makes users pay for everything again: raise FORMAT when this is meant."""
    assert replies.FORMAT == 1
    assert key(ask()) == "85ab76e1b3540f9d8ec56f79f310259634418d9b51f54dedce6839f4c8505283"


CHANGES = {
    "text": ask("È una tromba? "),
    "decomposed text": ask(unicodedata.normalize("NFD", "È una tromba?")),
    "role": ask(messages=[{"role": "user", "content": "Giudica."}, *ask().messages[1:]]),
    "order": ask(messages=list(reversed(ask().messages))),
    "fewer messages": ask(messages=ask().messages[1:]),
    "image": ask_image(),
    "other image": ask_image(IMAGE + "AAAA"),
    "image by address": ask_image("https://example.org/a.png"),
    "temperature": ask(sampling=Sampling(0.1, 16)),
    "no temperature": ask(sampling=Sampling(None, 16)),
    "max_tokens": ask(sampling=Sampling(0.0, 17)),
    "top_p": ask(sampling=Sampling(0.0, 16, top_p=1.0)),
    "seed": ask(sampling=Sampling(0.0, 16, seed=0)),
    "reasoning_effort": ask(sampling=Sampling(0.0, 16, reasoning_effort="low")),
    "schema_name": ask(schema_name="other"),
    "no schema": ask(schema=None),
    "schema": ask(schema={**SCHEMA, "additionalProperties": False}),
    # A reason after the score is no reason for it.
    "order of the reply's fields": ask(
        schema={**SCHEMA, "properties": dict(reversed(SCHEMA["properties"].items()))}
    ),
    "top_logprobs": ask(top_logprobs=20),
    "surrogate": ask("\ud83d"),
    "two surrogates": ask("\ud83d\ude00"),
    "their character": ask("\U0001f600"),
}


def test_each_part_changes_the_key() -> None:
    keys = {name: key(request) for name, request in CHANGES.items()}
    keys["as it is"] = key(ask())
    keys["sample"] = key(ask(), sample=1)
    keys["model"] = key(ask(), {**IDENTITY, "model": "gpt-4o-mini"})
    keys["no identity"] = key(ask(), {})
    assert len(set(keys.values())) == len(keys), keys
    assert all(len(value) == 64 for value in keys.values())


def test_no_field_of_a_request_is_missing_from_these_changes() -> None:
    """A new field of Request or Sampling must be tried here too."""
    named = {field.name for field in (*fields(Request), *fields(Sampling))}
    assert named - {"messages", "sampling"} <= set(CHANGES)


def test_format_changes_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(ask())
    monkeypatch.setattr(cache_form, "FORMAT", 2)
    assert key(ask()) != before


def test_same_request_in_other_types_has_the_same_key() -> None:
    turned = [OrderedDict(reversed(message.items())) for message in ask().messages]
    same = ask(messages=tuple(MappingProxyType(message) for message in turned))
    assert key(same, OrderedDict(reversed(IDENTITY.items()))) == key(ask())
    assert key(ask(sampling=Sampling(0, 16))) == key(ask(sampling=Sampling(-0.0, 16))) == key(ask())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@hypothesis_settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=4), st.text(), st.text())
def test_order_of_keys_is_no_part_and_texts_are(
    identity: dict[str, Any], first: str, second: str
) -> None:
    turned = dict(reversed(identity.items()))
    assert key(ask(first), identity) == key(ask(first), turned)
    assert (key(ask(first), identity) == key(ask(second), identity)) == (first == second)
    assert key(ask(first), identity) != key(ask(first), {**identity, "\0new": 1})


def test_key_is_cheap() -> None:
    request = ask("parola àè " * 300)
    times = []
    for _ in range(200):
        start = time.perf_counter()
        key(request)
        times.append(time.perf_counter() - start)
    assert sorted(times)[100] < 100e-6


# What comes back

TOKENS = (
    Token("4", -0.1 - 1e-17, (("4", -0.1), ("5", -2.3000000000000003), ("è", -math.inf))),
    Token("\ud83d", -5e-324, ()),
)
REPLIES = [
    Reply("{}"),
    Reply(None, "content_filter", refusal="I cannot."),
    Reply("", finish="length", cached_tokens=7),
    Reply("testo \x00 \u2028 \x85 \ud83d\ude00 e\u0300", "stop", "gpt-4o-2024-11-20"),
    Reply("4", "stop", "m", "", "json_schema", 812, 3, 512, TOKENS),
    Reply("4", tokens=(), batch=True),
]
# JSON joins two halves of a character, so that an export cannot tell them from it.
PORTABLE = [replace(r, text=r.text and r.text.replace("\ud83d\ude00", "\ud83d")) for r in REPLIES]


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


WRITER = """
import sys, threading
from pathlib import Path
from lmms_eval_tasks.judges.cache import Cache
from lmms_eval_tasks.judges.exchange import Reply, Request, Sampling
cache = Cache(Path(sys.argv[1]))
request = Request([{"role": "user", "content": "x" * 3000}], Sampling())
def work(thread):
    for i in range(10**6):
        key = f"{thread}-{i}"
        cache.put(key, Reply(key), request, {"criterion": "c", "judge": "j", "task": "t"})
        sys.stdout.write(key + "\\n")
        sys.stdout.flush()
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


def killed_writer(file: Path, count: int = 400) -> list[str]:
    """Keys that a writer had said it kept when it was killed in the middle."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        kept = [process.stdout.readline() for _ in range(count)]
        process.kill()
        kept += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    # Threads may have mixed their ends of lines; a line without its end was not said.
    return [line.strip() for line in kept if line.endswith("\n") and line.strip()]


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


def text_file(file: Path) -> None:
    file.write_text("not a database, but a long enough text " * 100)


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


# Several nodes


def node(group: int) -> dict[str, str]:
    return {"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "GROUP_RANK": str(group), "RANK": "9"}


def test_file_of_node(tmp_path: Path) -> None:
    common = tmp_path / "replies.sqlite3"
    assert replies.file_of_node(tmp_path, {}) == common
    one = {"WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8", "GROUP_RANK": "0"}
    assert replies.file_of_node(tmp_path, one) == common
    assert replies.file_of_node(tmp_path, {"WORLD_SIZE": "8"}) == common
    assert replies.file_of_node(tmp_path, node(1)) == tmp_path / "replies-node1.sqlite3"
    without = {name: value for name, value in node(1).items() if name != "GROUP_RANK"}
    for env in (without, {**node(0), "WORLD_SIZE": "many"}, {**node(0), "GROUP_RANK": ""}):
        with pytest.raises(JudgeError, match="torchrun"):
            replies.file_of_node(tmp_path, env)


def test_nodes_read_the_common_file_and_write_their_own(tmp_path: Path) -> None:
    common = Cache(tmp_path / "replies.sqlite3")
    common.put("old", Reply("old"), ask(), ABOUT)
    common.close()
    before = common.path.read_bytes()
    nodes = [Cache(replies.file_of_node(tmp_path, node(i))) for i in (0, 1)]
    for i, cache in enumerate(nodes):
        assert cache.get("old") == Reply("old")
        cache.put("new", Reply(f"new {i}"), ask(), ABOUT)
        cache.put(f"own{i}", Reply("own"), ask(), ABOUT)
        assert cache.get("new") == Reply(f"new {i}")
        cache.close()
        assert cache.get("old") == Reply("old")  # opened again
        cache.close()
    assert common.path.read_bytes() == before
    counts = {f"replies-node{i}.sqlite3": {"new": 2, "known": 0} for i in (0, 1)}
    assert cache_files.merge(tmp_path) == counts
    known = {f"replies-node{i}.sqlite3": {"new": 0, "known": 2} for i in (0, 1)}
    assert cache_files.merge(tmp_path) == known
    assert common.get("new") == Reply("new 0")
    common.close()
    texts = [(line["key"], line["copy"], line["reply"]["text"]) for line in exported(common.path)]
    assert texts == [
        ("new", 0, "new 0"),
        ("new", 1, "new 1"),
        ("old", 0, "old"),
        ("own0", 0, "own"),
        ("own1", 0, "own"),
    ]


def test_nodes_are_merged_in_the_order_of_numbers(tmp_path: Path) -> None:
    for i in (10, 9):
        cache = Cache(tmp_path / f"replies-node{i}.sqlite3")
        cache.put("a", Reply(f"node {i}"), ask(), ABOUT)
        cache.close()
    assert list(cache_files.merge(tmp_path)) == ["replies-node9.sqlite3", "replies-node10.sqlite3"]
    cache = Cache(tmp_path / "replies.sqlite3")
    assert cache.get("a") == Reply("node 9")
    cache.close()


def test_nodes_refuse_a_common_file_that_a_kill_left_open(tmp_path: Path) -> None:
    kept = killed_writer(tmp_path / "replies.sqlite3", 50)
    with pytest.raises(JudgeError, match=r"not closed.*merge"):
        Cache(tmp_path / "replies-node0.sqlite3")
    assert cache_files.merge(tmp_path) == {"replies-node0.sqlite3": {"new": 0, "known": 0}}
    cache = Cache(tmp_path / "replies-node0.sqlite3")
    assert [name for name in kept if cache.get(name) != Reply(name)] == []
    cache.close()


def test_merge_of_a_killed_node(tmp_path: Path) -> None:
    kept = killed_writer(tmp_path / "replies-node3.sqlite3", 50)
    counts = cache_files.merge(tmp_path)["replies-node3.sqlite3"]
    assert counts["new"] >= len(kept)
    assert counts["known"] == 0
    cache = Cache(tmp_path / "replies.sqlite3")
    assert [name for name in kept if cache.get(name) != Reply(name)] == []
    cache.close()


def test_merge_names_what_is_missing_or_spoilt(tmp_path: Path) -> None:
    with pytest.raises(JudgeError, match="no cache"):
        cache_files.merge(tmp_path)
    text_file(tmp_path / "replies-node0.sqlite3")
    with pytest.raises(JudgeError, match=r"replies-node0\.sqlite3 cannot"):
        cache_files.merge(tmp_path)


# Whole files


def fill(file: Path) -> None:
    cache = Cache(file)
    for i, reply in enumerate(PORTABLE):
        cache.put(f"{i:064x}", reply, ask_image(), ABOUT)
    cache.put(f"{0:064x}", Reply("again", prompt_tokens=10, completion_tokens=5), ask(), ABOUT)
    cache.put("f" * 64, Reply("x"), ask("a\u2028b\x85c"), {**ABOUT, "judge": "other"})
    cache.close()


def test_export_and_load_on_another_machine(tmp_path: Path) -> None:
    here, there = tmp_path / "here.sqlite3", tmp_path / "there.sqlite3"
    fill(here)
    lines = tmp_path / "replies.jsonl"
    with lines.open("w", encoding="utf-8") as out:
        assert cache_files.export(here, out) == len(REPLIES) + 2
    cache = Cache(there)
    assert cache_files.load(lines, cache) == {"new": len(REPLIES) + 2, "known": 0}
    assert cache_files.load(lines, cache) == {"new": 0, "known": len(REPLIES) + 2}
    assert [cache.get(f"{i:064x}") for i in range(len(PORTABLE))] == PORTABLE
    cache.close()
    again = io.StringIO()
    cache_files.export(there, again)
    assert again.getvalue() == lines.read_text(encoding="utf-8")
    cache = Cache(here)
    assert cache_files.load(lines, cache) == {"new": 0, "known": len(REPLIES) + 2}
    cache.close()


def test_loaded_replies_do_not_replace_those_in_use(tmp_path: Path) -> None:
    fill(tmp_path / "here.sqlite3")
    lines = tmp_path / "replies.jsonl"
    with lines.open("w", encoding="utf-8") as out:
        cache_files.export(tmp_path / "here.sqlite3", out)
    cache = Cache(tmp_path / "there.sqlite3")
    cache.put("f" * 64, Reply("mine"), ask(), ABOUT)
    cache_files.load(lines, cache)
    assert cache.get("f" * 64) == Reply("mine")
    cache.close()
    assert [line["copy"] for line in exported(cache.path) if line["key"] == "f" * 64] == [0, 1]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda line: "{",
        lambda line: "[]",
        lambda line: json.dumps({**line, "reply": {"text": "x"}}),
        lambda line: json.dumps({**line, "reply": {**line["reply"], "other": 1}}),
        lambda line: json.dumps({**line, "stored": "yesterday"}),
        lambda line: json.dumps({**line, "stored": None}),
        lambda line: json.dumps({name: line[name] for name in line if name != "judge"}),
        lambda line: json.dumps({**line, "key": None}),
        lambda line: json.dumps({**line, "judge": 3}),
    ],
)
def test_line_that_is_no_export_is_named_and_nothing_loaded(tmp_path: Path, spoil: Any) -> None:
    fill(tmp_path / "here.sqlite3")
    good = exported(tmp_path / "here.sqlite3")
    lines = tmp_path / "replies.jsonl"
    lines.write_text(f"{json.dumps(good[0])}\n{spoil(good[1])}\n", encoding="utf-8")
    cache = Cache(tmp_path / "there.sqlite3")
    with pytest.raises(JudgeError, match=r"replies\.jsonl, line 2"):
        cache_files.load(lines, cache)
    cache.close()
    assert cache_files.summary(cache.path)["replies"] == 0
    with pytest.raises(JudgeError, match=r"none\.jsonl"):
        cache_files.load(tmp_path / "none.jsonl", cache)
    cache.close()


def test_summary(tmp_path: Path) -> None:
    file = tmp_path / "replies.sqlite3"
    Cache(file).close()
    empty = cache_files.summary(file)
    assert (empty["replies"], empty["judges"], empty["first"]) == (0, {}, None)
    fill(file)
    held = cache_files.summary(file)
    stored = sorted(line["stored"] for line in exported(file))
    assert held == {
        "replies": len(REPLIES) + 2,
        "paid_again": 1,
        "prompt_tokens": 822,
        "completion_tokens": 8,
        "unreported": len(REPLIES),
        "judges": {"gpt-4o": {"acceptance": len(REPLIES) + 1}, "other": {"acceptance": 1}},
        "bytes": file.stat().st_size,
        "first": stored[0],
        "last": stored[-1],
    }


def test_nothing_is_opened_or_imported_before_it_is_needed() -> None:
    code = (
        "import sys, lmms_eval_tasks.judges.cache as c;"
        "print([m for m in ('sqlite3', 'filelock', 'torch', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
