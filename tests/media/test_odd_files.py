"""Files as recorders, phones and broadcasters leave them: read as players show them, or refused.

Where the program ffmpeg is installed, what is read is compared with what it shows.
"""

import re
import shutil
import subprocess

import av
import media_files as files
import numpy as np
import pytest

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import segments, video_checks
from lmms_eval_tasks.media.clip_specs import MediaSpec, make_clip_file
from lmms_eval_tasks.media.indexed_frames import load_frames
from lmms_eval_tasks.media.segments import segment
from lmms_eval_tasks.media.video_checks import probe
from tests.checks import refused, table

FFMPEG = shutil.which("ffmpeg")
LIVE = {"live": "1"}  # as a recorder writes into a pipe: the head tells no length
FRAGMENTS = {"movflags": "frag_keyframe+empty_moov"}

DISC = {"codec": "mpeg2video", "b_frames": 0, "ticks": 25}

# Options of `write_video`, and the frames and seconds that are shown.
ODD = {
    "recorder.webm": ({"codec": "libvpx", "mux_options": LIVE}, 90, 3.6),
    "recorder.mkv": ({"mux_options": LIVE, "audio": True}, 90, 3.6),
    "fragments.mp4": ({"mux_options": FRAGMENTS, "audio": True}, 90, 3.6),
    "one frame.mp4": ({"times": [0.0]}, 1, 0.04),
    "uneven.mp4": (files.SOURCES["uneven.mp4"], 90, None),
    "10 bits.mp4": ({"pix_fmt": "yuv420p10le"}, 90, 3.6),
    "odd size.mkv": ({"size": (97, 65), "pix_fmt": "yuv444p"}, 90, 3.6),
    "animated.gif": ({"codec": "gif", "pix_fmt": "rgb8", "b_frames": 0}, 90, 3.6),
    "beyond 2**31.mkv": ({"begin": 3_000_000.0}, 90, 3.6),
    "after a day.ts": ({"begin": 90_000.0, "audio": True}, 90, 3.6),
    "windows.wmv": ({"codec": "wmv2", "b_frames": 0}, 90, 3.6),
    "flash.flv": ({"codec": "flv1", "b_frames": 0}, 90, 3.6),
    "camera.m2ts": ({"audio": True}, 90, 3.6),
    "phone.3gp": ({"codec": "mpeg4", "b_frames": 0}, 90, 3.6),
    "disc.mpg": (DISC, 90, 3.6),
    "disc.mpeg": (DISC | {"codec": "mpeg1video"}, 90, 3.6),
    "CAPITALS.MP4": ({}, 90, 3.6),
}


@table("name", ODD)
def test_odd_files(tmp_path, name):
    options, n_frames, seconds = ODD[name]
    path = files.write_video(tmp_path / name, **options)
    found = probe(path)
    assert found.n_frames == n_frames
    assert found.note.startswith("its picture begins 3000000" if "2**31" in name else "")
    assert bool(found.note) == ("2**31" in name)
    if seconds:
        assert found.duration == pytest.approx(seconds, abs=0.01)
    whole = segment(path)
    assert whole.n_frames == max(n_frames, 2)
    check_against_ffmpeg(path, n_frames)


def shown(path, count=None):
    """All frames that ffmpeg shows, RGB; None without the program."""
    if FFMPEG is None:
        return None
    with av.open(str(make_clip_file(path, MediaSpec("first_frame")).path)) as file:
        width, height = file.streams.video[0].width, file.streams.video[0].height
    how = ["-v", "error", "-i", str(path), "-map", "0:V:0", "-vsync", "passthrough"]
    ways = ["-sws_flags", "+accurate_rnd", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run([FFMPEG, *how, *ways], capture_output=True, check=True)
    found = np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3)
    assert count is None or len(found) == count
    return found


def check_against_ffmpeg(path, count):
    """The first and the last frame."""
    expected = shown(path, count)
    if expected is not None:
        ours = load_frames(path, sorted({0, count - 1}), 1000).images(
            range(1, 1 + len({0, count - 1}))
        )
        for image, wanted in zip(ours, expected[sorted({0, count - 1})], strict=True):
            assert files.psnr(np.asarray(image)[None], wanted[None]) > 25


# --- several pictures, and none -------------------------------------------------------------------


