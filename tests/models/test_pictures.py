"""Players that read pictures: as modules, and through the host's classes in both forms."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image

from lmms_eval_tasks.haven import sample, sample_players
from lmms_eval_tasks.haven.sample_stories import STORIES, Story
from lmms_eval_tasks.sample import pictures, players, scripted

STORY = STORIES[2]
ASK = (
    "Which frames matter most? Reply with ONLY a JSON array of frame numbers that has exactly "
    "3 elements."
)
PAIR = ("La scatola è blu.", "La scatola è rossa.")


def shown(story: Story) -> list[Image.Image]:
    frames = list(sample.frames(story))
    return [Image.fromarray(frames[pick]) for pick in story.picks]


@pytest.fixture(scope="module")
def images() -> list[Image.Image]:
    return shown(STORY)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key.json"
    file.write_text(json.dumps({"pairs": [PAIR], "pictures": ["haven"]}), encoding="utf-8")
    return file


def chat_parts(images: list[Image.Image]) -> list[Any]:
    return [part for n, image in enumerate(images, 1) for part in (f"Frame {n}:\n", image)] + [ASK]


def simple_text(images: list[Image.Image]) -> str:
    return "\n".join(f"Frame {n}:\n<image>" for n in range(1, 1 + len(images))) + f"\n{ASK}"


def ask(lm: Any, images: list[Any], parts: list[Any], text: str) -> str:
    """What `lm` replies to a request in its own form; its doc cannot be looked at."""
    content = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "url": part}
        for part in parts
    ]
    messages = [{"role": "user", "content": content}]
    lm.task_dict = {"haven_v2v": {"test": [object()]}}
    args = (
        (text, {}, lambda _: images, 0, "haven_v2v", "test")
        if lm.is_simple
        else (text, lambda _: messages, {}, 0, "haven_v2v", "test")
    )
    (reply,) = lm.generate_until([SimpleNamespace(args=args)])
    return str(reply)


def build(name: str, form: str, arguments: str) -> Any:
    cls = getattr(scripted, f"{name}{form}")
    return cls.create_from_arg_string(arguments, {"batch_size": "1", "device": "cpu"})


@pytest.mark.parametrize("form", ["Simple", "Chat"])
def test_the_oracle_reads_pictures_where_its_key_says_so(
    form: str, key: Path, images: list[Image.Image], tmp_path: Path
) -> None:
    parts, text = chat_parts(images), simple_text(images)
    assert ask(build("Oracle", form, f"key={key}"), images, parts, text) == str(STORY.keyframes)
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps({"pairs": [PAIR]}), encoding="utf-8")
    assert ask(build("Oracle", form, f"key={plain}"), images, parts, text) == players.UNKNOWN
    turned = images[::-1]
    reply = ask(build("Oracle", form, f"key={key}"), turned, chat_parts(turned), text)
    assert reply not in (str(STORY.keyframes), players.UNKNOWN)


@pytest.mark.parametrize("form", ["Simple", "Chat"])
def test_the_coin_draws_from_what_is_shown(form: str, key: Path, images: list[Image.Image]) -> None:
    parts, text = chat_parts(images), simple_text(images)
    replies = [
        ask(build("Coin", form, f"key={key},seed={seed}"), images, parts, text) for seed in range(4)
    ]
    assert len(set(replies)) > 1
    for reply in replies:
        chosen = json.loads(reply)
        assert len(set(chosen)) == 3
        assert set(chosen) <= set(range(1, 1 + len(images)))
    given = parts if form == "Chat" else [*images, text]
    assert replies[0] == sample_players.coin(given, 0)
    without_key = ask(build("Coin", form, ""), images, parts, text)
    assert without_key == players.UNKNOWN


@pytest.mark.parametrize("form", ["Simple", "Chat"])
def test_other_requests_are_left_to_the_players_of_text(
    form: str, key: Path, images: list[Image.Image]
) -> None:
    text = f"Quale?\nA. {PAIR[1]}\nB. {PAIR[0]}"
    assert ask(build("Oracle", form, f"key={key}"), images[:1], [images[0], text], text) == "B"
    drawn = ask(build("Coin", form, f"key={key}"), [], [text], text)
    assert drawn == players.coin(text)


def test_what_is_no_image_is_left_out(key: Path, tmp_path: Path) -> None:
    clip = tmp_path / "clip.mp4"
    clip.write_bytes(b"clip")
    text = f"Quale?\nA. {PAIR[0]}\nB. {PAIR[1]}"
    for form in ("Simple", "Chat"):
        lm = build("Oracle", form, f"key={key}")
        messages = [
            {
                "role": "user",
                "content": [
                    {"type": "video", "url": str(clip)},
                    {"type": "text", "text": text},
                ],
            }
        ]
        lm.task_dict = {"maia": {"test": [object()]}}
        second = (lambda _: [str(clip)]) if lm.is_simple else {}
        first = {} if lm.is_simple else (lambda _, messages=messages: messages)
        request = SimpleNamespace(args=(text, first, second, 0, "maia", "test"))
        assert lm.generate_until([request]) == ["A"]


def test_modules_that_are_named_are_there(images: list[Image.Image]) -> None:
    for module in map(importlib.import_module, pictures.PLAYERS.values()):
        assert module.oracle([]) is None
        assert module.coin([], 0) is None
    parts = chat_parts(images)
    assert pictures.oracle(parts, ["haven"]) == sample_players.oracle(parts)
    assert pictures.coin(parts, ["haven"], 3) == sample_players.coin(parts, 3)
    assert pictures.oracle(parts, []) is None
    assert pictures.coin(parts, [], 3) is None
    assert pictures.text(["a", images[0], "b"]) == "a\nb"


def test_every_field_of_scripts_leads_to_a_module() -> None:
    for module in players.SCRIPTS.values():
        script = importlib.import_module(module)
        assert callable(script.item)
        assert callable(script.reply)


def test_light_imports() -> None:
    code = (
        "import sys, lmms_eval_tasks.haven.sample_players\n"
        "import lmms_eval_tasks.sample.pictures, lmms_eval_tasks.haven.sample\n"
        "heavy = {'torch', 'numpy', 'lmms_eval', 'decord', 'av', 'h5py', 'scipy', 'PIL'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
