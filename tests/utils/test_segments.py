"""Cutting segments: exactly the window's frames and sounds, in every file that is made."""

import itertools
import json
import math

import media_files as files
import numpy as np
import pytest
import segment_files as coded
from scipy.signal import resample_poly

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.segments import segment

START, END = 1.37, 4.81
STEADY = [n / 25 for n in range(200)]
UNEVEN = [time + 0.013 * (n % 3) for n, time in enumerate(STEADY) if n % 7 != 3]
RESAMPLER = 40  # dB


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """8 s, B-frames, one key frame, stereo AAC."""
    return coded.write(tmp_path_factory.mktemp("coded") / "coded.mp4")


@pytest.fixture(scope="module")
def cut(source, cache):
    return segment(source, START, END, cache)


def check_picture(path, times, start=START, end=END, tolerance=1e-4):
    """The frames of `times` in [start, end) and no other, each at its time and of its second."""
    wanted = [n for n, time in enumerate(times) if start <= round(time, 6) < end]
    read, shown = coded.frames_and_times(path)
    seconds = [int(times[n] + 1e-6) % len(coded.COLOURS) for n in wanted]
    assert read == list(zip(seconds, wanted, strict=True))
    assert shown == pytest.approx([times[n] - start for n in wanted], abs=tolerance)
    assert len(files.decord_frames(path)) == len(wanted)
    assert [coded.read_picture(rgb) for rgb in files.decord_frames(path)] == read


def check_sound(samples, rate, start=START, end=END):
    """Each 20 ms is of the second that it should be; either of two where the second changes."""
    assert len(samples) / rate == pytest.approx(end - start, abs=coded.WINDOW)
    heard = coded.seconds_heard(samples[: math.ceil((end - start) * rate)], rate)
    assert len(heard) >= int((end - start) / coded.WINDOW) - 1
    for number, second in enumerate(heard):
        time = start + number * coded.WINDOW
        assert second in {int(time + 1e-6), int(time + coded.WINDOW - 1e-6)}, time