def plain(colour):
    return lambda _, width, height: np.full((height, width, 3), colour, np.uint8)


def add_picture(path, out, preferred, *, first=True):
    """A copy of a film with a green picture: a cover, or a smaller film. `preferred`: its marks."""
    cover = preferred == "cover"
    still = {"codec": "png", "pix_fmt": "rgb24", "b_frames": 0} if cover else {}
    place = path.with_name(f"other {path.name}")
    other = files.write_video(place, 90, (48, 32), rgb=plain((0, 200, 0)), **still)
    marks = av.stream.Disposition
    with av.open(str(path)) as film, av.open(str(other)) as more, av.open(str(out), "w") as file:
        kinds = [(film, stream) for stream in film.streams]
        kinds.insert(0 if first else len(kinds), (more, more.streams.video[0]))
        made = {}
        for source, stream in kinds:
            track = made[id(source), stream.index] = file.add_stream_from_template(stream)
            mine = marks.attached_pic if cover else marks.default if preferred == "other" else 0
            usual = 0 if preferred == "other" and stream.type == "video" else marks.default
            track.disposition = int(getattr(mine if source is more else usual, "value", 0))
        for source in (more, film):
            for packet in source.demux():
                if packet.size and not (cover and source is more and packet.pts):
                    packet.stream = made[id(source), packet.stream.index]
                    file.mux(packet)
    return out


TWO = "holds 2 pictures: players show {}, not {}"


@table(
    "name, preferred, first, said",
    [
        ("preview first.mp4", "film", True, TWO.format("96x64", "48x32")),
        ("preview first.mkv", "film", True, TWO.format("96x64", "48x32")),
        ("preview last.mkv", "film", False, TWO.format("96x64", "48x32")),
        ("preview preferred.mkv", "other", True, TWO.format("48x32", "96x64")),
        ("cover first.mp4", "cover", True, ""),
        ("cover last.mp4", "cover", False, ""),
    ],
)
def test_the_film_is_shown_and_nothing_else(tmp_path, capsys, name, preferred, first, said):
    source = files.write_video(tmp_path / f"film.{name[-3:]}", audio=True, rgb=plain((200, 0, 0)))
    path = add_picture(source, tmp_path / name, preferred, first=first)
    assert probe(path).note == said
    for told in (said and f"videos to look at (1):\n  v: {said}\n", ""):  # once
        video_checks.look({"v": path})
        assert capsys.readouterr().err.removeprefix("lmms-eval-tasks: ") == told
    (size, channel) = ((32, 48), 1) if preferred == "other" else ((64, 96), 0)
    for made in (
        segment(path, 0.5, 1).video,
        segment(path).video,
        make_clip_file(path, MediaSpec("uniform")).path,
    ):
        seen = files.pyav_frames(made)[0]
        assert seen.shape[1:3] == size
        assert seen[..., channel].min() > 150
        assert seen[..., 1 - channel].max() < 60


def test_a_song_is_no_video(tmp_path):
    files.write_sound_only(tmp_path / "song.mp4")
    path = add_picture(tmp_path / "song.mp4", tmp_path / "cover.mp4", "cover")
    refused(MediaError, r"cover\.mp4: holds no video .*only sound and a cover picture", probe, path)
    refused(
        MediaError, r"song\.mp4: holds no video .*, only sound \(", probe, tmp_path / "song.mp4"
    )


# --- turned and mirrored --------------------------------------------------------------------------

RED, GREEN, BLUE, GRAY = (220, 0, 0), (0, 160, 0), (0, 0, 220), (128, 128, 128)


