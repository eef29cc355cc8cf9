"""The user's settings: their forms, and what is said of others."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.cvrr_es.settings import CVRR_REFERENCE
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import arguments
from lmms_eval_tasks.maia.settings import STILL_CLIP
from lmms_eval_tasks.movierecapsqa.settings import BARTSCORE, BASELINES
from lmms_eval_tasks.runs import prepare
from tests.checks import table
from tests.conftest import REPOSITORY


@table(
    "name, given, read",
    [
        *(
            (settings.FRAMES, "", 32),
            (settings.FRAMES, "16", 16),
            (settings.FRAMES, "8,video7=2", 2),
        ),
        *((settings.FRAMES, "32,video1=16", 32), (settings.FRAMES, " 4 , video7=2 ", 2)),
        *(
            (BASELINES, "geval", ("geval",)),
            (BASELINES, "none", ()),
        ),
        *(
            (BASELINES, "helmet,geval", ("geval", "helmet")),
            (BASELINES, ",", ()),
        ),
        *((STILL_CLIP, "1", True), (STILL_CLIP, "YES", True)),
        *((STILL_CLIP, "false", False), (STILL_CLIP, "", False)),
        *(
            (settings.MAX_CALLS, "3", 3),
            (settings.MAX_COST, "0.5", 0.5),
            (settings.TABLES, "", None),
        ),
    ],
)
def test_forms(name: str, given: str, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, given)
    settings.check_settings()
    of_video = name == settings.FRAMES
    assert (settings.frames_for("video7") if of_video else settings.value(name)) == read


@table(
    "name, values, said",
    [
        (settings.FRAMES, ["0", "many", "-3", "16;8", "video7=", "8.5", ","], "a form like 32"),
        (
            BASELINES,
            ["g-eval", "geval helmet", "all"],
            "a comma list of geval, helmet",
        ),
        (STILL_CLIP, ["maybe"], "should be a valid boolean"),
        (settings.MAX_CALLS, ["-1", "3.5"], "should be"),
        (settings.MAX_COST, ["-1", "inf", "nan"], "should be"),
        (settings.TABLES, ["some"], "should be 'headline' or 'all'"),
        (CVRR_REFERENCE, ["/no/where"], "/no/where: no such file"),
    ],
)
def test_another_form(
    name: str, values: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for given in values:
        monkeypatch.setenv(name, given)
        with pytest.raises(TasksError, match=f"^{re.escape(f'{name}={given!r}: ')}.*{said}"):
            settings.check_settings()


@table(
    "name, meant",
    [
        ("LMMS_EVAL_TASKS_JUGDE", settings.JUDGE),
        ("LMMS_EVAL_TASK_JUDGE", settings.JUDGE),
        ("LMMS_EVAL_TASKS_judge", settings.JUDGE),
        ("LMMS_EVAL_TASKS_XYZ", ""),
    ],
)
def test_a_stray_variable(name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    words = f"{name}: no such setting" + (f"; did you mean {meant}?" if meant else "")
    with pytest.raises(TasksError, match=f"^{re.escape(words)}$"):
        settings.check_settings()


def test_frames_of_a_video_that_does_not_exist(
    sample_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.JUDGE, "none")
    known = str(
        prepare.checked(registry.load_benchmark("maia"), ["maia_vsv"])
        .loaded.release.videos[0]
        .video
    )
    monkeypatch.setenv(settings.FRAMES, f"32,{known}=16")
    prepare.check_tasks(["maia_vsv"])
    monkeypatch.setenv(settings.FRAMES, f"32,{known}x=16")
    with pytest.raises(TasksError, match=f"in no task of the run: {known}x"):
        prepare.check_tasks(["maia_vsv"])


def test_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(settings.CACHE, str(tmp_path))
    for given, root in (("", "data"), ("sample", "sample"), ("~/somewhere", "somewhere")):
        monkeypatch.setenv(settings.DATA, given)
        assert settings.data_root() == tmp_path / root
    (tmp_path / "b c").mkdir()
    monkeypatch.setenv(CVRR_REFERENCE, f" ~/b c , ,{tmp_path}")
    assert settings.value(CVRR_REFERENCE) == [tmp_path / "b c", tmp_path]


def test_options_stand_above_variables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.MAX_CALLS, "3")
    given = ["--model", "m", "--bartscore", "some/bart", "--max-calls=7", "--help"]
    before = dict(os.environ)
    with settings.use_options({}):  # so that what the script sets is undone
        assert arguments.take_own_options(given) == ["--model", "m", "--help"]
        assert settings.value(BARTSCORE) == "some/bart"
        assert settings.judge_limits().max_calls == 7
    assert settings.value(BARTSCORE) is None
    assert settings.judge_limits().max_calls == 3
    assert dict(os.environ) == before
    told = " ".join(capsys.readouterr().out.split())
    assert "--baselines geval,helmet MovieRecapsQA's judged baselines" in told
    assert f"[{settings.FRESH}]" in told


def test_the_page_is_the_table() -> None:
    page = (REPOSITORY / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page.endswith(settings.markdown())


SET = "env: {LMMS_EVAL_TASKS_JUDGE: "


@table(
    "text, said",
    [
        (f"- {{tasks: maia, {SET}none}}}}\n- {{tasks: maia, {SET}m}}}}", True),
        (f"- {{{SET}none}}}}\n- {{tasks: maia}}", True),  # the second would get it, too
        (f"- {{tasks: maia, {SET}none}}}}\n- {{tasks: mme}}", False),  # no use to the second
        (f"- {{tasks: mme, {SET}none}}}}\n- {{tasks: mme, {SET}m}}}}", False),
        ("- {env: {LMMS_EVAL_TASKS_FRAMES: 8}}\n- {env: {LMMS_EVAL_TASKS_FRAMES: '8'}}", False),
        ("- {env: {OTHERS: 1}}\n- {tasks: maia}", False),
        ("env: {LMMS_EVAL_TASKS_JUDGE: none}", False),
        ("- no\n- run", False),
        ("{", False),
    ],
)
def test_runs_of_a_list_whose_settings_would_be_the_last_ones(
    text: str, said: bool, tmp_path: Path
) -> None:
    file, found = tmp_path / "list.yaml", ""
    file.write_text(text)
    try:
        arguments.check_configurations(["--config", str(file), "--model", "m"])
    except TasksError as end:
        found = str(end)
    assert bool(found) is said
    assert not said or (f"{file}: its runs set " in found and "one file for each run" in found)
    arguments.check_configurations(["--config", str(tmp_path / "none")])
