"""Where a file ends: with the later of its last frame and its sound; and its sound alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import media_files as files
import numpy as np
import pytest
import segment_files as coded

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import probes, sound_files, worker_call
from lmms_eval_tasks.utils.segments import segment, sound_file
from tests.checks import refused, table

KINDS = {
    "sound goes on.mp4": ({"sound": (0, 12)}, 12),
    "sound goes on.mkv": ({"sound": (0, 12), "audio": "flac"}, 12),
    "sound goes on.ts": ({"sound": (0, 12), "begin": 3.4}, 12),
    "sound alone at the end.mov": ({"sound": (10, 12), "audio": "pcm_s16le"}, 12),
    "sound ends first.mp4": ({"sound": (0, 3)}, 8),
    "sound begins late.mp4": ({"sound": (6, 8)}, 8),
    "no sound.mp4": ({"audio": None}, 8),
}


@table("name", KINDS)
def test_the_end_is_that_of_segments(tmp_path: Path, name: str) -> None:
    options, end = KINDS[name]
    path = coded.write(tmp_path / name, 8, **options)
    facts = probes.probe(path)
    assert facts.duration == pytest.approx(8, abs=0.05)
    assert facts.end == pytest.approx(end, abs=0.05)
    assert facts.end >= facts.duration
    # What a probe promises can be cut, and no more.
    last = segment(path, 7.5, facts.end, tmp_path / "cache")
    assert last.end == pytest.approx(facts.end, abs=0.011)
    beyond, words = (7.5, facts.end + 0.1), "ends after the end of the file"
    refused(MediaError, words, segment, path, *beyond, tmp_path / "cache")


def track_end(path: str, kind: str) -> float:
    with av.open(path) as file:
        (stream,) = (stream for stream in file.streams if stream.type == kind)
        return float((stream.start_time + stream.duration) * stream.time_base)


@table(
    "window, b_frames",
    [((4, 10), 0), ((4, 10), 2), ((9, 11), 2), ((7.9, None), 0), ((None, None), 2)],
)
def test_after_the_picture_its_last_frame_stays(tmp_path: Path, window: Any, b_frames: int) -> None:
    """No frame is made up (a single one is shown twice); both files last as long as the window."""
    path = coded.write(tmp_path / "v.mp4", 8, sound=(0, 12), b_frames=b_frames)
    cut = segment(path, *window, tmp_path / "cache")
    start, end = window[0] or 0, window[1] or 12
    assert cut.duration == pytest.approx(end - start, abs=0.03)
    assert cut.encoded == (window != (None, None))
    numbers = [number for _, number in coded.frames_and_times(cut.video)[0]]
    assert numbers == (list(range(start * 25, 200)) if start in (0, 4) else numbers)
    assert numbers[-1] == 199
    assert len(numbers) == {0: 200, 4: 100, 9: 2, 7.9: 2}[start]
    for made in (cut.video, cut.video_with_sound):
        assert track_end(made, "video") == pytest.approx(cut.duration, abs=1e-3)
        assert len(files.decord_frames(made)) == len(numbers)
    assert track_end(cut.video_with_sound, "audio") == pytest.approx(cut.duration, abs=0.03)


# --- the sound of a whole file, alone ----------------------------------------------------------


def test_the_sound_alone_is_that_of_the_whole_segment(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sound_file(source, tmp_path)
    assert len(files.made_files(tmp_path)) == 2  # the wav and its note: no picture
    coded.check_sound(coded.read_wav(made), 16_000, 0, 8)
    whole = segment(source, None, None, tmp_path)
    assert whole.sound is not None
    assert Path(made).read_bytes() == Path(whole.sound).read_bytes()
    monkeypatch.setattr(worker_call, "call", None)  # any use of it would be a TypeError
    assert sound_file(str(source), tmp_path) == made


def test_the_sound_alone_counts_from_the_first_frame(tmp_path: Path) -> None:
    path = coded.write(tmp_path / "v.ts", 4, begin=3.4, sound=(1, 4))
    wav = coded.read_wav(sound_file(path, tmp_path / "cache"))
    assert np.abs(wav[:15_000]).max() < 1e-2
    coded.check_sound(wav[16_000:64_000], 16_000, 1, 4)


def test_no_sound_to_write(source: Path, tmp_path: Path) -> None:
    path, cache = coded.write(tmp_path / "silent.mp4", 1, audio=None), tmp_path / "cache"
    (tmp_path / "file").touch()
    for file, folder, words in (
        (path, cache, r"silent\.mp4: has no audio stream"),
        (tmp_path / "absent.mp4", cache, "no such file"),
        (source, tmp_path / "file" / "cache", r"coded\.mp4: .* its sound not be written"),
    ):
        refused(MediaError, words, sound_file, file, folder)
    assert files.made_files(cache) == []


def test_samples(source: Path, tmp_path: Path) -> None:
    path = sound_file(source, tmp_path)
    assert np.array_equal(sound_files.samples(path), coded.read_wav(path).astype(np.float32))
    assert sound_files.samples(Path(path)).dtype == np.float32
    refused(MediaError, r"coded\.mp4: cannot be read as a wav file", sound_files.samples, source)
