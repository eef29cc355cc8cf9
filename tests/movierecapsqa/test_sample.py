"""MovieRecapsQA's packaged sample: the released form, every label, a truth for every fact."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval_tasks.movierecapsqa import sample, sample_code, sample_texts, schema
from lmms_eval_tasks.movierecapsqa.labels import SPLITS, UNLABELLED
from lmms_eval_tasks.movierecapsqa.sample_code import MOMENTS, SECONDS, Moment
from lmms_eval_tasks.movierecapsqa.sample_scenes import STORIES
from lmms_eval_tasks.sample import players, second_code
from tests.movierecapsqa import watching

MOVIES = {story.movie_id for story in STORIES}


@pytest.fixture(scope="module")
def folder(sample_root: Path) -> Path:
    return sample_root / "movierecapsqa"


@pytest.fixture(scope="module")
def release(folder: Path) -> schema.Release:
    return schema.read(folder)


@pytest.fixture(scope="module")
def content(folder: Path) -> list[dict[str, Any]]:
    return json.loads((folder / "segments.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def key(folder: Path) -> players.AnswerKey:
    return players.AnswerKey.load(folder / "key.json")


@pytest.fixture(scope="module")
def frames(folder: Path) -> dict[str, list[Any]]:
    return {name: watching.decoded(path_of(folder, name)) for name in SECONDS}


def path_of(folder: Path, name: str) -> Path:
    return folder / ("movies" if name in MOVIES else "recaps") / f"{name}.mp4"


class TestVideos:
    """Every picture tells its video and time; movies have a tone a second, recaps no sound."""

    def test_every_second_is_unique(self) -> None:
        assert len(MOMENTS) == sum(SECONDS.values()) <= second_code.COUNT
        assert [moment.number for moment in MOMENTS] == list(range(len(MOMENTS)))

    @pytest.mark.parametrize("name", SECONDS)
    def test_every_frame_tells_its_time(self, name: str, frames: dict[str, list[Any]]) -> None:
        assert len(frames[name]) == 10 * SECONDS[name]
        for index, frame in enumerate(frames[name]):
            assert sample_code.moment_of_frame(frame) == Moment(name, index // 10)
            assert sample_code.time_of_frame(frame) == index / 10

    @pytest.mark.parametrize("name", SECONDS)
    def test_sound(self, name: str, folder: Path) -> None:
        with av.open(str(path_of(folder, name))) as clip:
            kinds = [stream.type for stream in clip.streams]
            if name not in MOVIES:
                assert kinds == ["video"]
                return
            assert kinds == ["video", "audio"]
            samples = np.concatenate([b.to_ndarray() for b in clip.decode(audio=0)], axis=1)
        for second in range(SECONDS[name]):
            piece = samples[:, int((second + 0.1) * 44_100) : int((second + 0.9) * 44_100)]
            assert sample_code.moment_of_sound(piece, 44_100) == Moment(name, second)

    def test_what_is_no_code_is_none(self) -> None:
        black = np.zeros((240, 320, 3), dtype=np.uint8)
        assert sample_code.moment_of_frame(black) is None
        assert sample_code.time_of_frame(black) is None
        assert sample_code.moment_of_sound(np.zeros(16_000), 16_000) is None
        # A number that another sample has, but this one has not.
        clock = np.arange(16_000) / 16_000
        other = np.sin(2 * np.pi * second_code.hertz(second_code.COUNT - 1) * clock)
        assert second_code.number_of_sound(other, 16_000) == second_code.COUNT - 1
        assert sample_code.moment_of_sound(other, 16_000) is None

    def test_windows_lie_in_their_videos_and_leave_something_out(
        self, release: schema.Release
    ) -> None:
        for story in STORIES:
            for windows, total in (
                ([scene.recap for scene in story.scenes], story.recap_seconds),
                ([scene.movie for scene in story.scenes], story.movie_seconds),
            ):
                assert windows[0][0] > 0.5
                assert windows[-1][1] < total - 0.5
                assert all(a[1] <= b[0] for a, b in pairwise(windows))
        for segment in release.segments:
            assert release.recap_path(segment).is_file()
            movie = release.movie_path(segment)
            assert movie is not None
            assert movie.is_file()


class TestSegments:
    """The forms of the release and of our schema, all labels, no problem."""

    def test_the_schema_accepts_it(self, release: schema.Release) -> None:
        assert dict(release.problems) == {}
        assert release.counts == {
            "videos": 2,
            "segments": 5,
            "questions": 24,
            "facts": 37,
            "bad_segments": 0,
        }
        for segment in release.segments:
            assert 5 <= len(segment.facts) <= 10
            assert len(segment.questions) >= 4

    def test_it_is_small(self, folder: Path) -> None:
        assert sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) < 2_000_000

    def test_every_label_and_none(self, release: schema.Release) -> None:
        for split, slugs in SPLITS.items():
            found = Counter(getattr(q, split) or UNLABELLED for _, q in release.questions())
            assert set(found) == set(slugs)
            assert min(found.values()) >= 2

    def test_every_form_is_used(self, content: list[dict[str, Any]]) -> None:
        numbered = [all(re.match(r"\d+\. ", f) for f in s["facts"]) for s in content]
        assert set(numbered) == {True, False}
        asked = [q for segment in content for q in segment["questions"]]
        assert {"humanAnswer" in q for q in asked} == {True, False}
        assert {q.get("humanAnswer", "several") is None for q in asked} == {True, False}
        assert {q["category"].isupper() for q in asked if "category" in q} == {True, False}
        # As in the release, the indexes of facts count from 0 and from 1 inside a segment.
        for segment, part in zip(content, sample_texts.parts(), strict=True):
            pairs = zip(segment["questions"], part.questions, strict=True)
            assert {one.facts[0] - q["factsUsed"][0] for q, one in pairs} == {0, 1}

    def test_facts_come_without_their_numbers(self, release: schema.Release) -> None:
        for segment, part in zip(release.segments, sample_texts.parts(), strict=True):
            assert segment.facts == tuple(text for _, text in part.facts)

    def test_dialogue_is_clean(
        self, release: schema.Release, content: list[dict[str, Any]]
    ) -> None:
        plain, marked, none, windows, counted = (segment["srt"] for segment in content)
        assert plain.startswith("00:00:04,000 --> 00:00:05,500\nAda, ")
        assert marked.startswith("\ufeff1\n00:00:15,245")
        assert "<font color" in marked
        assert "{\\an8}" in marked
        assert none == ""
        assert "\r\n" in windows
        times = re.findall(r"(\S+) --> (\S+)", windows)
        assert times[1][0] < times[0][1]  # cues overlap
        assert counted.startswith("1\n00:00:18,")
        assert [segment.dialogue for segment in release.segments] == [
            "Ada, have you waited long?\nI have waited all morning, Bo.\n"
            "Who stands still keeps the key.\nAnd the bridge is locked for one alone.",
            "Wait for the sign, Bo.\nThe first at the lantern carries it.\n"
            "The river is afraid of light.\nI promised my mother to bring it home.",
            "",
            "Every stone is a promise, Cleo.\nNever take the last stone.\n"
            "The last one holds the river back.\nI borrow, I do not steal.",
            "Dov, you kept your word to Cleo.\nWhat is lent comes back.\n"
            "Then the orchard can bloom again.",
        ]

    def test_modality_follows_the_facts(self, release: schema.Release) -> None:
        for segment, part in zip(release.segments, sample_texts.parts(), strict=True):
            for question, one in zip(segment.questions, part.questions, strict=True):
                kinds = {part.facts[number - 1][0] for number in one.facts}
                expected = {"vision": {"seen"}, "dialogue": {"said"}}
                if question.modality in expected:
                    assert kinds == expected[question.modality]
                elif question.modality:
                    assert "both" in kinds


class TestTruth:
    """What can be seen is checked on decoded frames, what is said in the dialogue."""

    @pytest.mark.parametrize("source", ["movie", "recap"])
    @pytest.mark.parametrize("number", range(5))
    def test_every_seen_fact_is_true(
        self, number: int, source: str, frames: dict[str, list[Any]]
    ) -> None:
        part = sample_texts.parts()[number]
        window = part.scene.movie if source == "movie" else part.scene.recap
        name = part.story.movie_id if source == "movie" else part.story.video
        scene = watching.Scene(watching.window(frames[name], *window))
        for kind, text in part.facts:
            assert watching.is_true(text, scene) is (True if kind == "seen" else None), text
        # References that are about the picture alone, and what is false beside them.
        checked = 0
        for one in part.questions:
            assert not any(watching.is_true(text, scene) is False for text in one.answer)
            if watching.is_true(one.wrong, scene) is not None:
                checked += 1
                assert watching.is_true(one.wrong, scene) is False, one.wrong
        assert checked >= 1

    @pytest.mark.parametrize("number", range(5))
    def test_every_said_fact_is_in_the_dialogue(self, number: int, release: schema.Release) -> None:
        silent = {"to", "the", "a", "is", "has", "who", "have", "it", "at", "been", "given", "and"}
        spoken = set(re.findall(r"\w+", release.segments[number].dialogue.lower()))
        for kind, text in sample_texts.parts()[number].facts:
            words = set(re.findall(r"\w+", text.lower())) - silent
            if kind == "said":
                assert words <= spoken, words - spoken

    def test_no_dialogue_gives_a_seen_fact_away(self, release: schema.Release) -> None:
        """A vision question must not be answered by the dialogue: no colour or shape is named."""
        shapes = {"circle", "square", "triangle", *second_code.NAMES}
        for segment in release.segments:
            assert not shapes & set(re.findall(r"\w+", segment.dialogue.lower()))


class TestKey:
    """References and false answers by question; keys of all samples go into one."""

    def test_it_holds_every_question_once(
        self, key: players.AnswerKey, release: schema.Release
    ) -> None:
        asked = {question.question: question.reference for _, question in release.questions()}
        assert len(asked) == 24
        assert key.answers == asked
        assert set(key.lures) == set(asked)
        assert all(key.lures[question] != asked[question] for question in asked)

    def test_no_question_stands_in_another_or_in_another_sample(
        self, key: players.AnswerKey, sample_root: Path
    ) -> None:
        assert not [(a, b) for a, b in combinations(sorted(key.answers, key=len), 2) if a in b]
        for other in ("maia", "maverix"):
            theirs = json.loads((sample_root / other / "key.json").read_text(encoding="utf-8"))
            for part in ("answers", "choices"):
                assert not set(theirs.get(part, ())) & set(key.answers)

    def test_oracle_and_coin_see_the_prompt_alone(
        self,
        key: players.AnswerKey,
        sample_root: Path,
        cache: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        from lmms_eval_tasks.movierecapsqa import data, utils

        monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")
        rows = data.rows(data.load())
        drawn = []
        for condition in ("", "frames", "dialogue"):
            for row in rows:
                text = utils.doc_to_text({**row, "condition": condition})
                assert players.oracle(text, key) == row["reference"]
                drawn.append(players.coin(text, key) == row["reference"])
        assert 20 < sum(drawn) < 52
        # The lure of a doc answers a question of another segment; replay.jsonl has it as well.
        lures = [
            sample_texts.lure(n) for n, s in enumerate(sample_texts.parts()) for _ in s.questions
        ]
        assert [row["lure"] for row in rows] == lures
        assert {players.scripted(row) for row in rows} & set(lures)


def test_two_builds_are_the_same(folder: Path, tmp_path: Path) -> None:
    sample.write(tmp_path)
    names = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert len(names) == 7
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
