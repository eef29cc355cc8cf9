"""Making subtitles: what is written, kept, said, left when something fails; and what hears speech.

A stub and faster-whisper by its interface; then a Whisper of random weights, really run: its text
and times are noise, its windows and how its times are counted are real.
"""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny_whisper

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils.media import subtitles, transcribers, transcription
from lmms_eval_tasks.utils.media.subtitles import Cue
from lmms_eval_tasks.utils.media.transcribers import (
    FasterWhisper,
    TranscriberError,
    TransformersWhisper,
)
from tests.checks import refused, table


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


def make(folder: Path, *names: str, transcriber: Any = None) -> transcription.Report:
    videos = {name: Path("/videos") / f"{Path(name).name}.mp4" for name in names}
    return transcription.make(videos, folder, transcriber or Stub(), sound_of=sound_of)


def test_what_is_written(tmp_path: Path) -> None:
    report = make(tmp_path / "new", "a", "mute", "cooking/b")
    assert (report.made, report.silent, report.kept, report.failed) == (2, 1, 0, {})
    found = json.loads((tmp_path / "new" / "a.json").read_text(encoding="utf-8"))
    assert len(found["transcriber"].pop("date").split("-")) == 3
    assert found["transcriber"] == Stub().identity
    assert found["segments"][1] == {"start": 2.0, "end": 3.25, "text": "é <laughs>"}
    silent = json.loads((tmp_path / "new" / "mute.json").read_text(encoding="utf-8"))
    assert (silent["segments"], silent["note"]) == ([], "the video has no sound")
    for name in ("a", "cooking/b"):
        read = subtitles.read(subtitles.find(tmp_path / "new", name) or Path())
        assert read == [Cue(0.5, 2.0, f"this is {name[-1]}"), Cue(2.0, 3.25, "é <laughs>")]


def test_what_is_there_is_kept_and_a_later_run_goes_on(tmp_path: Path, capsys: Any) -> None:
    for name in ("a.srt", "b.vtt", "c.json"):
        (tmp_path / name).write_text("released")
    stub = Stub()
    report = make(tmp_path, "a", "b", "c", "d", "mute", transcriber=stub)
    assert (report.made, report.silent, report.kept, report.others) == (1, 1, 3, 0)
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert before.keys() == {"a.srt", "b.vtt", "c.json", "d.json", "mute.json"}
    report = make(tmp_path, "a", "d", "mute", "e", transcriber=stub)
    assert (report.made, report.silent, report.kept, stub.heard) == (1, 0, 3, ["d", "e"])
    (tmp_path / "e.json").unlink()
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    make(tmp_path, "f", transcriber=Stub("stub-2"))  # files of another model are kept and counted
    report = make(tmp_path, "d", "mute", "f", transcriber=Stub("stub-2"))
    assert (report.kept, report.others) == (3, 2)
    assert "2 of those there before were made otherwise" in capsys.readouterr().err


