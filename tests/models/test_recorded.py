"""Recorded replies by item: the file's form, and the class that the host runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import recorded
from lmms_eval_tasks.sample.recorded import Replies

DOCS = [{"id": f"v/{number}"} for number in range(3)]


def write(folder: Path, *entries: Any) -> Path:
    file = folder / "replies.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in entries]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


class TestFile:
    def test_a_task_before_all_tasks(self, tmp_path: Path) -> None:
        mine = {"id": "v/1", "reply": "mine", "task": "b"}
        text = {"id": "v/1", "reply": "a line\u2028of its own"}
        found = Replies.load(write(tmp_path, text, mine, "", text, {"id": "v/2", "reply": ""}))
        assert found.find("a", "v/1") == "a line\u2028of its own"
        assert found.find("b", "v/1") == "mine"
        assert found.find("b", "v/2") == ""
        with pytest.raises(TasksError, match=r"replies\.jsonl: no reply to v/3 of b"):
            found.find("b", "v/3")

    @pytest.mark.parametrize(
        ("entries", "message"),
        [
            (["{"], "line 1: not valid JSON"),
            ([[1]], "line 1: expected an object with id and reply"),
            ([{"id": "a", "reply": "b"}, {"id": "a"}], "line 2: `reply` is missing"),
            ([{"id": 3, "reply": "b"}], "`id` is no text"),
            ([{"id": "a", "reply": None}], "`reply` is no text"),
            ([{"id": "a", "reply": "b", "tasks": "c"}], "unknown key `tasks`; known: id, reply,"),
            (
                [{"id": "a", "reply": "b"}, "", {"id": "a", "reply": "c"}],
                "lines 1 and 3: different replies to a",
            ),
            (["", " "], "no replies; expected one JSON object a line"),
        ],
    )
    def test_bad_files(self, entries: list[Any], message: str, tmp_path: Path) -> None:
        with pytest.raises(TasksError, match=message):
            Replies.load(write(tmp_path, *entries))

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(TasksError, match=r"nothing\.jsonl: No such file"):
            Replies.load(tmp_path / "nothing.jsonl")


@pytest.mark.parametrize("form", ["Simple", "Chat"])
class TestModel:
    def ask(self, lm: Any, medium: Path, order: list[int], made: list[str]) -> list[str]:
        def visuals(doc: dict[str, str]) -> list[str]:
            made.append(doc["id"])
            return [str(medium)]

        def messages(doc: dict[str, str]) -> list[dict[str, Any]]:
            content = [{"type": "video", "url": url} for url in visuals(doc)]
            return [{"role": "user", "content": content}]

        lm.task_dict = {"t": {"test": DOCS}}
        given = (visuals,) if lm.is_simple else (messages, {"until": []})
        first = ("text", {"until": []}) if lm.is_simple else ("text",)
        requests = [SimpleNamespace(args=(*first, *given, n, "t", "test")) for n in order]
        return list(lm.generate_until(requests))

    def test_replies_in_the_order_of_the_requests(self, form: str, tmp_path: Path) -> None:
        entries = [{"id": doc["id"], "reply": f"of {doc['id']}"} for doc in DOCS]
        file = write(tmp_path, *entries)
        cls = getattr(recorded, f"Recorded{form}")
        lm = cls.create_from_arg_string(f"replies={file}", {"batch_size": "1", "device": "cpu"})
        made: list[str] = []
        assert self.ask(lm, file, [2, 0, 0], made) == ["of v/2", "of v/0", "of v/0"]
        assert made == ["v/2", "v/0", "v/0"]
        with pytest.raises(TasksError, match="is missing or empty"):
            self.ask(lm, tmp_path / "gone.mp4", [1], made)

    def test_an_item_without_a_reply_stops_at_once(self, form: str, tmp_path: Path) -> None:
        file = write(tmp_path, {"id": "v/0", "reply": "x"})
        lm = getattr(recorded, f"Recorded{form}")(replies=str(file))
        made: list[str] = []
        with pytest.raises(TasksError, match="no reply to v/2 of t"):
            self.ask(lm, file, [0, 2], made)
        assert made == []

    def test_replies_must_be_named(self, form: str) -> None:
        with pytest.raises(TasksError, match="--model_args replies=FILE"):
            getattr(recorded, f"Recorded{form}")()
