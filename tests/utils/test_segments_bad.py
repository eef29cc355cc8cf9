"""Windows that are none and files that are bad: one clear line each."""

import re

import media_files as files
import pytest
import segment_files as coded
from segment_files import END, START, STEADY

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import probes
from lmms_eval_tasks.utils.segments import segment
from tests.checks import refused, table

LONG = [n / 25 for n in range(400)]


def test_damage_outside_the_window_does_no_harm(source, tmp_path):
    import av

    with av.open(str(source)) as file:
        packets = [packet for packet in file.demux(video=0) if packet.size]
    data = bytearray(source.read_bytes())
    for packet in packets[80:90]:
        data[packet.pos + 6 : packet.pos + packet.size] = bytes(packet.size - 6)
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    coded.check_all(segment(path, 0.5, 2.5, tmp_path / "cache"), STEADY, 0.5, 2.5)
    words = r"damaged\.mp4: is damaged: its picture after \d+\.\d\d\d s"
    refused(MediaError, words, segment, path, START, END, tmp_path / "cache")


DAMAGES = {
    "picture.mp4": ("video", {"gop": 25}, 8, 12, (9.2, 10.4)),
    "picture.mkv": ("video", {"gop": 25}, 8, 12, (9.2, 10.4)),
    "from the window on.mp4": ("video", {"gop": 25}, 10, 12, (9.2, 10.4)),
    "sound.mp4": ("audio", {}, 9, 11, (9.2, 10.4)),
    "sound before it too.mp4": ("audio", {}, 2, 11, (9.2, 10.4)),
    "sound for long.mp4": ("audio", {}, 2, 15, (9.2, 10.4)),
    "all sound.mp4": ("audio", {}, -1, 16, (9.2, 10.4)),
    "all sound from the beginning.mp4": ("audio", {}, -1, 16, (0, 2)),
    "sound within.mp4": ("audio", {}, 9.8, 10.0, (9.2, 10.4)),
}


@table("name", DAMAGES)
def test_damage_in_the_window_is_one_line_with_the_place(tmp_path, name):
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
    for good in ((0.5, 1.5), (13, 15)):
        if until <= good[0] or begin > good[1]:
            coded.check_all(segment(path, *good, tmp_path / "cache"), LONG, *good, tolerance=1e-3)


WINDOWS = {
    "beyond": ((9, 10), r"starts after the end of the file \(8\.0\d\d s\)"),
    "far beyond": ((1e6, 2e6), "starts after the end of the file"),
    "to the end from beyond": ((8.5, None), "starts after the end of the file"),
    "end beyond": ((7, 8.5), r"ends after the end of the file \(8\.0\d\d s\)"),
    "reversed": ((3, 2), "ends before it starts"),
    "empty": ((3, 3), "is empty"),
    "negative": ((-1, 2), "must not be negative"),
    "nan": ((float("nan"), 2), "must be finite"),
    "infinite": ((1, float("inf")), "must be finite"),
    "text": (("one", 2), "'one' is not a number of seconds"),
}


@table("name", WINDOWS)
def test_a_wrong_window_is_one_clear_line(source, tmp_path, name):
    window, message = WINDOWS[name]
    text = refused(MediaError, message, segment, source, *window, tmp_path)
    assert text.startswith(f"{source}: ")
    assert files.made_files(tmp_path) == []


def test_an_end_within_a_frame_of_the_files_end_is_taken_back(tmp_path):
    path = coded.write(tmp_path / "v.mp4", audio=None)
    exact, beyond = (segment(path, 7.5, end, tmp_path / "cache") for end in (8, 8.03))
    assert (exact.end, exact.clamped, exact.n_frames) == (8, False, 12)
    assert (beyond.end, beyond.clamped, beyond.n_frames) == (8, True, 12)


@table("name, message")
def test_a_bad_file_is_one_clear_line(source, tmp_path, name, message):
    path = tmp_path / name
    if name == "sound.mp4":
        files.write_sound_only(path)
    elif name == "no frames.mp4":
        files.write_no_frames(path)
    elif name == "cut short.mp4":
        path.write_bytes(source.read_bytes()[:20_000])
    elif name != "absent.mp4":
        path.write_text("no video" * 100 if name == "text.mp4" else "")
    for window in [(0.5, 1), (None, None)]:
        text = refused(MediaError, message, segment, path, *window, tmp_path / "cache")
        assert text.startswith(f"{path}: ")
