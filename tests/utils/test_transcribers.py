"""What hears speech: faster-whisper by its interface, and a Whisper of random weights, really run.

The random model's text and times are noise; what is real are its windows, and how its times are
written, ordered and counted from the file's beginning.
"""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny_whisper

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import subtitles, transcribers, transcription
from lmms_eval_tasks.utils.subtitles import Cue
from lmms_eval_tasks.utils.transcribers import (
    FasterWhisper,
    TranscriberError,
    TransformersWhisper,
)
from tests.checks import refused, table


def make(folder: Path, transcriber: transcribers.Transcriber) -> transcription.Report:
    """Subtitles of one video, whose sound is a.wav."""
    return transcription.make(
        {"a": Path("a.mp4")},
        folder,
        transcriber,
        sound_of=lambda video: video.with_suffix(".wav"),
        say=[].append,
    )


# --- faster-whisper, by what it is asked and answers; the package itself is not needed ---------


@dataclass
class Said:
    """faster_whisper.transcribe.Segment, as far as we look at it."""

    start: float
    end: float
    text: str


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Said], float], list[Any]]:
    """Put a package in place of faster-whisper that answers with given segments."""

    def install(segments: list[Said], duration: float) -> list[Any]:
        calls: list[Any] = []

        class WhisperModel:
            def __init__(self, model: str, device: str, compute_type: str) -> None:
                calls.append((model, device, compute_type))

            def transcribe(self, sound: str, language: str | None) -> tuple[Any, Any]:
                calls.append((sound, language))
                return iter(segments), types.SimpleNamespace(duration=duration)

        package = types.ModuleType("faster_whisper")
        package.WhisperModel = WhisperModel  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "faster_whisper", package)
        monkeypatch.setattr(transcribers.metadata, "version", lambda _: "1.2.1")
        return calls

    return install


def test_faster_whisper(installed: Callable[[list[Said], float], list[Any]]) -> None:
    segments = [
        Said(1.0, 2.5, " Hello\nthere "),
        Said(2.5, 2.4, " reversed"),
        Said(3.0, 4.0, "  "),
        Said(9.123456, 30.0, " beyond the end"),
        Said(10.0, 30.0, " invented"),
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
    assert whisper.identity == {
        "name": "faster-whisper",
        "version": "1.2.1",
        "model": "large-v3",
        "language": "en",
        "compute_type": "default",
    }


def test_names() -> None:
    for name in ("large-v3", "org/model", "/folder/of/a/model"):
        made = transcribers.make(name, device="cpu", language="en")
        assert made == FasterWhisper(name, device="cpu", language="en")
    made = transcribers.make("hf:openai/whisper-tiny", language="it")
    assert made == TransformersWhisper("openai/whisper-tiny", device="auto", language="it")
    for name in ("", "hf:"):
        refused(TranscriberError, f"{name!r} names no Whisper model", transcribers.make, name)


def test_without_the_package_or_the_model(tmp_path, installed, monkeypatch) -> None:
    def absent(package: str) -> str:
        raise transcribers.metadata.PackageNotFoundError(package)

    def offline(*arguments: Any, **options: Any) -> None:
        raise FileNotFoundError("not in the cache,\nand no network")

    with monkeypatch.context() as patch:
        patch.setattr(transcribers.metadata, "version", absent)
        wanted = r"faster-whisper is not installed: pip install 'lmms-eval-tasks\[subtitles\]'"
        refused(TranscriberError, wanted, FasterWhisper().transcribe, tmp_path / "a.wav")
        refused(TranscriberError, wanted, make, tmp_path, FasterWhisper())
    installed([], 1.0)
    monkeypatch.setattr(sys.modules["faster_whisper"], "WhisperModel", offline)
    wanted = r"'large-v3' cannot be loaded.*\(FileNotFoundError: not in the cache, and no network\)"
    refused(TranscriberError, wanted, make, tmp_path, FasterWhisper())
    assert list(tmp_path.iterdir()) == []


# --- a Whisper with random weights: real windows and times, text that is noise -----------------


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersWhisper]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only waits for more of them
    yield TransformersWhisper(str(tiny_whisper.build(tmp_path_factory.mktemp("whisper"))))
    torch.set_num_threads(before)


@table("seconds", [3, 30, 33])
def test_times_of_a_random_whisper(
    seconds: float, whisper: TransformersWhisper, tmp_path: Path
) -> None:
    cues = whisper.transcribe(tiny_whisper.write_tones(tmp_path / "tones.wav", seconds))
    assert cues
    assert all(0 <= cue.start <= cue.end <= seconds for cue in cues)
    assert cues == sorted(cues, key=lambda cue: (cue.start, cue.end))
    assert all(before.end <= after.start for before, after in pairwise(cues))
    assert all(round(cue.start * 50, 6).is_integer() for cue in cues)  # every 0.02 s
    # Every window of 30 s is heard, and its times count from the file's beginning.
    for window in range(0, math.ceil(seconds), 30):
        assert subtitles.cut(cues, window, min(window + 30, seconds), min_share=0)


def test_sound_that_is_not_as_agreed(whisper: TransformersWhisper, tmp_path: Path) -> None:
    expected = "expected 16000 Hz, 1 channel, 16 bits"
    for form, wanted in (
        ({"rate": 44_100}, f"44100 Hz, 1 channels, 16 bits; {expected}"),
        ({"channels": 8}, "16000 Hz, 8 channels"),
    ):
        sound = tiny_whisper.write_tones(tmp_path / "sound.wav", 0.1, **form)
        refused(MediaError, wanted, whisper.transcribe, sound)
    sound.write_bytes(b"not a wav file")
    refused(MediaError, "cannot be read as a wav file", whisper.transcribe, sound)
    sound = tiny_whisper.write_tones(tmp_path / "tones.wav", 0.1)
    wanted = r"checkpoint '.*' cannot be loaded \(\w+Error: "
    refused(TranscriberError, wanted, TransformersWhisper(str(tmp_path)).transcribe, sound)


def test_a_random_whisper_makes_files(whisper: TransformersWhisper, tmp_path: Path) -> None:
    sound = tiny_whisper.write_tones(tmp_path / "tones.wav", 33)
    folder = tmp_path / "subtitles"
    report = transcription.make(
        {"a": Path("a.mp4"), "b": Path("b.mp4")},
        folder,
        whisper,
        sound_of=lambda video: sound if video.stem == "a" else None,
        say=[].append,
    )
    assert (report.made, report.silent) == (1, 1)
    assert subtitles.read(folder / "a.json") == whisper.transcribe(sound) != []
    made_by = json.loads((folder / "a.json").read_text(encoding="utf-8"))["transcriber"]
    assert made_by.items() >= whisper.identity.items()
