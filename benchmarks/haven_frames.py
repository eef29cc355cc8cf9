"""HAVEN's tasks share one decoding of a video, and memory holds one video at a time.

    python benchmarks/haven_frames.py [--check]

A video of 165 sampled frames is made, the paper's average (2 a second). Its requests are those of
the eight tasks with pictures, in lmms-eval's form: messages with decoded pictures. All measurements
run in one process, each from an empty cache:

- decodings of the video: for all eight tasks together, and for each of them alone;
- time: all eight tasks, compared with decoding for each task, as a task without a shared cache
  does: decord's get_batch, or a seek with PyAV for each frame, of the task's frames in ascending
  order, each resized to the same size. They run in turn, so that a busy machine slows down all;
- peak memory of a process that makes the eight tasks' requests for several videos, and of its
  child processes, compared with one video. It is Linux's figure for each program (VmHWM), because
  `ru_maxrss` would begin with the peak of the parent process.

`--check` ends with status 1 if the eight tasks decode more than once, are not faster, or the peak
grows by more than a fifth with the number of videos.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven import data, options
from lmms_eval_tasks.haven.items import HavenDoc
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.haven.records.record import Record
from lmms_eval_tasks.host.task_functions import doc_to_messages
from lmms_eval_tasks.media import indexed_frames
from lmms_eval_tasks.utils.media import worker

GROWTH = 1.2
RATE, STEP = 30, 15  # frames a second of the video; frames between two sampled ones
PICKS, SHOTS = 165, 16  # the paper's averages (Table 1)
KEYS = 150  # frames between two key frames
# A child process that decodes, and writes its own peak in KiB after each job.
NOTING_WORKER = """
import os, pathlib
from lmms_eval_tasks.utils.media import worker
work = worker._answer
def noted(*job):
    answer = work(*job)
    peak = pathlib.Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]
    with open(os.environ["PEAKS"], "a") as file:
        print(peak, file=file)
    return answer
