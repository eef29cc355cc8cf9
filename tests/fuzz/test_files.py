"""A slice of the fuzzer of files: each is read, or refused with a line that names it."""

from __future__ import annotations

import pytest

from tests.conftest import cvrr_study
from tests.fuzz import handed_over

FILES = 75  # `make fuzz`: 20,000


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
    ended = [handed_over.mistake(kinds, 0, number) for number in range(FILES)]
    assert [one for one in ended if one[1]] == []
