"""The child process that touches a video file: decoders may hang or crash on broken ones.

Run by worker_call.py as `python -m lmms_eval_tasks.utils.media_worker` with a JSON
job on stdin; answers with one line of JSON on stdout: {"ok": {...}} or {"error": "what is wrong
with the file"}.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import (
    frame_archive,
    segment_cut,
    segment_head,
    segment_sound,
    video_clip,
    video_frames,
    video_source,
)
from lmms_eval_tasks.utils.media import Recipe, uniform_indices

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.colours import Planes
    from lmms_eval_tasks.utils.video_frames import Look
    from lmms_eval_tasks.utils.video_source import FrameTable

# A clip of the first frame only: four frames, which is what Qwen's reader wants at least
# (FPS_MIN_FRAMES), at the two frames a second that it samples.
STILL_FRAMES, STILL_RATE = 4, 2.0
_GRACE = 10.0  # seconds after which a job whose parent is gone ends by itself


def probe(source: str, use_decord: bool) -> dict[str, Any]:
    """Facts about a video; its first frame is decoded to be sure that it can be.

    Raises:
        MediaError: what is wrong with the file, without its name.
    """
    table, _, look = _take(source, use_decord, count=1)
    end = Fraction((table.end - table.times[0]) * table.time_base)
    if table.has_audio:
        end = segment_sound.end(source, segment_head.head(source).clock, end)
    return {
        "n_frames": len(table.times),
        "width": look.width,
        "height": look.height,
        "duration": table.duration,
        "end": float(end),
        "fps": len(table.times) / table.duration,
        "has_audio": table.has_audio,
    }


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
        return {**facts, "kind": "image", "duration": 0.0, "fps": 0.0, "timestamps": [0.0]}
    if recipe.still:
        planes = planes * STILL_FRAMES
        times, duration = [n / STILL_RATE for n in range(STILL_FRAMES)], STILL_FRAMES / STILL_RATE
    else:
        indices = uniform_indices(len(table.times), recipe.n_frames)
        times, duration = [table.seconds(index) for index in indices], table.duration
    if recipe.kind == "black":
        video_clip.write_black(out, look, times, duration)
    else:
        video_clip.write_clip(out, planes, look, times, duration)
    fps = len(times) / duration
    return {**facts, "kind": "video", "duration": duration, "fps": fps, "timestamps": times}


def _take(source: str, use_decord: bool, count: int) -> tuple[FrameTable, list[Planes], Look]:
    """The frame list and `count` uniform frames of it."""
    table = video_source.frame_table(source, use_decord)
    try:
        return table, *video_frames.pictures(
            source, table, uniform_indices(len(table.times), count)
        )
    except LookupError:
        # The decoder shows other frames than the packets promise (hidden or damaged ones).
        table = video_source.decoded_table(source)
    try:
        return table, *video_frames.pictures(
            source, table, uniform_indices(len(table.times), count)
        )
    except LookupError as error:
        raise MediaError("decodes differently each time") from error


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"ok": _do(job)}
    except MediaError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "its frames do not fit into memory"}
    except OSError as error:
        return {"error": f"reading it or writing the clip failed ({error})"}


def _do(job: dict[str, Any]) -> dict[str, Any]:
    source = job["source"]
    if job["do"] == "probe":
        return probe(source, job["decord"])
    if job["do"] == "segment":
        return segment_cut.make(source, **job["segment"])
    if job["do"] == "sound":
        return segment_cut.sound(source, job["out"])
    if job["do"] == "frames":
        return frame_archive.write(source, **job["frames"], use_decord=job["decord"])
    return make(source, Recipe(**job["recipe"]), job["out"], job["decord"])


def main() -> None:
    """Do one job, then end at once, even if a decoder's thread still hangs."""
    job = json.load(sys.stdin)
    # Runs in C, without the interpreter lock: ends the process even inside a hanging decoder.
    faulthandler.dump_traceback_later(job["time_limit"] + _GRACE, exit=True)
    print(json.dumps(_answer(job)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
