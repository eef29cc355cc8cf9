import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import media_files as files
import numpy as np
import pytest

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import media, media_cache
from lmms_eval_tasks.utils.media import Recipe, make, probe, uniform_indices

UNIFORM = Recipe("uniform", 32)


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """90 frames, 3.6 s, B-frames, key frames every 12, with sound."""
    return files.write_video(tmp_path_factory.mktemp("source") / "some video.mp4", audio=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


def made_files(folder):
    """What a run left in the cache folder, locks aside, hidden files included."""
    return sorted(file.name for file in folder.iterdir() if file.is_file())


@pytest.mark.parametrize(("total", "n"), [(900, 32), (751, 32), (33, 32), (64, 7), (10, 1)])
def test_uniform_indices_are_numpys(total, n):
    expected = np.linspace(0, total - 1, n).astype(int).tolist()
    assert uniform_indices(total, n) == expected


def test_uniform_indices_of_few_frames_are_all_of_them():
    assert uniform_indices(5, 32) == [0, 1, 2, 3, 4]
    assert uniform_indices(32, 32) == list(range(32))
    with pytest.raises(ValueError, match="0 frames"):
        uniform_indices(0, 32)


@pytest.mark.parametrize("wrong", [{"kind": "all"}, {"kind": "uniform", "n_frames": 0}])
def test_a_wrong_recipe_is_refused(wrong):
    with pytest.raises(ValueError, match="recipe"):
        Recipe(**wrong)


def test_importing_media_imports_nothing_heavy():
    code = "import sys, lmms_eval_tasks.utils.media as m; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "lmms_eval_tasks.utils.media" in loaded.split()
    assert not {"numpy", "av", "decord", "torch", "PIL"} & set(loaded.split())


def test_a_clip_is_the_sources_frames_at_their_times(video, cache):
    clip = make(video, UNIFORM, cache)
    indices = uniform_indices(90, 32)
    assert (clip.kind, clip.n_frames, clip.width, clip.height) == ("video", 32, 96, 64)
    assert (clip.recipe, clip.source) == ("uniform-32", str(video))
    assert clip.duration == pytest.approx(3.6, abs=1e-3)
    assert clip.fps == pytest.approx(32 / 3.6, abs=1e-3)
    assert np.array_equal(files.decord_frames(clip.path), files.decord_frames(video, indices))
    source, times = files.pyav_frames(video)
    read, shown = files.pyav_frames(clip.path)
    assert np.array_equal(read, source[indices])
    assert shown == pytest.approx([times[i] for i in indices], abs=1e-3)
    assert clip.timestamps == pytest.approx(shown, abs=1e-3)


def test_a_clip_has_key_frames_only_and_no_sound(video, cache):
    import av

    assert probe(video).has_audio
    clip = make(video, UNIFORM, cache)
    with av.open(clip.path) as file:
        assert [stream.type for stream in file.streams] == ["video"]
        stream = file.streams.video[0]
        assert stream.frames == 32
        assert float(stream.average_rate) == pytest.approx(clip.fps, rel=1e-4)
        assert float(stream.duration * stream.time_base) == pytest.approx(3.6, abs=1e-3)
        assert all(packet.is_keyframe for packet in file.demux(stream) if packet.size)


def test_clips_are_kept_in_the_users_cache(video, tmp_path, monkeypatch):
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path))
    image = make(video, Recipe("first_frame"))
    assert Path(image.path).parent == tmp_path / "media"


@pytest.mark.parametrize("start", [0.0, 0.5])
def test_uneven_times_are_kept(tmp_path, start):
    times = [start + t for t in (0, 0.04, 0.1, 0.5, 0.51, 0.9, 1.7, 1.74)]
    source = files.write_video(tmp_path / "uneven.mp4", times=times, b_frames=0)
    clip = make(source, Recipe("uniform", 5), tmp_path / "cache")
    wanted = [times[i] - start for i in uniform_indices(8, 5)]
    assert clip.timestamps == pytest.approx(wanted, abs=1e-3)
    assert files.pyav_frames(clip.path)[1] == pytest.approx(wanted, abs=1e-3)


