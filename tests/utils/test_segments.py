"""Cutting segments: exactly the window's frames and sounds, in every file that is made."""

import json

import media_files as files
import numpy as np
import pytest
import segment_files as coded
from segment_files import END, START, STEADY, UNEVEN

from lmms_eval_tasks.utils.segments import segment
from tests.checks import table


@pytest.fixture(scope="module")
def cut(source, cache):
    return segment(source, START, END, cache)


def test_a_segment_is_its_window_and_nothing_else(source, cut):
    coded.check_all(cut, STEADY)
    assert (cut.start, cut.end, cut.duration) == (
        START,
        END,
        pytest.approx(END - START),
    )
    assert (cut.n_frames, cut.fps) == (86, pytest.approx(86 / 3.44))
    assert (cut.width, cut.height, cut.rotation) == (*coded.SIZE, 0)
    assert (cut.has_audio, cut.channels, cut.sample_rate) == (True, 2, 48_000)
    assert (cut.sound_duration, cut.silence_filled) == (pytest.approx(3.44, abs=1e-4), 0)
    assert (cut.encoded, cut.clamped, cut.vfr) == (True, False, False)
    assert cut.first_frame == pytest.approx(0.03)
    assert json.loads(json.dumps(cut.as_dict())) == cut.as_dict()


@table("start, end", [(2.0, 4.0), (0, 0.5), (None, 1.37), (6.2, None), (7.96, 8), (3.0, 3.04)])
def test_windows_of_all_kinds(source, cache, start, end):
    coded.check_all(
        segment(source, start, end, cache), STEADY, start or 0.0, 8.0 if end is None else end
    )


EIGHT = [gain / 4.5 for gain in range(1, 9)]  # the mean is 1
SOURCES = {
    "matroska.mkv": {"audio": "libmp3lame", "rate": 44_100},
    "open gop.ts": {"gop": 20, "options": {"x264-params": "open-gop=1", "crf": "16"}},
    "open gop.mp4": {"gop": 20, "options": {"x264-params": "open-gop=1", "crf": "16"}},
    "mpeg4.avi": {
        "codec": "mpeg4",
        "b_frames": 0,
        "options": {"qscale": "2"},
        "audio": "pcm_s16le",
    },
    "uneven.mp4": {"times": UNEVEN},
    "begins late.mp4": {"begin": 3.4},
    "begins late.ts": {"begin": 3.4},
    "begins late.mkv": {"begin": 3.4, "times": UNEVEN, "audio": "flac"},
    "eight channels.mov": {"audio": "pcm_s16le", "layout": "7.1", "gains": EIGHT},
    "eight channels.mp4": {"audio": "aac", "layout": "7.1", "gains": EIGHT},
}


@table("name", SOURCES)
def test_formats(tmp_path, name):
    options = SOURCES[name]
    path = coded.write(tmp_path / name, **options)
    times = options.get("times", STEADY)
    cut = segment(path, START, END, tmp_path / "cache")
    coded.check_all(cut, times, tolerance=1e-3 if name.endswith("mkv") else 1e-4)
    assert cut.vfr == (times is UNEVEN)
    assert cut.channels == (8 if "eight" in name else 2)
    if options.get("audio") == "pcm_s16le":
        # the mean of the channels
        assert np.abs(coded.read_wav(cut.sound)).max() == pytest.approx(0.5, abs=0.01)


def test_vp9_and_opus(tmp_path):
    # libvpx in a process of its own: see media_files.write_video
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        options = {"codec": "libvpx-vp9", "options": {"crf": "10", "cpu-used": "8"}}
        path = tmp_path / "vp9.webm"
        fresh.submit(coded.write, path, audio="libopus", **options).result()
    coded.check_all(segment(path, START, END, tmp_path / "cache"), STEADY, tolerance=1e-3)


def test_a_file_without_time_stamps_is_counted(tmp_path):
    path = coded.write(tmp_path / "raw.h264", audio=None)
    coded.check_picture(segment(path, START, END, tmp_path / "cache").video, STEADY)
    whole = segment(path, None, None, tmp_path / "cache")
    assert (whole.encoded, whole.n_frames, whole.end) == (True, 200, 8)


