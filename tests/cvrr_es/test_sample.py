"""CVRR-ES's packaged sample: the released form, true by construction, and ratings that add up."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from lmms_eval_tasks.cvrr_es import candidates, judge, sample, sample_answers
from lmms_eval_tasks.cvrr_es import release as released
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.cvrr_es.release import Question, Release
from lmms_eval_tasks.cvrr_es.sample import CLIPS, FPS, HEIGHT, SECONDS, WIDTH
from lmms_eval_tasks.cvrr_es.sample_answers import CAREFUL, FLAT, HASTY, MODELS, VAGUE, WORTH
from lmms_eval_tasks.cvrr_es.study import ratings, replies
from lmms_eval_tasks.cvrr_es.study.ratings import Item
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.judges.config import resolve
from lmms_eval_tasks.judges.replay import Recordings, ReplayJudge
from lmms_eval_tasks.sample import players
from lmms_eval_tasks.sample.second_code import PALETTE
from tests.cvrr_es.scored import doc, rated_doc

EMPTY = "interpretation_of_visual_context/001"  # invented-hasty's answer to it


@pytest.fixture(scope="module")
def release(sample_folder: Path) -> Release:
    return released.read(sample_folder)


@pytest.fixture(scope="module")
def key(sample_folder: Path) -> players.AnswerKey:
    return players.AnswerKey.load(sample_folder / "key.json")


@pytest.fixture(scope="module")
def aligned(sample_folder: Path, release: Release) -> list[candidates.Aligned]:
    return candidates.fitting([sample_folder / sample.PREDICTIONS], release)


def test_questions(release: Release, sample_folder: Path, key: players.AnswerKey) -> None:
    """Every dimension on two clips; one question repeats; a key by text that is right for all."""
    assert list(release.places) == list(DIMENSIONS)
    counts = {"videos": 22, "questions": 25, "dimensions": 11, "bad_questions": 0}
    assert release.counts == counts
    for dimension in DIMENSIONS:
        own = [one for one in release.questions if one.dimension == dimension]
        assert 2 <= len(own) <= 3
        assert len({one.video for one in own}) == 2
    assert sum(p.stat().st_size for p in sample_folder.rglob("*") if p.is_file()) < 400_000
    asked = Counter((one.dimension, one.question) for one in release.questions)
    assert [often for often in asked.values() if often > 1] == [2]
    assert len(key.answers) == len(key.lures) == 24
    for one in release.questions:
        assert players.oracle(f"Watch. {one.question} Be brief.", key) == one.reference
        assert key.lures[one.question] != one.reference
    # No question stands in another.
    assert not [(a, b) for a, b in combinations(sorted(key.answers, key=len), 2) if a in b]
    given = {players.coin(f"{one.id} {one.question}", key, 0) for one in release.questions}
    assert {one.reference for one in release.questions} & given
    assert set(key.lures.values()) & given


def test_candidates(aligned: list[candidates.Aligned]) -> None:
    """Three models in the released form, with what it has of oddities."""
    assert [one.candidate for one in aligned] == [CAREFUL, HASTY, VAGUE] == sorted(MODELS)
    kinds = set()
    for one in aligned:
        assert (one.ways, one.problems, one.notes) == ({"order": 25}, (), ())
        marked = 25 if one.candidate == HASTY else 0
        assert (one.tokens, one.ends) == (marked, marked)
        assert one.empty == ((EMPTY,) if one.candidate == HASTY else ())
        built = list(sample_answers.answered(one.candidate))
        assert {b.id: b.text for b in built} == one.answers
        kinds |= {b.kind for b in built}
    assert kinds == set(WORTH)


def test_ratings(sample_folder: Path, release: Release) -> None:
    """Three judges and the reference, as described, in rows that the reader takes."""
    rows = ratings.read([sample_folder / "ratings"])
    videos = {one.id: one.video_id for one in release.questions}
    for row in rows:
        assert row.video == videos[row.question]
        assert row.empty == (row.item == Item(EMPTY, HASTY))
    rounds = Counter((row.judge, row.round) for row in rows)
    assert (len(rounds), set(rounds.values())) == (4, {75})
    truth = {row.item: row.rating for row in rows if row.round == "reference"}
    assert truth == {
        Item(one.id, one.candidate): WORTH[one.kind]
        for name in MODELS
        for one in sample_answers.answered(name)
    }
    assert set(truth.values()) == set(RATINGS)
    off: dict[str, Counter[float | None]] = {}
    for row in (row for row in rows if row.round == "first"):
        difference = None if row.rating is None else row.rating - (truth[row.item] or 0)
        off.setdefault(row.judge, Counter())[difference] += 1
    assert (off[CAREFUL][None], off[CAREFUL][0] > 60) == (1, True)
    assert (set(off[CAREFUL]), set(off[HASTY])) == ({None, 0, -1}, {0, 1})
    assert {row.rating for row in rows if row.judge == FLAT} == {4, None}
    (failed,) = [row for row in rows if row.judge == FLAT and row.rating is None]
    assert (failed.status, failed.empty) == ("empty_answer", True)
    told = ratings.notes(rows, {row.item for row in rows})
    assert [note.partition(": a constant judge")[0] for note in told] == [
        f"{CAREFUL} (first): rated 74 of 75 answers (1 parse_failure)",
        f"{FLAT} (first): all 74 ratings are 4",
        f"{FLAT} (first): rated 74 of 75 answers (1 empty_answer)",
    ]


def test_the_recorded_judge(
    sample_folder: Path,
    release: Release,
    key: players.AnswerKey,
    aligned: list[candidates.Aligned],
) -> None:
    """About every answer that the sample knows, once."""
    file = sample_folder / sample.REPLAY
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {one["criterion"] for one in lines} == {judge.NAME}
    assert len(lines) == 5 * len(release.questions)
    replay = ReplayJudge(resolve(f"replay:{file}", {}, default_model="x"), Recordings.load(file))

    def verdict(one: Question, text: str) -> Any:
        fields = {"id": one.id, "question": one.question, "reference": one.reference}
        return replay.verdict(judge.criterion(), {**fields, "candidate": text})

    asked = {one.id: one for one in release.questions}
    for one in asked.values():
        right, wrong = verdict(one, one.reference), verdict(one, key.lures[one.question])
        assert judge.points(right) == (1.0, 5.0)
        assert judge.points(wrong) == (0.0, 0.0)
    for candidate in aligned:
        for built in sample_answers.answered(candidate.candidate):
            if built.kind != "empty":
                found = verdict(asked[built.id], candidate.answers[built.id])
                assert found.score == (built.kind in ("right", "padded"))


def test_two_builds_are_alike(sample_folder: Path, tmp_path: Path) -> None:
    sample.write(tmp_path)
    first, second = (
        {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        for folder in (sample_folder, tmp_path)
    )
    assert first == second


# --- the clips: what the references say is to be seen; what the lures say is not ------------------


class Film:
    """A decoded clip: where a colour is, and how often."""

    def __init__(self, path: Path) -> None:
        with av.open(str(path)) as container:
            self.kinds = [stream.type for stream in container.streams]
            self.frames = [f.to_ndarray(format="rgb24") for f in container.decode(video=0)]

    def mask(self, colour: str, second: float) -> Any:
        frame = self.frames[min(int(second * FPS), len(self.frames) - 1)].astype(float)
        return np.linalg.norm(frame - np.array(PALETTE[colour]), axis=-1) < 60

    def box(self, colour: str, second: float) -> Any:
        """Left, top, right, bottom of a colour; None if it is not there."""
        rows, columns = np.nonzero(self.mask(colour, second))
        if len(rows) < 20:
            return None
        return columns.min(), rows.min(), columns.max(), rows.max()

    def parts(self, colour: str, second: float) -> int:
        """How many separate shapes of a colour there are."""
        left = {(int(y), int(x)) for y, x in np.argwhere(self.mask(colour, second))}
        count = 0
        while left:
            waiting, size = [left.pop()], 0
            while waiting:
                y, x = waiting.pop()
                size += 1
                near = {(y + i, x + j) for i in (-1, 0, 1) for j in (-1, 0, 1)} & left
                left -= near
                waiting += near
            count += size >= 8
        return count


@pytest.fixture(scope="module")
def films(release: Release) -> dict[str, Film]:
    found = {one.video: Film(release.video_path(one)) for one in release.questions}
    assert set(found) == set(CLIPS)
    for film in found.values():
        assert (film.kinds, len(film.frames)) == (["video"], FPS * SECONDS)
        assert film.frames[0].shape == (HEIGHT, WIDTH, 3)
    return found


def test_box_and_swap(films: dict[str, Film]) -> None:
    film = films["box.mp4"]
    assert film.box("red", 0)[0] < film.box("red", 3.9)[0]  # from left to right
    for second in np.arange(0, 4, 0.1):
        assert film.box("red", second)[2] + 10 < film.box("white", second)[0]
    assert film.box("white", 0)[0] > WIDTH / 2
    assert film.box("red", 2.6) == film.box("red", 3.9)  # pushed back by nothing
    film = films["swap.mp4"]
    blue, yellow = ([film.box(c, s) for s in (0, 1.9, 3.9)] for c in ("blue", "yellow"))
    assert blue[0][0] + 50 < blue[1][0] == blue[2][0]
    assert yellow[0][1] == yellow[1][1] < yellow[2][1] - 50
    assert abs(yellow[0][0] - yellow[2][0]) < 3


def test_float_and_pair(films: dict[str, Film]) -> None:
    film = films["float.mp4"]
    heights = [film.box("orange", second)[1] for second in np.arange(0, 4, 0.1)]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] - heights[-1] > 50
    assert heights[-1] > 10
    film = films["pair.mp4"]
    assert {film.parts(c, s) for c in ("pink", "purple") for s in (0, 2, 3.9)} == {1}
    assert film.box("purple", 0) == film.box("purple", 1.9)
    assert film.box("purple", 0)[0] - film.box("pink", 0)[2] > 30
    for second in (2.0, 2.8, 3.8):
        assert 0 < film.box("purple", second)[0] - film.box("pink", second)[2] < 12
    assert film.box("pink", 3.8)[0] - film.box("pink", 2)[0] > 50


def test_face_and_night(films: dict[str, Film]) -> None:
    film = films["face.mp4"]

    def corners_above_middle(second: float) -> bool:
        mouth = film.mask("black", second)[76:96, 40:80]
        rows = [np.nonzero(mouth[:, x])[0].mean() for x in (4, 20, 36)]
        return bool(rows[0] < rows[1] and rows[2] < rows[1])

    for tick in range(FPS * SECONDS):
        there = film.box("green", tick / FPS) is not None
        assert corners_above_middle(tick / FPS) is there or tick == 23  # half a pixel of it
    assert corners_above_middle(0)
    assert not corners_above_middle(3.9)
    film = films["night.mp4"]
    assert {film.parts("white", second) for second in (0, 1, 2, 3, 3.9)} == {5}  # moon, four stars
    dark = [film.box("yellow", second) is None for second in (0, 1.9, 2.1, 3.9)]
    assert dark == [True, True, False, False]
    assert film.frames[0].mean() < 60


# --- the scripted model's ratings -----------------------------------------------------------------


def test_scripted_ratings() -> None:
    """Of known worth, on the scale; a wrong one is off by one or two, different in every round."""

    def rating(given: dict[str, Any], worth: str) -> Any:
        return json.loads(sample_answers.reply(given, worth))["rating"]

    for reference in (1.0, 2.0, 3.0, 4.0, 5.0):
        assert rating(rated_doc(reference=reference), "right") == reference
        for others in ([], [{"judge": "Zoe", "rating": 3.0}]):
            found = {
                rating(rated_doc(n, reference=reference, others=others), "wrong") for n in range(40)
            }
            assert reference not in found
            assert found <= RATINGS.keys()
            assert all(abs(one - reference) <= 2 for one in found)
            assert not others or reference == 5 or min(found) > reference
    assert rating(rated_doc(), "right") == 3
    text = sample_answers.reply(rated_doc(), "unreadable")
    assert replies.read(text).status == "unparsed"
    rounds = ("first", "collective", "mixture")
    assert len({sample_answers.item(rated_doc(round=one)) for one in rounds}) == 3
    for field in ("id", "round", "reference_rating", "others"):
        given = rated_doc(reference=2.0)
        del given[field]
        with pytest.raises(TasksError, match=f"docs of a CVRR judge task: .*{field}"):
            sample_answers.reply(given, "wrong")


def test_the_player_takes_them_for_judge_tasks_alone() -> None:
    given = {players.scripted(rated_doc(n, reference=4.0)) for n in range(60)}
    assert players.UNREADABLE in given
    assert json.dumps({"rating": 4, "reason": "played: right"}) in given
    answers = {players.scripted(doc(n)) for n in range(60)}
    assert "A dog runs away." in answers
    assert not [one for one in answers if "rating" in one]