def test_black_is_zero_and_has_the_same_times(video, cache):
    clip, black = make(video, UNIFORM, cache), make(video, Recipe("black", 32), cache)
    assert (black.timestamps, black.duration, black.fps) == (
        clip.timestamps,
        clip.duration,
        clip.fps,
    )
    read, shown = files.pyav_frames(black.path)
    assert shown == files.pyav_frames(clip.path)[1]
    assert read.shape == (32, 64, 96, 3)
    assert read.max() == 0
    assert files.decord_frames(black.path).shape == (32, 64, 96, 3)
    assert files.decord_frames(black.path).max() == 0


def test_the_first_frame_is_an_image(video, cache):
    from PIL import Image

    image = make(video, Recipe("first_frame"), cache)
    assert (image.kind, image.n_frames, image.timestamps) == ("image", 1, [0.0])
    assert image.path.endswith(".png")
    pixels = np.asarray(Image.open(image.path))
    assert np.array_equal(pixels, files.decord_frames(video, [0])[0])


def test_the_first_frame_is_a_still_clip_on_request(video, cache):
    clip = make(video, Recipe("first_frame", still=True), cache)
    assert (clip.kind, clip.n_frames, clip.duration) == ("video", 4, 2.0)
    frames = files.decord_frames(clip.path)
    assert np.array_equal(frames, files.decord_frames(video, [0]).repeat(4, axis=0))


def test_fewer_frames_than_asked_for_gives_all(tmp_path):
    source = files.write_video(tmp_path / "short.mp4", 5)
    clip = make(source, UNIFORM, tmp_path / "cache")
    assert clip.n_frames == 5
    assert np.array_equal(files.decord_frames(clip.path), files.decord_frames(source))


@pytest.mark.parametrize("recipe", [Recipe("uniform", 1), Recipe("black", 1)])
def test_one_frame_is_an_image_whatever_the_recipe(video, cache, recipe):
    from PIL import Image

    image = make(video, recipe, cache)
    assert (image.kind, image.n_frames) == ("image", 1)
    pixels = np.asarray(Image.open(image.path))
    expected = files.decord_frames(video, [0])[0] * (recipe.kind != "black")
    assert np.array_equal(pixels, expected)


SOURCES = {
    "bt709.mp4": {"matrix": 1},
    "full range.mp4": {"full_range": True, "pix_fmt": "yuvj420p"},
    "odd size.mkv": {"size": (97, 65), "codec": "libvpx-vp9", "options": {"crf": "20"}},
    "odd size 444.mp4": {"size": (97, 65), "pix_fmt": "yuv444p"},
    "422.mp4": {"pix_fmt": "yuv422p"},
    "10 bits.mp4": {"pix_fmt": "yuv420p10le"},
    "mpeg4.avi": {"codec": "mpeg4", "b_frames": 0},
    "vp8.webm": {"codec": "libvpx", "options": {"auto-alt-ref": "1", "crf": "10"}},
    "open gop.ts": {"options": {"x264-params": "open-gop=1"}},
    "open gop.mp4": {"options": {"x264-params": "open-gop=1"}},
    "rgb.mov": {"codec": "png", "pix_fmt": "rgb24"},
    "gray.mkv": {"codec": "ffv1", "pix_fmt": "gray"},
}


# decord's own limits: an exception, or other frames than those shown.
BEYOND_DECORD = {"rgb.mov", "open gop.ts", "open gop.mp4"}


@pytest.mark.parametrize("name", SOURCES)
def test_formats_keep_their_pixels_for_both_readers(tmp_path, name):
    source = files.write_video(tmp_path / name, 40, **SOURCES[name])
    clip = make(source, Recipe("uniform", 9), tmp_path / "cache")
    original, times = files.pyav_frames(source)
    indices = uniform_indices(len(original), 9)
    read, shown = files.pyav_frames(clip.path)
    assert read.shape == (9, *original.shape[1:])
    assert shown == pytest.approx([times[i] - times[0] for i in indices], abs=1.1e-3)
    assert files.psnr(read, original[indices]) >= 45
    if name not in BEYOND_DECORD:
        by_decord = files.decord_frames(source, indices)
        assert files.psnr(files.decord_frames(clip.path), by_decord) >= 45


