"""A user's data root with MovieRecapsQA: two segments, a recap video and a movie."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.media import clips
from tests.conftest import SHARED
from tests.movierecapsqa.entries import MOVIE, RECAP, entry, render, write


@pytest.fixture(scope="session")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """talk.mp4 and film.mp4, both with sound."""
    folder = tmp_path_factory.mktemp("movierecapsqa")
    render(folder / "talk.mp4", RECAP)
    render(folder / "film.mp4", MOVIE)
    return folder


@pytest.fixture
def root(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty data root; nothing is judged, and nothing is remembered from another test."""
    monkeypatch.setenv(settings.DATA, str(tmp_path / "root"))
    monkeypatch.setenv(settings.CACHE, str(cache))
    monkeypatch.setenv(settings.JUDGE, "none")
    make = clips.make_clip  # a test may put another one there
    make.cache_clear()
    yield tmp_path / "root"
    make.cache_clear()


@pytest.fixture
def user(root: Path, videos: Path) -> Path:
    """The benchmark's folder of a user who holds all sources; the second segment is silent."""
    folder = root / "movierecapsqa"
    for name, place in (("talk", "recaps"), ("film", "movies")):
        (folder / place).mkdir(parents=True)
        (folder / place / f"{name}.mp4").symlink_to(videos / f"{name}.mp4")
    second = entry(2, startTime=8, endTime=11, movieStartTime=2, movieEndTime=4, srt="")
    write(folder, [entry(1), second])
    return folder


@pytest.fixture
def real(root: Path) -> Path:
    """A data root with the real part of the project's sample, which never enters the repository."""
    folder = SHARED / "data" / "movierecapsqa"
    if not (folder / "segments.json").is_file():
        pytest.skip(f"no real MovieRecapsQA data at {folder}")
    root.mkdir()
    (root / "movierecapsqa").symlink_to(folder)
    return root
