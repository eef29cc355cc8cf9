"""What a user can choose, in one setting, and what is told where it does not fit."""

from __future__ import annotations

import pytest

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven import options
from lmms_eval_tasks.haven.options import HavenOptions
from lmms_eval_tasks.haven.settings import HAVEN
from tests.checks import refused, table


def test_every_option(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "frames_per_shot=2,size=16,max_images=250,seed=7, subset=0,temporal_text=sentences,"
    monkeypatch.setenv(
        HAVEN, f"{text}reference=tagged,system=task,sources=tvsum+summe,ids=a.txt+b.txt"
    )
    assert options.current() == HavenOptions(
        **{"frames_per_shot": 2, "size": 16, "max_images": 250, "seed": 7, "subset": 0},
        **{
            "temporal_text": "sentences",
            "reference": "tagged",
            "system": "task",
            "ids": ("a.txt", "b.txt"),
        },
        sources=("summe", "tvsum"),
    )
    assert options.parse(" ,frames_per_shot=authors") == HavenOptions()


@table(
    "text, says",
    [
        (
            "frames=2",
            "frames: no such field, found '2'; known: frames_per_shot, size, max_images, ",
        ),
        ("size=64,size=64", "expected NAME=VALUE, each name once"),
        ("size", "expected NAME=VALUE, each name once"),
        ("size=15", "size: expected 16 or more, found '15'"),
        ("size=1e3", "size: Input should be a valid integer, .*, found '1e3'"),
        ("frames_per_shot=all", "frames_per_shot.*'authors'.*; .* valid integer"),
        ("reference=none", "reference: Input should be 'plain' or 'tagged', found 'none'"),
        ("system=authors", "system: Input should be 'none' or 'task', found 'authors'"),
        ("sources=tvsum+msvd", r"sources: expected some of summe\+"),
        ("sources=tvsum,summe", "expected NAME=VALUE"),
    ],
)
def test_one_line_says_what_is_wrong(text: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HAVEN, text)
    said = refused(TasksError, says, options.current)
    assert said.startswith(f"--haven {text!r}: ")
