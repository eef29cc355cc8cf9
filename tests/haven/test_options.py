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
    text = "frames_per_shot=2,size=16,max_images=250,max_shots=2,sentences=3,seed=7,subset=0"
    words = "temporal_text=sentences,reference=tagged,max_sentences=0,slack=1"
    monkeypatch.setenv(settings.HAVEN, f"{text}, {words},sources=tvsum+summe,ids=a.txt+b.txt")
    assert options.current() == Options(
        **{"frames_per_shot": 2, "size": 16, "max_images": 250, "max_shots": 2, "sentences": 3},
        **{"sources": ("summe", "tvsum"), "seed": 7, "subset": 0, "max_sentences": 0, "slack": 1},
        **{"temporal_text": "sentences", "reference": "tagged", "ids": ("a.txt", "b.txt")},
    )
    assert options.parse("max_shots=authors,frames_per_shot=authors") == Options()


@table(
    "text, says",
    [
        ("frames=2", "'frames' is none of frames_per_shot, size, max_images, max_shots, "),
        ("draws=hash", "'draws' is none of"),  # of versions before 2.2
        ("size=64,size=64", "size=64: expected NAME=VALUE, each once"),
        ("size", "size: expected NAME=VALUE, each once"),
        ("size=15", "size=15: expected greater than or equal to 16"),
        ("size=1e3", "size=1e3: expected a valid integer"),
        ("max_shots=1", "max_shots=1: expected 'authors' or greater than or equal to 2"),
        ("sentences=all", "sentences=all: expected 'reference' or a valid integer"),
        ("reference=none", "reference=none: expected 'plain' or 'tagged'"),
        ("sources=tvsum+msvd", r"sources=tvsum\+msvd: expected some of summe\+"),
        ("sources=tvsum,summe", "'summe' is none of"),
    ],
)
def test_one_line_says_what_is_wrong(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.HAVEN, text)
    said = refused(TasksError, says, options.current)
    assert said.startswith(f"LMMS_EVAL_TASKS_HAVEN={text!r}: ")
