"""What reaches a model in each of MAVERIX's modes: decoded again, and told by the sample's code.

What then goes over the wire is in tests/host/test_host_models.py.
"""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks import context
from lmms_eval_tasks.host import task_functions
from lmms_eval_tasks.maverix.labels import LETTERS, MODES
from lmms_eval_tasks.maverix.sample import SECONDS, SampleSecond
from lmms_eval_tasks.maverix.tasks import BENCHMARK
from tests.maverix import reading, runs
from tests.maverix.reading import docs, source

pytestmark = pytest.mark.usefixtures("on_sample")

KINDS = {"a": ["audio"], "s": [], "v": ["video"], "vs": ["video"], "av": ["video", "audio"]}


# --- the media of each mode -------------------------------------------------------------------


@pytest.mark.parametrize("length", ["localized", "long"])
@pytest.mark.parametrize("mode", MODES)
def test_media(mode: str, length: str) -> None:
    """What a chat and a simple class are given; open and circular docs carry the same."""
    simple = {}
    found = docs("choice", mode, length)
    assert len(found) == 20
    for doc in found:
        (message,) = task_functions.doc_to_messages(doc)
        assert message["role"] == "user"
        *media, text = message["content"]
        assert text == {"type": "text", "text": task_functions.doc_to_text(doc)}
        assert [item["type"] for item in media] == KINDS[mode]
        given = {item["type"]: item["url"] for item in media}
        if "video" in given:
            assert reading.streams(given["video"]) == ("video",)
            reading.check_picture(given["video"], *source(doc))
        if "audio" in given:
            reading.check_wav(given["audio"], *source(doc))
        simple[doc["id"]] = visuals = task_functions.doc_to_visual(doc)
        if mode != "av":
            assert visuals == list(given.values())
            continue
        (path,) = visuals
        assert Path(path).suffix == ".mp4"
        assert reading.streams(path) == ("audio", "video")
        reading.check_picture(path, *source(doc))
        reading.check_sound(*reading.heard(path), *source(doc))
    for kind in ("open",) if length == "long" else ("open", "circular"):
        for doc in docs(kind, mode, length):
            assert task_functions.doc_to_visual(doc) == simple[doc["question_id"]]


def test_samples_for_classes_that_take_no_path() -> None:
    doc, simple = docs("choice", "a", "localized")[0], context.RunModel("whisper", "simple")
    (path,) = task_functions.doc_to_visual(doc)
    with context.begun(simple):
        (item,) = task_functions.doc_to_visual(doc)
    assert item["sampling_rate"] == 16_000
    with wave.open(path) as file:
        written = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.array_equal(item["array"] * 32768, written)
    reading.check_sound(item["array"], item["sampling_rate"], *source(doc))


# --- the text ---------------------------------------------------------------------------------


def words(doc: dict[str, Any]) -> list[SampleSecond]:
    """The subtitles that belong to a doc's window, by the plan.

    A second's word is shown from 0.1 to 0.9 s after it began; it belongs to the window that holds
    half of it or more.
    """
    video, start, end = source(doc)
    if video == 3 or not MODES[doc["mode"]].subtitles:
        return []
    shown = [(s, min(s + 0.9, end) - max(s + 0.1, start)) for s in range(SECONDS[video - 1])]
    return [SampleSecond(video, second) for second, length in shown if length > 0.4 - 1e-6]


@pytest.mark.parametrize("task", BENCHMARK.tasks)
def test_prompt(task: str) -> None:
    """Four paragraphs in the paper's order."""
    for doc in runs.docs(task):
        text = task_functions.doc_to_text(doc)
        told, instruction, question, cue = text.split("\n\n")
        assert reading.moments_of_text(told) == words(doc)
        assert words(doc) or told == "No subtitles are given."
        assert ("letter" in instruction) == ("options" in doc)
        asked = [
            f"{x}. {option}" for x, option in zip(LETTERS, doc.get("options", []), strict=False)
        ]
        assert question.splitlines() == [doc["question"], *asked]
        assert cue == "The best answer is:"
