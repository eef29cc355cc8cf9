"""Whole files of the reply cache: several nodes, merging, exporting, loading, counting."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from cache_cases import ABOUT, REPLIES, ask, ask_image, exported, killed_writer, text_file

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.cache import Cache
from lmms_eval_tasks.judges.verdict import Reply
from tests.checks import table

# JSON joins two halves of a character, so that an export cannot tell them from it.
PORTABLE = [replace(r, text=r.text and r.text.replace("\ud83d\ude00", "\ud83d")) for r in REPLIES]


def node(group: int) -> dict[str, str]:
    return {"WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "GROUP_RANK": str(group), "RANK": "9"}


def test_file_of_node(tmp_path):
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


def test_nodes_read_the_common_file_and_write_their_own(tmp_path):
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
    assert replies.merge(tmp_path) == counts
    known = {f"replies-node{i}.sqlite3": {"new": 0, "known": 2} for i in (0, 1)}
    assert replies.merge(tmp_path) == known
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


def test_what_a_kill_left_open_is_merged_whole(tmp_path):
    of_node = killed_writer(tmp_path / "replies-node3.sqlite3", 50)
    kept = killed_writer(tmp_path / "replies.sqlite3", 50)
    with pytest.raises(JudgeError, match=r"not closed.*merge"):  # nodes must not read it so
        Cache(tmp_path / "replies-node0.sqlite3")
    counts = replies.merge(tmp_path)
    assert counts["replies-node0.sqlite3"] == {"new": 0, "known": 0}
    assert counts["replies-node3.sqlite3"]["new"] >= len(of_node)
    cache = Cache(tmp_path / "replies-node0.sqlite3")
    assert [name for name in {*kept, *of_node} if cache.get(name) != Reply(name)] == []
    cache.close()


def test_merge_names_what_is_missing_or_spoilt(tmp_path):
    with pytest.raises(JudgeError, match="no cache"):
        replies.merge(tmp_path)
    text_file(tmp_path / "replies-node0.sqlite3")
    with pytest.raises(JudgeError, match=r"replies-node0\.sqlite3 cannot"):
        replies.merge(tmp_path)


# Whole files


def fill(file: Path) -> None:
    cache = Cache(file)
    for i, reply in enumerate(PORTABLE):
        cache.put(f"{i:064x}", reply, ask_image(), ABOUT)
    cache.put(f"{0:064x}", Reply("again", prompt_tokens=10, completion_tokens=5), ask(), ABOUT)
    cache.put("f" * 64, Reply("x"), ask("a\u2028b\x85c"), {**ABOUT, "judge": "other"})
    cache.close()


def test_export_and_load_on_another_machine(tmp_path):
    here, there = tmp_path / "here.sqlite3", tmp_path / "there.sqlite3"
    fill(here)
    lines = tmp_path / "replies.jsonl"
    with lines.open("w", encoding="utf-8") as out:
        assert replies.export(here, out) == len(REPLIES) + 2
    cache = Cache(there)
    assert replies.load(lines, cache) == {"new": len(REPLIES) + 2, "known": 0}
    assert replies.load(lines, cache) == {"new": 0, "known": len(REPLIES) + 2}
    assert [cache.get(f"{i:064x}") for i in range(len(PORTABLE))] == PORTABLE
    cache.close()
    again = io.StringIO()
    replies.export(there, again)
    assert again.getvalue() == lines.read_text(encoding="utf-8")
    cache = Cache(tmp_path / "own.sqlite3")  # what is loaded does not replace what is in use
    cache.put("f" * 64, Reply("mine"), ask(), ABOUT)
    replies.load(lines, cache)
    assert cache.get("f" * 64) == Reply("mine")
    cache.close()
    assert [line["copy"] for line in exported(cache.path) if line["key"] == "f" * 64] == [0, 1]


@table(
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
def test_line_that_is_no_export_is_named_and_nothing_loaded(tmp_path, spoil):
    fill(tmp_path / "here.sqlite3")
    good = exported(tmp_path / "here.sqlite3")
    lines = tmp_path / "replies.jsonl"
    lines.write_text(f"{json.dumps(good[0])}\n{spoil(good[1])}\n", encoding="utf-8")
    cache = Cache(tmp_path / "there.sqlite3")
    with pytest.raises(JudgeError, match=r"replies\.jsonl, line 2"):
        replies.load(lines, cache)
    cache.close()
    empty = replies.summary(cache.path)
    assert (empty["replies"], empty["judges"], empty["first"]) == (0, {}, None)
    with pytest.raises(JudgeError, match=r"none\.jsonl"):
        replies.load(tmp_path / "none.jsonl", cache)
    cache.close()


def test_summary(tmp_path):
    file = tmp_path / "replies.sqlite3"
    fill(file)
    held = replies.summary(file)
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
