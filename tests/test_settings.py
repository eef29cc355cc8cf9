"""The user's settings: their forms, and what is said of others."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import benchmarks, settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import script as host_script
from lmms_eval_tasks.runs import before
from tests.checks import table
from tests.conftest import REPOSITORY


@table(
    "name, read, forms",
    [
        (
            settings.FRAMES,
            lambda: settings.frames_for("video7"),
            {
                "": 32,
                "16": 16,
                "32,video7=16": 16,
                "32,video1=16": 32,
                "video7=16,8": 16,
                "video1=16": 32,
                " 4 , video7=2 ": 2,
            },
        ),
        (
            settings.BASELINES,
            lambda: settings.value(settings.BASELINES),
            {
                "geval": ("geval",),
                "helmet,geval": ("geval", "helmet"),
                " GEVAL , geval,": ("geval",),
                **dict.fromkeys(("none", "", ","), ()),
            },
        ),
        (
            settings.STILL_CLIP,
            lambda: settings.value(settings.STILL_CLIP),
            {"1": True, "true": True, "YES": True, "0": False, "false": False, "": False},
        ),
    ],
)
def test_forms(
    name: str, read: Callable[[], Any], forms: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for given, expected in forms.items():
        monkeypatch.setenv(name, given)
        settings.check()
        assert read() == expected, given


@table(
    "name, values, said",
    [
        (settings.FRAMES, ["0", "many", "-3", "16;8", "video7=", "8.5", ","], "a form like 32"),
        (
            settings.BASELINES,
            ["g-eval", "geval helmet", "all", "1", "none,geval"],
            "expected a comma list of geval, helmet, or none",
        ),
        (settings.STILL_CLIP, ["maybe"], "expected 1 or 0"),
        (settings.ALLOW_MISSING, ["maybe"], "expected 1 or 0"),
    ],
)
def test_another_form(
    name: str, values: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in values:
        monkeypatch.setenv(name, given)
        with pytest.raises(TasksError, match=f"^{re.escape(f'{name}={given!r}: ')}.*{said}"):
            settings.check()


@table(
    "name, meant",
    [
        ("LMMS_EVAL_TASKS_JUGDE", settings.JUDGE),
        ("LMMS_EVAL_TASK_JUDGE", settings.JUDGE),
        ("LMMS_EVAL_TASKS_judge", settings.JUDGE),
        ("LMMS_EVAL_TASKS_FRAME", settings.FRAMES),
        ("LMMS_EVAL_TASKS_XYZ", ""),
    ],
)
def test_a_stray_variable(name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    words = f"{name}: there is no such setting" + (f"; did you mean {meant}?" if meant else "")
    with pytest.raises(TasksError, match=f"^{re.escape(words)}$"):
        settings.check()


def test_frames_of_a_video_that_does_not_exist(
    sample_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.JUDGE, "none")
    known = str(before.checked(benchmarks.load("maia"), ["maia_vsv"]).found.videos[0].video)
    monkeypatch.setenv(settings.FRAMES, f"32,{known}=16")
    before.check(["maia_vsv"])
    monkeypatch.setenv(settings.FRAMES, f"32,{known}x=16")
    with pytest.raises(TasksError, match=f"no video of these tasks; did you mean {known}"):
        before.check(["maia_vsv"])


def test_roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(settings.CACHE, str(tmp_path))
    assert settings.data_root() == tmp_path / "data"
    monkeypatch.setenv(settings.DATA, "sample")
    assert settings.data_root() == tmp_path / "sample"
    monkeypatch.setenv(settings.DATA, "~/somewhere")
    assert settings.data_root() == Path.home() / "somewhere"


def test_options_of_the_host_script(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--model", "m", "--bartscore", "some/bart", "--baselines=helmet,geval", "--help"]
    before = dict(os.environ)
    with settings.said({}):  # so that what the script sets is undone
        assert host_script._take_own_options(given) == ["--model", "m", "--help"]
        assert settings.value(settings.BARTSCORE) == "some/bart"
        assert settings.value(settings.BASELINES) == ("geval", "helmet")
        assert settings.value(settings.BERTSCORE) is None
    assert settings.value(settings.BARTSCORE) is None
    assert dict(os.environ) == before
    told = " ".join(capsys.readouterr().out.split())
    assert "--baselines geval,helmet MovieRecapsQA's judged baselines" in told
    assert f"[{settings.FRESH}]" in told


def test_an_option_stands_above_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.MAX_CALLS, "3")
    with settings.said({settings.MAX_CALLS: 7, settings.MAX_COST: None}):
        assert settings.judge_limits().max_calls == 7
    assert settings.judge_limits().max_calls == 3


def test_a_path_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "b c").mkdir()
    monkeypatch.setenv(settings.CVRR_REFERENCE, f" ~/b c , ,{tmp_path}")
    assert settings.value(settings.CVRR_REFERENCE) == [tmp_path / "b c", tmp_path]
    monkeypatch.setenv(settings.CVRR_REFERENCE, f"{tmp_path},{tmp_path}/nowhere")
    with pytest.raises(TasksError, match=rf"{settings.CVRR_REFERENCE}=.*/nowhere: no such file"):
        settings.value(settings.CVRR_REFERENCE)


def test_the_page_is_the_table() -> None:
    page = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page.endswith(settings.markdown())
