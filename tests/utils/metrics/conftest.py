"""Models of metrics, a cache of the hub and a network, none of which is a user's."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_clip

from lmms_eval_tasks.utils.metrics import local_models


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Threads cost tiny models more than they bring, and fight with whatever else runs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def none_kept() -> Iterator[None]:
    """Every test loads its models anew."""
    local_models.loaded.cache_clear()
    yield
    local_models.loaded.cache_clear()


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny CLIP model with random weights."""
    return str(tiny_clip.build(tmp_path_factory.mktemp("models") / "clip"))


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Hugging Face cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every attempt to reach the network, as if it were allowed; none succeeds."""
    from huggingface_hub import constants

    attempts: list[Any] = []

    def refuse(*args: Any, **kwargs: Any) -> None:
        attempts.append(args)
        raise OSError("no network in tests")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return attempts
