"""Frames of a video by index: the right ones, upright, once decoded; broken files; processes."""

import io
import json
import multiprocessing
import subprocess
import sys
import zipfile
from pathlib import Path

import av
import media_files as files
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import frame_archive, indexed_frames, video_frames, worker_call
from lmms_eval_tasks.utils.indexed_frames import frames

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


def test_importing_it_imports_nothing_heavy():
    code = "import sys, lmms_eval_tasks.utils.indexed_frames as m; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "lmms_eval_tasks.utils.indexed_frames" in loaded
    assert not {"numpy", "av", "decord", "torch", "PIL"} & set(loaded)


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


@pytest.mark.parametrize("name", SOURCES)
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


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_video_is_upright(tmp_path, degrees):
    source = files.write_video(tmp_path / "phone.mp4", 20)
    files.rotate(source, degrees)
    taken = frames(source, [2, 7, 19], ALL, tmp_path / "cache")
    expected = files.decord_frames(source)
    assert (taken.width, taken.height) == expected.shape[2:0:-1]
    same_frames(taken, expected)
    smaller = frames(source, [2, 7, 19], 48, tmp_path / "cache")
    assert (smaller.width, smaller.height) == ((48, 32) if degrees == 180 else (32, 48))


@pytest.mark.parametrize("look", [{"matrix": 1}, {"full_range": True, "pix_fmt": "yuvj420p"}])
def test_colours_are_those_that_the_hosts_readers_see(tmp_path, look):
    source = files.write_video(tmp_path / "v.mp4", 5, **look)
    same_frames(frames(source, [0, 4], ALL, tmp_path / "cache"), files.decord_frames(source))


@pytest.mark.parametrize(
    ("size", "shown"), [(96, (96, 64)), (95, (95, 63)), (48, (48, 32)), (1, (1, 1))]
)
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


def test_images_come_by_number_and_carry_nothing(video, cache):
    taken = frames(video, ODD, ALL, cache)
    first, again, last = taken.images([1, 1, len(ODD)])
    everything = pixels(taken)
    assert np.array_equal(np.asarray(first), everything[0])
    assert np.array_equal(np.asarray(again), everything[0])
    assert np.array_equal(np.asarray(last), everything[-1])
    for image in (first, last):
        assert type(image) is Image.Image
        assert (image.mode, image.info) == ("RGB", {})
        assert not hasattr(image, "filename")
    assert taken.images([]) == []
    for wrong in (0, -1, len(ODD) + 1):
        with pytest.raises(ValueError, match=f"picture {wrong} of {len(ODD)}"):
            taken.images([1, wrong])


def test_images_open_only_what_is_asked_for(video, cache, monkeypatch):
    taken = frames(video, ODD, ALL, cache)
    read = []
    plain = zipfile.ZipFile.read
    monkeypatch.setattr(
        zipfile.ZipFile, "read", lambda self, name: read.append(name) or plain(self, name)
    )
    taken.images([4, 2])
    assert read == ["4.jpg", "2.jpg"]


class TestOnce:
    """One decoding for all who ask."""

    def test_frames_are_decoded_in_one_pass_and_counted(self, tmp_path):
        source = files.write_video(tmp_path / "v.mp4", 90, gop=1000)
        first = frames(source, ODD, 48, tmp_path / "cache")
        assert 90 - 8 <= first.n_decoded <= 90  # up to the last one, none of them twice
        again = frames(source, ODD, 48, tmp_path / "cache")
        assert again.n_decoded == 0
        assert again.path == first.path

    def test_all_that_is_decoded_is_counted(self, tmp_path):
        """A file whose packets have no usable times is listed by decoding it: that counts too."""
        source = files.write_video(tmp_path / "raw.h264", 30, b_frames=0)
        taken = frames(source, [0, 29], ALL, tmp_path / "cache")
        assert taken.n_decoded == 60
        same_frames(taken, files.pyav_frames(source)[0])

    def test_key_frames_on_the_way_spare_decoding(self, tmp_path):
        source = files.write_video(tmp_path / "v.mp4", 90, gop=10, b_frames=0)
        taken = frames(source, [0, 40, 80], ALL, tmp_path / "cache")
        assert taken.n_decoded <= 10

    def test_a_hit_runs_nothing(self, video, cache, monkeypatch):
        frames(video, ODD, 64, cache)
        monkeypatch.setattr(worker_call, "call", None)  # any use of it would be a TypeError
        assert frames(video, ODD, 64, cache).n_decoded == 0
        assert len(frames(video, tuple(ODD), 64, cache).images([1, 2])) == 2

    def test_other_indices_sizes_and_videos_are_other_entries(self, video, tmp_path):
        other = files.write_video(tmp_path / "other.mp4", 20)
        asked = [(video, [0, 1], 48), (video, [0, 2], 48), (video, [0, 1], 50), (other, [0, 1], 48)]
        assert len({frames(*one, tmp_path / "cache").path for one in asked}) == 4

    def test_equal_content_at_another_path_is_shared(self, video, tmp_path):
        copy = tmp_path / "copy.mp4"
        copy.write_bytes(video.read_bytes())
        first, second = (frames(path, [5], 48, tmp_path / "cache") for path in (video, copy))
        assert (second.path, second.n_decoded, second.source) == (first.path, 0, str(copy))

    def test_the_users_cache_is_the_default(self, video, tmp_path, monkeypatch):
        monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path))
        assert Path(frames(video, [5], 48).path).parent == tmp_path / "media"

    @pytest.mark.parametrize("damage", ["cut", "delete", "no note"])
    def test_a_damaged_entry_is_made_again(self, video, tmp_path, damage):
        path = Path(frames(video, [0, 9], 48, tmp_path).path)
        content = path.read_bytes()
        {
            "cut": lambda: path.write_bytes(content[:500]),
            "delete": path.unlink,
            "no note": path.with_suffix(".json").unlink,
        }[damage]()
        assert frames(video, [0, 9], 48, tmp_path).n_decoded > 0
        assert path.read_bytes() == content

    @pytest.mark.parametrize("damage", ["delete", "overwrite"])
    def test_an_entry_that_is_lost_while_it_is_used_is_named(self, video, tmp_path, damage):
        taken = frames(video, [0, 9], 48, tmp_path)
        path = Path(taken.path)
        if damage == "delete":
            path.unlink()
        else:
            path.write_bytes(bytes(path.stat().st_size))
        with pytest.raises(MediaError, match=r"frames-2-48.*made of .*some video\.mp4") as error:
            taken.images([2])
        assert "\n" not in str(error.value)

    def test_frames_are_written_one_by_one(self, video, tmp_path, monkeypatch):
        """The next frame is decoded when the last one lies in the archive."""
        steps = []
        decode, write = video_frames.decode, zipfile.ZipFile.writestr

        def decoding(*args):
            for found in decode(*args):
                steps.append("decoded")
                yield found

        monkeypatch.setattr(video_frames, "decode", decoding)
        monkeypatch.setattr(
            zipfile.ZipFile,
            "writestr",
            lambda *args: steps.append("written") or write(*args),
        )
        out = str(tmp_path / "out.zip")
        frame_archive.write(str(video), indices=ODD, size=48, out=out, use_decord=False)
        assert steps == ["decoded", "written"] * len(ODD)


