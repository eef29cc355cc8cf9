"""The cache of clips and segments: one making for many questions, modes, threads and processes."""

import os
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import media_files as files
import numpy as np
import pytest

from lmms_eval_tasks.media import cache as media_cache
from lmms_eval_tasks.media.clip_specs import MediaSpec, make_clip_file
from lmms_eval_tasks.media.segments import segment
from lmms_eval_tasks.utils.media import cut, mp4
from tests.checks import table

UNIFORM = MediaSpec("uniform", 32)


def test_an_entry_belongs_to_a_content(tmp_path, cache, jobs):
    source, copy = tmp_path / "v.mp4", tmp_path / "copy.mp4"
    files.write_video(source, 20)
    copy.write_bytes(source.read_bytes())
    first, again, second = (make_clip_file(path, UNIFORM) for path in (source, source, copy))
    assert (first, len(jobs)) == (again, 1)  # the second time nothing is run
    assert (second.path, second.source) == (first.path, str(copy))
    files.write_video(source, 25)
    assert make_clip_file(source, UNIFORM).n_frames == 25  # changed: made again


def test_a_change_within_a_large_file_is_seen(tmp_path, monkeypatch):
    """Even between the pieces that are read, and with the time of the last change put back."""
    # A file that counts as large; of 2 MB, 3 x 100 bytes are looked at.
    for name, value in (("_WHOLE", 10**6), ("_PIECES", 3), ("_PIECE", 100)):
        monkeypatch.setattr(media_cache, name, value)
    path = tmp_path / "large.bin"
    path.write_bytes(os.urandom(2 * 10**6))
    before, facts, content = media_cache.content_id(path), path.stat(), bytearray(path.read_bytes())
    assert media_cache.content_id(path) == before
    time.sleep(0.02)  # longer than the step of the system's clock for files
    content[500_000] ^= 255
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert media_cache.content_id(path) != before


@table("broken", ["path", "video", "video_with_sound", "sound", "note"])
@table("damage", ["delete", "cut", "zero"])
def test_a_damaged_entry_is_made_again(video, cache, broken, damage):
    def made():
        clip = make_clip_file(video, MediaSpec("uniform", 3))
        return clip if broken == "path" else segment(video, 1.3, 1.9)

    first = made()
    path = Path(getattr(first, "video" if broken == "note" else broken))
    path = path.with_suffix(".json") if broken == "note" else path
    content = path.read_bytes()
    left = {"cut": content[: len(content) // 2], "zero": b"\0" * len(content)}
    path.unlink() if damage == "delete" else path.write_bytes(left[damage])
    assert made() == first
    assert path.read_bytes() == content  # the same bytes each time


def test_no_processor_encodes_a_cut_otherwise(video, tmp_path, monkeypatch):
    """x264 takes the code that its processor runs fastest; `asm=0` is what all of them have."""
    made = []
    for code in ("", ":asm=0"):
        monkeypatch.setitem(mp4.CUT, "x264-params", mp4.PARAMS + code)
        made.append(tmp_path / f"cut{len(made)}.mp4")
        window = (Fraction("1.3"), Fraction("1.9"))
        cut.encode(str(video), cut.head(str(video)), window, None, str(made[-1]))
    assert made[0].read_bytes() == made[1].read_bytes()


def test_the_modes_of_an_item_share_one_decoding(video, cache, jobs):
    cuts = [segment(video, 1.3, 2.9) for _ in ("a", "s", "v", "vs", "av")]
    assert len(jobs) == 1
    assert cuts == [cuts[0]] * 5
    assert segment(video, 1.30, np.float64(2.9)) == cuts[0]  # equal numbers
    segment(video, 1.3, 2.91)
    assert len(jobs) == 2
    assert len(files.made_files(cache)) == 2 * 4  # two mp4 files, a wav and the note


@table("window", [(1.3, 2.9), (None, None)])
def test_muted_alone_is_the_same_video_and_nothing_else(video, window):
    both, muted = (segment(video, *window, sound=sound) for sound in (True, False))
    assert Path(muted.video).read_bytes() == Path(both.video).read_bytes()
    assert (muted.video_with_sound, muted.sound) == (None, None)
    assert (muted.start, muted.end, muted.duration) == (both.start, both.end, both.duration)
    name = Path(muted.video).stem
    assert len([one for one in Path(muted.video).parent.iterdir() if name in one.name]) == 2


def test_a_lock_ends_with_its_process_or_with_patience(tmp_path):
    code = (
        "import time, pathlib; from lmms_eval_tasks.media.cache import only_one\n"
        f"with only_one(pathlib.Path({str(tmp_path)!r}), 'entry', 1):\n"
        " print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout.readline().strip() == "held"
        start = time.monotonic()
        with media_cache.only_one(tmp_path, "entry", patience=0.3):
            assert time.monotonic() - start >= 0.3
        threading.Timer(0.3, one.kill).start()
        with media_cache.only_one(tmp_path, "entry", patience=30):
            assert time.monotonic() - start < 10


def test_leftovers_of_a_killed_maker_are_removed(video, cache):
    path = Path(make_clip_file(video, MediaSpec("uniform", 2)).path)
    path.unlink()
    old, new = (cache / f".{path.stem}.{age}" for age in ("old", "new"))
    for left in (old, new):
        left.mkdir()
        (left / "made.mp4").write_bytes(b"half")
    os.utime(old, (0, 0))
    make_clip_file(video, MediaSpec("uniform", 2))
    assert (old.exists(), new.exists(), path.exists()) == (False, True, True)


@pytest.fixture(scope="module")
def minute(tmp_path_factory):
    """60 s with a key frame every 2 s, and its head."""
    path = str(files.write_coded(tmp_path_factory.mktemp("coded") / "minute.mp4", 60, gop=50))
    return path, cut.head(path)


@table("read", [cut._pictures, cut._sound])
@table("late", [0, 2, 100])
def test_reading_begins_near_the_window(minute, monkeypatch, read, late):
    """Where a jump ends too late, or beyond the end of the file, the next one is longer."""
    seek = cut._seek
    monkeypatch.setattr(cut, "_seek", lambda *where: seek(*where[:2], where[2] + late))
    begin, _ = next(cut._from_before(*minute, Fraction("55.3"), read))
    assert (0 if late else 52) <= begin <= Fraction("55.3")
