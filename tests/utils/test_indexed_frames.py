"""Frames of a video by index: the right ones, upright, once decoded; broken files; processes."""

import io
import json
import multiprocessing
import zipfile
from pathlib import Path

import media_files as files
import numpy as np
from PIL import Image

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import indexed_frames, worker_call
from lmms_eval_tasks.utils.indexed_frames import frames
from tests.checks import refused, table

ODD = [0, 1, 5, 11, 12, 13, 30, 47, 48, 61, 88, 89]
ALL = 10_000  # pixels: nothing is made smaller


def pixels(taken):
    images = taken.images(range(1, len(taken.indices) + 1))
    return np.stack([np.asarray(image) for image in images])


def same_frames(taken, original, least=36.0):
    """Each picture is nearest to the frame it should be, and near."""
    for index, picture in zip(taken.indices, pixels(taken), strict=True):
        errors = ((original.astype(int) - picture) ** 2).mean(axis=(1, 2, 3))
        assert int(np.argmin(errors)) == index
        assert 10 * np.log10(255**2 / errors[index]) >= least


SOURCES = {
    "b-frames.mp4": {},
    "gop of 7.mp4": {"gop": 7, "b_frames": 3},
    "one key frame.mp4": {"gop": 1000, "b_frames": 4},
    "key frames only.mp4": {"gop": 1, "b_frames": 0},
    "open gop.mp4": {"options": {"x264-params": "open-gop=1"}},
    "open gop.ts": {"options": {"x264-params": "open-gop=1"}},
    "mpeg4.avi": {"codec": "mpeg4", "b_frames": 0},
    "vp9 odd size.mkv": {"size": (97, 65), "codec": "libvpx-vp9", "options": {"crf": "20"}},
    "10 bits.mp4": {"pix_fmt": "yuv420p10le"},
    "rgb.mov": {"codec": "png", "pix_fmt": "rgb24"},
    "gray.mkv": {"codec": "ffv1", "pix_fmt": "gray"},
}


@table("name", SOURCES)
def test_exactly_the_frames_of_the_indices(tmp_path, name):
    source = files.write_video(tmp_path / name, 90, **SOURCES[name])
    original, _ = files.pyav_frames(source)
    assert len(original) == 90
    taken = frames(source, ODD, ALL, tmp_path / "cache")
    assert (taken.indices, taken.n_frames) == (tuple(ODD), 90)
    assert (taken.width, taken.height) == original.shape[2:0:-1]
    same_frames(taken, original)


def test_uneven_times_are_counted_frame_by_frame(tmp_path):
    random = np.random.default_rng(0)
    times = np.cumsum(random.choice([0.011, 0.02, 0.04, 0.3, 1.1], 40)).tolist()
    source = files.write_video(tmp_path / "uneven.mp4", times=times)
    taken = frames(source, [0, 3, 4, 17, 38, 39], ALL, tmp_path / "cache")
    same_frames(taken, files.pyav_frames(source)[0])


@table("degrees", [90, 180, 270])
def test_a_turned_video_is_upright(tmp_path, degrees):
    source = files.write_video(tmp_path / "phone.mp4", 20)
    files.rotate(source, degrees)
    taken = frames(source, [2, 7, 19], ALL, tmp_path / "cache")
    expected = files.decord_frames(source)
    assert (taken.width, taken.height) == expected.shape[2:0:-1]
    same_frames(taken, expected)
    smaller = frames(source, [2, 7, 19], 48, tmp_path / "cache")
    assert (smaller.width, smaller.height) == ((48, 32) if degrees == 180 else (32, 48))


@table("look", [{"matrix": 1}, {"full_range": True, "pix_fmt": "yuvj420p"}])
def test_colours_are_those_that_the_hosts_readers_see(tmp_path, look):
    source = files.write_video(tmp_path / "v.mp4", 5, **look)
    same_frames(frames(source, [0, 4], ALL, tmp_path / "cache"), files.decord_frames(source))


@table("size, shown", [(96, (96, 64)), (95, (95, 63)), (48, (48, 32)), (1, (1, 1))])
def test_the_longest_side_is_made_smaller_and_never_larger(video, cache, size, shown):
    taken = frames(video, [0, 50], size, cache)
    assert (taken.width, taken.height) == shown
    assert {image.size for image in taken.images([1, 2])} == {shown}


