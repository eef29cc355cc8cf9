"""CVRR-ES's packaged sample: the released form, true by construction, and ratings that add up."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import candidates, judge, release, sample, sample_answers
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.cvrr_es.sample_answers import CAREFUL, FLAT, HASTY, MODELS, VAGUE, WORTH
from lmms_eval_tasks.cvrr_es.sample_questions import QUESTIONS
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.cvrr_es.study.ratings import Item, RatingRow
from lmms_eval_tasks.judges.config_file import resolve
from lmms_eval_tasks.judges.replay import Recordings, ReplayJudge
from lmms_eval_tasks.sample import players

EMPTY = "interpretation_of_visual_context/001"  # invented-hasty's answer to it


@pytest.fixture(scope="module")
def release(sample_folder: Path) -> release.Release:
    return release.read(sample_folder)


@pytest.fixture(scope="module")
def key(sample_folder: Path) -> players.AnswerKey:
    return players.AnswerKey.load(sample_folder / "key.json")


@pytest.fixture(scope="module")
def aligned(sample_folder: Path, release: release.Release) -> list[candidates.Aligned]:
    found = candidates.read([sample_folder / sample.PREDICTIONS])
    return [candidates.align(one, release) for one in found]


@pytest.fixture(scope="module")
def ratings(sample_folder: Path) -> list[RatingRow]:
    return ratings.read([sample_folder / "ratings"])


@pytest.fixture(scope="module")
def replay(sample_folder: Path) -> ReplayJudge:
    file = sample_folder / sample.REPLAY
    return ReplayJudge(resolve(f"replay:{file}", {}, default_model="x"), Recordings.load(file))


class TestQuestions:
    """Every dimension on two clips; a key by text that is right for all."""

    def test_every_dimension(self, release: release.Release) -> None:
        assert list(release.places) == list(DIMENSIONS)
        assert release.counts == {
            "videos": 22,
            "questions": 25,
            "dimensions": 11,
            "bad_questions": 0,
        }
        for dimension in DIMENSIONS:
            own = [one for one in release.questions if one.dimension == dimension]
            assert 2 <= len(own) <= 3
            assert len({one.video for one in own}) == 2

    def test_it_is_small(self, sample_folder: Path) -> None:
        assert sum(p.stat().st_size for p in sample_folder.rglob("*") if p.is_file()) < 400_000

    def test_one_question_repeats_in_its_dimension(self, release: release.Release) -> None:
        asked = Counter((one.dimension, one.question) for one in release.questions)
        assert [often for often in asked.values() if often > 1] == [2]
        assert len({one.question for one in release.questions}) == 24

    def test_the_key_is_right_for_every_question(
        self, key: players.AnswerKey, release: release.Release
    ) -> None:
        assert len(key.answers) == len(key.lures) == 24
        for one in release.questions:
            assert players.oracle(f"Watch. {one.question} Be brief.", key) == one.reference
            assert key.lures[one.question] != one.reference

    def test_no_question_stands_in_another_or_in_another_sample(
        self, key: players.AnswerKey
    ) -> None:
        assert not [(a, b) for a, b in combinations(sorted(key.answers, key=len), 2) if a in b]
        from lmms_eval_tasks.maverix import sample as lights
        from lmms_eval_tasks.movierecapsqa import sample as movies

        for other in (lights.key(), movies.key()):
            for part in ("answers", "choices"):
                assert not set(other.get(part, ())) & set(key.answers)

    def test_coin(self, key: players.AnswerKey, release: release.Release) -> None:
        given = {players.coin(f"{one.id} {one.question}", key, 0) for one in release.questions}
        assert {one.reference for one in release.questions} & given
        assert set(key.lures.values()) & given


class TestCandidates:
    """Three models in the released form, with what it has of oddities."""

    def test_they_line_up(self, aligned: list[candidates.Aligned]) -> None:
        assert [one.candidate for one in aligned] == [CAREFUL, HASTY, VAGUE] == sorted(MODELS)
        for one in aligned:
            assert len(one.answers) == 25
            assert (one.ways, one.problems, one.notes) == ({"order": 25}, (), ())
            marked = 25 if one.candidate == HASTY else 0
            assert (one.tokens, one.ends) == (marked, marked)
            assert one.empty == ((EMPTY,) if one.candidate == HASTY else ())

    def test_answers_are_of_their_kinds(self, aligned: list[candidates.Aligned]) -> None:
        for one in aligned:
            built = list(sample_answers.answered(one.candidate))
            assert [b.text for b in built] == list(one.answers.values())
            assert [b.id for b in built] == list(one.answers)
        kinds = {b.kind for name in MODELS for b in sample_answers.answered(name)}
        assert kinds == set(WORTH)


class TestRatings:
    """Three judges and the reference, in rows that the reader takes."""

    def test_rows(self, ratings: list[RatingRow], release: release.Release) -> None:
        assert len(ratings) == 4 * 75
        videos = {one.id: f"{one.dimension}/{one.video}" for one in release.questions}
        for row in ratings:
            assert row.video == videos[row.question]
            assert row.empty == (row.item == Item(EMPTY, HASTY))
        rounds = Counter((row.judge, row.round) for row in ratings)
        assert set(rounds.values()) == {75}
        assert {name for _, name in rounds} == {"first", "reference"}

    def test_the_reference_is_what_answers_are_worth(self, ratings: list[RatingRow]) -> None:
        worth = {
            Item(one.id, one.candidate): WORTH[one.kind]
            for name in MODELS
            for one in sample_answers.answered(name)
        }
        given = {row.item: row.rating for row in ratings if row.round == "reference"}
        assert given == worth
        assert set(given.values()) == set(RATINGS)

    def test_judges_are_as_described(self, ratings: list[RatingRow]) -> None:
        truth = {row.item: row.rating for row in ratings if row.round == "reference"}
        off: dict[str, Counter[float | None]] = {}
        for row in (row for row in ratings if row.round == "first"):
            difference = None if row.rating is None else row.rating - truth[row.item]
            off.setdefault(row.judge, Counter())[difference] += 1
        assert off[CAREFUL][None] == 1
        assert off[CAREFUL][0] > 60
        assert set(off[CAREFUL]) == {None, 0, -1}
        assert set(off[HASTY]) == {0, 1}
        assert {row.rating for row in ratings if row.judge == FLAT} == {4, None}
        (failed,) = [row for row in ratings if row.judge == FLAT and row.rating is None]
        assert (failed.status, failed.empty) == ("empty_answer", True)

    def test_notes(self, ratings: list[RatingRow]) -> None:
        told = ratings.notes(ratings, {row.item for row in ratings})
        found = [note.partition(": a constant judge")[0] for note in told]
        assert found == [
            f"{CAREFUL} (first): rated 74 of 75 answers (1 parse_failure)",
            f"{FLAT} (first): all 74 ratings are 4",
            f"{FLAT} (first): rated 74 of 75 answers (1 empty_answer)",
        ]


class TestReplay:
    """The benchmark's judge about every answer that the sample knows."""

    def verdict(self, replay: ReplayJudge, one: release.Question, text: str) -> Any:
        fields = {
            "id": one.id,
            "question": one.question,
            "reference": one.reference,
            "candidate": text,
        }
        return replay.verdict(judge.criterion(), fields)

    def test_oracle_and_coin(
        self, replay: ReplayJudge, release: release.Release, key: players.AnswerKey
    ) -> None:
        for one in release.questions:
            right = self.verdict(replay, one, one.reference)
            wrong = self.verdict(replay, one, key.lures[one.question])
            assert (right.score, judge.points(right).score) == (1.0, 5.0)
            assert (wrong.score, judge.points(wrong).score) == (0.0, 0.0)

    def test_candidates(
        self,
        replay: ReplayJudge,
        release: release.Release,
        aligned: list[candidates.Aligned],
    ) -> None:
        asked = {one.id: one for one in release.questions}
        for candidate in aligned:
            for built in sample_answers.answered(candidate.candidate):
                if built.kind == "empty":
                    continue
                found = self.verdict(replay, asked[built.id], candidate.answers[built.id])
                assert found.score == (built.kind in ("right", "padded"))

    def test_every_recording_once(self, sample_folder: Path) -> None:
        texts = (sample_folder / sample.REPLAY).read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in texts]
        assert {one["criterion"] for one in found} == {judge.NAME}
        assert len(found) == 5 * sum(map(len, QUESTIONS.values()))


def test_two_builds_are_alike(sample_folder: Path, tmp_path: Path) -> None:
    sample.write(tmp_path)
    there = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    before = {
        p.relative_to(sample_folder): p.read_bytes()
        for p in sample_folder.rglob("*")
        if p.is_file()
    }
    assert there == before
