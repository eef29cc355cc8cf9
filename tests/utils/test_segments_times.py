"""Time stamps that repeat, go back and forth, are absent or step back: never the wrong picture."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest
import segment_files as coded
from segment_files import STEADY

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import media, probes, segment_head, video_source
from lmms_eval_tasks.utils.segments import segment
from tests.checks import refused, table

# 5 frames a second for 8 s, then 25 for 8 s: no rate is right for all of it.
VFR = [n / 5 for n in range(40)] + [8 + n / 25 for n in range(200)]
REPEATS = {"early": (7,), "in a window": (17,), "late": (150,), "several": (3, 17, 18, 60, 150)}


def write_mkv(path: Path, times: list[float], stamps: list[float]) -> Path:
    """Frames of `times` under other time stamps; a key frame every 50, no B-frames, no sound."""
    base = Fraction(1, 1000)
    with av.open(str(path), "w") as file:
        stream: Any = file.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = *coded.SIZE, "yuv420p"
        stream.time_base = stream.codec_context.time_base = base
        stream.codec_context.gop_size, stream.codec_context.max_b_frames = 50, 0
        stream.options = {"crf": "16"}
        packets = []
        for number, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(coded.picture(number, time), format="rgb24")
            frame = frame.reformat(format="yuv420p")
            frame.pts, frame.time_base = round(time * 1000), base
            packets += stream.encode(frame)
        packets += stream.encode(None)
        for packet, stamp in zip(packets, stamps, strict=True):
            packet.pts = packet.dts = round(stamp * 1000)
            file.mux(packet)
    return path


@pytest.fixture(scope="module", params=REPEATS)
def repeating(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A file whose frames k + 1 have the time stamps of frames k, and its stamps."""
    stamps = list(VFR)
    for k in REPEATS[request.param]:
        stamps[k + 1] = stamps[k]
    path = write_mkv(tmp_path_factory.mktemp("vfr") / "vfr.mkv", VFR, stamps)
    return path, stamps


@table("window", [(3.2, 5.1), (7.0, 9.0), (12.0, 15.0), (0.0, 1.0)])
def test_a_repeated_time_leaves_the_others_where_they_are(
    repeating: Any, tmp_path: Path, window: tuple[float, float]
) -> None:
    path, stamps = repeating
    cut = segment(path, *window, tmp_path)
    wanted = [n for n, stamp in enumerate(stamps) if window[0] <= stamp < window[1]]
    read, shown = coded.frames_and_times(cut.video)
    assert [number for _, number in read] == wanted
    assert shown == pytest.approx([stamps[n] - window[0] for n in wanted], abs=6e-3)
    assert (cut.start, cut.end) == window


def test_a_repeated_time_does_not_change_the_length(repeating: Any, tmp_path: Path) -> None:
    path, stamps = repeating
    facts = probes.probe(path)
    assert (facts.n_frames, facts.duration) == (len(VFR), pytest.approx(16, abs=0.01))
    decoded = video_source.decoded_table(str(path))
    assert len(decoded.times) == len(VFR)
    assert decoded.duration == pytest.approx(16, abs=0.01)
    whole = segment(path, None, None, tmp_path)
    assert (whole.n_frames, whole.end) == (len(VFR), pytest.approx(16, abs=0.01))
    read, shown = coded.frames_and_times(whole.video)
    assert [number for _, number in read] == list(range(len(VFR)))
    assert shown == pytest.approx(stamps, abs=6e-3)


def test_clips_of_such_a_file_have_every_frame(repeating: Any, tmp_path: Path) -> None:
    path, _ = repeating
    assert segment_head.head(str(path)).clock == segment_head.Clock(Fraction(0))  # one decision
    clip = media.make(path, media.Recipe("uniform", 80), tmp_path)
    wanted = media.uniform_indices(len(VFR), 80)
    assert [number for _, number in coded.frames_and_times(clip.path)[0]] == wanted
    assert clip.duration == pytest.approx(16, abs=0.01)


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
        ([0, 1, 2, 3], None),
        ([0, 0, 1, 2, 3, 4], None),
        ([0, None, 2, 3, 4], None),
        ([0, 0, 0, 0, 1], 30),
        ([None, None, None, 5], 30),
        ([None], 30),
        ([5], None),
        ([24, 72, 96, 48, 144, 168, 120], Fraction(1000, 24)),
    ],
)
def test_when_to_count(times: list[int | None], rate: Fraction | None) -> None:
    assert video_source.counting_rate(times, Fraction(1, 1000), Fraction(30)) == rate


def test_what_has_no_rate_and_what_ascends() -> None:
    uneven = [0, 90, 40, 200, 100]
    call, tick = video_source.counting_rate, Fraction(1, 1000)
    refused(MediaError, "not in order", call, uneven, tick, Fraction(25))
    assert call([None] * 5, tick, None) == 25  # raw streams
    assert video_source.ascending([5, 5, None, 9, 8, 20]) == [5, 6, 7, 9, 10, 20]
    assert video_source.ascending([-4, -4, 0]) == [-4, -3, 0]
