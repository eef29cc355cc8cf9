"""What a MAVERIX doc brings along: its cut, its subtitles, and the prompts around it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.utils import prompts, segments, subtitles

Doc = Mapping[str, Any]


def media_of(doc: Doc) -> segments.Segment:
    """The doc's segment, or the whole video, cut once for all modes (utils/segments.py).

    Raises:
        MediaError: the video cannot be read or has no such segment; the message names it.
    """
    return _segment(doc["video_path"], doc["start"], doc["end"])


@functools.lru_cache(maxsize=4096)
def _segment(path: str, start: float | None, end: float | None) -> segments.Segment:
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
    """A wav as the array that some classes want instead of a path."""
    import wave

    import numpy as np

    with wave.open(path) as sound:
        frames, rate = sound.readframes(sound.getnframes()), sound.getframerate()
    array = np.frombuffer(frames, dtype="<i2").astype(np.float32) / 32768
    return {"array": array, "sampling_rate": rate}
