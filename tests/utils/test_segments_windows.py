"""Where windows lie: files with odd time stamps, ends of files, windows that are none, damage."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import media_files as files
import numpy as np
import pytest
import segment_files as coded
from segment_files import STEADY

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import probes, recipes, segment_head, sound_files, video_source
from lmms_eval_tasks.utils.media.segments import segment, sound_file
from tests.checks import refused, table

# --- time stamps that repeat, go back and forth, are absent or step back: never a wrong picture --

# 5 frames a second for 8 s, then 25 for 8 s: no rate is right for all of it.
VFR = [n / 5 for n in range(40)] + [8 + n / 25 for n in range(200)]


@pytest.fixture(scope="module")
def repeating(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A file some of whose frames have the time stamps of those before them, and its stamps."""
    stamps = list(VFR)
    for k in (3, 17, 18, 60, 150):
        stamps[k + 1] = stamps[k]
    path = tmp_path_factory.mktemp("vfr") / "vfr.mkv"
    coded.write(path, times=VFR, stamps=stamps, gop=50, b_frames=0, audio=None)
    return path, stamps


@table("window", [(3.2, 5.1), (7.0, 9.0), (12.0, 15.0), (0.0, 1.0), (None, None)])
def test_a_repeated_time_leaves_the_others_where_they_are(
    repeating: Any, tmp_path: Path, window: Any
) -> None:
    path, stamps = repeating
    cut = segment(path, *window, tmp_path)
    start, end = window[0] or 0, window[1] or 16
    wanted = [n for n, stamp in enumerate(stamps) if start <= stamp < end]
    read, shown = coded.frames_and_times(cut.video)
    assert [number for _, number in read] == wanted
    assert shown == pytest.approx([stamps[n] - start for n in wanted], abs=6e-3)
    assert (cut.start, cut.end) == (start, pytest.approx(end, abs=0.01))


def test_a_repeated_time_does_not_change_length_or_clips(repeating: Any, tmp_path: Path) -> None:
    path, _ = repeating
    clip = recipes.make(path, recipes.Recipe("uniform", 80), tmp_path)
    wanted = recipes.uniform_indices(len(VFR), 80)
    assert [number for _, number in coded.frames_and_times(clip.path)[0]] == wanted
    decoded = video_source.decoded_table(str(path))
    assert len(decoded.times) == len(VFR)
    for length in (probes.probe(path).duration, clip.duration, decoded.duration):
        assert length == pytest.approx(16, abs=0.01)


def test_times_in_the_order_of_decoding_are_counted_at_their_true_rate(tmp_path: Path) -> None:
    """AVI tells nothing else of B-frames, and its header calls the clock the rate."""
    path = coded.write(tmp_path / "b.avi", audio="pcm_s16le")
    assert segment_head.head(str(path)).clock.rate == 25
    assert probes.probe(path).duration == pytest.approx(8, abs=0.1)  # by the header's frames
    assert video_source.decoded_table(str(path)).duration == pytest.approx(8)
    cut = segment(path, 1.4, 4.8, tmp_path / "cache")
    coded.check_picture(cut.video, STEADY, 1.4, 4.8)


def test_a_clock_that_steps_back_is_an_error(tmp_path: Path) -> None:
    """Two recordings in one file, each from 0 on: no window across the seam means anything."""
    one = coded.write(tmp_path / "one.ts", 4, gop=25).read_bytes()
    path = tmp_path / "two.ts"
    path.write_bytes(one + one)
    said = r"two\.ts: has time stamps that step back from 3\.960 to 0\.000 s; convert it"
    refused(MediaError, said, segment, path, 0.5, 5, tmp_path / "c")


@table(
    "times, rate",
    [
        ([0, 0, 1, 2, 3, 4], None),
        ([0, None, 2, 3, 4], None),
        ([0, 0, 0, 0, 1], 30),
        ([None, None, None, 5], 30),
        ([24, 72, 96, 48, 144, 168, 120], Fraction(1000, 24)),
    ],
)
def test_when_to_count(times: list[int | None], rate: Fraction | None) -> None:
    call, tick = video_source.counting_rate, Fraction(1, 1000)
    assert call(times, tick, Fraction(30)) == rate
    refused(MediaError, "not in order", call, [0, 90, 40, 200, 100], tick, Fraction(25))
    assert call([None] * 5, tick, None) == 25  # raw streams
    assert video_source.ascending([5, 5, None, 9, 8, 20]) == [5, 6, 7, 9, 10, 20]


# --- a file ends with the later of its last frame and its sound --------------------------------

ENDS = {
    "sound goes on.mp4": ({"sound": (0, 12)}, 12),
    "sound goes on.mkv": ({"sound": (0, 12), "audio": "flac"}, 12),
    "sound goes on.ts": ({"sound": (0, 12), "begin": 3.4}, 12),
    "sound alone at the end.mov": ({"sound": (10, 12), "audio": "pcm_s16le"}, 12),
    "sound ends first.mp4": ({"sound": (0, 3)}, 8),
    "no sound.mp4": ({"audio": None}, 8),
}