def test_a_failure_is_one_line_and_the_others_go_on(tmp_path: Path, capsys: Any) -> None:
    stub = Stub(trouble={"b": RuntimeError("CUDA\nout of memory"), "c": MediaError("c.wav: bad")})
    report = make(tmp_path, "a", "broken", "b", "c", "../d", "e", transcriber=stub)
    assert (report.made, list(report.failed)) == (2, ["broken", "b", "c", "../d"])
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(": ")[2] for line in said] == [
        "1/6 a: 2 cues",
        "2/6 broken: no subtitles made: /videos/broken.mp4: is no video",
        "3/6 b: no subtitles made: RuntimeError: CUDA out of memory",
        "4/6 c: no subtitles made: c.wav: bad",
        f"5/6 ../d: no subtitles made: {report.failed['../d']}",
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
    refused(TranscriberError, "no model", make, tmp_path, "a", "b", "c", transcriber=stub)
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert make(tmp_path, "a", "b").made == 1
    (tmp_path / "file").touch()
    words = r"file: cannot be made \(File exists\)"
    refused(DataError, words, make, tmp_path / "file", "c", transcriber=stub)


# --- faster-whisper, by what it is asked and answers; the package itself is not needed ---------

Installed = Callable[..., list[Any]]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Put a package in place of faster-whisper that answers with given segments."""

    def install(segments: list[tuple[float, float, str]], duration: float) -> list[Any]:
        calls: list[Any] = []
        said = [types.SimpleNamespace(start=a, end=b, text=text) for a, b, text in segments]

        class WhisperModel:
            def __init__(self, model: str, device: str, compute_type: str) -> None:
                calls.append((model, device, compute_type))

            def transcribe(self, sound: str, language: str | None) -> tuple[Any, Any]:
                calls.append((sound, language))
                return iter(said), types.SimpleNamespace(duration=duration)

        package = types.ModuleType("faster_whisper")
        package.WhisperModel = WhisperModel  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "faster_whisper", package)
        monkeypatch.setattr(transcribers.metadata, "version", lambda _: "1.2.1")
        return calls

    return install


def test_faster_whisper(installed: Installed) -> None:
    segments = [
        (1.0, 2.5, " Hello\nthere "),
        (2.5, 2.4, " reversed"),
        (3.0, 4.0, "  "),
        (9.123456, 30.0, " beyond the end"),
        (10.0, 30.0, " invented"),
    ]
    calls = installed(segments, 10.0)
    whisper = FasterWhisper(language="en")
    assert calls == []  # 3 GB are not loaded before they are needed
    for _ in range(2):
        assert whisper.transcribe(Path("a.wav")) == [
            Cue(1.0, 2.5, "Hello there"),
            Cue(2.5, 2.5, "reversed"),
            Cue(9.123, 10.0, "beyond the end"),
        ]
    assert calls == [("large-v3", "auto", "default"), ("a.wav", "en"), ("a.wav", "en")]
    named = {"name": "faster-whisper", "version": "1.2.1", "model": "large-v3", "language": "en"}
    assert whisper.identity == {**named, "compute_type": "default"}


def test_without_the_package_or_the_model(tmp_path, installed, monkeypatch) -> None:
    def absent(package: str) -> str:
        raise transcribers.metadata.PackageNotFoundError(package)

    def offline(*arguments: Any, **options: Any) -> None:
        raise FileNotFoundError("not in the cache,\nand no network")

    whisper = FasterWhisper()
    with monkeypatch.context() as patch:
        patch.setattr(transcribers.metadata, "version", absent)
        wanted = r"faster-whisper is not installed: pip install 'lmms-eval-tasks\[subtitles\]'"
        refused(TranscriberError, wanted, make, tmp_path, "a", transcriber=whisper)
    installed([], 1.0)
    monkeypatch.setattr(sys.modules["faster_whisper"], "WhisperModel", offline)
    wanted = r"'large-v3' cannot be loaded.*\(FileNotFoundError: not in the cache, and no network\)"
    refused(TranscriberError, wanted, make, tmp_path, "a", transcriber=whisper)
    assert list(tmp_path.iterdir()) == []


# --- a Whisper with random weights: real windows and times, text that is noise -----------------


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory, one_thread: None) -> TransformersWhisper:
    return TransformersWhisper(str(tiny_whisper.build(tmp_path_factory.mktemp("whisper"))))


@table("seconds", [3, 30, 33])
def test_times_of_a_random_whisper(
    seconds: float, whisper: TransformersWhisper, tmp_path: Path
) -> None:
    sound = tiny_whisper.write_tones(tmp_path / "tones.wav", seconds)
    cues = whisper.transcribe(sound)
    assert cues
    assert all(0 <= cue.start <= cue.end <= seconds for cue in cues)
    assert all(before.end <= after.start for before, after in pairwise(cues))
    assert all(round(cue.start * 50, 6).is_integer() for cue in cues)  # every 0.02 s
    # Every window of 30 s is heard, and its times count from the file's beginning.
    for window in range(0, math.ceil(seconds), 30):
        assert any(window <= cue.start < window + 30 for cue in cues)


def test_sound_that_is_not_as_agreed(whisper: TransformersWhisper, tmp_path: Path) -> None:
    sound = tiny_whisper.write_tones(tmp_path / "sound.wav", 0.1, rate=44_100)
    wanted = "44100 Hz, 1 channels, 16 bits; expected 16000 Hz, 1 channel, 16 bits"
    refused(MediaError, wanted, whisper.transcribe, sound)
    sound.write_bytes(b"not a wav file")
    refused(MediaError, "cannot be read as a wav file", whisper.transcribe, sound)
    sound = tiny_whisper.write_tones(tmp_path / "tones.wav", 0.1)
    wanted = r"checkpoint '.*' cannot be loaded \(\w+Error: "
    refused(TranscriberError, wanted, TransformersWhisper(str(tmp_path)).transcribe, sound)