worker._answer = noted
worker.main()
"""
SHOWN = [task for task in TASKS.values() if not task.text]


def write(path: Path, n_frames: int, size: tuple[int, int], seed: int) -> None:
    """Write a video of a moving texture, a different one for each shot."""
    import av
    import numpy as np

    rng = np.random.default_rng(seed)
    width, height = size
    grey = np.full((height // 2, width), 128, np.uint8)
    with av.open(str(path), "w") as file:
        video: Any = file.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.codec_context.gop_size = KEYS
        video.options = {"preset": "ultrafast", "crf": "23"}
        for number in range(n_frames):
            if number % (n_frames // SHOTS) == 0:
                coarse = rng.integers(40, 200, (-(-height // 8), width // 4), np.uint8)
                texture = coarse.repeat(8, 0).repeat(8, 1)[:height]
            left = number % width
            luma = texture[:, left : left + width]
            frame = av.VideoFrame.from_ndarray(np.concatenate([luma, grey]), format="yuv420p")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            file.mux(video.encode(frame))
        file.mux(video.encode(None))


def docs(path: Path, picks: int) -> list[HavenDoc]:
    """Return the docs of the eight tasks on a video, made with the package's code."""
    edges = [place * picks // SHOTS for place in range(SHOTS + 1)]
    told = [f"Event {letter} happens." for letter in "abcd"]
    record = Record(
        source="tvsum",
        video=path.stem,
        name="",
        picks=[STEP * place for place in range(picks)],
        descriptions=[""] * picks,
        keyframes=list(range(1, picks + 1, 7)),
        shots=[list(range(a + 1, b + 1)) for a, b in pairwise(edges)],
        shot_texts=[""] * SHOTS,
        key_shots=[],
        document=told,
        document_shots=[[1], [2], [3], [4]],
        summary=told,
        summary_shots=[[1], [2], [3], [4]],
        scores=[0.5] * picks,
        path=path,
    )
    row = data.row(record, "benchmark")
    chosen = options.current()
    return [{**data.make_doc(row, task, chosen), "task": task.name} for task in SHOWN]


def ask(doc: HavenDoc) -> list[Any]:
    """Return the pictures of one request, in lmms-eval's form."""
    (message,) = doc_to_messages(doc)
    return [item["url"] for item in message["content"] if item["type"] == "image"]


@contextmanager
def empty_cache() -> Iterator[None]:
    """Use an empty cache while the context lasts."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {settings.CACHE: folder}),
    ):
        yield


def decoded(asked: list[HavenDoc]) -> tuple[int, int]:
    """Return the passes through the video for these docs from an empty cache, and the pictures."""
    passes: list[object] = []
    work = worker.call

    def counted(*job: Any, **arguments: Any) -> dict[str, Any]:
        passes.append(job)
        return work(*job, **arguments)

    with empty_cache(), patch.object(worker, "call", counted):
        pictures = sum(len(ask(doc)) for doc in asked)
    return len(passes), pictures


def shared(asked: list[HavenDoc]) -> None:
    """Make all requests from an empty cache."""
    with empty_cache():
        for doc in asked:
            ask(doc)


def indices_of(doc: HavenDoc) -> list[int]:
    """Return the indices of the video's frames that a request shows, ascending."""
    shown = [number for group in doc["unit_frames"] for number in group]
    return [doc["picks"][number - 1] for number in sorted(shown)] or list(doc["picks"])


def by_decord(asked: list[HavenDoc]) -> None:
    """Open the video for each task and take its frames with decord."""
    import decord

    for doc in asked:
        reader = decord.VideoReader(doc["video_path"])
        for rgb in reader.get_batch(indices_of(doc)).asnumpy():
            _resized(rgb)


def by_seeking(asked: list[HavenDoc]) -> None:
    """Open the video for each task and seek to each of its frames with PyAV."""
    import av

    for doc in asked:
        with av.open(doc["video_path"]) as file:
            stream = file.streams.video[0]
            stream.thread_type = "AUTO"
            for index in indices_of(doc):
                target = round(index / RATE / stream.time_base)
                file.seek(target, stream=stream)
                frame = next(f for f in file.decode(stream) if (f.pts or 0) >= target)
                _resized(frame.to_ndarray(format="rgb24"))


def _resized(rgb: Any) -> Any:
    from PIL import Image

    fit = indexed_frames.fitted(rgb.shape[1], rgb.shape[0], options.current().size)
    return Image.fromarray(rgb).resize(fit, Image.Resampling.LANCZOS)


def peak(paths: list[Path], picks: int) -> tuple[float, float]:
    """Return the peaks in MiB of a new process with all tasks of these videos, and of its
    children.
    """
    given = json.dumps([str(path) for path in paths])
    command = [sys.executable, __file__, "--memory", given, "--picks", str(picks)]
    with empty_cache():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    own, children = json.loads(done.stdout)
    return own, children


def measure_own_peak(paths: list[Path], picks: int) -> None:
    """Make all requests in that process, one at a time as in lmms-eval, then print the peaks."""
    with tempfile.TemporaryDirectory() as folder:
        noted = Path(folder) / "peaks"
        (Path(folder) / "noting_worker.py").write_text(NOTING_WORKER, encoding="utf-8")
        found = {"PYTHONPATH": folder, "PEAKS": str(noted)}
        with patch.dict(os.environ, found), patch.object(worker, "WORKER", "noting_worker"):
            for path in paths:
                for doc in docs(path, picks):
                    ask(doc)
        children = [int(line) for line in noted.read_text(encoding="utf-8").split()]
    if len(children) != len(paths):
        sys.exit(f"{len(children)} decodings of {len(paths)} videos")
    own = Path("/proc/self/status").read_text(encoding="utf-8").split("VmHWM:")[1].split()[0]
    print(json.dumps([int(own) / 1024, max(children) / 1024]))


def timed(job: Callable[[list[HavenDoc]], None], asked: list[HavenDoc]) -> float:
    """Return the seconds of a job."""
    start = time.perf_counter()
    job(asked)
    return time.perf_counter() - start


def count(asked: list[HavenDoc]) -> int:
    """Print the number of decodings for all tasks, and return it."""
    alone = sum(decoded([doc])[0] for doc in asked)
    together, pictures = decoded(asked)
    print(
        f"decodings: {together} for {len(asked)} tasks ({pictures} pictures), {alone} for each "
        "task on its own"
    )
    return together


def race(asked: list[HavenDoc], rounds: int) -> float:
    """Print the times, in turn; return the ratio to the faster of the other ways."""
    jobs = {"shared": shared, "decord per task": by_decord, "PyAV seek per frame": by_seeking}
    spent = dict.fromkeys(jobs, 0.0)
    by_decord(asked[-1:])  # not counted: imports, and the file's pages
    for _ in range(rounds):
        for name, job in jobs.items():
            spent[name] += timed(job, asked)
    for name, seconds in spent.items():
        ratio = "" if name == "shared" else f", {seconds / spent['shared']:.1f} times"
        print(f"time: {name:<20} {seconds / rounds:6.2f} s{ratio}")
    return min(seconds for name, seconds in spent.items() if name != "shared") / spent["shared"]


def memory(first: Path, folder: Path, picks: int, videos: int) -> float:
    """Print the peaks; return the ratio of several videos' peak to one video's."""
    paths = [first]
    for number in range(1, videos):
        # Bytes behind the video's end change the hash, so that each copy is decoded.
        paths.append(folder / f"video-{number}.mp4")
        shutil.copy(first, paths[-1])
        with paths[-1].open("ab") as file:
            file.write((8).to_bytes(4, "big") + b"free" + (8 + 8).to_bytes(4, "big") + b"free")
            file.write(number.to_bytes(8, "big"))
    one, several = peak(paths[:1], picks), peak(paths, picks)
    growth = max(b / a for a, b in zip(one, several, strict=True))
    print(
        f"peak memory: {one[0]:.0f} MiB (child {one[1]:.0f}) for 1 video, {several[0]:.0f} MiB "
        f"(child {several[1]:.0f}) for {videos}: ratio {growth:.2f} (limit {GROWTH})"
    )
    return growth


def main() -> None:
    """Make the videos, measure, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--check", action="store_true", help="end with status 1 beyond a limit")
    parser.add_argument("--quick", action="store_true", help="a smoke test: 33 frames of 320 x 180")
    parser.add_argument("--rounds", type=int, default=1, help="of the race")
    parser.add_argument("--videos", type=int, default=4, help="for the peak of memory")
    parser.add_argument("--memory", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--picks", type=int, default=PICKS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_own_peak([Path(path) for path in arguments.memory], arguments.picks)
        return
    picks, size = (33, (320, 180)) if arguments.quick else (arguments.picks, (1280, 720))
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "video.mp4"
        write(path, picks * STEP, size, seed=0)
        asked = docs(path, picks)
        print(f"{picks} of {picks * STEP} frames of {size[0]} x {size[1]}, {SHOTS} shots")
        decodings = count(asked)
        gain = race(asked, arguments.rounds)
        growth = memory(path, Path(temporary), picks, arguments.videos)
    # In a smoke test, starting the child process takes longer than its work.
    slow = gain < 1 and not arguments.quick
    if arguments.check and (decodings > 1 or growth > GROWTH or slow):
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except MediaError as error:
        sys.exit(str(error))
