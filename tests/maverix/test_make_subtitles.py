"""Subtitles for the user's videos that have none: `lmms-eval-tasks data subtitles`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import settings
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.maverix import benchmark, data
from lmms_eval_tasks.utils import subtitles, transcribers
from lmms_eval_tasks.utils.subtitles import Cue
from tests.maverix.runs import root, sample, source
from tests.maverix.test_utils import fail

__all__ = ["root", "sample", "source"]
pytestmark = pytest.mark.usefixtures("sample")


class Stub:
    """A transcriber that hears one word in every file."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.identity = {"name": "stub", "version": "1", "model": "none", "language": None}
        self.heard: list[Path] = []

    def transcribe(self, sound: Path) -> list[Cue]:
        assert sound.suffix == ".wav"
        self.heard.append(sound)
        return [Cue(0.5, 1.5, "hello")]


class TestSubtitles:
    """`lmms-eval-tasks data subtitles`."""

    def test_only_what_is_missing(
        self, root: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        benchmark.prepare(source, root, link=True)
        stub = Stub()
        assert benchmark.make_subtitles(root, stub) == 0
        said = capsys.readouterr().err
        assert (
            said.splitlines()[-1].removeprefix("lmms-eval-tasks: ")
            == "subtitles: 1 made, 0 without sound, 3 there before, 0 failed"
        )
        assert len(stub.heard) == 1
        found = data.load().subtitles_of("lights-3")
        assert found == root / "maverix" / "subtitles" / "lights-3.json"
        assert [cue.text for cue in subtitles.read(found)] == ["hello"]
        assert not (source / "subtitles" / "lights-3.json").exists()
        assert benchmark.make_subtitles(root, stub) == 0
        assert "0 made, 0 without sound, 4 there before, 0 failed" in capsys.readouterr().err

    def test_a_name_with_its_ending_has_the_subtitles_of_its_stem(
        self, root: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Else a released lights-1.srt would be set aside for a transcript."""
        content = json.loads((source / "data.json").read_text(encoding="utf-8"))
        for entry in content["items"]:
            entry["video"] += ".mp4"
        (source / "data.json").write_text(json.dumps(content), encoding="utf-8")
        benchmark.prepare(source, root, link=True)
        released = data.load().subtitles_of("lights-1.mp4")
        assert benchmark.make_subtitles(root, Stub()) == 0
        assert "1 made, 0 without sound, 3 there before, 0 failed" in capsys.readouterr().err
        assert data.load().subtitles_of("lights-1.mp4") == released
        assert data.load().subtitles_of("lights-3.mp4") is not None

    def test_missing_videos_are_passed_over(
        self, root: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (source / "videos" / "lights-3.mp4").unlink()
        benchmark.prepare(source, root, link=True)
        assert benchmark.make_subtitles(root, Stub()) == 0
        assert "0 made, 0 without sound, 3 there before, 0 failed" in capsys.readouterr().err

    def test_the_command(self, root: Path, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        benchmark.prepare(source, root, link=True)
        monkeypatch.setattr(transcribers, "FasterWhisper", Stub)
        done = CliRunner().invoke(app, ["data", "subtitles", "maverix", "--model", "tiny"])
        assert done.exit_code == 0, done.output
        assert "1 made" in done.output

    def test_a_video_that_fails_is_counted(
        self,
        root: Path,
        source: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        benchmark.prepare(source, root, link=True)
        monkeypatch.setattr(Stub, "transcribe", fail)
        assert benchmark.make_subtitles(root, Stub()) == 1
        assert "lights-3: no subtitles made: " in capsys.readouterr().err
        monkeypatch.setattr(transcribers, "FasterWhisper", Stub)
        done = CliRunner().invoke(app, ["data", "subtitles", "maverix"])
        assert done.exit_code == 1

    @pytest.mark.parametrize(
        ("name", "where", "said"),
        [
            ("maverix", "sample", "is the packaged sample"),
            ("nothing", "", "no benchmark 'nothing'; known: maia, maverix"),
            ("maia", "", "see no subtitles"),
            ("maverix", "", "no data file"),
        ],
    )
    def test_one_line_for_what_is_wrong(
        self, name: str, where: str, said: str, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(transcribers, "FasterWhisper", Stub)
        if where:
            monkeypatch.setenv(settings.DATA, where)
        done = CliRunner().invoke(app, ["data", "subtitles", name])
        assert isinstance(done.exception, TasksError)
        assert said in str(done.exception)
        assert "\n" not in str(done.exception)
