"""The sound of segments: downmix, rate, gaps, the mp4's track, and sources with little sound."""

import math

import media_files as files
import numpy as np
import pytest
import segment_files as coded
from scipy.signal import resample_poly
from segment_files import END, START, STEADY

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.segments import segment
from tests.checks import refused, table

RESAMPLER = 40  # dB


@pytest.fixture(scope="module")
def cut(source, cache):
    return segment(source, START, END, cache)


@table("rate", [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000])
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
    coded.check_sound(samples[: len(wav)], 16_000)


def test_no_sound(tmp_path):
    path = coded.write(tmp_path / "silent.mp4", audio=None)
    cut = segment(path, START, END, tmp_path / "cache")
    assert (cut.sound, cut.video_with_sound, cut.has_audio) == (None, None, False)
    assert (cut.channels, cut.sample_rate, cut.sound_duration) == (0, 0, 0)
    coded.check_picture(cut.video, STEADY)


def test_sound_that_begins_late_keeps_its_time_and_may_end_early(tmp_path):
    path = coded.write(tmp_path / "late.mov", audio="pcm_s16le", sound=(2.5, 8))
    cut = segment(path, START, END, tmp_path / "cache")
    wav = coded.read_wav(cut.sound)
    quiet = round((2.5 - START) * 16_000)
    assert np.abs(wav[: quiet - 40]).max() < 1e-3
    coded.check_sound(wav[quiet:], 16_000, 2.5, END)
    assert cut.silence_filled == pytest.approx(2.5 - START, abs=1e-4)
    assert len(wav) == math.ceil(cut.duration * 16_000 - 1e-6)
    path = coded.write(tmp_path / "short.mov", audio="pcm_s16le", sound=(0, 3.25))
    cut = segment(path, START, END, tmp_path / "cache")
    coded.check_sound(coded.read_wav(cut.sound), 16_000, START, 3.25)
    assert (cut.sound_duration, cut.duration) == (pytest.approx(1.88), pytest.approx(3.44))
    coded.check_picture(cut.video_with_sound, STEADY)
    assert cut.silence_filled == 0


WINDOWS = {
    "after all sound": ((0, 3), (4.2, 6.7)),
    "before all sound": ((5, 8), (1.3, 3)),
    "between sounds": (None, (3.1, 4.4)),
    "far before, to the end": ((0, 1), (6.5, None)),
}


@table("name", WINDOWS)
@table("audio", ["pcm_s16le", "aac"])
def test_a_window_without_sound_is_silent_where_the_file_has_some(tmp_path, name, audio):
    """A model hears nothing there: that is no reason to lose the item, or the run."""
    sound, (start, end) = WINDOWS[name]
    path = coded.write(tmp_path / "v.mov", audio=audio, sound=sound or (0, 3))
    if sound is None:
        path = with_a_gap(path, tmp_path / "gap.mkv", 3, 5)
    cut = segment(path, start, end, tmp_path / "cache")
    length = (end or 8) - start
    assert (cut.has_audio, cut.channels, cut.sample_rate) == (True, 2, 48_000)
    assert cut.duration == cut.silence_filled == pytest.approx(length)
    assert cut.sound_duration == pytest.approx(length, abs=1 / 16_000)
    wav = coded.read_wav(cut.sound)
    assert len(wav) == math.ceil(length * 16_000 - 1e-6)
    assert not wav.any()
    track, begins, rate = coded.read_track(cut.video_with_sound)
    assert abs(begins) <= 1e-3
    assert len(track) / rate == pytest.approx(length, abs=coded.WINDOW + 2e-3)
    assert not track.any()
    for made in (cut.video, cut.video_with_sound):
        coded.check_picture(made, STEADY, start, end or 8, tolerance=1e-3)
    assert coded.streams(cut.video) == ["video"]
    assert len(files.made_files(tmp_path / "cache")) == 4


def with_a_gap(path, out, begin, end):
    """A copy whose sound after `begin` is that of the beginning, from `end` on."""
    import av

    with av.open(str(path)) as file, av.open(str(out), "w") as copy:
        streams = [copy.add_stream_from_template(stream) for stream in file.streams]
        packets = [packet for packet in file.demux() if packet.size]
        again = [packet for packet in packets if packet.stream.type == "audio"]
        for packet in packets:
            packet.stream = streams[packet.stream.index]
            copy.mux(packet)
        with av.open(str(path)) as second:
            for packet in second.demux(audio=0):
                if packet.size and packet.pts * packet.time_base < begin:
                    for name in ("pts", "dts"):
                        setattr(packet, name, getattr(packet, name) + round(end / packet.time_base))
                    packet.stream = streams[again[0].stream.index]
                    copy.mux(packet)
    return out


def test_sound_that_goes_on_after_the_last_frame(tmp_path):
    path = coded.write(tmp_path / "long.mov", 6, times=STEADY[:75], audio="pcm_s16le")
    cut = segment(path, 2.5, 4.5, tmp_path / "cache")
    coded.check_picture(cut.video, STEADY[:75], 2.5, 4.5)
    coded.check_sound(coded.read_wav(cut.sound), 16_000, 2.5, 4.5)
    still = segment(path, 4.5, 5.5, tmp_path / "cache")  # the last frame stays on screen
    assert coded.frames_and_times(still.video)[0] == [(2, 74)] * 2
    coded.check_sound(coded.read_wav(still.sound), 16_000, 4.5, 5.5)
    whole = segment(path, None, None, tmp_path / "cache")
    assert (whole.end, whole.sound_duration) == (pytest.approx(6), pytest.approx(6))
    words = r"long\.mov: the segment .* end of the file \(6\.000 s\)"
    refused(MediaError, words, segment, path, 5, 6.2, tmp_path / "cache")
