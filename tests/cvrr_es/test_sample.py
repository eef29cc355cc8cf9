"""CVRR-ES's packaged sample: every dimension, and a key by text that is right for all."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es import release as released
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.release import Release
from lmms_eval_tasks.sample import players

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
