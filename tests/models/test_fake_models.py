"""The players as classes of the host: registered, media made, replies in the order of requests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import fake_models, fake_replies
from tests.checks import refused, table

PAIRS = [(f"La scatola {i} è blu.", f"La scatola {i} è rossa.") for i in range(6)]
DOCS = [
    {"id": f"v/{i}", "options": list(pair if i % 2 else pair[::-1]), "answer": "BA"[i % 2]}
    for i, pair in enumerate(PAIRS)
]
FORMS = ["Simple", "Chat"]
Parts = list[Any]  # texts, images, and paths of videos


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key.json"
    known = {
        fake_replies.fingerprint([*media, text_of(doc)]): [doc["answer"], "A", "B"]
        for doc in DOCS
        for media in ([Path("clip.mp4")], [Image.new("RGB", (2, 2))])
    }
    file.write_text(json.dumps(known), encoding="utf-8")
    return file


def text_of(doc: dict[str, Any]) -> str:
    return "Quale?\nA. {}\nB. {}".format(*doc["options"])


def with_media(media: Any) -> Callable[[dict[str, Any]], Parts]:
    return lambda doc: [*media, text_of(doc)]


def is_text(part: Any) -> bool:
    return isinstance(part, str) and not part.endswith(".mp4")


def content(part: Any) -> dict[str, Any]:
    """A part of a chat message."""
    if is_text(part):
        return {"type": "text", "text": part}
    return {"type": "image" if isinstance(part, Image.Image) else "video", "url": part}


def ask(lm: Any, parts: Callable[[Any], Parts], order: list[int], docs: Any = DOCS) -> list[str]:
    """What `lm` replies to the docs in `order`; `parts(doc)` are made when the model asks."""

    def visuals(doc: Any) -> Parts:
        return [part for part in parts(doc) if not is_text(part)]

    def messages(doc: Any) -> list[dict[str, Any]]:
        return [{"role": "user", "content": list(map(content, parts(doc)))}]

    lm.task_dict = {"pairs": {"test": docs}}
    requests = []
    for i in order:
        shown = ["<image>" if isinstance(one, Image.Image) else one for one in parts(docs[i])]
        text = "\n".join(one for one in shown if is_text(one))
        own = ({"until": []}, visuals) if lm.is_simple else (messages, {"until": []})
        requests.append(SimpleNamespace(args=(text, *own, i, "pairs", "test")))
    return list(lm.generate_until(requests))


def build(name: str, form: str, arguments: str = "") -> Any:
    cls = getattr(fake_models, name + form.removeprefix("Chat"))
    return cls.create_from_arg_string(arguments, {"batch_size": "4", "device": "cpu"})


@table("form", FORMS)
@table("name", ["Oracle", "Coin", "Scripted"])
def test_replies_and_media(name: str, form: str, key: Path, tmp_path: Path) -> None:
    given = {"Oracle": f"key={key}", "Coin": f"key={key},seed=2", "Scripted": ""}[name]
    known = fake_replies.load_key(key)
    lm = build(name, form, given)
    assert (lm.is_simple, lm.batch_size, lm.rank, lm.world_size) == (form == "Simple", 4, 0, 1)
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"clip")
    order = [3, 0, 5, 1, 1, 1]  # not sorted, with the padding of an idle rank
    expected = {
        "Oracle": [DOCS[i]["answer"] for i in order],
        "Coin": [
            fake_replies.random_reply(known, [Path("clip.mp4"), text_of(DOCS[i])], 2) for i in order
        ],
        "Scripted": [fake_replies.scripted(DOCS[i]) for i in order],
    }[name]
    assert ask(lm, with_media([str(clip)]), order) == expected


@table("form", FORMS)
def test_media_that_are_not_there(form: str, key: Path, tmp_path: Path) -> None:
    lm = build("Oracle", form, f"key={key}")
    empty = tmp_path / "empty.mp4"
    empty.touch()
    for bad in (tmp_path / "no.mp4", empty):
        refused(TasksError, "pairs: .* is missing or empty", ask, lm, with_media([str(bad)]), [0])
    refused(
        TasksError,
        "pairs: a request holds an empty picture, video or sound",
        ask,
        lm,
        with_media([None]),
        [0],
    )
    assert len(ask(lm, with_media([Image.new("RGB", (2, 2))]), [1])) == 1


def test_arguments(key: Path) -> None:
    for name, form, given, words in (
        ("Oracle", "Chat", "", "key=PATH"),
        ("Coin", "Chat", "", "key=PATH"),
        ("Coin", "Simple", "key=no.json", r"no\.json"),
        ("Recorded", "Chat", "", "--model_args replies=FILE"),
    ):
        refused(TasksError, words, build, name, form, given)
    create = fake_models.Scripted.create_from_arg_string
    refused(TasksError, "batch_size=auto", create, "", {"batch_size": "auto"})
    lm = build("Scripted", "Chat")
    for ask_other in (lm.loglikelihood, lm.generate_until_multi_round):
        refused(TasksError, "answers only generate_until tasks", ask_other, [])


def write(folder: Path, *entries: Any) -> Path:
    file = folder / "replies.jsonl"
    lines = [one if isinstance(one, str) else json.dumps(one) for one in entries]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_a_task_before_all_tasks(tmp_path: Path) -> None:
    mine = {"id": "v/1", "reply": "mine", "task": "b"}
    text = {"id": "v/1", "reply": "a line\u2028of its own"}
    file = write(tmp_path, text, mine, "", text, {"id": "v/2", "reply": ""})
    lm = build("Recorded", "Chat", f"replies={file}")
    assert lm.reply([], {"id": "v/1"}, "a") == "a line\u2028of its own"
    assert [lm.reply([], {"id": one}, "b") for one in ("v/1", "v/2")] == ["mine", ""]
    refused(TasksError, r"replies\.jsonl: no reply to v/3 of b", lm.reply, [], {"id": "v/3"}, "b")


@table(
    "entries, message",
    [
        (["{"], "line 1: not valid JSON"),
        ([[1]], "line 1: expected an object"),
        ([{"id": "a", "reply": "b"}, {"id": "a"}], "line 2: reply: the field is missing"),
        ([{"id": "a", "reply": None}], "line 1: reply: expected a text"),
        ([{"id": "a", "reply": "b", "tasks": "c"}], "line 1: tasks: no such field"),
        (
            [{"id": "a", "reply": "b"}, "", {"id": "a", "reply": "c"}],
            "line 3: an earlier line has another reply to a",
        ),
    ],
)
def test_bad_files(entries: list[Any], message: str, tmp_path: Path) -> None:
    refused(TasksError, message, fake_models.recorded, write(tmp_path, *entries))
    refused(TasksError, r"no\.jsonl: No such file", fake_models.recorded, tmp_path / "no.jsonl")


@table("form", FORMS)
def test_recorded_replies_in_the_order_of_the_requests(form: str, tmp_path: Path) -> None:
    file = write(tmp_path, *({"id": f"v/{n}", "reply": f"of {n}"} for n in range(3)))
    lm = build("Recorded", form, f"replies={file}")
    assert ask(lm, lambda doc: [text_of(doc)], [2, 0, 0]) == ["of 2", "of 0", "of 0"]
