"""Tiny checkpoints: the same bytes from the same seed, finished or not there at all."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import tiny
from tests.checks import refused, table


def digest(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


@table("kind", list(tiny.KINDS))
def test_same_seed_same_bytes(kind: str, tmp_path: Path) -> None:
    import torch

    state = torch.get_rng_state()
    first = digest(tiny.build_checkpoint(kind, tmp_path / "a"))
    assert torch.equal(torch.get_rng_state(), state)
    assert digest(tiny.build_checkpoint(kind, tmp_path / "deep" / "b")) == first
    other = digest(tiny.build_checkpoint(kind, tmp_path / "c", seed=1))
    assert other["model.safetensors"] != first["model.safetensors"]
    assert other["tokenizer.json"] == first["tokenizer.json"]


def test_built_once_and_a_broken_build_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Half:
        @staticmethod
        def save_pretrained(folder: str) -> None:
            Path(folder, "config.json").write_text("{", encoding="utf-8")
            raise OSError("no space left")

    whole = tiny.build_checkpoint("gpt2", tmp_path / "whole")
    monkeypatch.setitem(tiny.KINDS, "gpt2", lambda: [Half])
    assert tiny.build_checkpoint("gpt2", whole) == whole
    refused(OSError, "no space", tiny.build_checkpoint, "gpt2", tmp_path / "a")
    assert [p.name for p in tmp_path.iterdir()] == ["whole"]


def test_a_folder_of_the_users_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x", encoding="utf-8")
    refused(
        TasksError, "so nothing is written: name another", tiny.build_checkpoint, "gpt2", tmp_path
    )
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