class TestWrong:
    """One line each, with the file's name; nothing is left behind."""

    @pytest.mark.parametrize("indices", [[0, 90], [88, 91, 200], [10**9]])
    def test_an_index_beyond_the_end(self, video, tmp_path, indices):
        beyond = next(index for index in indices if index >= 90)
        with pytest.raises(MediaError, match=rf"no frame {beyond}: it has 90 frames") as error:
            frames(video, indices, 48, tmp_path)
        assert str(error.value).startswith(f"{video}: ")
        assert "\n" not in str(error.value)
        assert files.made_files(tmp_path) == []

    @pytest.mark.parametrize(
        ("indices", "size"),
        [([], 48), ([-1, 3], 48), ([3, 3], 48), ([4, 3], 48), ([0], 0)],
    )
    def test_what_no_record_may_ask_for(self, video, tmp_path, indices, size):
        with pytest.raises(ValueError, match="ascending"):
            frames(video, indices, size, tmp_path)

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(MediaError, match=r"gone\.mp4: no such file"):
            frames(tmp_path / "gone.mp4", [0], 48, tmp_path)

    @pytest.mark.parametrize("what", ["text", "cut", "damaged"])
    def test_a_broken_file(self, tmp_path, what):
        front = {"movflags": "faststart"}
        good = files.write_video(tmp_path / "good.mp4", 60, mux_options=front).read_bytes()
        noise = np.random.default_rng(0).integers(0, 256, len(good), dtype=np.uint8).tobytes()
        at = good.index(b"mdat") + len(good) // 4
        source = tmp_path / "broken.mp4"
        source.write_bytes(
            {
                "text": b"no video\n" * 100,
                "cut": good[: len(good) * 3 // 4],
                "damaged": good[:at] + noise[: len(good) // 2] + good[at + len(good) // 2 :],
            }[what]
        )
        words = {
            "text": "not a readable video|holds no video",
            "cut": "cut short",
            "damaged": "not a readable video|cannot be decoded|cut short|no frame|differently",
        }
        with pytest.raises(MediaError, match=words[what]) as error:
            frames(source, [0, 30, 59], 48, tmp_path / "cache")
        assert str(error.value).startswith(f"{source}: ")
        assert files.made_files(tmp_path / "cache") == []

    def test_damage_after_the_last_frame_asked_for_is_no_matter(self, tmp_path):
        source = files.write_video(tmp_path / "v.mkv", 60, gop=10, b_frames=0)
        with av.open(str(source)) as file:
            at = [packet.pos for packet in file.demux(video=0) if packet.size][50]
        original, _ = files.pyav_frames(source)
        content = bytearray(source.read_bytes())
        content[at + 20 : at + 60] = bytes(40)
        source.write_bytes(bytes(content))
        same_frames(frames(source, [0, 9, 35], ALL, tmp_path / "cache"), original)

    def test_a_hanging_decoder_is_ended(self, video, tmp_path, monkeypatch):
        (tmp_path / "fake_worker.py").write_text("import time; time.sleep(60)")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(worker_call, "WORKER", "fake_worker")
        with pytest.raises(MediaError, match=r"some video\.mp4: .*more than 1 s"):
            frames(video, [0], 48, tmp_path / "cache", time_limit=1)
        assert files.made_files(tmp_path / "cache") == []

    def test_a_crash_is_an_error(self, video, tmp_path, monkeypatch):
        (tmp_path / "fake_worker.py").write_text("import os; os.kill(os.getpid(), 11)")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(worker_call, "WORKER", "fake_worker")
        with pytest.raises(MediaError, match=r"some video\.mp4: .*SIGSEGV"):
            frames(video, [0], 48, tmp_path / "cache")


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
