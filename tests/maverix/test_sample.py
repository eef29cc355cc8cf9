"""MAVERIX's packaged sample: our schema, a truth for every item, clips that carry their code."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import combinations, islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maverix import sample, sample_code, sample_draw, sample_items, schema
from lmms_eval_tasks.maverix.item import seconds
from lmms_eval_tasks.maverix.labels import LETTERS, SPLITS
from lmms_eval_tasks.maverix.sample import SUBTITLES, WORD
from lmms_eval_tasks.maverix.sample_code import MOMENTS, PALETTE, SECONDS, TICKS, Moment
from lmms_eval_tasks.maverix.sample_items import PLANS, VIDEOS
from lmms_eval_tasks.utils import subtitles


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "maverix"


@pytest.fixture(scope="module")
def release(folder: Path) -> schema.Release:
    return schema.read(folder)


@pytest.fixture(scope="module")
def key(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "key.json").read_text(encoding="utf-8"))


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


def model_sound(path: Path) -> Any:
    """16 kHz, one channel, 16 bits: what models are given."""
    import av
    import numpy as np

    resampler = av.AudioResampler(format="s16", layout="mono", rate=16_000)
    with av.open(str(path)) as clip:
        blocks = [b for block in clip.decode(audio=0) for b in resampler.resample(block)]
    blocks += resampler.resample(None)
    return np.concatenate([block.to_ndarray() for block in blocks], axis=1)


@pytest.fixture(scope="module", params=range(1, len(VIDEOS) + 1), ids=lambda n: VIDEOS[n - 1])
def clip(request: pytest.FixtureRequest, folder: Path) -> tuple[int, Path, Any, Any]:
    path = folder / "videos" / f"{VIDEOS[request.param - 1]}.mp4"
    return request.param, path, *decoded(path)


class TestCode:
    """No two seconds of the sample look, sound or read the same, and neighbours are far apart."""

    def test_every_second_is_unique(self) -> None:
        assert len(MOMENTS) == sum(SECONDS) == 156
        assert [moment.number for moment in MOMENTS] == list(range(156))
        for facet in ("colours", "hertz", "word"):
            assert len({getattr(moment, facet) for moment in MOMENTS}) == len(MOMENTS)

    def test_neighbours_differ_in_both_halves_and_clearly_in_pitch(self) -> None:
        for one, other in pairwise(MOMENTS):
            assert all(a != b for a, b in zip(one.colours, other.colours, strict=True))
            assert abs(one.hertz - other.hertz) >= 385

    def test_range_and_distances(self) -> None:
        tones = sorted(moment.hertz for moment in MOMENTS)
        assert tones[0] == 300
        assert tones[-1] == 2390
        assert min(b - a for a, b in pairwise(tones)) == 10
        assert min(math.dist(a, b) for a, b in combinations(PALETTE.values(), 2)) > 100

    @pytest.mark.parametrize(
        ("number", "words"),
        [
            (0, "zero"),
            (13, "thirteen"),
            (20, "twenty"),
            (77, "seventy-seven"),
            (100, "one hundred"),
            (119, "one hundred nineteen"),
            (155, "one hundred fifty-five"),
        ],
    )
    def test_words(self, number: int, words: str) -> None:
        assert sample_code.in_words(number) == words

    def test_text(self) -> None:
        text = "\n".join(
            f"[00:0{n}.1 - 00:0{n}.9] {sample_code.spoken(MOMENTS[90 + n])}" for n in range(3)
        )
        assert sample_code.moments_of_text(text) == list(MOMENTS[90:93])
        assert sample_code.moments_of_text("Word seven and Word nobody. Words seven.") == []

    def test_what_is_no_code_is_none(self) -> None:
        import numpy as np

        chance = np.random.default_rng(5)
        black = np.zeros((24, 32, 3), dtype=np.uint8)
        assert sample_code.moment_of_frame(black) is None
        assert sample_code.second_of_colour(black) is None
        assert sample_code.time_of_frame(black) is None
        noise = chance.integers(0, 256, (24, 32, 3)).astype(np.uint8)
        assert sample_code.moment_of_frame(noise) is None
        clock = np.arange(16_000) / 16_000
        tone = np.sin(2 * np.pi * MOMENTS[40].hertz * clock)
        other = np.sin(2 * np.pi * MOMENTS[41].hertz * clock)
        assert sample_code.second_of_tone(tone, 16_000) == MOMENTS[40].second
        for sound in (
            np.zeros(16_000),
            tone * 0.001,  # as good as silent
            chance.normal(0, 0.2, 16_000),
            tone + other,
            np.sin(2 * np.pi * (MOMENTS[40].hertz + 5) * clock),  # between two tones
            np.sin(2 * np.pi * 4000 * clock),
            np.ones(16_000),
            tone[:100],
            tone[:0],
        ):
            assert sample_code.moment_of_sound(sound, 16_000) is None
            assert sample_code.second_of_tone(sound, 16_000) is None

    @pytest.mark.parametrize("rate", [8_000, 16_000, 44_100, 48_000])
    @pytest.mark.parametrize("length", [0.08, 0.3])
    def test_every_tone_is_read_at_every_rate_and_depth(self, rate: int, length: float) -> None:
        import numpy as np

        clock = np.arange(round(length * rate)) / rate
        for moment in MOMENTS:
            tone = 0.3 * np.sin(2 * np.pi * moment.hertz * clock + 1)
            assert sample_code.moment_of_sound(tone, rate) == moment
            short = (tone * 32767).astype(np.int16)
            assert sample_code.moment_of_sound(np.stack([short, short // 2]), rate) == moment

    @pytest.mark.parametrize("size", [(320, 240), (112, 112), (56, 28)])
    def test_every_picture_is_read_in_every_size(self, size: tuple[int, int]) -> None:
        import numpy as np
        from PIL import Image

        for video in range(1, len(SECONDS) + 1):
            for index, frame in enumerate(sample_draw.frames(video)):
                if index % 7:
                    continue
                small = np.asarray(Image.fromarray(frame).resize(size))
                assert sample_code.moment_of_frame(small) == (video, index // TICKS)
                assert sample_code.time_of_frame(small) == index / TICKS


class TestClips:
    """The decoded files carry the code of their seconds, in picture and sound."""

    def test_streams(self, clip: Any) -> None:
        import av

        video, path, frames, sound = clip
        length = SECONDS[video - 1]
        assert frames.shape == (length * TICKS, 240, 320, 3)
        assert 0 <= sound.shape[1] / 44_100 - length < 0.05
        with av.open(str(path)) as file:
            assert [s.type for s in file.streams] == ["video", "audio"]
            assert file.streams.video[0].codec_context.name == "h264"
            assert file.streams.audio[0].codec_context.name == "aac"
            assert file.streams.audio[0].rate == 44_100
            assert file.streams.audio[0].channels == 2
            packets = [p for p in file.demux(video=0) if p.size and p.is_keyframe]
        # Far apart, so that a cut without encoding would carry seconds that are not the segment's.
        assert [float(p.pts * p.time_base) for p in packets] == list(range(0, length, 12))

    def test_every_frame_tells_its_time(self, clip: Any) -> None:
        video, _, frames, _ = clip
        for index, frame in enumerate(frames):
            assert sample_code.moment_of_frame(frame) == (video, index // TICKS)
            assert sample_code.second_of_colour(frame) == index // TICKS
            assert sample_code.time_of_frame(frame) == index / TICKS

    @pytest.mark.parametrize("window", [0.1, 0.25, 1.0])
    def test_every_tenth_of_a_second_plays_its_tone(self, window: float, clip: Any) -> None:
        video, path, _, sound = clip
        expected = [
            Moment(video, int((n + 0.5) * window))
            for n in range(round(SECONDS[video - 1] / window))
        ]
        for samples, rate in ((sound, 44_100), (model_sound(path), 16_000)):
            heard = sample_code.moments_of_sound(samples, rate, window)
            assert heard[: len(expected)] == expected

    def test_a_window_at_any_place_is_never_misread(self, clip: Any) -> None:
        """Across a change it may be None, but not a second that it has no part of."""
        import numpy as np

        video, path, _, _ = clip
        samples, rate = model_sound(path), 16_000
        chance = np.random.default_rng(video)
        read = 0
        for length in (0.08, 0.1, 0.3, 0.9):
            for start in chance.uniform(0, SECONDS[video - 1] - length, 60):
                piece = samples[:, int(start * rate) : int((start + length) * rate)]
                moment = sample_code.moment_of_sound(piece, rate)
                if moment is not None:
                    read += 1
                    assert moment.video == video
                    assert int(start) <= moment.second <= int(start + length)
        assert read > 0.7 * 240

    def test_channels_differ_in_level_only(self, clip: Any) -> None:
        import numpy as np

        _, _, _, (left, right) = clip
        assert np.abs(left).max() == pytest.approx(0.5, abs=0.02)
        assert np.sqrt(np.mean(right**2)) / np.sqrt(np.mean(left**2)) == pytest.approx(
            0.4, abs=0.01
        )
        assert np.corrcoef(left, right)[0, 1] > 0.999

    def test_tones_are_pure_and_change_with_the_second(self, clip: Any) -> None:
        """All but a millionth of the power lies within 30 Hz; the dip at a change is 1 ms off."""
        import numpy as np

        video, _, _, sound = clip
        for second in (0, 7, SECONDS[video - 1] - 1):
            piece = sound[0, int((second + 0.2) * 44_100) : int((second + 0.8) * 44_100)]
            power = np.abs(np.fft.rfft(piece * np.hanning(len(piece)))) ** 2
            far = np.abs(np.fft.rfftfreq(len(piece), 1 / 44_100) - Moment(video, second).hertz) > 30
            assert power[far].sum() < 1e-6 * power.sum()
        for change in range(1, SECONDS[video - 1]):
            near = np.abs(sound[0, change * 44_100 - 441 : change * 44_100 + 441])
            loud = np.convolve(near, np.ones(88) / 88, "valid")
            assert abs(int(loud.argmin()) + 44 - 441) < 44


class TestItems:
    """Twenty items in our schema, true whether the segment or the whole video is seen."""

    def test_the_schema_accepts_it(self, release: schema.Release) -> None:
        assert release.counts == {"videos": 4, "questions": 20, "asked": 60, "bad_items": 0}
        assert release.withheld == {"answers": 0, "references": 0}
        assert release.ignored == ()
        assert all(release.path_of(item.video).is_file() for item in release.items)

    def test_it_is_small(self, folder: Path) -> None:
        assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 2_500_000

    def test_every_form_of_the_schema_is_used(self, folder: Path) -> None:
        content = json.loads((folder / "data.json").read_text(encoding="utf-8"))["items"]
        assert {type(item["answer"]) for item in content} == {str, int}
        answers = [item["answer"] for item in content if isinstance(item["answer"], str)]
        assert {len(answer) == 1 for answer in answers} == {True, False}
        assert {type(item["start"]) for item in content} == {float, str, type(None)}
        assert {item["shuffled"] for item in content} == {True, False}
        assert {item["duration"] for item in content} == {None, "short", "middle"}

    def test_labels_cover_every_split(self, release: schema.Release) -> None:
        for split, known in SPLITS.items():
            if split != "duration":
                assert {getattr(item, split) for item in release.items} == set(known), split

    def test_right_options_stand_at_every_letter(self, release: schema.Release) -> None:
        found = Counter(LETTERS[item.answer or 0] for item in release.items)
        assert sorted(found) == list(LETTERS)
        assert max(found.values()) <= 3

    def test_what_is_asked_about_lies_in_the_segment(self) -> None:
        """Whole seconds, and the segment starts and ends within others."""
        reach = {"next_tone": 2, "next_colour": 2, "pitch": 2}
        for plan in PLANS:
            if plan.segment is None:
                continue
            start, end = map(seconds, plan.segment)
            last = plan.second + reach.get(plan.kind, 1)
            if plan.kind == "wait":
                last = plan.second + 3 + plan.second % 5 + 1
            assert start <= plan.second < last <= end <= SECONDS[plan.video - 1], plan
            assert start % 1
            assert end % 1

    def test_questions_and_answers_are_unique(
        self, release: schema.Release, key: dict[str, Any]
    ) -> None:
        asked = [text for item in release.items for text in (item.question, item.paraphrase)]
        assert len(set(asked)) == 40
        assert not any(one in other for one in asked for other in asked if one != other)
        assert set(key) == {"answers", "lures", "choices"}
        assert set(key["answers"]) == set(key["lures"]) == set(asked)
        assert set(key["choices"]) == {item.question for item in release.items}

    def test_the_key_agrees_with_the_data(
        self, release: schema.Release, key: dict[str, Any]
    ) -> None:
        for item in release.items:
            assert key["choices"][item.question] == item.options[item.answer or 0]
            for text in (item.question, item.paraphrase):
                assert key["answers"][text] == item.reference
                assert key["lures"][text] != item.reference

    def test_truth_by_what_the_clips_show_and_play(self, release: schema.Release) -> None:
        """Each right option again from the decoded files, with no look at how it was made."""
        files = {v: middles(release.path_of(v)) for v in VIDEOS}
        for item in release.items:
            answer = truth(item.question, *files[item.video], release.subtitles_of(item.video))
            right = [o for o in item.options if o.lower() == answer.lower()]
            assert right == [item.options[item.answer or 0]], (item.question, answer)
            assert answer.lower().removeprefix("it ") in (item.reference or "").lower()

    def test_six_kinds_for_six_needs(self) -> None:
        assert {plan.kind for plan in PLANS} == set(sample_items.KINDS)
        subtitled = {plan.video for plan in PLANS if plan.kind == "word"}
        assert subtitled <= set(SUBTITLES)

    def test_spelling(self, release: schema.Release) -> None:
        for item in release.items:
            for text in (item.question, item.paraphrase, item.reference or "", *item.options):
                assert not re.search(r"[{}\[\]|_]|\s\s|\s[,.?]|^\s|\s$|\bNone\b", text), text
                assert text[0] == text[0].upper()
            assert item.question.endswith("?")
            assert (item.reference or "").endswith(".")


def middles(path: Path) -> tuple[Any, Any]:
    """A frame of the middle of every second, and all samples."""
    return decoded(path, first=TICKS // 2, every=TICKS)


def truth(question: str, frames: Any, sound: Any, words: Path | None) -> str:
    """The answer to a sample question, worked out from pictures, samples and subtitles."""
    shows = [shown(frame) for frame in frames]
    plays = [
        round(sample_code.tone(sound[:, n * 44_100 : (n + 1) * 44_100], 44_100) or 0)
        for n in range(len(shows))
    ]
    sides = re.search(r"(\w+) on the left and (\w+) on the right", question)
    picture = shows.index((sides[1], sides[2])) if sides else None
    hertz = re.search(r"(\d+) Hz", question)
    tone = plays.index(int(hertz[1])) if hertz else None
    if question.startswith("Which tone sounds"):
        return f"{plays[picture or 0]} Hz"
    if question.startswith("What does the picture look like"):
        left, right = shows[tone or 0]
        return f"{left} on the left and {right} on the right"
    if question.startswith("Which tone follows"):
        return f"{plays[(tone or 0) + 1]} Hz"
    if question.startswith("Which colour does the left half"):
        return shows[(picture or 0) + 1][0]
    if question.startswith("Which number do the subtitles"):
        assert words is not None
        (cue,) = [c for c in subtitles.read(words) if int(c.start) == picture]
        return cue.text.removeprefix("Word ").removesuffix(".")
    if question.startswith("What does the pitch do"):
        step = plays[(picture or 0) + 1] - plays[picture or 0]
        return f"It {'rises' if step > 0 else 'falls'} by {abs(step)} Hz"
    assert question.startswith("How long after")
    return f"{(tone or 0) - (picture or 0)} seconds"


def shown(frame: Any) -> tuple[str, str]:
    """Names of the colours in the middle of both halves."""

    def name(x: int) -> str:
        return min(PALETTE, key=lambda each: math.dist(PALETTE[each], frame[100, x].tolist()))

    return name(80), name(240)


class TestSubtitles:
    """One word a second in each of the three kinds; one video has none."""

    def test_kinds(self, folder: Path) -> None:
        found = sorted(path.name for path in (folder / "subtitles").iterdir())
        assert found == ["lights-1.srt", "lights-2.vtt", "lights-4.json"]

    @pytest.mark.parametrize("video", SUBTITLES)
    def test_cues(self, video: int, release: schema.Release) -> None:
        path = release.subtitles_of(VIDEOS[video - 1])
        assert path is not None
        cues = subtitles.read(path)
        assert len(cues) == SECONDS[video - 1]
        for second, cue in enumerate(cues):
            assert sample_code.moments_of_text(cue.text) == [(video, second)]
            assert (cue.start, cue.end) == pytest.approx([second + side for side in WORD])


def test_two_builds_are_the_same(folder: Path, tmp_path: Path) -> None:
    """Byte by byte: x264 with macroblock trees was seen to differ in every second build."""
    sample.write(tmp_path)
    names = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(names) == 9
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
