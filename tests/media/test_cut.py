"""Cutting segments: exactly the window's frames and sounds, in every file that is made."""

import math
import re

import av
import media_files as files
import numpy as np
import pytest
from media_files import END, START, STEADY, UNEVEN
from scipy.signal import resample_poly

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media import clip_specs
from lmms_eval_tasks.media.segments import samples, segment
from lmms_eval_tasks.media.video_checks import probe
from tests.checks import refused, table


def test_a_segment_is_its_window_and_nothing_else(source):
    import decord

    cut = segment(source, START, END)
    files.check_all(cut, STEADY)
    assert (cut.start, cut.end, cut.duration) == (START, END, pytest.approx(END - START))
    assert (cut.n_frames, cut.width, cut.height) == (35, *files.SIZE)
    heard = decord.AudioReader(cut.video_with_sound, sample_rate=16_000, mono=True)
    files.check_sound(heard[:].asnumpy()[0][: len(samples(cut.sound))], 16_000)
    for start, end in [(2.0, 4.0), (0, 0.5), (None, 1.37), (6.2, None)]:
        files.check_all(segment(source, start, end), STEADY, start or 0.0, end or 8.0)


EIGHT = [gain / 4.5 for gain in range(1, 9)]  # the mean is 1
OPEN = {"gop": 8, "options": {"x264-params": "open-gop=1", "crf": "16"}}
MPEG4 = {"codec": "mpeg4", "b_frames": 0, "options": {"qscale": "2"}, "audio": "pcm_s16le"}
VP9 = {"codec": "libvpx-vp9", "options": {"crf": "10", "cpu-used": "8"}, "audio": "libopus"}
SOURCES = {
    "matroska.mkv": {"audio": "libmp3lame", "rate": 44_100},
    "open gop.ts": OPEN,
    "open gop.mp4": OPEN,
    "mpeg4.avi": MPEG4,
    "vp9.webm": VP9,
    "rgb.mov": {"codec": "png", "pix_fmt": "rgb24", "options": {}},
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
    cut = segment(files.write_coded(tmp_path / name, **options), START, END)
    tolerance = 1e-3 if name.endswith(("mkv", "webm")) else 1e-4
    files.check_all(cut, options.get("times", STEADY), tolerance=tolerance)
    if options.get("audio") == "pcm_s16le":
        # the mean of the channels
        assert np.abs(samples(cut.sound)).max() == pytest.approx(0.5, abs=0.01)


@table("name, encoded")
def test_a_whole_file_is_copied_where_it_can_be(tmp_path, name, encoded):
    path = files.write_coded(tmp_path / name, **SOURCES.get(name, {}))
    whole = segment(path, None, None)
    times = SOURCES.get(name, {}).get("times", STEADY)
    end = times[-1] + 0.04
    assert (whole.start, whole.n_frames) == (0, len(times))
    same = np.array_equal(files.pyav_frames(whole.video)[0], files.pyav_frames(path)[0])
    assert same != encoded
    assert files.streams(whole.video) == ["video"]
    files.check_picture(whole.video_with_sound, times, 0, end, tolerance=1.1e-3)
    files.check_sound(samples(whole.sound)[: int(end * 16_000)], 16_000, 0, end)
    assert segment(path, 0, None) == whole


def test_a_file_without_sound(tmp_path):
    path = files.write_coded(tmp_path / "silent.mp4", audio=None)
    cut, whole = segment(path, START, END), segment(path)
    assert (cut.sound, cut.video_with_sound, whole.sound) == (None, None, None)
    files.check_picture(cut.video, STEADY)
    assert (whole.n_frames, whole.end) == (80, 8)
    late = segment(path, 7.5, 8.08)  # an end within a frame of the file's end is taken back
    assert (late.end, late.n_frames) == (8, 5)


def test_what_an_edit_list_hides_is_not_there(source, tmp_path):
    """Phones trim videos by an edit list: players show this copy from 1.5 s on."""
    path = tmp_path / "trimmed.mp4"
    with av.open(str(source)) as file, av.open(str(path), "w") as copy:
        streams = [copy.add_stream_from_template(stream) for stream in file.streams]
        for packet in file.demux():
            if packet.size:
                packet.pts -= round(1.5 / packet.time_base)
                packet.dts -= round(1.5 / packet.time_base)
                packet.duration = packet.duration or 1280  # of the last frame, a tenth
                packet.stream = streams[packet.stream.index]
                copy.mux(packet)
    for window, shown in (((0.37, 3.29), (1.87, 4.79)), ((None, None), (1.5, 8))):
        cut = segment(path, *window)
        files.check_sound(samples(cut.sound), 16_000, *shown)
        files.check_picture(cut.video_with_sound, STEADY, *shown)


# --- frames and their times ---------------------------------------------------------------------


def test_one_frame_is_shown_twice(tmp_path):
    """Qwen's reader and others refuse a video of one frame."""
    path = files.write_coded(tmp_path / "one.mp4", 2, times=[0.0])
    for window in [(None, None), (0, 1.5), (0.5, 1)]:
        cut = segment(path, *window)
        assert cut.n_frames == 2
        assert files.numbers_and_times(cut.video) == ([0, 0], [0.0, cut.duration / 2])
        assert len(files.decord_frames(cut.video_with_sound)) == 2
    # A window in which no frame begins shows the one on screen.
    path = files.write_coded(tmp_path / "slides.mp4", times=[0.0, 2.0, 4.0, 6.0])
    cut = segment(path, 2.3, 3.7)
    assert files.numbers_and_times(cut.video) == ([1, 1], [0.0, pytest.approx(0.7)])
    files.check_sound(samples(cut.sound), 16_000, 2.3, 3.7)


# 5 frames a second for 8 s, then 25 for 8 s: no rate is right for all of it.
VFR = [n / 5 for n in range(40)] + [8 + n / 25 for n in range(200)]


def test_a_repeated_time_leaves_the_others_where_they_are(tmp_path):
    stamps = list(VFR)
    for k in (3, 17, 18, 60, 150):
        stamps[k + 1] = stamps[k]
    path, how = tmp_path / "vfr.mkv", {"gop": 50, "b_frames": 0, "audio": None, "fps": 25}
    files.write_coded(path, times=VFR, stamps=stamps, **how)
    for window in [(3.2, 5.1), (7.0, 9.0), (12.0, 15.0), (0.0, 1.0), (None, None)]:
        cut = segment(path, *window)
        start, end = window[0] or 0, window[1] or 16
        wanted = [n for n, stamp in enumerate(stamps) if start <= stamp < end]
        read, shown = files.numbers_and_times(cut.video)
        assert read == wanted
        assert shown == pytest.approx([stamps[n] - start for n in wanted], abs=6e-3)
        assert (cut.start, cut.end) == (start, pytest.approx(end, abs=0.01))
    clip = clip_specs.make_clip_file(path, clip_specs.MediaSpec("uniform", 80))
    assert files.numbers_and_times(clip.path)[0] == clip_specs.uniform_indices(len(VFR), 80)
    assert probe(path).duration == pytest.approx(16, abs=0.01)


def test_times_that_cannot_be_used_are_an_error(tmp_path):
    """AVI tells the order of decoding only, raw streams nothing."""
    files.write_coded(tmp_path / "b.avi", audio="pcm_s16le")
    files.write_coded(tmp_path / "raw.h264", audio=None)
    for name, said in (
        ("b.avi", r"step back from .* s; convert it"),
        ("raw.h264", "has frames without times; convert it"),
    ):
        path = tmp_path / name
        refused(MediaError, rf"{name}: .*{said}", segment, path, 0.5, 5)
        clip = (clip_specs.make_clip_file, path, clip_specs.MediaSpec("uniform", 9))
        refused(MediaError, rf"{name}: .*{said}", *clip)


# --- the picture: quality, formats, sizes, rotation, key frames --------------------------------

FORMATS = ["bt709.mp4", "full range.mp4", "10 bits.mp4", "422.mp4", "rgb.mov", "gray.mkv"]


@table("name", ["textured.mp4", *FORMATS])
def test_the_picture_is_visually_lossless(tmp_path, name):
    textured = {"size": (320, 240), "options": {"crf": "18"}}
    path = files.write_video(tmp_path / name, 30, **files.SOURCES.get(name, textured))
    cut = segment(path, 0.2, 0.8)
    read, expected = files.pyav_frames(cut.video)[0], files.pyav_frames(path)[0][5:20]
    assert read.shape == expected.shape
    if name == "textured.mp4":
        assert files.psnr(read, expected) > 42
    else:  # fine textures lose chroma in 4:2:0
        means = [rgb.reshape(-1, 8, 8, 12, 8, 3).mean(axis=(2, 4)) for rgb in (read, expected)]
        assert np.abs(means[0] - means[1]).mean() < 2.5


@table("size", [(97, 65), (96, 65), (17, 3)])
def test_odd_sizes_become_even_by_repeating_the_border(tmp_path, size):
    path = files.write_video(tmp_path / "odd.mkv", 10, size, codec="ffv1", pix_fmt="yuv420p", gop=1)
    cut = segment(path, 0.1, 0.3)
    assert (cut.width, cut.height) == (size[0] + size[0] % 2, size[1] + size[1] % 2)
    luma = []
    for one in (path, cut.video):
        with av.open(str(one)) as file:
            luma.append(np.stack([f.to_ndarray(format="gray") for f in file.decode(video=0)]))
    border = [(0, 0), (0, size[1] % 2), (0, size[0] % 2)]
    expected = np.pad(luma[0][3:8], border, mode="edge")
    assert files.psnr(luma[1][..., None], expected[..., None]) > 40


@table("degrees", [90, 180, 270])
def test_a_turned_video_is_upright(tmp_path, degrees):
    path = files.write_video(tmp_path / "phone.mp4", 25)
    files.rotate(path, degrees)
    for window in ((0.2, 0.8), (None, None)):
        cut = segment(path, *window)
        assert (cut.width, cut.height) == ((96, 64) if degrees == 180 else (64, 96))
        expected = files.decord_frames(path)[slice(5, 20) if window[0] else slice(None)]
        read = files.pyav_frames(cut.video)[0]
        assert read.shape == expected.shape
        assert files.psnr(read, expected) > 40


@table("times", [STEADY, UNEVEN, [n * 0.7 for n in range(11)]])
def test_readers_can_seek(tmp_path, times):
    cut = segment(files.write_coded(tmp_path / "v.mp4", times=times, audio=None), 0.3, 7.5)
    with av.open(cut.video) as file:
        assert file.streams.video[0].codec_context.pix_fmt == "yuv420p"
        keys = [(p.pts * p.time_base, p.is_keyframe) for p in file.demux(video=0) if p.size]
    for time, _ in keys:  # a key frame is never more than a second away
        assert any(is_key and time - 1 <= key <= time for key, is_key in keys)


# --- the sound: downmix, rate, gaps, and sources with little sound -----------------------------


@table("rate", [8_000, 11_025, 16_000, 44_100, 96_000])
def test_the_wav_is_the_mean_of_the_channels_resampled(tmp_path, rate):
    pcm = {"audio": "pcm_s16le", "rate": rate, "gains": (0.2, 1.4)}
    cut = segment(files.write_coded(tmp_path / "pcm.mov", 3, **pcm), 0.513, 2.2)
    first, last = -(-513 * rate // 1000), -(-22 * rate // 10)
    mean = 0.8 * files.tones(rate, 3)[first:last]
    wav = samples(cut.sound)
    assert len(wav) == math.ceil(len(mean) * 16_000 / rate)
    common = math.gcd(16_000, rate)
    reference = resample_poly(mean, 16_000 // common, rate // common)[: len(wav)]
    inner = slice(200, min(len(wav), len(reference)) - 200)
    error = wav[inner] - reference[inner]
    assert 10 * math.log10((reference[inner] ** 2).mean() / (error**2).mean()) > 40
    if rate == 16_000:
        assert np.abs(wav - mean).max() < 2 / 2**15  # sample by sample, both ends included


@table(
    "sound, window, audio",
    [
        ((2.5, 8), (START, END), "pcm_s16le"),  # begins late
        ((0, 3.25), (START, END), "pcm_s16le"),  # ends early, and so does the wav
        # A model hears nothing there: that is no reason to lose the item, or the run.
        ((0, 3), (4.2, 6.7), "aac"),
        ((5, 8), (1.3, 3), "aac"),
        ((0, 1), (6.5, 8), "pcm_s16le"),
    ],
)
def test_sound_keeps_its_time_and_silence_is_heard(tmp_path, sound, window, audio):
    path = files.write_coded(tmp_path / "v.mov", audio=audio, sound=sound)
    cut, (start, end) = segment(path, *window), window
    assert cut.duration == pytest.approx(end - start)
    files.check_picture(cut.video_with_sound, STEADY, *window, tolerance=1e-3)
    wav, (track, begins, rate) = samples(cut.sound), files.track_of(cut.video_with_sound)
    until = sound[1] if start < sound[1] < end else end
    assert len(wav) == pytest.approx((until - start) * 16_000, abs=1)
    assert (begins, len(track) / rate) == pytest.approx((0, until - start), abs=0.022)
    loud = sound[0] < end and sound[1] > start
    quiet = round(max(sound[0] - start, 0) * 16_000) if loud else len(wav) + 40
    assert not quiet or np.abs(wav[: quiet - 40]).max() < 1e-3
    assert loud or not track.any()
    if loud:
        files.check_sound(wav[quiet:], 16_000, max(start, sound[0]), until)


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
def test_a_file_ends_with_its_last_frame_or_its_sound(tmp_path, name):
    """After the picture its last frame stays: it is shown twice if it is the only one."""
    options, end = ENDS[name]
    path = files.write_coded(tmp_path / name, 8, **options)
    facts = probe(path)
    assert (facts.duration, facts.end) == (pytest.approx(8, abs=0.05), pytest.approx(end, abs=0.05))
    assert facts.end >= facts.duration
    # What a probe promises can be cut, and no more.
    refused(MediaError, "ends after the end of the file", segment, path, 7.5, facts.end + 0.2)
    shown = {None: range(80), 4: range(40, 80), 7.9: [79, 79], **({9: [79] * 2} if end > 9 else {})}
    for start, numbers in shown.items():
        cut = segment(path, start, None if start is None else facts.end)
        assert (cut.start, cut.end) == (start or 0, pytest.approx(facts.end, abs=0.011))
        for made in filter(None, (cut.video, cut.video_with_sound)):
            assert files.numbers_and_times(made)[0] == list(numbers)
            assert len(files.decord_frames(made)) == len(numbers)
            with av.open(made) as file:
                stream = file.streams.video[0]
                until = float((stream.start_time + stream.duration) * stream.time_base)
            assert until == pytest.approx(cut.duration, abs=1e-3)


# --- windows that are none and files that are damaged: one clear line each ---------------------

DAMAGES = {
    "picture.mp4": ("video", {"gop": 10}, 8, 12, (9.2, 10.4)),
    "sound for long.mp4": ("audio", {}, 2, 15, (9.2, 10.4)),
    "all sound.mp4": ("audio", {}, -1, 16, (0, 2)),
    "within a group of pictures.mp4": ("video", {}, 9.4, 9.8, (9.2, 10.4)),
}


@table("name", DAMAGES)
def test_damage_in_the_window_is_one_line_with_the_place(tmp_path, cache, name):
    """A probe looks at the file's beginning only; whoever cuts is told what is wrong and where."""
    kind, options, begin, until, window = DAMAGES[name]
    path = files.write_coded(tmp_path / name, 16, **options)
    files.damage(path, kind, begin, until)
    assert probe(path).duration == pytest.approx(16)
    text = refused(MediaError, "is damaged", segment, path, *window)
    what = "picture" if kind == "video" else "sound"
    found = re.fullmatch(rf"(.*): is damaged: its {what} near ([\d.]+) s cannot be decoded", text)
    assert found, text
    assert found[1] == str(path)
    assert max(begin, 0) - 1.1 <= float(found[2]) <= window[1]
    assert not [made for made in files.made_files(cache) if f"-{window[0]}-" in made]
    for good in ((0.5, 1.5), (13, 15)):  # elsewhere it does no harm
        if until <= good[0] or begin > good[1]:
            times = [n / 10 for n in range(160)]
            files.check_all(segment(path, *good), times, *good, tolerance=1e-3)


@table(
    "window, message",
    [
        ((9, 10), r"starts after the end of the file \(8\.0\d\d s\)"),
        ((8.5, None), "starts after the end of the file"),
        ((7, 8.5), r"ends after the end of the file \(8\.0\d\d s\)"),
        ((3, 2), "no segment from 3 s to 2 s"),
        ((-1, 2), "expected 0 <= start < end"),
        ((1, float("nan")), "no segment from 1 s to nan s"),
        (("one", 2), "no segment from one s"),
    ],
)
def test_a_wrong_window_is_one_clear_line(source, cache, window, message):
    text = refused(MediaError, message, segment, source, *window)
    assert text.startswith(f"{source}: ")
    assert not cache.exists() or files.made_files(cache) == []
