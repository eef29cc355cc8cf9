"""Segments in the release's schema, for tests, and small videos that tell the time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lmms_eval_tasks.sample.render import Clip, Tone, soundtrack

SECRET = "zebra"  # in every fact and every reference, and nowhere else
RATE = 10  # frames a second
SRT = """00:10:01,000 --> 00:10:02,000
<i>Where were you?</i>
00:10:03,000 --> 00:10:04,500
At the harbour,
all night.
"""
SPOKEN = "Where were you?\nAt the harbour, all night."
# Seconds of the rendered videos.
RECAP, MOVIE = 12, 20


def question(number: int = 0, **changes: Any) -> dict[str, Any]:
    """A question as released; `...` as a change takes the field away."""
    good = {
        "qid": number,
        "factsUsed": [0, 2],
        "question": f"Who waits at the harbour {number}?",
        "datasetAnswer": f"The {SECRET} captain {number} waits.",
        "humanAnswer": {"answer": "The captain", "scores": {"factuality": 4, "relevance": 5}},
        "modelAnswers": [{"model": "m.response", "answer": "", "scores": None}],
    }
    changed = {**good, **changes}
    return {name: value for name, value in changed.items() if value is not ...}


def entry(number: int = 1, **changes: Any) -> dict[str, Any]:
    """A good segment with two questions, in the recap `talk` and the movie `film`."""
    good: dict[str, Any] = {
        "id": f"talk.{number}",
        "movie": "Talk (1999)",
        "videoId": "talk",
        "startTime": 3.2,
        "endTime": 7.4,
        "movieId": "film",
        "movieStartTime": 10.5,
        "movieEndTime": 16,
        "facts": [f"1. The {SECRET} sleeps.", f"2. It snows on the {SECRET}."],
        "srt": SRT,
        "questions": [question(10 * number), question(10 * number + 1)],
    }
    changed = {**good, **changes}
    return {name: value for name, value in changed.items() if value is not ...}


def write(folder: Path, content: Any, name: str = "segments.json") -> Path:
    """A data file in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(content, ensure_ascii=True), encoding="utf-8")
    return file


def render(path: Path, seconds: int) -> Path:
    """A video with sound whose every second has a grey of its own (`second_of`)."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    greys = (np.full((48, 64, 3), 20 + 10 * (n // RATE), np.uint8) for n in range(seconds * RATE))
    hum = soundtrack([Tone(0, seconds, 440)], seconds, 44_100)
    Clip(lambda: greys, RATE, lambda: hum, 44_100).write(path)
    return path


def second_of(picture: Any) -> int:
    """The second of its video that a picture is from: an image, or an array of RGB."""
    import numpy as np

    value = (float(np.asarray(picture).mean()) - 20) / 10
    assert abs(value - round(value)) < 0.3, value
    return round(value)


def seconds_of(path: str) -> list[int]:
    """The second of the source that each frame of a clip is from."""
    import av

    with av.open(path) as file:
        return [second_of(frame.to_ndarray(format="rgb24")) for frame in file.decode(video=0)]
