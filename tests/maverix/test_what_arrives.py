"""What reaches a model in each of MAVERIX's modes: decoded again, and told by the sample's code.

What then goes over the wire is in tests/host/test_maverix_requests.py.
"""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks import running
from lmms_eval_tasks.host import names
from lmms_eval_tasks.maverix.labels import LETTERS, MODES
from lmms_eval_tasks.maverix.sample import SECONDS, Moment
from lmms_eval_tasks.utils import segments
from tests.maverix import reading
from tests.maverix.reading import docs, source

LENGTHS = ("localized", "long")


@pytest.fixture(autouse=True)
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


# --- the media of each mode -------------------------------------------------------------------


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("mode", MODES)
class TestMedia:
    def test_chat(self, mode: str, length: str) -> None:
        kinds = {"a": ["audio"], "s": [], "v": ["video"], "vs": ["video"], "av": ["video", "audio"]}
        found = docs("choice", mode, length)
        assert len(found) == 20
        for doc in found:
            (message,) = names.doc_to_messages(doc)
            assert message["role"] == "user"
            *media, text = message["content"]
            assert text == {"type": "text", "text": names.doc_to_text(doc)}
            assert [item["type"] for item in media] == kinds[mode]
            for item in media:
                if item["type"] == "video":
                    assert reading.streams(item["url"]) == ("video",)
                    reading.check_picture(item["url"], *source(doc))
                else:
                    reading.check_wav(item["url"], *source(doc))

    def test_simple(self, mode: str, length: str) -> None:
        for doc in docs("choice", mode, length):
            visuals = names.doc_to_visual(doc)
            assert len(visuals) == (mode != "s")
            for path in visuals:
                if mode == "a":
                    reading.check_wav(path, *source(doc))
                    continue
                assert Path(path).suffix == ".mp4"
                assert reading.streams(path) == (("audio", "video") if mode == "av" else ("video",))
                reading.check_picture(path, *source(doc))
                if mode == "av":
                    reading.check_sound(*reading.heard(path), *source(doc))

    def test_open_and_circular_docs_carry_the_same(self, mode: str, length: str) -> None:
        media = {d["id"]: names.doc_to_visual(d) for d in docs("choice", mode, length)}
        kinds = {"open": 2} if length == "long" else {"open": 2, "circular": 8}
        for kind, times in kinds.items():
            found = docs(kind, mode, length)
            assert len(found) == times * len(media)
            for doc in found:
                assert names.doc_to_visual(doc) == media[doc["question_id"]]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_and_av_carry_the_same_sound_and_v_and_av_the_same_picture(length: str) -> None:
    made = zip(*(docs("choice", mode, length) for mode in ("a", "v", "av")), strict=True)
    for a, v, both in made:
        (sound, _), (video, _) = (names.doc_to_messages(doc)[0]["content"] for doc in (a, v))
        assert names.doc_to_messages(both)[0]["content"][:2] == [video, sound]
        assert names.doc_to_visual(a) == [sound["url"]]
        assert names.doc_to_visual(v) == [video["url"]]


def test_the_wav_is_the_mean_of_both_channels() -> None:
    """They are 0.5 and 0.2 of full scale: the left alone would be 0.5, their sum 0.7."""
    for doc in docs("choice", "a", "localized"):
        samples, rate = reading.heard(names.doc_to_visual(doc)[0])
        assert np.percentile(np.abs(samples), 99) == pytest.approx(0.35, abs=0.01)
        assert rate == 16_000


def test_samples_for_classes_that_take_no_path() -> None:
    doc, simple = docs("choice", "a", "localized")[0], running.Model("whisper", "simple")
    (path,) = names.doc_to_visual(doc)
    with running.model(simple):
        (item,) = names.doc_to_visual(doc)
    assert item["sampling_rate"] == 16_000
    with wave.open(path) as file:
        written = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    assert np.array_equal(item["array"] * 32768, written)
    reading.check_sound(item["array"], item["sampling_rate"], *source(doc))


