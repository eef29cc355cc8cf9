"""Making subtitles: with a stub, and with a Whisper of random weights, whose text is noise."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny_whisper

from lmms_eval_tasks.errors import DataError, MediaError
from lmms_eval_tasks.utils import subtitles, transcribers, transcription
from lmms_eval_tasks.utils.subtitles import Cue
from lmms_eval_tasks.utils.transcribers import (
    FasterWhisper,
    TranscriberError,
    TransformersWhisper,
)


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


# --- making -----------------------------------------------------------------------------------


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


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    for name in ("a.srt", "b.vtt", "c.json"):
        (tmp_path / name).write_text("released")
    stub = Stub()
    report = make(tmp_path, "a", "b", "c", "d", transcriber=stub)
    assert (report.made, report.kept, report.others) == (1, 3, 0)
    assert stub.heard == ["d"]
    assert {file.name for file in tmp_path.iterdir()} == {"a.srt", "b.vtt", "c.json", "d.json"}
    assert (tmp_path / "c.json").read_text() == "released"


def test_a_second_run_makes_nothing_and_a_third_goes_on(tmp_path: Path) -> None:
    make(tmp_path, "a", "mute")
    before = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    stub = Stub()
    report = make(tmp_path, "a", "mute", transcriber=stub)
    assert (report.made, report.silent, report.kept, stub.heard) == (0, 0, 2, [])
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    report = make(tmp_path, "a", "mute", "b", transcriber=stub)
    assert (report.made, report.kept, stub.heard) == (1, 2, ["b"])


def test_files_of_another_model_are_kept_and_counted(tmp_path: Path) -> None:
    make(tmp_path, "a", "b")
    make(tmp_path, "c", transcriber=Stub("stub-2"))
    said: list[str] = []
    report = make(tmp_path, "a", "b", "c", transcriber=Stub("stub-2"), said=said)
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


def test_a_transcriber_that_cannot_work_stops_the_run(tmp_path: Path) -> None:
    stub = Stub(trouble={"b": TranscriberError("no model")})
    with pytest.raises(TranscriberError, match="no model"):
        make(tmp_path, "a", "b", "c", transcriber=stub)
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupted_write_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", full)
        with pytest.raises(DataError, match=r"a\.json: cannot be written \(No space left"):
            make(tmp_path, "a", "b")
    assert list(tmp_path.iterdir()) == []
    assert make(tmp_path, "a", "b").made == 2


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    stub = Stub()
    with pytest.raises(DataError, match=r"file: cannot be made \(File exists\)"):
        make(tmp_path / "file", "a", transcriber=stub)
    assert stub.heard == []


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


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(package: str) -> str:
        raise transcribers.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(transcribers.metadata, "version", absent)
    wanted = r"faster-whisper is not installed: pip install 'lmms-eval-tasks\[subtitles\]'"
    with pytest.raises(TranscriberError, match=wanted):
        FasterWhisper().transcribe(tmp_path / "a.wav")
    with pytest.raises(TranscriberError, match=wanted):
        make(tmp_path, "a", transcriber=FasterWhisper())


def test_without_the_model(
    tmp_path: Path,
    installed: Callable[[list[Said], float], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed([], 1.0)

    def offline(*arguments: Any, **options: Any) -> None:
        raise FileNotFoundError("not in the cache,\nand no network")

    monkeypatch.setattr(sys.modules["faster_whisper"], "WhisperModel", offline)
    with pytest.raises(TranscriberError, match="'large-v3' cannot be loaded") as caught:
        make(tmp_path, "a", "b", transcriber=FasterWhisper())
    assert "(FileNotFoundError: not in the cache, and no network)" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# --- a Whisper with random weights: real windows and times, text that is noise -----------------


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransformersWhisper]:
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only waits for more of them
    yield TransformersWhisper(str(tiny_whisper.build(tmp_path_factory.mktemp("whisper"))))
    torch.set_num_threads(before)


@pytest.mark.parametrize("seconds", [3, 29.9, 30, 33, 75])
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


def test_a_random_whisper_repeats_itself(whisper: TransformersWhisper, tmp_path: Path) -> None:
    sound = tiny_whisper.write_tones(tmp_path / "tones.wav", 40)
    again = TransformersWhisper(whisper.path, language="en")
    assert whisper.transcribe(sound) == whisper.transcribe(sound)
    assert again.transcribe(sound) != []
    assert whisper.identity["model"] == whisper.path


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


@pytest.mark.parametrize(
    ("form", "wanted"),
    [
        ({"rate": 44_100}, "44100 Hz, 1 channels, 16 bits; expected 16000 Hz, 1 channel, 16 bits"),
        ({"channels": 8}, "16000 Hz, 8 channels"),
        (None, "cannot be read as a wav file"),
    ],
)
def test_sound_that_is_not_as_agreed(
    form: dict[str, int] | None, wanted: str, whisper: TransformersWhisper, tmp_path: Path
) -> None:
    sound = tmp_path / "sound.wav"
    if form is None:
        sound.write_bytes(b"not a wav file")
    else:
        tiny_whisper.write_tones(sound, 0.1, **form)
    with pytest.raises(MediaError, match=wanted):
        whisper.transcribe(sound)


def test_no_checkpoint(tmp_path: Path) -> None:
    sound = tiny_whisper.write_tones(tmp_path / "tones.wav", 0.1)
    with pytest.raises(TranscriberError, match=r"checkpoint '.*' cannot be loaded \(\w+Error: "):
        TransformersWhisper(str(tmp_path)).transcribe(sound)


def test_importing_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'numpy', 'faster_whisper', 'av', 'decord'}"
    code = (
        "import sys, lmms_eval_tasks.utils.transcription; "
        f"print(sorted({heavy} & {{name.split('.')[0] for name in sys.modules}}))"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert done.stdout.strip() == "[]"
