"""The time that this package adds to the start of a run: its hook, and the check of the videos.

    python benchmarks/start.py --data ../shared/data

- `lmms-eval models` with its plugins (ours) and without, in turn (the limit is 100 ms).
- A release of 100 clips that are made here, and MAIA's own if they exist, in three ways: a child
  process for each file, as in earlier versions; child processes that go from file to file (50 ms a
  video on one core); and a second start, which finds the first one's facts (0.5 s).

All run in turn, so that a busy machine slows down all. Wall time depends on other programs.
Processor time, of the process and its children together, is the least that one core would need.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROUNDS, LOOKS = 15, 3
# lmms-eval's shortest command, in a process with plugins of its model registry, or without.
HOOKED = "import sys; sys.argv = ['lmms-eval', 'models']\n"
HOOKED += "from lmms_eval.cli.dispatch import main; main()"
BARE = """
import importlib.metadata as m
every = m.EntryPoints.select
def select(self, **given):
    return [] if given.get("group") == "lmms_eval.models" else every(self, **given)
m.EntryPoints.select = select
"""
BARE += HOOKED
RATE, SECONDS, SIZE = 25, 10, (320, 240)


def seconds(code: str) -> float:
    """Return the wall time of a fresh interpreter that runs `code`."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def hook() -> None:
    """Print the times of the command with and without the hook."""
    bare, hooked = [], []
    for _ in range(ROUNDS):
        bare.append(seconds(BARE))
        hooked.append(seconds(HOOKED))
    one, two = statistics.median(bare), statistics.median(hooked)
    print(f"lmms-eval models: {1000 * one:.1f} ms, with the hook {1000 * two:.1f} ms")
    print(f"the hook adds {1000 * (two - one):.1f} ms; ratio {two / one:.2f}\n")


def write(path: Path) -> None:
    """Write a clip with B-frames and sound, as in releases."""
    import av
    import numpy as np

    rng = np.random.default_rng(0)
    width, height = SIZE
    texture = rng.integers(0, 255, (height, 2 * width, 3), dtype=np.uint8)
    with av.open(str(path), "w") as file:
        video: Any = file.add_stream("libx264", rate=RATE)
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.options = {"preset": "fast", "crf": "30"}
        sound: Any = file.add_stream("aac", rate=44_100)
        for number in range(RATE * SECONDS):
            shown = np.ascontiguousarray(texture[:, number : number + width])
            file.mux(video.encode(av.VideoFrame.from_ndarray(shown, format="rgb24")))
        file.mux(video.encode(None))
        for start in range(0, SECONDS * 44_100, 1024):
            wave = np.sin(np.arange(start, start + 1024) / 20)[None].astype(np.float32)
            frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
            frame.sample_rate, frame.pts = 44_100, start
            file.mux(sound.encode(frame))
        file.mux(sound.encode(None))


def one_child_each(paths: list[Path]) -> None:
    """Check each file in its own child process, as many at once as there are processors."""
    from lmms_eval_tasks.utils.media import worker

    def look(path: Path) -> None:
        job = json.dumps(["video_checks", "facts", str(path), {"out": ""}])
        child = worker._Child()
        child.ask(job, 60)
        child.end()

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(look, paths))


def start(paths: list[Path]) -> None:
    """Check the videos as a start does."""
    from lmms_eval_tasks.media import video_checks
    from lmms_eval_tasks.utils.media import worker

    _, bad = video_checks.look({str(path): path for path in paths})
    worker.end_waiting()
    if bad:
        sys.exit(f"{len(bad)} bad videos")


def in_process(what: str, paths: list[Path], cache: Path) -> tuple[float, float]:
    """Return the wall and processor seconds of a new process, imports included."""
    command = [sys.executable, __file__, "--look", what, *map(str, paths)]
    environment = {**os.environ, "LMMS_EVAL_TASKS_CACHE": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    wall, processor = json.loads(done.stdout)
    return wall, processor


def look(what: str, paths: list[Path]) -> None:
    """Check the videos in that process, then print its times."""
    begin, before = time.perf_counter(), os.times()
    {"each": one_child_each, "start": start}[what](paths)
    after, wall = os.times(), time.perf_counter() - begin
    print(json.dumps([wall, sum(after[:4]) - sum(before[:4])]))


def videos(paths: list[Path], title: str) -> None:
    """Print the times of the three ways on a release."""
    told: dict[str, list[tuple[float, float]]] = {"each": [], "first": [], "second": []}
    for _ in range(LOOKS):
        with tempfile.TemporaryDirectory() as cache:
            told["each"].append(in_process("each", paths, Path(cache)))
            told["first"].append(in_process("start", paths, Path(cache)))
            told["second"].append(in_process("start", paths, Path(cache)))
    wall, processor = (
        {name: statistics.median(one[kind] for one in runs) for name, runs in told.items()}
        for kind in (0, 1)
    )
    print(f"{len(paths)} videos: {title}")
    names = {"each": "a child for each file", "first": "first start", "second": "second start"}
    for name, line in names.items():
        print(
            f"  {line:<22} {wall[name]:7.2f} s, processor {processor[name]:6.2f} s, "
            f"{1000 * processor[name] / len(paths):6.1f} ms a video, "
            f"ratio {processor['each'] / processor[name]:6.1f}",
            flush=True,
        )


def main() -> None:
    """Measure and print the times."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="folder with maia/videos in it")
    parser.add_argument("--n", type=int, default=100, help="clips to make")
    parser.add_argument("--look", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.look:
        look(arguments.look[0], [Path(path) for path in arguments.look[1:]])
        return
    hook()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.mp4" for number in range(arguments.n)]
        write(paths[0])
        for path in paths[1:]:
            path.write_bytes(paths[0].read_bytes())
        videos(paths, f"{SECONDS} s of {SIZE[0]} x {SIZE[1]} with sound, made here")
        own = sorted((arguments.data or Path()).glob("maia/videos/*.mp4"))
        if own:
            links = [Path(folder) / f"maia{number}.mp4" for number in range(arguments.n)]
            for number, path in enumerate(links):
                path.symlink_to(own[number % len(own)].resolve())
            videos(links, f"MAIA's {len(own)}, repeated")


if __name__ == "__main__":
    main()