@pytest.mark.parametrize("name", ["bt709.mp4", "full range.mp4"])
def test_an_image_has_the_colours_that_decord_shows(tmp_path, name):
    from PIL import Image

    source = files.write_video(tmp_path / name, 3, **SOURCES[name])
    image = make(source, Recipe("first_frame"), tmp_path / "cache")
    pixels = np.asarray(Image.open(image.path))
    assert files.psnr(pixels[None], files.decord_frames(source, [0])) >= 50


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_turned_video_is_upright_as_decord_shows_it(tmp_path, degrees):
    source = files.write_video(tmp_path / "phone.mp4", 6)
    files.rotate(source, degrees)
    clip = make(source, UNIFORM, tmp_path / "cache")
    assert (clip.width, clip.height) == ((96, 64) if degrees == 180 else (64, 96))
    expected = files.decord_frames(source)
    assert np.array_equal(files.decord_frames(clip.path), expected)
    assert files.pyav_frames(clip.path)[0].shape == expected.shape


def test_probe(video):
    info = probe(video)
    assert (info.n_frames, info.width, info.height) == (90, 96, 64)
    assert (info.duration, info.fps) == pytest.approx((3.6, 25.0), abs=1e-2)


def broken(folder):
    """Broken files by the words that their error must hold."""
    good = files.write_video(folder / "good.mp4", 60, audio=True).read_bytes()
    front = {"movflags": "faststart"}
    early = files.write_video(folder / "early.mp4", 60, mux_options=front).read_bytes()
    noise = np.random.default_rng(0).integers(0, 256, 20_000, dtype=np.uint8).tobytes()
    middle = early.index(b"mdat") + 4 + len(early) // 8
    (folder / "folder.mp4").mkdir()
    png = folder / "picture.png"
    from PIL import Image

    Image.fromarray(files.picture(0, 64, 48)).save(png)
    Image.fromarray(files.picture(0, 64, 48)).save(folder / "picture.jpg")
    contents = {
        "empty.mp4": b"",
        "text.mp4": b"This is not a video at all.\n" * 200,
        "html.mp4": b"<!DOCTYPE html><html><body>404 not found</body></html>" * 50,
        "noise.mp4": noise,
        "png.mp4": png.read_bytes(),
        "jpg.mp4": (folder / "picture.jpg").read_bytes(),
        "cut.mp4": good[: len(good) // 2],
        "cut early.mp4": early[: len(early) * 3 // 4],
        "damaged.mp4": early[:middle]
        + noise[: len(early) // 2]
        + early[middle + len(early) // 2 :],
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    files.write_sound_only(folder / "sound.mp4")
    files.write_no_frames(folder / "no frames.mp4")
    return {
        "missing.mp4": "no such file",
        "folder.mp4": "is a folder",
        "empty.mp4": "is empty",
        "text.mp4": "not a readable video|holds no video",
        "html.mp4": "not a readable video|holds no video",
        "noise.mp4": "not a readable video|holds no video",
        "png.mp4": "is a still image",
        "jpg.mp4": "is a still image",
        "sound.mp4": "only sound",
        "no frames.mp4": "no frame|no video",
        "cut.mp4": "not a readable video",
        "cut early.mp4": "cut short",
        "damaged.mp4": "not a readable video|cannot be decoded",
    }


@pytest.fixture(scope="module")
def broken_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    return folder, broken(folder)


@pytest.mark.parametrize(
    "name",
    [
        "missing.mp4",
        "folder.mp4",
        "empty.mp4",
        "text.mp4",
        "html.mp4",
        "noise.mp4",
        "png.mp4",
        "jpg.mp4",
        "sound.mp4",
        "no frames.mp4",
        "cut.mp4",
        "cut early.mp4",
        "damaged.mp4",
    ],
)
def test_a_broken_file_is_named_and_leaves_nothing(broken_files, tmp_path, name):
    folder, words = broken_files
    with pytest.raises(MediaError, match=words[name]) as error:
        make(folder / name, UNIFORM, tmp_path)
    assert str(folder / name) in str(error.value)
    assert made_files(tmp_path) == []
    if name != "damaged.mp4":  # its first frame is fine, and that is what a probe looks at
        with pytest.raises(MediaError, match=words[name]):
            probe(folder / name)


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.mp4")
    with pytest.raises(MediaError, match="not a regular file"):
        make(tmp_path / "pipe.mp4", UNIFORM, tmp_path)


def fake_worker(tmp_path, monkeypatch, code):
    (tmp_path / "fake_worker.py").write_text(textwrap.dedent(code))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(media, "_WORKER", "fake_worker")


def test_a_hanging_decoder_is_ended(video, tmp_path, monkeypatch):
    code = """
        import json, pathlib, sys, time
        pathlib.Path(json.load(sys.stdin)["out"]).write_bytes(b"half a clip")
        time.sleep(60)
    """
    fake_worker(tmp_path, monkeypatch, code)
    start = time.monotonic()
    with pytest.raises(MediaError, match=r"some video\.mp4: .* more than 1 s"):
        make(video, UNIFORM, tmp_path / "cache", time_limit=1)
    assert time.monotonic() - start < 10
    assert made_files(tmp_path / "cache") == []


def test_a_crash_in_decord_is_survived(video, tmp_path, monkeypatch):
    code = """
        import io, json, os, signal, sys
        from lmms_eval_tasks.utils import media_worker
        job = sys.stdin.read()
        if json.loads(job)["decord"]:
            os.kill(os.getpid(), signal.SIGSEGV)
        sys.stdin = io.StringIO(job)
        media_worker.main()
    """
    fake_worker(tmp_path, monkeypatch, code)
    assert make(video, UNIFORM, tmp_path / "cache").n_frames == 32


def test_a_crash_without_decord_is_an_error(video, tmp_path, monkeypatch):
    fake_worker(tmp_path, monkeypatch, "import os; os.kill(os.getpid(), 11)")
    with pytest.raises(MediaError, match=r"some video\.mp4: .*SIGSEGV"):
        make(video, UNIFORM, tmp_path / "cache")


def test_a_worker_ends_by_itself_when_its_parent_is_gone(video, monkeypatch):
    code = textwrap.dedent("""
        import time
        from lmms_eval_tasks.utils import media_worker
        media_worker._GRACE = 0.2
        media_worker._answer = lambda job: time.sleep(60)
        media_worker.main()
    """)
    job = json.dumps({"time_limit": 0.3})
    start = time.monotonic()
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=job, text=True, capture_output=True, check=False)
    assert done.returncode != 0
    assert time.monotonic() - start < 30


def test_a_hit_runs_nothing_and_reads_the_source_once(video, cache, monkeypatch):
    first = make(video, UNIFORM, cache)
    monkeypatch.setattr(media, "_work", None)  # any use of it would be a TypeError
    before = media_cache._content_id.cache_info().misses
    assert all(make(video, UNIFORM, cache) == first for _ in range(20))
    assert media_cache._content_id.cache_info().misses == before


def test_a_changed_source_is_made_again(tmp_path):
    source = files.write_video(tmp_path / "v.mp4", 20)
    first = make(source, UNIFORM, tmp_path / "cache")
    files.write_video(source, 25)
    assert make(source, UNIFORM, tmp_path / "cache").n_frames == 25
    assert Path(first.path).is_file()


def test_equal_content_at_another_path_is_made_once(video, cache, tmp_path, monkeypatch):
    first = make(video, UNIFORM, cache)
    copy = tmp_path / "copy.mp4"
    copy.write_bytes(video.read_bytes())
    monkeypatch.setattr(media, "_work", None)
    second = make(copy, UNIFORM, cache)
    assert (second.path, second.source) == (first.path, str(copy))


@pytest.mark.parametrize("damage", ["cut", "delete", "no note", "bad note"])
def test_a_damaged_entry_is_made_again(video, tmp_path, damage):
    first = make(video, Recipe("uniform", 3), tmp_path)
    path = Path(first.path)
    content, note = path.read_bytes(), path.with_suffix(".json")
    {
        "cut": lambda: path.write_bytes(content[:1000]),
        "delete": path.unlink,
        "no note": note.unlink,
        "bad note": lambda: note.write_text('{"file": "'),
    }[damage]()
    assert make(video, Recipe("uniform", 3), tmp_path) == first
    assert path.read_bytes() == content


def test_an_entry_is_plain(video, cache):
    facts = make(video, UNIFORM, cache).as_dict()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["n_frames"] == 32


def test_threads_make_a_file_once(video, tmp_path, monkeypatch):
    jobs, results = [], []
    work = media._work
    monkeypatch.setattr(media, "_work", lambda *job: jobs.append(job) or work(*job))
    threads = [
        threading.Thread(target=lambda: results.append(make(video, UNIFORM, tmp_path)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(jobs) == 1
    assert results == [results[0]] * 4


def _make_in_process(video, cache, start, queue):
    start.wait()
    queue.put(make(video, UNIFORM, cache))


def test_processes_make_one_good_file(video, tmp_path):
    context = multiprocessing.get_context("fork")
    start, queue = context.Event(), context.Queue()
    arguments = (video, tmp_path, start, queue)
    processes = [context.Process(target=_make_in_process, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    start.set()
    results = [queue.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    assert results == [results[0]] * 3
    name = Path(results[0].path).stem
    assert made_files(tmp_path) == [f"{name}.json", f"{name}.mp4"]
    assert len(files.decord_frames(results[0].path)) == 32


def lock_and_wait(cache, name):
    """A process that holds an entry's lock and says so."""
    code = (
        "import time, pathlib; from lmms_eval_tasks.utils.media_cache import only_one\n"
        f"with only_one(pathlib.Path({str(cache)!r}), {name!r}, 1):\n"
        " print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "held"
    return process


def test_a_lock_ends_with_its_process(tmp_path):
    holder = lock_and_wait(tmp_path, "entry")
    threading.Timer(0.3, lambda: holder.send_signal(signal.SIGKILL)).start()
    start = time.monotonic()
    with media_cache.only_one(tmp_path, "entry", patience=30):
        assert 0.1 < time.monotonic() - start < 10
    holder.wait()


def test_a_lock_is_not_waited_for_without_end(tmp_path):
    holder = lock_and_wait(tmp_path, "entry")
    start = time.monotonic()
    with media_cache.only_one(tmp_path, "entry", patience=0.3):
        assert 0.3 <= time.monotonic() - start < 10
    holder.kill()
    holder.wait()


def test_leftovers_of_a_killed_maker_are_removed(video, tmp_path):
    recipe = Recipe("uniform", 2)
    name = media_cache.entry_name(media_cache.content_id(video), recipe.name, media._VERSION)
    old, new = tmp_path / f".{name}.1.1.part", tmp_path / f".{name}.2.2.part"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    make(video, recipe, tmp_path)
    assert not old.exists()
    assert new.exists()


def test_a_cache_that_cannot_be_written_is_an_error(video, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MediaError, match=r"some video\.mp4"):
        make(video, UNIFORM, tmp_path / "file" / "cache")


@pytest.mark.parametrize("number", [5, 8, 11, 12, 13])
def test_real_videos(number, cache, maia_data):
    import decord

    source = maia_data / "videos" / f"{number}.mp4"
    clip = make(source, UNIFORM, cache)
    reader = decord.VideoReader(str(source))
    indices = uniform_indices(len(reader), 32)
    assert clip.n_frames == 32
    read = files.decord_frames(clip.path)
    assert len(read) == 32
    assert files.psnr(read, reader.get_batch(indices).asnumpy()) >= 45
    times = reader.get_frame_timestamp(indices)[:, 0]
    assert clip.timestamps == pytest.approx(times.tolist(), abs=1e-3)
    assert files.pyav_frames(clip.path)[1] == pytest.approx(times.tolist(), abs=1e-3)
    info = probe(source)
    assert info.n_frames == len(reader)
    assert info.duration == pytest.approx(len(reader) / reader.get_avg_fps(), abs=1e-3)
    assert clip.duration == info.duration