@table("name", ENDS)
def test_the_end_is_that_of_segments(tmp_path: Path, name: str) -> None:
    options, end = ENDS[name]
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
    numbers = [number for _, number in coded.frames_and_times(cut.video)[0]]
    first = {0: 0, 4: 100, 7.9: 198, 9: 199}[start]
    assert numbers == (list(range(first, 200)) if start < 9 else [199, 199])
    for made in (cut.video, cut.video_with_sound):
        assert track_end(made, "video") == pytest.approx(cut.duration, abs=1e-3)
        assert len(files.decord_frames(made)) == len(numbers)
    assert track_end(cut.video_with_sound, "audio") == pytest.approx(cut.duration, abs=0.03)


def test_the_sound_alone_is_that_of_the_whole_segment(source: Path, tmp_path: Path) -> None:
    made = sound_file(source, tmp_path)
    assert len(files.made_files(tmp_path)) == 2  # the wav and its note: no picture
    heard = coded.read_wav(made)
    coded.check_sound(heard, 16_000, 0, 8)
    assert np.array_equal(sound_files.samples(made), heard.astype(np.float32))
    whole = segment(source, None, None, tmp_path)
    assert whole.sound is not None
    assert Path(made).read_bytes() == Path(whole.sound).read_bytes()
    path = coded.write(tmp_path / "v.ts", 4, begin=3.4, sound=(1, 4))  # from the first frame on
    wav = coded.read_wav(sound_file(path, tmp_path / "cache"))
    assert np.abs(wav[:15_000]).max() < 1e-2
    coded.check_sound(wav[16_000:64_000], 16_000, 1, 4)


def test_no_sound_to_write(source: Path, tmp_path: Path) -> None:
    silent, cache = coded.write(tmp_path / "silent.mp4", 1, audio=None), tmp_path / "cache"
    refused(MediaError, r"silent\.mp4: has no audio stream", sound_file, silent, cache)
    assert files.made_files(cache) == []
    (tmp_path / "file").touch()
    words = r"coded\.mp4: .* not be written"
    refused(MediaError, words, sound_file, source, tmp_path / "file" / "cache")


# --- windows that are none and files that are damaged: one clear line each ---------------------

DAMAGES = {
    "picture.mp4": ("video", {"gop": 25}, 8, 12, (9.2, 10.4)),
    "from the window on.mkv": ("video", {"gop": 25}, 10, 12, (9.2, 10.4)),
    "sound for long.mp4": ("audio", {}, 2, 15, (9.2, 10.4)),
    "all sound.mp4": ("audio", {}, -1, 16, (0, 2)),
    "sound within.mp4": ("audio", {}, 9.8, 10.0, (9.2, 10.4)),
    "within a group of pictures.mp4": ("video", {}, 9.4, 9.8, (9.2, 10.4)),
}


@table("name", DAMAGES)
def test_damage_in_the_window_is_one_line_with_the_place(tmp_path: Path, name: str) -> None:
    """A probe looks at the file's beginning only; whoever cuts is told what is wrong and where."""
    kind, options, begin, until, window = DAMAGES[name]
    path = coded.write(tmp_path / name, 16, **options)
    coded.damage(path, kind, begin, until)
    assert probes.probe(path).duration == pytest.approx(16)
    text = refused(MediaError, "is damaged", segment, path, *window, tmp_path / "cache")
    what = "picture" if kind == "video" else "sound"
    found = re.fullmatch(
        rf"(.*): is damaged: its {what} (after|near) ([\d.]+) s cannot be decoded", text
    )
    assert found, text
    assert found[1] == str(path)
    assert max(begin, 0) - 1.1 <= float(found[3]) <= window[1]
    assert files.made_files(tmp_path / "cache") == []
    for good in ((0.5, 1.5), (13, 15)):  # elsewhere it does no harm
        if until <= good[0] or begin > good[1]:
            times = [n / 25 for n in range(400)]
            coded.check_all(segment(path, *good, tmp_path / "cache"), times, *good, tolerance=1e-3)


@table(
    "window, message",
    [
        ((9, 10), r"starts after the end of the file \(8\.0\d\d s\)"),
        ((1e6, 2e6), "starts after the end of the file"),
        ((8.5, None), "starts after the end of the file"),
        ((7, 8.5), r"ends after the end of the file \(8\.0\d\d s\)"),
        ((3, 2), "ends before it starts"),
        ((3, 3), "is empty"),
        ((-1, 2), "must not be negative"),
        ((float("nan"), 2), "must be finite"),
        ((1, float("inf")), "must be finite"),
        (("one", 2), "'one' is not a number of seconds"),
    ],
)
def test_a_wrong_window_is_one_clear_line(
    source: Path, tmp_path: Path, window: Any, message: str
) -> None:
    text = refused(MediaError, message, segment, source, *window, tmp_path)
    assert text.startswith(f"{source}: ")
    assert files.made_files(tmp_path) == []


def test_an_end_within_a_frame_of_the_files_end_is_taken_back(tmp_path: Path) -> None:
    path = coded.write(tmp_path / "v.mp4", audio=None)
    exact, beyond = (segment(path, 7.5, end, tmp_path / "cache") for end in (8, 8.03))
    assert (exact.end, exact.n_frames) == (beyond.end, beyond.n_frames) == (8, 12)