def trim(source, path, seconds):
    """A copy that players show from `seconds` on, as phones trim videos: by an edit list."""
    import av

    with av.open(str(source)) as file, av.open(str(path), "w") as copy:
        streams = [copy.add_stream_from_template(stream) for stream in file.streams]
        for packet in file.demux():
            if packet.size:
                packet.pts -= round(seconds / packet.time_base)
                packet.dts -= round(seconds / packet.time_base)
                packet.duration = packet.duration or 512  # of the last frame, a 25th
                packet.stream = streams[packet.stream.index]
                copy.mux(packet)


def test_what_an_edit_list_hides_is_not_there(source, tmp_path):
    trim(source, tmp_path / "trimmed.mp4", 1.52)
    cut = segment(tmp_path / "trimmed.mp4", 0.37, 3.29, tmp_path / "cache")
    coded.check_sound(coded.read_wav(cut.sound), 16_000, 1.89, 4.81)
    coded.check_picture(cut.video_with_sound, STEADY, 1.89, 4.81)
    whole = segment(tmp_path / "trimmed.mp4", None, None, tmp_path / "cache")
    assert whole.encoded
    coded.check_picture(whole.video, STEADY, 1.52, 8)
    coded.check_sound(coded.read_wav(whole.sound), 16_000, 1.52, 8)


def test_one_frame_is_shown_twice(tmp_path):
    """Qwen's reader and others refuse a video of one frame."""
    path = coded.write(tmp_path / "one.mp4", 2, times=[0.0])
    for window in [(None, None), (0, 1.5), (0.5, 1)]:
        cut = segment(path, *window, tmp_path / "cache")
        assert cut.n_frames == 2
        assert coded.frames_and_times(cut.video) == ([(0, 0)] * 2, [0.0, cut.duration / 2])
        assert len(files.decord_frames(cut.video_with_sound)) == 2
    alone = coded.write(tmp_path / "alone.mp4", 1, times=[0.0], audio=None)
    assert segment(alone, None, None, tmp_path / "cache").n_frames == 2


def test_a_window_in_which_no_frame_begins_shows_the_one_on_screen(tmp_path):
    path = coded.write(tmp_path / "slides.mp4", times=[0.0, 2.0, 4.0, 6.0])
    cut = segment(path, 2.3, 3.7, tmp_path / "cache")
    assert coded.frames_and_times(cut.video) == ([(2, 1)] * 2, [0.0, pytest.approx(0.7)])
    coded.check_sound(coded.read_wav(cut.sound), 16_000, 2.3, 3.7)


def test_the_whole_file_is_copied(source, cache):
    whole = segment(source, None, None, cache)
    assert (whole.encoded, whole.start, whole.n_frames) == (False, 0, 200)
    assert whole.end == pytest.approx(8, abs=0.03)
    assert np.array_equal(files.pyav_frames(whole.video)[0], files.pyav_frames(source)[0])
    assert coded.streams(whole.video) == ["video"]
    coded.check_picture(whole.video_with_sound, STEADY, 0, 8)
    coded.check_sound(coded.read_wav(whole.sound), 16_000, 0, 8)
    assert segment(source, 0, None, cache) == whole


@table("name, encoded")
def test_whole_files_of_other_kinds(tmp_path, name, encoded):
    if name == "rgb.mov":
        path = files.write_video(tmp_path / name, 30, codec="png", pix_fmt="rgb24")
    else:
        path = coded.write(tmp_path / name, **SOURCES[name])
    whole = segment(path, None, None, tmp_path / "cache")
    assert (whole.encoded, whole.start) == (encoded, 0)
    if name != "rgb.mov":
        times = SOURCES[name].get("times", STEADY)
        end = times[-1] + 0.04
        coded.check_picture(whole.video_with_sound, times, 0, end, tolerance=1.1e-3)
        coded.check_sound(coded.read_wav(whole.sound)[: int(end * 16_000)], 16_000, 0, end)