def check_all(cut, times, start=START, end=END, tolerance=1e-4):
    for path in (cut.video, cut.video_with_sound):
        check_picture(path, times, start, end, tolerance)
    assert coded.streams(cut.video) == ["video"]
    assert sorted(coded.streams(cut.video_with_sound)) == ["audio", "video"]
    wav = coded.read_wav(cut.sound)
    check_sound(wav, 16_000, start, end)
    track, begins, rate = coded.read_track(cut.video_with_sound)
    assert abs(begins) <= 1e-3
    check_sound(track, rate, start, end)
    assert abs(coded.lag(track[:: rate // 16_000], wav)) <= 16  # a millisecond


def test_a_segment_is_its_window_and_nothing_else(source, cut):
    check_all(cut, STEADY)
    assert (cut.start, cut.end, cut.duration) == (START, END, pytest.approx(END - START))
    assert (cut.n_frames, cut.fps) == (86, pytest.approx(86 / 3.44))
    assert (cut.width, cut.height, cut.rotation) == (*coded.SIZE, 0)
    assert (cut.has_audio, cut.channels, cut.sample_rate) == (True, 2, 48_000)
    assert (cut.sound_duration, cut.silence_filled) == (pytest.approx(3.44, abs=1e-4), 0)
    assert (cut.encoded, cut.clamped, cut.vfr) == (True, False, False)
    assert cut.first_frame == pytest.approx(0.03)
    assert json.loads(json.dumps(cut.as_dict())) == cut.as_dict()


@pytest.mark.parametrize(
    ("start", "end"), [(2.0, 4.0), (0, 0.5), (None, 1.37), (6.2, None), (7.96, 8), (3.0, 3.04)]
)
def test_windows_of_all_kinds(source, cache, start, end):
    check_all(segment(source, start, end, cache), STEADY, start or 0.0, 8.0 if end is None else end)


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


@pytest.mark.parametrize("name", SOURCES)
def test_formats(tmp_path, name):
    options = SOURCES[name]
    path = coded.write(tmp_path / name, **options)
    times = options.get("times", STEADY)
    cut = segment(path, START, END, tmp_path / "cache")
    check_all(cut, times, tolerance=1e-3 if name.endswith("mkv") else 1e-4)
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
    check_all(segment(path, START, END, tmp_path / "cache"), STEADY, tolerance=1e-3)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000])
def test_the_wav_is_the_mean_of_the_channels_resampled(tmp_path, rate):
    gains = (0.2, 1.4)
    path = coded.write(tmp_path / "pcm.mov", 3, audio="pcm_s16le", rate=rate, gains=gains)
    cut = segment(path, 0.513, 2.2, tmp_path / "cache")
    first, last = -(-513 * rate // 1000), -(-22 * rate // 10)
    mean = 0.8 * coded.wave_of(rate, 3)[first:last]
    wav = coded.read_wav(cut.sound)
    assert len(wav) == math.ceil(len(mean) * 16_000 / rate)
    common = math.gcd(16_000, rate)
    reference = resample_poly(mean, 16_000 // common, rate // common)[: len(wav)]
    inner = slice(200, min(len(wav), len(reference)) - 200)
    error = wav[inner] - reference[inner]
    assert 10 * math.log10((reference[inner] ** 2).mean() / (error**2).mean()) > RESAMPLER
    if rate == 16_000:
        assert np.abs(wav - mean).max() < 2 / 2**15  # sample by sample, both ends included


def test_the_track_is_the_wav(cut):
    wav = coded.read_wav(cut.sound)
    track, _, rate = coded.read_track(cut.video_with_sound)
    common = resample_poly(track, 1, rate // 16_000)[: len(wav)]
    assert coded.lag(common, wav) == 0
    error = common - wav[: len(common)]
    assert 10 * math.log10((wav**2).mean() / (error[200:-400] ** 2).mean()) > 25


def test_decord_hears_the_same(cut):
    import decord

    wav = coded.read_wav(cut.sound)
    heard = decord.AudioReader(cut.video_with_sound, sample_rate=16_000, mono=True)
    samples = heard[:].asnumpy()[0]
    assert abs(coded.lag(samples, wav)) <= 0.02 * 16_000
    check_sound(samples[: len(wav)], 16_000)


def test_the_picture_is_visually_lossless(tmp_path):
    path = files.write_video(tmp_path / "textured.mp4", 90, (320, 240), options={"crf": "18"})
    cut = segment(path, 1.01, 2.5, tmp_path / "cache")
    expected = files.pyav_frames(path)[0][26:63]
    assert files.psnr(files.pyav_frames(cut.video)[0], expected) > 42


KINDS = {
    "bt709 full range.mp4": {"matrix": 1, "full_range": True, "pix_fmt": "yuvj420p"},
    "10 bits.mp4": {"pix_fmt": "yuv420p10le"},
    "422.mp4": {"pix_fmt": "yuv422p"},
    "rgb.mov": {"codec": "png", "pix_fmt": "rgb24"},
    "gray.mkv": {"codec": "ffv1", "pix_fmt": "gray"},
}


@pytest.mark.parametrize("name", KINDS)
def test_colours_of_other_formats(tmp_path, name):
    """Fine textures lose chroma in 4:2:0, so means of areas are compared."""
    path = files.write_video(tmp_path / name, 30, **KINDS[name])
    cut = segment(path, 0.2, 0.8, tmp_path / "cache")
    read, expected = files.pyav_frames(cut.video)[0], files.pyav_frames(path)[0][5:20]
    assert read.shape == expected.shape

    def areas(rgb):
        return rgb.reshape(-1, 8, 8, 12, 8, 3).mean(axis=(2, 4))

    assert np.abs(areas(read) - areas(expected)).mean() < 2.5


def luma(path):
    import av

    with av.open(str(path)) as file:
        frames = [frame.to_ndarray(format="gray") for frame in file.decode(video=0)]
    return np.stack(frames)


@pytest.mark.parametrize("size", [(97, 65), (96, 65), (17, 3)])
def test_odd_sizes_become_even_by_repeating_the_border(tmp_path, size):
    path = files.write_video(tmp_path / "odd.mkv", 10, size, codec="ffv1", pix_fmt="yuv420p", gop=1)
    cut = segment(path, 0.1, 0.3, tmp_path / "cache")
    assert (cut.width, cut.height) == (size[0] + size[0] % 2, size[1] + size[1] % 2)
    read, expected = luma(cut.video), luma(path)[3:8]
    assert read.shape[1:] == (cut.height, cut.width)
    assert files.psnr(read[:, : size[1], : size[0], None], expected[..., None]) > 40
    border = np.pad(expected, [(0, 0), (0, size[1] % 2), (0, size[0] % 2)], mode="edge")
    assert files.psnr(read[..., None], border[..., None]) > 40


@pytest.mark.parametrize("window", [(0.2, 0.8), (None, None)])
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_video_is_upright(tmp_path, degrees, window):
    path = files.write_video(tmp_path / "phone.mp4", 25)
    files.rotate(path, degrees)
    cut = segment(path, *window, tmp_path / "cache")
    assert cut.rotation == degrees
    assert (cut.width, cut.height) == ((96, 64) if degrees == 180 else (64, 96))
    expected = files.decord_frames(path)[slice(5, 20) if window[0] else slice(None)]
    read = files.pyav_frames(cut.video)[0]
    assert read.shape == expected.shape
    assert files.psnr(read, expected) > 40


@pytest.mark.parametrize("times", [STEADY, UNEVEN, [n * 0.7 for n in range(11)]])
def test_readers_can_seek(tmp_path, times):
    import av

    path = coded.write(tmp_path / "v.mp4", times=times, audio=None)
    cut = segment(path, 0.3, 7.5, tmp_path / "cache")
    with av.open(cut.video) as file:
        assert file.streams.video[0].codec_context.pix_fmt == "yuv420p"
        keys = [(p.pts * p.time_base, p.is_keyframe) for p in file.demux(video=0) if p.size]
    between = 0
    for (before, _), (time, is_key) in itertools.pairwise(keys):
        between += time - before
        assert between <= 1 or is_key
        between = 0 if is_key else between
    assert keys[0][1]


def test_a_file_without_time_stamps_is_counted(tmp_path):
    path = coded.write(tmp_path / "raw.h264", audio=None)
    check_picture(segment(path, START, END, tmp_path / "cache").video, STEADY)
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
    check_sound(coded.read_wav(cut.sound), 16_000, 1.89, 4.81)
    check_picture(cut.video_with_sound, STEADY, 1.89, 4.81)
    whole = segment(tmp_path / "trimmed.mp4", None, None, tmp_path / "cache")
    assert whole.encoded
    check_picture(whole.video, STEADY, 1.52, 8)
    check_sound(coded.read_wav(whole.sound), 16_000, 1.52, 8)


def test_damage_outside_the_window_does_no_harm(source, tmp_path):
    import av

    with av.open(str(source)) as file:
        packets = [packet for packet in file.demux(video=0) if packet.size]
    data = bytearray(source.read_bytes())
    for packet in packets[80:90]:
        data[packet.pos + 6 : packet.pos + packet.size] = bytes(packet.size - 6)
    path = tmp_path / "damaged.mp4"
    path.write_bytes(data)
    check_all(segment(path, 0.5, 2.5, tmp_path / "cache"), STEADY, 0.5, 2.5)
    with pytest.raises(MediaError, match=r"damaged\.mp4: .*(not a readable|cannot be decoded)"):
        segment(path, START, END, tmp_path / "cache")


def test_no_sound(tmp_path):
    path = coded.write(tmp_path / "silent.mp4", audio=None)
    cut = segment(path, START, END, tmp_path / "cache")
    assert (cut.sound, cut.video_with_sound, cut.has_audio) == (None, None, False)
    assert (cut.channels, cut.sample_rate, cut.sound_duration) == (0, 0, 0)
    check_picture(cut.video, STEADY)


def test_sound_that_begins_late_keeps_its_time(tmp_path):
    path = coded.write(tmp_path / "late.mov", audio="pcm_s16le", sound=(2.5, 8))
    cut = segment(path, START, END, tmp_path / "cache")
    wav = coded.read_wav(cut.sound)
    quiet = round((2.5 - START) * 16_000)
    assert np.abs(wav[: quiet - 40]).max() < 1e-3
    check_sound(wav[quiet:], 16_000, 2.5, END)
    assert cut.silence_filled == pytest.approx(2.5 - START, abs=1e-4)
    assert len(wav) == math.ceil(cut.duration * 16_000 - 1e-6)


def test_sound_that_ends_early_ends_early(tmp_path):
    path = coded.write(tmp_path / "short.mov", audio="pcm_s16le", sound=(0, 3.25))
    cut = segment(path, START, END, tmp_path / "cache")
    check_sound(coded.read_wav(cut.sound), 16_000, START, 3.25)
    assert (cut.sound_duration, cut.duration) == (pytest.approx(1.88), pytest.approx(3.44))
    check_picture(cut.video_with_sound, STEADY)
    silent = segment(path, 4, 5, tmp_path / "cache")
    assert (silent.sound, silent.video_with_sound, silent.has_audio) == (None, None, True)
    assert len(files.made_files(tmp_path / "cache")) == 4 + 2


def test_sound_that_goes_on_after_the_last_frame(tmp_path):
    path = coded.write(tmp_path / "long.mov", 6, times=STEADY[:75], audio="pcm_s16le")
    cut = segment(path, 2.5, 4.5, tmp_path / "cache")
    check_picture(cut.video, STEADY[:75], 2.5, 4.5)
    check_sound(coded.read_wav(cut.sound), 16_000, 2.5, 4.5)
    still = segment(path, 4.5, 5.5, tmp_path / "cache")  # the last frame stays on screen
    assert coded.frames_and_times(still.video)[0] == [(2, 74)]
    check_sound(coded.read_wav(still.sound), 16_000, 4.5, 5.5)
    whole = segment(path, None, None, tmp_path / "cache")
    assert (whole.end, whole.sound_duration) == (pytest.approx(6), pytest.approx(6))
    with pytest.raises(MediaError, match=r"long\.mov: the segment .* end of the file \(6\.000 s\)"):
        segment(path, 5, 6.2, tmp_path / "cache")


def test_one_frame(tmp_path):
    path = coded.write(tmp_path / "one.mp4", 2, times=[0.0])
    for window in [(None, None), (0, 1.5), (0.5, 1)]:
        cut = segment(path, *window, tmp_path / "cache")
        assert cut.n_frames == 1
        assert coded.frames_and_times(cut.video) == ([(0, 0)], [0.0])
        assert len(files.decord_frames(cut.video_with_sound)) == 1
    alone = coded.write(tmp_path / "alone.mp4", 1, times=[0.0], audio=None)
    assert segment(alone, None, None, tmp_path / "cache").n_frames == 1


def test_a_window_in_which_no_frame_begins_shows_the_one_on_screen(tmp_path):
    path = coded.write(tmp_path / "slides.mp4", times=[0.0, 2.0, 4.0, 6.0])
    cut = segment(path, 2.3, 3.7, tmp_path / "cache")
    assert coded.frames_and_times(cut.video) == ([(2, 1)], [0.0])
    check_sound(coded.read_wav(cut.sound), 16_000, 2.3, 3.7)


def test_the_whole_file_is_copied(source, cache):
    whole = segment(source, None, None, cache)
    assert (whole.encoded, whole.start, whole.n_frames) == (False, 0, 200)
    assert whole.end == pytest.approx(8, abs=0.03)
    assert np.array_equal(files.pyav_frames(whole.video)[0], files.pyav_frames(source)[0])
    assert coded.streams(whole.video) == ["video"]
    check_picture(whole.video_with_sound, STEADY, 0, 8)
    check_sound(coded.read_wav(whole.sound), 16_000, 0, 8)
    assert segment(source, 0, None, cache) == whole


@pytest.mark.parametrize(("name", "encoded"), [
    ("begins late.mkv", False),
    ("begins late.ts", False),
    ("uneven.mp4", False),
    ("mpeg4.avi", False),
    ("rgb.mov", True),
])  # fmt: skip
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
        check_picture(whole.video_with_sound, times, 0, end, tolerance=1.1e-3)
        check_sound(coded.read_wav(whole.sound)[: int(end * 16_000)], 16_000, 0, end)


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


@pytest.mark.parametrize("name", WINDOWS)
def test_a_wrong_window_is_one_clear_line(source, tmp_path, name):
    window, message = WINDOWS[name]
    with pytest.raises(MediaError, match=message) as caught:
        segment(source, *window, tmp_path)
    assert str(caught.value).startswith(f"{source}: ")
    assert "\n" not in str(caught.value)
    assert files.made_files(tmp_path) == []


def test_an_end_within_a_frame_of_the_files_end_is_taken_back(tmp_path):
    path = coded.write(tmp_path / "v.mp4", audio=None)
    exact, beyond = (segment(path, 7.5, end, tmp_path / "cache") for end in (8, 8.03))
    assert (exact.end, exact.clamped, exact.n_frames) == (8, False, 12)
    assert (beyond.end, beyond.clamped, beyond.n_frames) == (8, True, 12)


@pytest.mark.parametrize(("name", "message"), [
    ("sound.mp4", "holds only sound, no video"),
    ("no frames.mp4", "holds no video"),
    ("text.mp4", "not a readable video"),
    ("empty.mp4", "is empty"),
    ("absent.mp4", "no such file"),
    ("cut short.mp4", "is cut short|not a readable video"),
])  # fmt: skip
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
        with pytest.raises(MediaError, match=message) as caught:
            segment(path, *window, tmp_path / "cache")
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
