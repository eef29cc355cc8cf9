"""The child process that touches a video file: decoders may hang or crash on broken ones.

Run by worker_call.py as a module of its own. Takes jobs from stdin, one
line of JSON each, and answers each with a line on stdout: {"ok": {...}}, {"error": "what is wrong
with the file"} or {"failed": "what went wrong besides"}.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import sys
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils.media import (
    frame_archive,
    segment_cut,
    segment_head,
    segment_sound,
    video_clip,
    video_frames,
    video_source,
)
from lmms_eval_tasks.utils.media.recipes import Recipe, uniform_indices

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.media.colours import Planes
    from lmms_eval_tasks.utils.media.video_frames import Look
    from lmms_eval_tasks.utils.media.video_source import FrameTable

# A clip of the first frame only: four frames, which is what Qwen's reader wants at least
# (FPS_MIN_FRAMES), at the two frames a second that it samples.
STILL_FRAMES, STILL_RATE = 4, 2.0
_GRACE = 10.0  # seconds after which a job whose parent is gone ends by itself
_UNUSED = 20.0  # seconds without a job after which the process ends: it holds some 100 MB


def probe(source: str, use_decord: bool) -> dict[str, Any]:
    """Facts about a video (`info`); its first frame is decoded to be sure that it can be.

    `lasting` is false if decord, which may count other frames, crashed or hung: it may not again.

    Raises:
        MediaError: what is wrong with the file, without its name.
    """
    table, _, look = _take(source, use_decord, count=1)
    end = Fraction((table.end - table.times[0]) * table.time_base)
    if table.has_audio:
        # The head decodes 48 frames to find the clock: most of what a probe would cost.
        clock = segment_head.Clock(Fraction(table.times[0] * table.time_base))
        clock = clock if table.ordered else segment_head.head(source).clock
        end = segment_sound.end(source, clock, end)
    info = {
        "n_frames": len(table.times),
        "width": look.width,
        "height": look.height,
        "duration": table.duration,
        "end": float(end),
        "fps": len(table.times) / table.duration,
        "has_audio": table.has_audio,
    }
    return {"info": info, "lasting": use_decord and threading.active_count() == 1}


def make(source: str, recipe: Recipe, out: str, use_decord: bool) -> dict[str, Any]:
    """Write the recipe's result to `out` and describe it (fields of media.Media).

    Black is painted over the frames of the uniform recipe, so that both have the same times.

    Raises:
        MediaError: what is wrong with the file, without its name.
    """
    first = recipe.kind == "first_frame"
    table, planes, look = _take(source, use_decord, 1 if first else recipe.n_frames)
    if recipe.kind == "black":
        planes = [video_clip.black(look)] * len(planes)
        look = video_clip.black_look(look)
    facts = {"width": look.width, "height": look.height}
    if len(planes) == 1 and not recipe.still:
        video_clip.write_image(out, planes[0], look)
        image = {"suffix": ".png", "kind": "image"}
        return {**facts, **image, "duration": 0.0, "fps": 0.0, "timestamps": [0.0]}
    if recipe.still:
        planes = planes * STILL_FRAMES
        times, duration = [n / STILL_RATE for n in range(STILL_FRAMES)], STILL_FRAMES / STILL_RATE
    else:
        indices = uniform_indices(len(table.times), recipe.n_frames)
        times, duration = [table.seconds(index) for index in indices], table.duration
    write = video_clip.write_black if recipe.kind == "black" else video_clip.write_clip
    write(out, planes, look, times, duration)
    fps = len(times) / duration
    clip = {"suffix": ".mp4", "kind": "video"}
    return {**facts, **clip, "duration": duration, "fps": fps, "timestamps": times}


def _take(source: str, use_decord: bool, count: int) -> tuple[FrameTable, list[Planes], Look]:
    """The frame list and `count` uniform frames of it."""
    table, (planes, look) = video_source.with_table(
        source,
        use_decord,
        lambda table: video_frames.pictures(
            source, table, uniform_indices(len(table.times), count)
        ),
    )
    return table, planes, look


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": _do(job)}
    except MediaError as error:
        # What the system refuses, such as for want of a permission, is not the file's content.
        return {"failed" if isinstance(error.__cause__, OSError) else "error": str(error)}
    except MemoryError:
        return {"failed": "its frames do not fit into memory"}
    except OSError as error:
        return {"failed": f"reading it or writing the clip failed ({error})"}


def _do(job: dict[str, Any]) -> dict[str, Any]:
    source = job["source"]
    if job["do"] == "probe":
        return probe(source, job["decord"])
    if job["do"] == "segment":
        return segment_cut.make(source, **job["segment"])
    if job["do"] == "sound":
        return segment_cut.sound(source, job["out"])
    if job["do"] == "frames":
        asked = {name: job[name] for name in ("indices", "size", "out")}
        return frame_archive.write(source, **asked, use_decord=job["decord"])
    return make(source, Recipe(**job["recipe"]), job["out"], job["decord"])


def main() -> None:
    """Do jobs until there are no more; then end at once, even if a decoder's thread still hangs."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    while select.select([0], [], [], _UNUSED)[0] and (line := sys.stdin.readline()):
        job = json.loads(line)
        # Runs in C, without the interpreter lock: ends the process even inside a hanging decoder.
        faulthandler.dump_traceback_later(job["time_limit"] + _GRACE, exit=True)
        print(json.dumps(_answer(job)), file=answers, flush=True)
        faulthandler.cancel_dump_traceback_later()
        if threading.active_count() > 1:
            break  # decord hangs in a thread (video_source.py)
    os._exit(0)


if __name__ == "__main__":
    main()
