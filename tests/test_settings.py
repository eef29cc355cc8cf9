"""The user's settings: their forms, and what is said of others."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError


def test_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.frames_for("video1") == 32
    assert settings.judge_spec() is None
    assert settings.prompts_dir() is None
    assert not settings.is_sample()
    assert not settings.allow_missing_videos()
    settings.check()


@pytest.mark.parametrize(
    ("given", "video", "frames"),
    [
        ("16", "video1", 16),
        ("32,video7=16", "video7", 16),
        ("32,video7=16", "video1", 32),
        ("video7=16,8", "video7", 16),
        ("video7=16", "video1", 32),
        (" 4 , video1 = 2 ".replace(" = ", "="), "video1", 2),
    ],
)
def test_frames(given: str, video: str, frames: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.FRAMES, given)
    assert settings.frames_for(video) == frames


@pytest.mark.parametrize("given", ["0", "many", "-3", "16;8", "video7=", "8.5", ","])
def test_frames_of_another_form(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.FRAMES, given)
    with pytest.raises(TasksError, match=settings.FRAMES):
        settings.check()


@pytest.mark.parametrize("name", [settings.STILL_CLIP, settings.ALLOW_MISSING])
def test_flags(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for yes in ("1", "true", "YES"):
        monkeypatch.setenv(name, yes)
        settings.check()
        assert settings.still_clip() or settings.allow_missing_videos()
    for no in ("0", "false", ""):
        monkeypatch.setenv(name, no)
        assert not settings.still_clip()
        assert not settings.allow_missing_videos()
    monkeypatch.setenv(name, "maybe")
    with pytest.raises(TasksError, match=f"{name}='maybe': expected 1 or 0"):
        settings.check()


def test_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(settings.CACHE, str(tmp_path))
    assert settings.data_root() == tmp_path / "data"
    monkeypatch.setenv(settings.DATA, "sample")
    assert settings.data_root() == tmp_path / "sample"
    monkeypatch.setenv(settings.DATA, "~/somewhere")
    assert settings.data_root() == Path.home() / "somewhere"