def corners(_, width, height):
    """Red and green above, blue and gray below."""
    rgb = np.zeros((height, width, 3), np.uint8)
    rgb[: height // 2, : width // 2], rgb[: height // 2, width // 2 :] = RED, GREEN
    rgb[height // 2 :, : width // 2], rgb[height // 2 :, width // 2 :] = BLUE, GRAY
    return rgb


@table(
    "matrix, above, below",
    [
        ((1, 0, 0, 1), (RED, GREEN), (BLUE, GRAY)),
        ((0, 1, -1, 0), (BLUE, RED), (GRAY, GREEN)),  # clockwise by a quarter
        ((-1, 0, 0, -1), (GRAY, BLUE), (GREEN, RED)),
        ((0, -1, 1, 0), (GREEN, GRAY), (RED, BLUE)),
        ((-1, 0, 0, 1), (GREEN, RED), (GRAY, BLUE)),  # as a mirror, like cameras of the user
        ((1, 0, 0, -1), (BLUE, GRAY), (RED, GREEN)),
        ((0, 1, 1, 0), (RED, BLUE), (GREEN, GRAY)),
        ((0, -1, -1, 0), (GRAY, GREEN), (BLUE, RED)),
    ],
)
def test_turned_and_mirrored(tmp_path, matrix, above, below):
    path = files.write_video(tmp_path / "phone.mp4", 25, rgb=corners)
    files.show_by(path, matrix)
    size = (96, 64) if matrix[0] else (64, 96)
    pictures = [load_frames(path, [3], 1000).images([1])[0]]
    pictures += [files.pyav_frames(segment(path, *window).video)[0][3] for window in WINDOWS]
    pictures += [files.pyav_frames(make_clip_file(path, MediaSpec("uniform", 8)).path)[0][3]]
    pictures += [] if FFMPEG is None else [shown(path)[3]]
    for picture in map(np.asarray, pictures):
        assert picture.shape[1::-1] == size
        places = [(y, x) for y in (8, size[1] - 8) for x in (8, size[0] - 8)]
        for place, wanted in zip(places, (*above, *below), strict=True):
            assert np.abs(picture[place].astype(int) - wanted).max() < 30, place


WINDOWS = ((0, 0.8), (None, None))


# --- joined, cut short, begun late ----------------------------------------------------------------


def test_two_recordings_in_one_file(tmp_path):
    """Clocks start anew: frames and sound of the second go on where the first ends."""
    one = files.write_coded(tmp_path / "one.ts", 4, gop=10, begin=3.4)
    path = tmp_path / "two.ts"
    path.write_bytes(one.read_bytes() * 2)
    assert probe(path).n_frames == 80
    assert probe(path).duration == pytest.approx(8, abs=0.1)
    cut = segment(path, 3, 6)
    read, times = files.numbers_and_times(cut.video)
    assert read == [*range(30, 40), *range(20)][: len(read)]
    assert len(read) in (29, 30)
    assert times[:10] == pytest.approx([n / 10 for n in range(10)], abs=1e-3)
    clip = make_clip_file(path, MediaSpec("uniform", 80))
    assert files.numbers_and_times(clip.path)[0] == [*range(40), *range(40)]
    files.check_sound(segments.samples(cut.sound)[:16_000], 16_000, 3, 4)
    if FFMPEG:
        assert len(shown(path)) == 80


CUT_SHORT = {
    "cut.avi": {"codec": "mpeg4", "b_frames": 0, "ticks": 25},
    "cut.flv": {"codec": "flv1", "b_frames": 0},
}


@table("name", CUT_SHORT)
def test_a_file_that_is_cut_short(tmp_path, name):
    whole = files.write_video(tmp_path / f"whole{name[3:]}", **CUT_SHORT[name])
    assert probe(whole).n_frames == 90
    (tmp_path / name).write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    refused(MediaError, f"{name}: is cut short", probe, tmp_path / name)


@table(
    "name, late, sound, said",
    [
        ("v.mkv", 0.0, True, False),
        ("v.mkv", 0.02, True, False),
        ("v.mkv", 1.5, True, True),
        ("v.mkv", 1.5, False, True),  # its clock begins at 0, where players begin
        ("v.mp4", 1.5, False, True),
        ("v.ts", 1.5, False, False),  # its clock is a broadcaster's
        ("v.ts", 1.5, True, True),
    ],
)
def test_a_picture_that_begins_late_is_said(tmp_path, name, late, sound, said):
    track = files.Sound(files.hum(3).samples, start=0.0) if sound else None
    times = [late + n / 25 for n in range(60)]
    note = probe(files.write_video(tmp_path / name, times=times, sound=track)).note
    assert bool(note) == said
    assert not said or re.match(r"its picture begins 1\.[45][0-9]* s after the file: ", note)


def test_pixels_that_are_not_square_are_said(tmp_path):
    wide = files.write_video(tmp_path / "v.mkv", 10, options={"x264-params": "sar=2/1"})
    said = "its pixels are not square (2:1): models see square pixels, players stretch the picture"
    assert probe(wide).note == said