def test_a_picture_is_the_decoded_frame_resized_once(video, cache):
    original, _ = files.pyav_frames(video)
    taken = frames(video, [13, 40], 60, cache)
    for index, image in zip(taken.indices, taken.images([1, 2]), strict=True):
        expected = Image.fromarray(original[index]).resize((60, 40), Image.Resampling.LANCZOS)
        data = io.BytesIO()
        expected.save(data, "JPEG", quality=95, subsampling="4:4:4")
        assert np.array_equal(np.asarray(image), np.asarray(Image.open(data)))


def test_an_entry_is_a_plain_zip_of_jpeg_files(video, tmp_path):
    taken = frames(video, [3, 70], 48, tmp_path)
    assert [Path(taken.path).name] == [n for n in files.made_files(tmp_path) if n.endswith(".zip")]
    with zipfile.ZipFile(taken.path) as archive:
        assert archive.namelist() == ["1.jpg", "2.jpg"]
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            with Image.open(io.BytesIO(archive.read(info))) as image:
                assert image.format == "JPEG"
                assert {layer[1:3] for layer in image.layer} == {(1, 1)}  # 4:4:4


def test_images_come_by_number_and_carry_nothing(video, cache, monkeypatch):
    taken = frames(video, ODD, ALL, cache)
    everything, read, plain = pixels(taken), [], zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile, "read", lambda self, name: read.append(name) or plain(self, name)
    )
    found = taken.images([4, 4, 12])
    assert list(dict.fromkeys(read)) == ["4.jpg", "12.jpg"]  # only what is asked for
    for image, number in zip(found, (4, 4, 12), strict=True):
        assert np.array_equal(np.asarray(image), everything[number - 1])
        assert type(image) is Image.Image
        assert (image.mode, image.info) == ("RGB", {})
        assert not hasattr(image, "filename")
    assert taken.images([]) == []
    for wrong in (0, -1, len(ODD) + 1):
        refused(ValueError, f"picture {wrong} of {len(ODD)}", taken.images, [1, wrong])


# --- one decoding for all who ask -------------------------------------------------------------


def test_frames_are_decoded_in_one_pass_and_counted(tmp_path):
    source = files.write_video(tmp_path / "v.mp4", 90, gop=1000)
    first = frames(source, ODD, 48, tmp_path / "cache")
    assert 90 - 8 <= first.n_decoded <= 90  # up to the last one, none of them twice
    again = frames(source, ODD, 48, tmp_path / "cache")
    assert (again.n_decoded, again.path) == (0, first.path)
    # A file whose packets have no usable times is listed by decoding it: that counts too.
    source = files.write_video(tmp_path / "raw.h264", 30, b_frames=0)
    taken = frames(source, [0, 29], ALL, tmp_path / "cache")
    assert taken.n_decoded == 60
    same_frames(taken, files.pyav_frames(source)[0])
    # Key frames on the way spare decoding.
    source = files.write_video(tmp_path / "keys.mp4", 90, gop=10, b_frames=0)
    assert frames(source, [0, 40, 80], ALL, tmp_path / "cache").n_decoded <= 10


def test_what_is_one_entry(video, tmp_path, monkeypatch):
    other, copy = files.write_video(tmp_path / "other.mp4", 20), tmp_path / "copy.mp4"
    copy.write_bytes(video.read_bytes())
    cache = tmp_path / "media"
    asked = [(video, [0, 1], 48), (video, [0, 2], 48), (video, [0, 1], 50), (other, [0, 1], 48)]
    first, *others = (frames(*one, cache) for one in asked)
    assert len({first.path, *(one.path for one in others)}) == 4
    monkeypatch.setattr(worker_call, "call", None)  # a hit runs nothing: it would be a TypeError
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path))  # the user's cache is the default
    again = frames(copy, (0, 1), 48)  # equal content at another path
    assert (again.path, again.n_decoded, again.source) == (first.path, 0, str(copy))
    assert len(again.images([1, 2])) == 2


