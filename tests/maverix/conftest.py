"""Whose data a test of MAVERIX has: the packaged sample, or a user's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.maverix import tasks


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is known of the data, and nothing of what was cut."""
    cut = tasks.cut
    cut.cache_clear()
    yield
    cut.cache_clear()


@pytest.fixture
def sample(memory: None, sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged sample is the data, nobody judges, and no video is cut."""

    def gone(*_: object) -> Any:
        raise MediaError("no cut in this test")

    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setenv(settings.JUDGE, "none")
    monkeypatch.setattr(tasks, "cut", gone)


@pytest.fixture
def root(memory: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root of the user's."""
    monkeypatch.setenv(settings.DATA, str(tmp_path / "root"))
    monkeypatch.setenv(settings.JUDGE, "none")
    return tmp_path / "root"


@pytest.fixture
def source(sample_root: Path, tmp_path: Path) -> Path:
    """The sample as a release of the user's."""
    folder = tmp_path / "release"
    shutil.copytree(sample_root / "maverix", folder)
    (folder / "VERSION").unlink()
    return folder
