"""A user's data root with HAVEN: two videos of TVSum and one of SumMe, none of them a real file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.media import video_checks
from tests.checks import look_at_texts
from tests.haven import release_files
from tests.haven.records.desk import Desk, open_desk, render_video


@pytest.fixture
def root(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root; nothing is judged, and nothing is remembered from another test."""
    monkeypatch.setenv(settings.DATA, str(tmp_path / "root"))
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.JUDGE, "none")
    return tmp_path / "root"


@pytest.fixture
def user(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ROOT/haven: tvsum/video_1, tvsum/video_2 and summe/video_1 of 20 frames and 4 shots.

    Videos are empty files, which are taken for good ones; one with "bad" in it for a bad one
    (test_data.py has real ones).
    """
    folder = root / "haven"
    for source, videos in (("tvsum", 2), ("summe", 1)):
        release_files.write(folder, source, videos)
        for number in range(1, videos + 1):
            file = folder / "videos" / source / f"video_{number}.mp4"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    monkeypatch.setattr(video_checks, "look", look_at_texts)
    return folder


# --- haven build: the video is rendered once ---


@pytest.fixture(scope="session")
def holiday(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video of four scenes."""
    return render_video(tmp_path_factory.mktemp("haven_build") / "holiday.mp4")


@pytest.fixture
def desk(tmp_path: Path, holiday: Path) -> Iterator[Desk]:
    with open_desk(tmp_path, holiday) as opened:
        yield opened
