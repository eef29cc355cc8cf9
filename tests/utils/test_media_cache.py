"""The cache of clips: one making for many questions, threads and processes, and no half file."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import media_files as files
import pytest

from lmms_eval_tasks.utils import media, media_cache, worker_call
from lmms_eval_tasks.utils.media import Recipe, make
from tests.checks import in_threads, table

UNIFORM = Recipe("uniform", 32)


def test_a_hit_runs_nothing_and_reads_the_source_once(video, cache, monkeypatch):
    first = make(video, UNIFORM, cache)
    monkeypatch.setattr(worker_call, "call", None)  # any use of it would be a TypeError
    before = media_cache._content_id.cache_info().misses
    assert all(make(video, UNIFORM, cache) == first for _ in range(20))
    assert media_cache._content_id.cache_info().misses == before


def test_an_entry_belongs_to_a_content(video, cache, tmp_path, monkeypatch):
    source = files.write_video(tmp_path / "v.mp4", 20)
    first = make(source, UNIFORM, tmp_path / "cache")
    files.write_video(source, 25)
    assert make(source, UNIFORM, tmp_path / "cache").n_frames == 25  # changed: made again
    assert Path(first.path).is_file()
    first = make(video, UNIFORM, cache)
    facts = first.as_dict()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["n_frames"] == 32
    copy = tmp_path / "copy.mp4"  # equal content at another path is made once
    copy.write_bytes(video.read_bytes())
    monkeypatch.setattr(worker_call, "call", None)
    second = make(copy, UNIFORM, cache)
    assert (second.path, second.source) == (first.path, str(copy))


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file that counts as large, and a hash of it; of 2 MB, 3 x 100 bytes are looked at."""
    monkeypatch.setattr(media_cache, "_WHOLE", 10**6)
    monkeypatch.setattr(media_cache, "_PIECES", 3)
    monkeypatch.setattr(media_cache, "_PIECE", 100)
    path = tmp_path / "large.bin"
    path.write_bytes(os.urandom(2 * 10**6))
    return path, media_cache.content_id(path)


def overwrite(path, place):
    """Another byte in the same file, whose size and mtime stay."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 255]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def test_a_change_within_a_large_file_is_seen(large):
    """Even between the pieces that are read, and with the time of the last change put back."""
    path, before = large
    seen = {before, media_cache.content_id(path)}
    assert len(seen) == 1
    for number, place in enumerate([0, 50, 500_000, 1_000_000, 1_999_999], 2):
        time.sleep(0.02)  # longer than the step of the system's clock for files
        overwrite(path, place)
        seen.add(media_cache.content_id(path))
        assert len(seen) == number


@table("damage", ["cut", "delete", "no note", "bad note"])
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


def test_threads_make_a_file_once(video, tmp_path, monkeypatch):
    jobs, work = [], worker_call.call
    monkeypatch.setattr(
        worker_call, "call", lambda *job, **how: jobs.append(job) or work(*job, **how)
    )
    results = in_threads(4, lambda _: make(video, UNIFORM, tmp_path))
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
    assert files.made_files(tmp_path) == [f"{name}.json", f"{name}.mp4"]
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


def test_a_lock_ends_with_its_process_or_with_patience(tmp_path):
    holder = lock_and_wait(tmp_path, "entry")
    start = time.monotonic()
    with media_cache.only_one(tmp_path, "entry", patience=0.3):
        assert 0.3 <= time.monotonic() - start < 10
    threading.Timer(0.3, holder.kill).start()
    start = time.monotonic()
    with media_cache.only_one(tmp_path, "entry", patience=30):
        assert 0.1 < time.monotonic() - start < 10
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
