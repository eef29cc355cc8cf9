"""The players as classes of the host: registered, media made, replies in the order of requests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample import models, players, scripted

PAIRS = [(f"La scatola {i} è blu.", f"La scatola {i} è rossa.") for i in range(6)]
DOCS = [
    {
        "id": f"v/{i}",
        "options": list(pair if i % 2 else pair[::-1]),
        "answer": "BA"[i % 2],
    }
    for i, pair in enumerate(PAIRS)
]
NAMES = [("Oracle", "key={key}"), ("Coin", "key={key},seed=2"), ("Scripted", "")]


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"pairs": PAIRS}), encoding="utf-8")
    return file


def text_of(doc: dict[str, Any]) -> str:
    return "Quale?\nA. {}\nB. {}".format(*doc["options"])


def ask(lm: Any, visuals: Any, order: list[int]) -> list[str]:
    """What `lm` replies to the docs in `order`; `visuals(doc)` are a request's media."""

    def messages(doc: dict[str, Any]) -> list[dict[str, Any]]:
        media = [{"type": "video", "url": visual} for visual in visuals(doc) or []]
        first, second = text_of(doc).split("\n", 1)
        texts = [{"type": "text", "text": first}, {"type": "text", "text": second}]
        return [{"role": "user", "content": [texts[0], *media, texts[1]]}]

    lm.task_dict = {"pairs": {"test": DOCS}}
    requests = [
        SimpleNamespace(
            args=(text_of(DOCS[i]), {"until": []}, visuals, i, "pairs", "test")
            if lm.is_simple
            else (text_of(DOCS[i]), messages, {"until": []}, i, "pairs", "test")
        )
        for i in order
    ]
    return lm.generate_until(requests)


def build(name: str, form: str, arguments: str, key: Path) -> Any:
    cls = getattr(scripted, f"{name}{form}")
    config = {"batch_size": "4", "max_batch_size": None, "device": "cpu"}
    return cls.create_from_arg_string(arguments.format(key=key), config)


@pytest.mark.parametrize("form", ["Simple", "Chat"])
@pytest.mark.parametrize(("name", "arguments"), NAMES)
def test_replies_and_media(name: str, arguments: str, form: str, key: Path, tmp_path: Path) -> None:
    lm = build(name, form, arguments, key)
    assert (lm.is_simple, lm.batch_size, lm.rank, lm.world_size) == (form == "Simple", 4, 0, 1)
    made: list[str] = []

    def visuals(doc: dict[str, Any]) -> list[str]:
        clip = tmp_path / f"{doc['id'].replace('/', '-')}.mp4"
        clip.write_bytes(b"clip")
        made.append(doc["id"])
        return [str(clip)]

    order = [3, 0, 5, 1, 1, 1]  # not sorted, with the padding of an idle rank
    expected = {
        "Oracle": [DOCS[i]["answer"] for i in order],
        "Coin": [players.coin(text_of(DOCS[i]), seed=2) for i in order],
        "Scripted": [players.scripted(DOCS[i]) for i in order],
    }[name]
    assert ask(lm, visuals, order) == expected
    assert made == [DOCS[i]["id"] for i in order]
    lm.clean()


@pytest.mark.parametrize("form", ["Simple", "Chat"])
def test_media_that_are_not_there(form: str, key: Path, tmp_path: Path) -> None:
    lm = build("Oracle", form, "key={key}", key)
    empty = tmp_path / "empty.mp4"
    empty.touch()
    for bad in (str(tmp_path / "no.mp4"), str(empty), str(tmp_path)):
        with pytest.raises(TasksError, match=r"pairs: .* is missing or empty"):
            ask(lm, lambda doc, bad=bad: [bad], [0])
    with pytest.raises(TasksError, match="pairs: a request holds an empty medium"):
        ask(lm, lambda doc: [None], [0])
    image = Image.new("RGB", (2, 2))
    assert ask(lm, lambda doc: [image], [1]) == ["A"]
    assert ask(lm, lambda doc: None, [1]) == ["A"]


def test_chat_messages_are_checked_as_the_host_does(key: Path) -> None:
    lm = build("Oracle", "Chat", "key={key}", key)
    lm.task_dict = {"pairs": {"test": DOCS}}
    wrong = [{"role": "user", "content": [{"type": "video", "path": "x.mp4"}]}]
    request = SimpleNamespace(args=("", lambda doc: wrong, {}, 0, "pairs", "test"))
    with pytest.raises(ValueError, match="url"):
        lm.generate_until([request])


def test_oracle_and_coin_never_see_the_doc(key: Path) -> None:
    class Blind(dict):  # type: ignore[type-arg]
        def __getitem__(self, field: str) -> Any:
            raise AssertionError(f"looked at {field}")

        get = __getitem__

    for name in ("Oracle", "Coin"):
        lm = build(name, "Simple", "key={key}", key)
        lm.task_dict = {"pairs": {"test": [Blind()]}}
        request = SimpleNamespace(args=(text_of(DOCS[1]), {}, lambda doc: [], 0, "pairs", "test"))
        assert lm.generate_until([request])[0] in ("A", "B")


def test_arguments(key: Path) -> None:
    with pytest.raises(TasksError, match="key=PATH"):
        scripted.OracleChat.create_from_arg_string("", {"batch_size": 1})
    with pytest.raises(TasksError, match="batch_size=auto"):
        scripted.ScriptedChat.create_from_arg_string("", {"batch_size": "auto"})
    with pytest.raises(TasksError, match=r"no\.json"):
        scripted.CoinSimple.create_from_arg_string("key=no.json")
    assert scripted.CoinSimple.create_from_arg_string("").key is None
    lm = build("Scripted", "Chat", "", key)
    for ask_other in (lm.loglikelihood, lm.generate_until_multi_round):
        with pytest.raises(TasksError, match="generate_until tasks only"):
            ask_other([])


def test_the_host_finds_each_class_in_each_form() -> None:
    from lmms_eval.models.registry_v2 import ModelRegistryV2

    registry = ModelRegistryV2()
    for manifest in models.manifests():
        registry.register_manifest(manifest)
    assert registry.list_model_names() == [
        "lm_pairs",
        "tasks_coin",
        "tasks_oracle",
        "tasks_recorded",
        "tasks_scripted",
    ]
    for name in ("Oracle", "Coin", "Recorded", "Scripted"):
        chat = registry.get_model_class(f"tasks_{name.lower()}")
        simple = registry.get_model_class(f"tasks_{name.lower()}", force_simple=True)
        assert (chat.__name__, simple.__name__) == (f"{name}Chat", f"{name}Simple")
    for force_simple in (False, True):
        assert registry.get_model_class("lm_pairs", force_simple).__name__ == "LmPairs"


def test_light_imports() -> None:
    code = (
        "import sys, lmms_eval_tasks.sample.players, lmms_eval_tasks.sample.tiny\n"
        "heavy = {'torch', 'transformers', 'numpy', 'lmms_eval', 'decord', 'av', 'pydantic'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
