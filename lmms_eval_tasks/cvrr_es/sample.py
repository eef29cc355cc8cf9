"""CVRR-ES's packaged sample in the original release's form, with answers, ratings and a key.

    cvrr_es/DIMENSION/annotations_DIMENSION.json  two or three questions in each of the eleven
    cvrr_es/DIMENSION/CLIP.mp4                    the two clips of these: 192 x 144, 4 s, no sound
    cvrr_es/predictions/MODEL/DIMENSION.json      three invented candidates in the released form;
                                                  one with image tokens, "</s>" and an empty answer
    cvrr_es/ratings/first.jsonl                   three invented judges' ratings of these answers
    cvrr_es/ratings/reference.jsonl               what the answers are worth by construction
    cvrr_es/key.json                              {"answers": {question: reference},
                                                   "lures": {question: false answer}}
    cvrr_es/replay.jsonl                          what the benchmark's judge would reply that sees
                                                  how answers were built, for `--judge replay:FILE`

Clips and texts are ours (sample_clips.py, sample_questions.py, sample_answers.py); nothing is taken
from the release. The key is for the demo's oracle and for tests; no task reads it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lmms_eval_tasks.cvrr_es import sample_answers, sample_clips
from lmms_eval_tasks.cvrr_es.sample_clips import CLIPS, FPS
from lmms_eval_tasks.cvrr_es.sample_questions import QUESTIONS
from lmms_eval_tasks.sample import render

ALSO = ("labels.py", "rating_rows.py")  # they decide the sample too
FIRST, REFERENCE = "ratings/first.jsonl", "ratings/reference.jsonl"  # below the folder
PREDICTIONS, REPLAY = "predictions", "replay.jsonl"
# For render.write_mp4: one key frame; no macroblock trees (sample/second_code.py says why).
X264 = {"g": "40", "sc_threshold": "0", "mbtree": "0"}


def write(folder: Path) -> None:
    """Write the sample into an existing empty folder.

    Raises:
        MediaError: a video cannot be encoded.
    """
    drawn: dict[str, Path] = {}
    for dimension, questions in QUESTIONS.items():
        place = folder / dimension
        place.mkdir()
        rows = [{"Q": o.question, "A": o.reference, "VideoID": o.video} for o in questions]
        _write(place / f"annotations_{dimension}.json", _indented(rows))
        for name in dict.fromkeys(one.video for one in questions):
            if name in drawn:
                shutil.copyfile(drawn[name], place / name)
            else:
                drawn[name] = place / name
                write_video(name, place / name)
    for candidate in sample_answers.MODELS:
        place = folder / PREDICTIONS / candidate
        place.mkdir(parents=True)
        for dimension, answers in sample_answers.predictions(candidate).items():
            _write(place / f"{dimension}.json", _indented(answers))
    (folder / "ratings").mkdir()
    _write(folder / FIRST, _lines(row.as_dict() for row in sample_answers.first_ratings()))
    _write(folder / REFERENCE, _lines(row.as_dict() for row in sample_answers.reference_ratings()))
    _write(folder / "key.json", _indented(key()))
    _write(folder / REPLAY, _lines(sample_answers.recordings()))


def write_video(name: str, path: Path) -> None:
    """Draw and encode a clip."""
    render.write_mp4(path, sample_clips.frames(CLIPS[name]), FPS, None, 0, picture_options=X264)


def key() -> dict[str, dict[str, str]]:
    """What is right and what looks right, by question; where one repeats it is the same."""
    asked = [one for questions in QUESTIONS.values() for one in questions]
    return {
        "answers": {one.question: one.reference for one in asked},
        "lures": {one.question: one.lure for one in asked},
    }


def _lines(entries: Iterable[Any]) -> str:
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def _indented(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")
