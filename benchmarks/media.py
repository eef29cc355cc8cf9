"""The reading time that our clips save: N questions on one video, with lmms-eval's own readers.

    python benchmarks/media.py --data ../shared/data

Two ways take turns: the reader on the source file N times; and making the clip once (empty cache),
then finding it in the cache and reading it for each of N questions. Both run in alternating chunks,
so that a busy machine slows down both. All work counts on both sides.

The readers are those of lmms-eval's models: its two loaders, and Qwen's reader in the way of the
chat class qwen2_5_vl (decord counts the frames, then Qwen's reader decodes them). The last row adds
the next step of the same call, resizing to the model's input. Its time depends only on the size of
the frames, which our clips keep, so no clip can make it shorter.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.media.clip_specs import ClipFile, MediaSpec, make_clip_file

FRAMES = 32
PIXELS = {"min_pixels": 256 * 28 * 28, "max_pixels": 1_605_632}  # defaults of qwen2_5_vl
Reader = Callable[[str], object]


def readers() -> dict[str, Reader]:
    """Return lmms-eval's readers by name; each takes a path and returns 32 decoded frames."""
    import decord
    from lmms_eval.models.model_utils import load_video
    from qwen_vl_utils import process_vision_info, vision_process

    def request(path: str) -> dict[str, object]:
        # models/chat/qwen2_5_vl.py: an even number of frames, not more than decord counts
        total = min(FRAMES, len(decord.VideoReader(path)))
        return {"type": "video", "video": path, "nframes": max(2, total // 2 * 2), **PIXELS}

    def qwen(path: str) -> object:
        backend = vision_process.get_video_reader_backend()
        return vision_process.VIDEO_READER_BACKENDS[backend](request(path))

    def qwen_and_resize(path: str) -> object:
        message = {"role": "user", "content": [request(path)]}
        return process_vision_info([message], return_video_kwargs=True, return_video_metadata=True)

    return {
        "read_video": lambda path: load_video.read_video(path, num_frm=FRAMES),
        "load_video_decord": lambda path: load_video.load_video_decord(path, FRAMES),
        "qwen": qwen,
        "qwen+resize": qwen_and_resize,
    }


def compare(
    source: Path, reader: Reader, n: int, chunks: int
) -> tuple[float, float, float, ClipFile]:
    """Return seconds on the source and on the clip, those of making the clip, and the clip."""
    recipe = MediaSpec("uniform", FRAMES)
    on_source = on_clip = 0.0
    with (
        tempfile.TemporaryDirectory() as cache,
        patch.dict(os.environ, {settings.CACHE: cache}),
    ):
        start = time.perf_counter()
        clip = make_clip_file(source, recipe)
        making = on_clip = time.perf_counter() - start
        for chunk in range(chunks):
            questions = n * (chunk + 1) // chunks - n * chunk // chunks
            start = time.perf_counter()
            for _ in range(questions):
                reader(str(source))
            middle = time.perf_counter()
            for _ in range(questions):
                reader(make_clip_file(source, recipe).path)
            on_source += middle - start
            on_clip += time.perf_counter() - middle
    return on_source, on_clip, making, clip


def sources(arguments: argparse.Namespace) -> list[Path]:
    """Return the videos to measure; exits with a message if there are none."""
    if arguments.video:
        return list(arguments.video)
    folder = (arguments.data or settings.data_root()) / "maia" / "videos"
    found = sorted(folder.glob("*.mp4"))[:1]
    if not found:
        sys.exit(f"no videos in {folder}: name a data folder with --data or a file with --video")
    return found


def main() -> None:
    """Measure and print a table: one line for each video and reader."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="folder with maia/videos in it")
    parser.add_argument("--video", type=Path, action="append", help="a video file instead")
    parser.add_argument("--n", type=int, default=192, help="questions on a video (MAIA: 192)")
    parser.add_argument("--reader", action="append", help="only this reader (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="a smoke test: 4 questions")
    arguments = parser.parse_args()
    n, chunks = (4, 2) if arguments.quick else (arguments.n, min(12, arguments.n))
    files = sources(arguments)
    logging.disable(logging.WARNING)  # Qwen's library warns about max_pixels at each call
    known = readers()
    chosen = arguments.reader or list(known)
    if wrong := set(chosen) - set(known):
        parser.error(f"unknown reader {', '.join(wrong)}; known: {', '.join(known)}")
    print(f"{'video':<12} {'reader':<18} {'source':>9} {'clip':>9} {'(making)':>9} {'ratio':>7}")
    for source in files:
        for name in chosen:
            known[name](str(source))  # not counted: imports and page cache
            on_source, on_clip, making, clip = compare(source, known[name], n, chunks)
            print(
                f"{source.name:<12} {name:<18} {on_source:8.2f}s {on_clip:8.2f}s {making:8.2f}s "
                f"{on_source / on_clip:6.1f}x",
                flush=True,
            )
        print(f"{n} questions; {clip.n_frames} frames of {clip.width} x {clip.height}")


if __name__ == "__main__":
    try:
        main()
    except MediaError as error:
        sys.exit(str(error))
