"""What a user can choose, in one setting, and what is told where it does not fit."""

from __future__ import annotations

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.options import SOURCES, Options
from tests.checks import refused, table


def test_defaults() -> None:
    """Each decides numbers, which tests/golden holds."""
    assert options.current() == Options()
    for text in ("", " ", ",", "sources=" + "+".join(SOURCES)):
        assert options.parse(text).asdict() == Options().asdict()


def test_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "frames_per_shot=2,size=384,max_images=250,max_shots=8,sentences=3,seed=7,subset=0"
    words = "shotless=drop,document=before,draws=hash,budget=floor,max_sentences=0,slack=1"
    monkeypatch.setenv(settings.HAVEN, f"{text},{words},sources=tvsum+summe,ids=a.txt+b.txt")
    numbers = {"frames_per_shot": 2, "size": 384, "max_images": 250, "max_shots": 8, "sentences": 3}
    more = {"shotless": "drop", "document": "before", "draws": "hash", "budget": "floor"}
    assert options.current() == Options(
        **numbers,
        **more,
        **{"sources": ("summe", "tvsum"), "seed": 7, "subset": 0, "max_sentences": 0, "slack": 1},
        ids=("a.txt", "b.txt"),
    )
    assert options.parse("max_shots=authors,frames_per_shot=authors") == Options()


def test_the_least() -> None:
    least = {"frames_per_shot": 0, "size": 16, "max_shots": 2, "sentences": 1, "subset": 0}
    for name, value in least.items():
        assert getattr(options.parse(f"{name}={value}"), name) == value
        said = f"{name}={value - 1}: expected a whole number of"
        refused(TasksError, said, options.parse, f"{name}={value - 1}")


@table(
    "text, says",
    [
        ("frames=2", "'frames' is none of frames_per_shot, size, max_images, max_shots, "),
        ("size=64,size=64", "size is given twice"),
        ("size", "size=: expected a whole number of 16 or more"),
        ("size=1e3", "size=1e3: expected a whole number of 16 or more"),
        ("max_shots=1", "max_shots=1: expected a whole number of 2 or more"),
        ("sentences=all", "sentences=all: expected a whole number of 1 or more or reference"),
        ("draws=random", "draws=random: expected authors or hash"),
        ("budget=3", "budget=3: expected ceil or floor"),
        ("ids=", "ids=: expected a file, or several joined by "),
        ("size=reference", "size=reference: expected a whole number of 16 or more"),
        ("sources=", "sources=: expected some of " + r"\+".join(SOURCES)),
        ("sources=tvsum+msvd", r"sources=tvsum\+msvd: expected some of"),
        ("sources=tvsum,summe", "'summe' is none of"),
    ],
)
def test_one_line_says_what_is_wrong(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.HAVEN, text)
    said = refused(TasksError, says, options.current)
    assert said.startswith(f"LMMS_EVAL_TASKS_HAVEN={text!r}: ")
