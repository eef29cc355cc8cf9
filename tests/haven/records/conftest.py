"""The videos are rendered once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.haven.records.desk import Desk, open_desk, render_video


@pytest.fixture(scope="session")
def holiday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video of four scenes."""
    return render_video(tmp_path_factory.mktemp("haven_build") / "holiday.mp4")


@pytest.fixture
def desk(tmp_path: Path, holiday: Path) -> Iterator[Desk]:
    with open_desk(tmp_path, holiday) as opened:
        yield opened
