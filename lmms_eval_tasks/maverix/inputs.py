"""What a MAVERIX doc brings along: its cut, its subtitles, and the prompts around it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import prompts, segments, sound_files, subtitles

Doc = Mapping[str, Any]


def media_of(doc: Doc) -> segments.Segment:
    """The doc's segment, or the whole video, cut once for all modes (utils/segments.py).

    Raises:
        MediaError: the video cannot be read or has no such segment; the message names it.
    """
    try:
        return cut(doc["video_path"], doc["start"], doc["end"])
    except MediaError as error:
        # The host cannot pass over an item, so the run ends here; before it, the check has cut it.
        raise MediaError(
            f"{doc['id']}: its segment cannot be cut any more, so the run ends ({error}); all "
            "segments that are cut are kept: start it again, with --allow-bad-items to leave it out"
        ) from None


@functools.lru_cache(maxsize=4096)
def cut(path: str, start: float | None, end: float | None) -> segments.Segment:
    """A window of a video, from its segment's cache; None and None is all of it.

    Raises:
        MediaError: it cannot be read or has no such window.
    """
    return segments.segment(path, start, end)


def subtitle_text(doc: Doc) -> str:
    """The cues of the doc's segment, rebased to its beginning, one a line; "" if there are none."""
    return _subtitle_text(doc["subtitle_path"], doc["start"], doc["end"])


@functools.lru_cache(maxsize=4096)
def _subtitle_text(path: str, start: float | None, end: float | None) -> str:
    if not path:
        return ""
    cues = subtitles.read(Path(path))
    if start is not None and end is not None:
        cues = subtitles.cut(cues, start, end)
    return subtitles.render(cues)


def task_prompts() -> prompts.Prompt:
    """The task prompts, ours or the user's.

    Raises:
        PromptError: the user's file lacks a text or a placeholder.
    """
    return _task_prompts(settings.prompts_dir())


@functools.lru_cache(maxsize=8)
def _task_prompts(override: Path | None) -> prompts.Prompt:
    required = {
        "subtitles": {"cues"},
        "no_subtitles": set(),
        "choice": {"subtitles", "question", "options"},
        "open": {"subtitles", "question"},
    }
    return prompts.load("maverix", "task", required=required, override_dir=override)


def sounding(path: str | None, doc: Doc) -> str:
    """The path, if the video has sound.

    Raises:
        MediaError: it has none.
    """
    if path is None:
        raise MediaError(f"{doc['video_path']}: no audio stream, and {doc['mode']} needs sound")
    return path


def samples(path: str) -> dict[str, Any]:
    """A wav of ours as the array that some classes want instead of a path."""
    return {"array": sound_files.samples(path), "sampling_rate": sound_files.RATE}
