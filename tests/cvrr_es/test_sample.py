"""CVRR-ES's packaged sample: the released form, true by construction, and ratings that add up."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es import release as released
from lmms_eval_tasks.cvrr_es import sample, sample_answers
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, RATINGS
from lmms_eval_tasks.cvrr_es.release import Release
from lmms_eval_tasks.cvrr_es.study import replies
from lmms_eval_tasks.sample import players
from tests.cvrr_es.scored import doc, rated_doc

EMPTY = "interpretation_of_visual_context/001"  # invented-hasty's answer to it


@pytest.fixture(scope="module")
def release(sample_folder: Path) -> Release:
    return released.read(sample_folder)


@pytest.fixture(scope="module")
def key(sample_folder: Path) -> players.AnswerKey:
    return players.AnswerKey.load(sample_folder / "key.json")


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


def test_two_builds_are_alike(sample_folder: Path, tmp_path: Path) -> None:
    sample.write(tmp_path)
    first, second = (
        {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        for folder in (sample_folder, tmp_path)
    )
    assert first == second


# --- the clips: what the references say is to be seen; what the lures say is not ------------------


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


def test_the_player_takes_them_for_judge_tasks_alone() -> None:
    given = {players.scripted(rated_doc(n, reference=4.0)) for n in range(60)}
    assert players.UNREADABLE in given
    assert json.dumps({"rating": 4, "reason": "played: right"}) in given
    answers = {players.scripted(doc(n)) for n in range(60)}
    assert "A dog runs away." in answers
    assert not [one for one in answers if "rating" in one]
