"""Making subtitles with a stub: what is written, kept, said, and left when something fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils import subtitles, transcription
from lmms_eval_tasks.utils.subtitles import Cue
from lmms_eval_tasks.utils.transcribers import TranscriberError
from tests.checks import refused


@dataclass
class Stub:
    """Hears the name of the file; counts what it is asked."""

    model: str = "stub-1"
    trouble: Mapping[str, Exception] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)

    @property
    def identity(self) -> dict[str, str | None]:
        return {"name": "stub", "version": "1", "model": self.model, "language": None}

    def transcribe(self, sound: Path) -> list[Cue]:
        self.heard.append(sound.stem)
        if sound.stem in self.trouble:
            raise self.trouble[sound.stem]
        return [Cue(0.5, 2.0, f"this is {sound.stem}"), Cue(2.0, 3.25, "é <laughs>")]


def sound_of(video: Path) -> Path | None:
    if "broken" in video.stem:
        raise MediaError(f"{video}: is no video")
    return None if "mute" in video.stem else video.with_suffix(".wav")


def videos(*names: str) -> dict[str, Path]:
    return {name: Path("/videos") / f"{Path(name).name}.mp4" for name in names}


def make(
    folder: Path, *names: str, transcriber: Any = None, said: list[str] | None = None
) -> transcription.Report:
    return transcription.make(
        videos(*names),
        folder,
        transcriber or Stub(),
        sound_of=sound_of,
        say=(said if said is not None else []).append,
    )


def test_what_is_written(tmp_path: Path) -> None:
    report = make(tmp_path / "new", "a", "mute", "cooking/b")
    assert (report.made, report.silent, report.kept, report.failed) == (2, 1, 0, {})
    found = json.loads((tmp_path / "new" / "a.json").read_text(encoding="utf-8"))
    date = found["transcriber"].pop("date")
    assert len(date.split("-")) == 3
    assert found == {
        "transcriber": Stub().identity,
        "segments": [
            {"start": 0.5, "end": 2.0, "text": "this is a"},
            {"start": 2.0, "end": 3.25, "text": "é <laughs>"},
        ],
    }
    silent = json.loads((tmp_path / "new" / "mute.json").read_text(encoding="utf-8"))
    assert (silent["segments"], silent["note"]) == ([], "the video has no sound")
    read = {
        name: subtitles.read(subtitles.find(tmp_path / "new", name) or Path())
        for name in ("a", "mute", "cooking/b")
    }
    assert read["a"] == [Cue(0.5, 2.0, "this is a"), Cue(2.0, 3.25, "é <laughs>")]
    assert read["mute"] == []
    assert read["cooking/b"][0].text == "this is b"
    assert not list((tmp_path / "new").rglob(".*"))


def test_what_is_there_is_kept_and_a_later_run_goes_on(tmp_path: Path) -> None:
    for name in ("a.srt", "b.vtt", "c.json"):
        (tmp_path / name).write_text("released")
    stub = Stub()
    report = make(tmp_path, "a", "b", "c", "d", "mute", transcriber=stub)
    assert (report.made, report.silent, report.kept, report.others) == (1, 1, 3, 0)
    assert (tmp_path / "c.json").read_text() == "released"
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert before.keys() == {"a.srt", "b.vtt", "c.json", "d.json", "mute.json"}
    report = make(tmp_path, "a", "d", "mute", "e", transcriber=stub)
    assert (report.made, report.silent, report.kept, stub.heard) == (1, 0, 3, ["d", "e"])
    (tmp_path / "e.json").unlink()
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    said: list[str] = []
    make(tmp_path, "f", transcriber=Stub("stub-2"))  # files of another model are kept and counted
    report = make(tmp_path, "d", "mute", "f", transcriber=Stub("stub-2"), said=said)
    assert (report.kept, report.others) == (3, 2)
    assert "2 of those there before were made otherwise" in said[-1]


def test_a_failure_is_one_line_and_the_others_go_on(tmp_path: Path) -> None:
    said: list[str] = []
    stub = Stub(trouble={"b": RuntimeError("CUDA\nout of memory"), "c": MediaError("c.wav: bad")})
    report = make(tmp_path, "a", "broken", "b", "c", "../d", "e", transcriber=stub, said=said)
    assert report.made == 2
    assert list(report.failed) == ["broken", "b", "c", "../d"]
    assert report.failed["b"] == "RuntimeError: CUDA out of memory"
    assert report.failed["c"] == "c.wav: bad"
    assert said == [
        "1/6 a: 2 cues",
        "2/6 broken: no subtitles made: /videos/broken.mp4: is no video",
        "3/6 b: no subtitles made: RuntimeError: CUDA out of memory",
        "4/6 c: no subtitles made: c.wav: bad",
        f"5/6 ../d: no subtitles made: {report.failed['../d']}",
        "6/6 e: 2 cues",
        "subtitles: 2 made, 0 without sound, 0 there before, 4 failed",
    ]
    assert {file.name for file in tmp_path.iterdir()} == {"a.json", "e.json"}
    assert make(tmp_path, "a", "b", "c", "e").line == (
        "subtitles: 2 made, 0 without sound, 2 there before, 0 failed"
    )


def test_what_stops_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:  # an interrupted write leaves nothing
        patched.setattr(Path, "replace", full)
        words = r"a\.json: cannot be written \(No space left"
        refused(DataError, words, make, tmp_path, "a", "b")
    assert list(tmp_path.iterdir()) == []
    stub = Stub(trouble={"b": TranscriberError("no model")})
    refused(TranscriberError, "no model", make, tmp_path, "a", "b", "c", transcriber=stub)
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert make(tmp_path, "a", "b").made == 1
    (tmp_path / "file").touch()
    words = r"file: cannot be made \(File exists\)"
    refused(DataError, words, make, tmp_path / "file", "c", transcriber=stub)
    assert stub.heard == ["a", "b"]