def test_wrong_cuts_are_caught() -> None:
    """Made on purpose, of the real videos: the checks above must see them."""
    doc, *_, other = docs("choice", "av", "localized")
    video, start, end = source(doc)
    for before, after in ((-1, -1), (1, 1), (-0.1, 0), (0, 0.1), (0.1, 0), (0, -0.1)):
        cut = segments.segment(doc["video_path"], round(start + before, 3), round(end + after, 3))
        for check, path in ((reading.check_picture, cut.video), (reading.check_wav, cut.sound)):
            assert path is not None
            with pytest.raises(AssertionError):
                check(path, video, start, end)
    # No frame tells these 30 ms: the tone of the first second ends too late.
    moved = segments.segment(doc["video_path"], start - 0.03, end - 0.03).sound
    assert moved is not None
    with pytest.raises(AssertionError):
        reading.check_wav(moved, video, start, end)
    assert other["video"] != doc["video"]
    elsewhere = segments.segment(other["video_path"], start, end)
    with pytest.raises(AssertionError):
        reading.check_picture(elsewhere.video, video, start, end)


# --- the text ---------------------------------------------------------------------------------


def words(doc: dict[str, Any]) -> list[tuple[str, Moment]]:
    """The subtitles that belong to a doc's window, by the plan: when shown in the cut, and what.

    A second's word is shown from 0.1 to 0.9 s after it began; it belongs to the window that holds
    half of it or more.
    """
    video, start, end = source(doc)
    found = []
    for second in range(SECONDS[video - 1]):
        begin, stop = max(second + 0.1, start) - start, min(second + 0.9, end) - start
        if video != 3 and stop - begin > 0.4 - 1e-6:
            times = (f"{int(t) // 60:02}:{t % 60:04.1f}" for t in (round(begin, 1), round(stop, 1)))
            found.append((" - ".join(times), Moment(video, second)))
    return found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("kind", "length"),
    [(kind, length) for kind in ("choice", "open") for length in LENGTHS]
    + [("circular", "localized")],
)
def test_prompt(kind: str, mode: str, length: str) -> None:
    """Four paragraphs in the paper's order, subtitles only where the mode has them."""
    for doc in docs(kind, mode, length):
        told, instruction, question, cue = names.doc_to_text(doc).split("\n\n")
        expected = words(doc) if mode in ("s", "vs") else []
        head, *lines = told.splitlines()
        assert bool(expected) == head.startswith("Subtitles")
        if not expected:
            assert told == "No subtitles are given."
        assert len(lines) == len(expected)
        for line, (_, moment) in zip(lines, expected, strict=True):
            assert reading.moments_of_text(line) == [moment]
        shown = [line.split("]")[0].removeprefix("[").split(" - ") for line in lines]
        for times, (wanted, _) in zip(shown, expected, strict=True):
            for one, other in zip(times, wanted.split(" - "), strict=True):
                assert clock(one) == pytest.approx(clock(other), abs=0.11)  # halves of a tenth
        assert ("letter" in instruction) == (kind != "open")
        asked, *options = question.splitlines()
        assert asked == doc["question"]
        if kind == "open":
            assert not options
        else:
            assert [line[:3] for line in options] == [f"{letter}. " for letter in LETTERS]
            assert [line[3:] for line in options] == doc["options"]
        assert cue == "The best answer is:"


def clock(text: str) -> float:
    minutes, rest = text.split(":")
    return 60 * int(minutes) + float(rest)


def test_subtitles_begin_with_the_cut_and_stay_inside() -> None:
    """Written out for 3.4 s to 9.7 s of an srt and 8.7 s to 14.2 s of a WebVTT file."""
    told = {
        doc["id"]: names.doc_to_text(doc).split("\n\n")[0].splitlines()[1:]
        for doc in docs("choice", "s", "localized")
    }
    assert told["lights-1-q01"] == [  # 0.5 s of "three" are inside, and 0.6 s of "nine"
        "[00:00.0 - 00:00.5] Word three.",
        "[00:00.7 - 00:01.5] Word four.",
        "[00:01.7 - 00:02.5] Word five.",
        "[00:02.7 - 00:03.5] Word six.",
        "[00:03.7 - 00:04.5] Word seven.",
        "[00:04.7 - 00:05.5] Word eight.",
        "[00:05.7 - 00:06.3] Word nine.",
    ]
    assert told["lights-2-q09"] == [  # 0.2 s of "thirty-eight", and 0.1 s of "forty-four"
        "[00:00.4 - 00:01.2] Word thirty-nine.",
        "[00:01.4 - 00:02.2] Word forty.",
        "[00:02.4 - 00:03.2] Word forty-one.",
        "[00:03.4 - 00:04.2] Word forty-two.",
        "[00:04.4 - 00:05.2] Word forty-three.",
    ]
