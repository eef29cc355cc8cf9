"""Making subtitles: what is written, kept, said, and left when something fails.

A stub, and faster-whisper by what it is asked and answers: the package itself is not needed.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils.media import subtitles, transcription
from lmms_eval_tasks.utils.media.subtitles import Cue
from lmms_eval_tasks.utils.media.transcription import TranscriberError, Whisper
from tests.checks import refused


@dataclass
class Stub:
    """Hears the name of the file; counts what it is asked."""

    trouble: Mapping[str, Exception] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    identity = {"name": "stub", "version": "1", "model": "stub-1", "language": None}  # noqa: RUF012

    def transcribe(self, sound: Path) -> list[Cue]:
        self.heard.append(sound.stem)
        if sound.stem in self.trouble:
            raise self.trouble[sound.stem]
        return [Cue(0.5, 2.0, f"this is {sound.stem}"), Cue(2.0, 3.25, "é <laughs>")]


def sound_of(video: Path) -> Path | None:
    if "broken" in video.stem:
        raise MediaError(f"{video}: is no video")
    return None if "mute" in video.stem else video.with_suffix(".wav")


def make(folder: Path, *names: str, whisper: Any = None) -> int:
    videos = {name: Path("/videos") / f"{Path(name).name}.mp4" for name in names}
    return transcription.make(videos, folder, whisper or Stub(), sound_of=sound_of)


def test_what_is_written_and_kept(tmp_path: Path, capsys: Any) -> None:
    for name in ("a.srt", "b.vtt", "c.json"):
        (tmp_path / name).write_text("released")
    stub = Stub()
    assert make(tmp_path, "a", "b", "c", "d", "mute", "cooking/e", whisper=stub) == 0
    said = "subtitles: 2 made, 1 without sound, 3 there before, 0 failed\n"
    assert capsys.readouterr().err.endswith(said)
    found = json.loads((tmp_path / "d.json").read_text(encoding="utf-8"))
    assert len(found["transcriber"].pop("date").split("-")) == 3
    assert found["transcriber"] == Stub.identity
    assert found["segments"][1] == {"start": 2.0, "end": 3.25, "text": "é <laughs>"}
    silent = json.loads((tmp_path / "mute.json").read_text(encoding="utf-8"))
    assert (silent["segments"], silent["note"]) == ([], "the video has no sound")
    for name in ("d", "cooking/e"):
        read = subtitles.read(subtitles.find(tmp_path, name) or Path())
        assert read == [Cue(0.5, 2.0, f"this is {name[-1]}"), Cue(2.0, 3.25, "é <laughs>")]
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.*")}
    make(tmp_path, "a", "d", "mute", "f", whisper=stub)  # a later run goes on
    assert "1 made, 0 without sound, 3 there before" in capsys.readouterr().err
    assert stub.heard == ["d", "e", "f"]
    (tmp_path / "f.json").unlink()
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.glob("*.*")} == before


def test_a_failure_is_one_line_and_the_others_go_on(tmp_path: Path, capsys: Any) -> None:
    stub = Stub(trouble={"b": RuntimeError("CUDA\nout of memory"), "c": MediaError("c.wav: bad")})
    assert make(tmp_path, "a", "broken", "b", "c", "../d", "e", whisper=stub) == 4
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2] for line in said] == [
        "1/6 a: 2 cues",
        "2/6 broken: no subtitles made: /videos/broken.mp4: is no video",
        "3/6 b: no subtitles made: RuntimeError: CUDA out of memory",
        "4/6 c: no subtitles made: c.wav: bad",
        "5/6 ../d: no subtitles made: video id '../d': cannot name a subtitle file inside "
        f"{tmp_path}",
        "6/6 e: 2 cues",
        "subtitles: 2 made, 0 without sound, 0 there before, 4 failed",
    ]
    assert {file.name for file in tmp_path.iterdir()} == {"a.json", "e.json"}


def test_what_stops_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:  # an interrupted write leaves nothing
        patched.setattr(Path, "replace", full)
        words = r"a\.json: cannot be written \(No space left"
        refused(DataError, words, make, tmp_path, "a", "b")
    assert list(tmp_path.iterdir()) == []
    stub = Stub(trouble={"b": TranscriberError("no model")})
    refused(TranscriberError, "no model", make, tmp_path, "a", "b", "c", whisper=stub)
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert make(tmp_path, "a", "b") == 0
    (tmp_path / "file").touch()
    refused(DataError, r"c\.json: cannot be written", make, tmp_path / "file", "c")


def test_faster_whisper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[Any] = []
    said = [
        (1.0, 2.5, " Hello\nthere "),
        (2.5, 2.4, " reversed"),
        (3.0, 4.0, "  "),
        (9.123456, 30.0, " beyond the end"),
        (10.0, 30.0, " invented"),
    ]

    class WhisperModel:
        def __init__(self, model: str, **options: str) -> None:
            calls.append((model, options))
            if model == "absent":
                raise FileNotFoundError("not in the cache,\nand no network")

        def transcribe(self, sound: str, language: str | None) -> tuple[Any, Any]:
            calls.append((sound, language))
            found = (types.SimpleNamespace(start=a, end=b, text=text) for a, b, text in said)
            return found, types.SimpleNamespace(duration=10.0)

    wanted = r"faster-whisper is not installed: pip install 'lmms-eval-tasks\[subtitles\]'"
    refused(TranscriberError, wanted, make, tmp_path, "a", whisper=Whisper())
    package = types.ModuleType("faster_whisper")
    package.WhisperModel = WhisperModel  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "faster_whisper", package)
    monkeypatch.setattr(transcription.metadata, "version", lambda _: "1.2.1")
    whisper = Whisper(language="en")
    assert calls == []  # 3 GB are not loaded before they are needed
    for _ in range(2):
        assert whisper.transcribe(Path("a.wav")) == [
            Cue(1.0, 2.5, "Hello there"),
            Cue(2.5, 2.5, "reversed"),
            Cue(9.123, 10.0, "beyond the end"),
        ]
    loaded = ("large-v3", {"device": "auto", "compute_type": "default"})
    assert calls == [loaded, ("a.wav", "en"), ("a.wav", "en")]
    named = {"name": "faster-whisper", "version": "1.2.1", "model": "large-v3", "language": "en"}
    assert whisper.identity == {**named, "compute_type": "default"}
    wanted = r"'absent' cannot be loaded.*\(FileNotFoundError: not in the cache, and no network\)"
    refused(TranscriberError, wanted, make, tmp_path, "a", whisper=Whisper("absent"))
    assert list(tmp_path.iterdir()) == []
