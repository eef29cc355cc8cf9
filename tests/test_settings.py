"""The user's settings: their forms, and what is said of others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import script as host_script


def test_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.frames_for("video1") == 32
    assert settings.judge_spec() is None
    assert settings.prompts_dir() is None
    assert not settings.is_sample()
    assert not settings.allow_missing_videos()
    assert settings.bartscore_model() is None
    assert settings.judged_baselines() == ()
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


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("geval", ("geval",)),
        ("helmet,geval", ("geval", "helmet")),
        (" GEVAL , geval,", ("geval",)),
        ("none", ()),
        ("", ()),
        (",", ()),
    ],
)
def test_baselines(given: str, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.BASELINES, given)
    assert settings.judged_baselines() == names
    settings.check()


@pytest.mark.parametrize("given", ["g-eval", "geval helmet", "all", "1", "none,geval"])
def test_baselines_of_another_form(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.BASELINES, given)
    said = f"{settings.BASELINES}={given!r}: expected a comma list of geval, helmet, or none"
    with pytest.raises(TasksError, match=f"^{re.escape(said)}$"):
        settings.check()


def test_bartscore_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.BARTSCORE, " /models/bart ")
    assert settings.bartscore_model() == "/models/bart"
    monkeypatch.setenv(settings.BARTSCORE, "  ")
    assert settings.bartscore_model() is None


def test_options_of_the_host_script(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for variable in host_script.OPTIONS.values():
        monkeypatch.setenv(variable, "")  # so that what the script sets is undone
    given = ["--model", "m", "--bartscore", "some/bart", "--baselines=helmet,geval", "--help"]
    assert host_script._take_own_options(given) == ["--model", "m", "--help"]
    assert settings.bartscore_model() == "some/bart"
    assert settings.judged_baselines() == ("geval", "helmet")
    assert settings.bertscore_model() is None
    told = capsys.readouterr().out
    for option, variable in (
        ("--bartscore", settings.BARTSCORE),
        ("--baselines", settings.BASELINES),
    ):
        assert f"{option} VALUE  (same as {variable})" in told


def test_a_path_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "b c").mkdir()
    monkeypatch.setenv(settings.CVRR_REFERENCE, f" ~/b c , ,{tmp_path}")
    assert settings.paths(settings.CVRR_REFERENCE) == [tmp_path / "b c", tmp_path]
    monkeypatch.setenv(settings.CVRR_REFERENCE, f"{tmp_path},{tmp_path}/nowhere")
    with pytest.raises(TasksError, match=rf"{settings.CVRR_REFERENCE}: .*/nowhere: no such file"):
        settings.paths(settings.CVRR_REFERENCE)
    monkeypatch.delenv(settings.CVRR_REFERENCE)
    assert settings.paths(settings.CVRR_REFERENCE) == []
