"""A slice of the fuzzer of files: each is read, or refused with a line that names it."""

from __future__ import annotations

from random import Random

import pytest

from tests.conftest import cvrr_study
from tests.fuzz import handed_over

FILES = 150


@pytest.fixture
def kinds(sample_root, cache, tmp_path, monkeypatch):
    told = {"LMMS_EVAL_TASKS_CACHE": str(cache), "LMMS_EVAL_TASKS_JUDGE": "none"}
    told |= {"LMMS_EVAL_TASKS_DATA": str(sample_root), **cvrr_study(sample_root)}
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    found = handed_over.everything(sample_root, tmp_path)
    for name, value in handed_over.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return found


def test_every_file_that_a_user_hands_over(kinds):
    problems = []
    for number in range(FILES):
        random = Random(f"0/{number}")
        handed = kinds[number % len(kinds)]
        file = random.choice(handed.files)
        if why := handed_over.told(handed, file, random):
            problems.append(f"number {number}, {handed.kind}, {file.name}: {why}")
    assert problems == []
