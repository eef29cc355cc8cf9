"""MAVERIX's packaged sample in our schema: four videos with sound, 20 items, and a key.

    maverix/data.json            20 items (item.py); answers and references are all there
    maverix/videos/lights-N.mp4  N = 1 to 3 of half a minute, 4 of 64 s; 320 x 240, 10 frames a
                                 second, a key frame every 12 s; stereo, 44.1 kHz
    maverix/subtitles/           lights-1.srt, lights-2.vtt, lights-4.json; none for lights-3
    maverix/key.json             {"answers": {open question: reference},
                                  "lures": {open question: wrong answer that looks right},
                                  "choices": {question: text of the right option}}

Every second of every video has its own colours, its own tone and its own word (sample_code.py).
Nothing is spoken: the subtitles' words are their only form. The key is for the demo's oracle and
for tests, by text: every question occurs once. No task reads it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval_tasks.maverix import sample_draw, sample_items
from lmms_eval_tasks.maverix.sample_code import SECONDS, Moment, spoken
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.sample.second_code import AAC, X264

ALSO = ("labels.py",)  # decides the sample too: sample_items.py takes the labels from it
VERSION = "packaged sample of lmms-eval-tasks"
SUBTITLES = {1: "srt", 2: "vtt", 4: "json"}  # kind by video
WORD = (0.1, 0.9)  # when a second's word is shown, in seconds after the second began


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    (folder / "videos").mkdir()
    (folder / "subtitles").mkdir()
    for video, name in enumerate(sample_items.VIDEOS, 1):
        write_video(video, folder / "videos" / f"{name}.mp4")
        if video in SUBTITLES:
            kind = SUBTITLES[video]
            text = subtitles(video, kind)
            (folder / "subtitles" / f"{name}.{kind}").write_text(text, encoding="utf-8")
    _write_json(folder / "data.json", {"version": VERSION, "items": sample_items.items()})
    _write_json(folder / "key.json", sample_items.key())


def write_video(video: int, path: Path) -> None:
    """Draw and encode one video with its sound."""
    render.write_mp4(
        path,
        sample_draw.frames(video),
        sample_draw.FPS,
        sample_draw.sound(video),
        sample_draw.RATE,
        picture_options=X264,
        sound_options=AAC,
    )


def subtitles(video: int, kind: str) -> str:
    """The subtitle file of a video: one word a second.

    Args:
        video: 1 to 4.
        kind: srt, vtt or json (Whisper's form).
    """
    seconds = range(SECONDS[video - 1])
    cues = [(s + WORD[0], s + WORD[1], spoken(Moment(video, s))) for s in seconds]
    if kind == "json":
        segments = [
            {"start": round(start, 3), "end": round(end, 3), "text": text}
            for start, end, text in cues
        ]
        return json.dumps({"segments": segments}, indent=1) + "\n"
    mark = "," if kind == "srt" else "."
    blocks = [
        f"{number}\n{_clock(start, mark)} --> {_clock(end, mark)}\n{text}\n"
        for number, (start, end, text) in enumerate(cues, 1)
    ]
    return "\n".join((["WEBVTT\n"] if kind == "vtt" else []) + blocks)


def _clock(seconds: float, mark: str) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    whole, rest = divmod(milliseconds, 1000)
    return f"00:{minutes:02}:{whole:02}{mark}{rest:03}"


def _write_json(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
