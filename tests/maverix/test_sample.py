"""MAVERIX's packaged sample: our schema, a truth for every item, clips that carry their code."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maverix import files, sample
from lmms_eval_tasks.maverix.item import seconds
from lmms_eval_tasks.maverix.labels import LETTERS, SPLITS
from lmms_eval_tasks.maverix.sample import SECONDS, VIDEOS, plans
from lmms_eval_tasks.sample import second_code
from lmms_eval_tasks.sample.second_code import PALETTE, TICKS
from lmms_eval_tasks.utils import subtitles


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "maverix"


@pytest.fixture(scope="module")
def release(folder: Path) -> files.Release:
    return files.read(folder)


def decoded(path: Path, first: int = 0, every: int = 1) -> tuple[Any, Any]:
    """Frames (n, height, width, 3), all or some, and samples (channels, n)."""
    import av
    import numpy as np

    with av.open(str(path)) as clip:
        some = islice(clip.decode(video=0), first, None, every)
        frames = np.stack([frame.to_ndarray(format="rgb24") for frame in some])
    with av.open(str(path)) as clip:
        blocks = [block.to_ndarray() for block in clip.decode(audio=0)]
    return frames, np.concatenate(blocks, axis=1)


class TestItems:
    """Twenty items in our schema, true whether the segment or the whole video is seen."""

    def test_the_schema_accepts_it(self, release: files.Release, folder: Path) -> None:
        """Every label occurs, and every letter is right about as often."""
        assert release.counts == {"videos": 4, "questions": 20, "asked": 60, "bad_items": 0}
        assert release.withheld == {"answers": 0, "references": 0}
        assert all(release.path_of(item.video).is_file() for item in release.items)
        for split in SPLITS.keys() - {"duration"}:
            assert {getattr(item, split) for item in release.items} == set(SPLITS[split]), split
        found = Counter(LETTERS[item.answer or 0] for item in release.items)
        assert sorted(found) == list(LETTERS)
        assert max(found.values()) <= 3

    def test_what_is_asked_about_lies_in_the_segment(self) -> None:
        """Whole seconds, and the segment starts and ends within others."""
        reach = {"next_tone": 2, "next_colour": 2, "pitch": 2}
        for plan in plans():
            if plan.segment is not None:
                start, end = map(seconds, plan.segment)
                wait = 4 + plan.second % 5 if plan.kind == "wait" else 1
                last = plan.second + reach.get(plan.kind, wait)
                assert start <= plan.second < last <= end <= SECONDS[plan.video - 1], plan
                assert 0 not in (start % 1, end % 1)

    def test_the_key(self, release: files.Release, folder: Path) -> None:
        key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
        asked = [text for item in release.items for text in (item.question, item.paraphrase)]
        assert not any(one in other for one in asked for other in asked if one != other)
        assert set(key["answers"]) == set(key["lures"]) == set(asked)
        assert len(set(asked)) == 40
        assert set(key["choices"]) == {item.question for item in release.items}
        for item in release.items:
            assert key["choices"][item.question] == item.options[item.answer or 0]
            for text in (item.question, item.paraphrase):
                assert key["answers"][text] == item.reference != key["lures"][text]

    def test_truth_by_what_the_clips_show_and_play(self, release: files.Release) -> None:
        """Each right option again from the decoded files, with no look at how it was made."""
        assert {plan.kind for plan in plans()} == set(sample.VALUES) == set(sample.texts()["kinds"])
        middles = {v: decoded(release.path_of(v), TICKS // 2, TICKS) for v in VIDEOS}
        for item in release.items:
            answer = truth(item.question, *middles[item.video], release.subtitles_of(item.video))
            right = [o for o in item.options if o.lower() == answer.lower()]
            assert right == [item.options[item.answer or 0]], (item.question, answer)
            assert answer.lower().removeprefix("it ") in (item.reference or "").lower()
            for text in (item.question, item.paraphrase, item.reference or "", *item.options):
                assert not re.search(r"[{}\[\]|_]|\s\s|\s[,.?]|^\s|\s$|\bNone\b", text), text
                assert text[0] == text[0].upper()


def truth(question: str, frames: Any, sound: Any, words: Path | None) -> str:
    """The answer to a sample question, worked out from pictures, samples and subtitles."""
    shows = [shown(frame) for frame in frames]
    plays = [
        round(second_code.tone(sound[:, n * 44_100 : (n + 1) * 44_100], 44_100) or 0)
        for n in range(len(shows))
    ]
    sides = re.search(r"(\w+) on the left and (\w+) on the right", question)
    picture = shows.index((sides[1], sides[2])) if sides else 0
    hertz = re.search(r"(\d+) Hz", question)
    tone = plays.index(int(hertz[1])) if hertz else 0
    if question.startswith("Which tone sounds"):
        return f"{plays[picture]} Hz"
    if question.startswith("What does the picture look like"):
        left, right = shows[tone]
        return f"{left} on the left and {right} on the right"
    if question.startswith("Which tone follows"):
        return f"{plays[tone + 1]} Hz"
    if question.startswith("Which colour does the left half"):
        return shows[picture + 1][0]
    if question.startswith("Which number do the subtitles"):
        assert words is not None
        (cue,) = [c for c in subtitles.read(words) if int(c.start) == picture]
        return cue.text.removeprefix("Word ").removesuffix(".")
    if question.startswith("What does the pitch do"):
        step = plays[picture + 1] - plays[picture]
        return f"It {'rises' if step > 0 else 'falls'} by {abs(step)} Hz"
    assert question.startswith("How long after")
    return f"{tone - picture} seconds"


def shown(frame: Any) -> tuple[str, str]:
    """Names of the colours in the middle of both halves."""

    def name(x: int) -> str:
        return min(PALETTE, key=lambda each: math.dist(PALETTE[each], frame[100, x].tolist()))

    return name(80), name(240)


def test_two_builds_are_the_same(folder: Path, tmp_path: Path) -> None:
    """Byte by byte: x264 with macroblock trees was seen to differ in every second build."""
    sample.write(tmp_path)
    names = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(names) == 9
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