@table("damage", ["cut", "delete", "no note"])
def test_a_damaged_entry_is_made_again(video, tmp_path, damage):
    path = Path(frames(video, [0, 9], 48, tmp_path).path)
    content = path.read_bytes()
    {
        "cut": lambda: path.write_bytes(content[:500]),
        "delete": path.unlink,
        "no note": path.with_suffix(".json").unlink,
    }[damage]()
    taken = frames(video, [0, 9], 48, tmp_path)
    assert taken.n_decoded > 0
    assert path.read_bytes() == content
    # One that is lost while it is used is named.
    path.unlink() if damage == "delete" else path.write_bytes(bytes(path.stat().st_size))
    refused(MediaError, r"frames-2-48.*made of .*some video\.mp4", taken.images, [2])


# --- what is wrong is one line with the file's name, and nothing is left behind ----------------


@table(
    "indices, size, error, words",
    [
        ([0, 90], 48, MediaError, "no frame 90: it has 90 frames"),
        ([88, 91, 200], 48, MediaError, "no frame 91: it has 90 frames"),
        ([10**9], 48, MediaError, "no frame 1000000000: it has 90 frames"),
        *[(wrong, 48, ValueError, "ascending") for wrong in ([], [-1, 3], [3, 3], [4, 3])],
        ([0], 0, ValueError, "ascending"),
    ],
)
def test_what_no_record_may_ask_for(video, tmp_path, indices, size, error, words):
    message = refused(error, words, frames, video, indices, size, tmp_path)
    assert error is ValueError or message.startswith(f"{video}: ")
    assert files.made_files(tmp_path) == []


@table("what, words")
def test_a_broken_file(tmp_path, what, words):
    front = {"movflags": "faststart"}
    good = files.write_video(tmp_path / "good.mp4", 60, mux_options=front).read_bytes()
    noise = np.random.default_rng(0).integers(0, 256, len(good), dtype=np.uint8).tobytes()
    at = good.index(b"mdat") + len(good) // 4
    source = tmp_path / "broken.mp4"
    contents = {
        "text": b"no video\n" * 100,
        "cut": good[: len(good) * 3 // 4],
        "damaged": good[:at] + noise[: len(good) // 2] + good[at + len(good) // 2 :],
    }
    if what in contents:
        source.write_bytes(contents[what])
    message = refused(MediaError, words, frames, source, [0, 30, 59], 48, tmp_path / "cache")
    assert message.startswith(f"{source}: ")
    assert not (tmp_path / "cache").exists() or files.made_files(tmp_path / "cache") == []


@table("code, limit, words")
def test_a_decoder_that_hangs_or_crashes(code, limit, words, video, tmp_path, monkeypatch):
    (tmp_path / "fake_worker.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(worker_call, "WORKER", "fake_worker")
    worker_call.end_waiting()
    words, cache = rf"some video\.mp4: .*{words}", tmp_path / "cache"
    refused(MediaError, words, frames, video, [0], 48, cache, time_limit=limit)
    assert files.made_files(cache) == []


def _ask(source, cache, gate, answers):
    gate.wait()
    taken = indexed_frames.frames(source, ODD, 48, cache)
    answers.put((taken.path, taken.n_decoded, len(taken.images(range(1, len(ODD) + 1)))))


def test_two_processes_decode_once(video, tmp_path):
    context = multiprocessing.get_context("spawn")
    gate, answers = context.Barrier(2), context.Queue()
    jobs = [
        context.Process(target=_ask, args=(str(video), tmp_path, gate, answers)) for _ in range(2)
    ]
    for job in jobs:
        job.start()
    found = [answers.get(timeout=60) for _ in jobs]
    for job in jobs:
        job.join()
    assert len({path for path, _, _ in found}) == 1
    assert sorted(n > 0 for _, n, _ in found) == [False, True]
    assert [n for _, _, n in found] == [len(ODD)] * 2
    name = Path(found[0][0]).name
    assert files.made_files(tmp_path) == sorted([name, name.replace(".zip", ".json")])
    note = json.loads((tmp_path / name.replace(".zip", ".json")).read_text())
    assert (note["width"], note["height"], note["n_frames"]) == (48, 32, 90)
