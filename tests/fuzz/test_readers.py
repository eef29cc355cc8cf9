"""A slice of the fuzzer: no exception, nothing off its range, no endless regex (`make fuzz`)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmms_eval_tasks import registry
from lmms_eval_tasks.judges import run
from lmms_eval_tasks.settings import JudgeLimits
from tests.fuzz import readers

ITEMS = 1500


@pytest.fixture(scope="module")
def found(sample_root):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in readers.environment(sample_root).items():
            patch.setenv(name, value)
        return readers.found(sample_root)


@pytest.fixture
def fuzz(sample_root, found, monkeypatch):
    for name, value in readers.environment(sample_root).items():
        monkeypatch.setenv(name, value)
    with run.use(run.JudgeSession(JudgeLimits())):
        yield readers.Fuzz([*found], longest=20_000)


def test_every_reader(fuzz):
    fuzz.run(range(ITEMS))
    assert [told for one in fuzz.tallies.values() for told in one.failures] == []
    tasks = {name for name in fuzz.tallies if ":" not in name}
    assert {registry.of_task_name(task) for task in tasks} == {*registry.NAMES}
    asked = {ask for one in fuzz.scored for ask in one.task.judgements}
    assert len(fuzz.tallies) - len(tasks) >= len(asked)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        ({"status": "ok", "letter": "C", "options": ["a", "b"]}, "letter 'C'"),
        ({"status": "ok", "right": 2}, "right 2"),
        ({"status": "error"}, "status 'error'"),
        ({"status": "ok", "frames": [1, 1], "n_frames": 3}, "frames"),
        ({"status": "ok", "rouge_l": float("nan")}, "JSON compliant"),
    ],
)
def test_what_is_off_range_is_told(fuzz, made, why):
    """The fuzzer itself: a reader that gives this fails."""
    (one, *_) = fuzz.scored
    broken = replace(one.task, score=lambda doc, reply: dict(made), metrics=())
    fuzz.scored = [replace(one, task=broken)]
    fuzz.run([0])
    ((told,),) = (tally.failures for tally in fuzz.tallies.values())
    assert why in told


def test_what_hangs_is_told(fuzz, monkeypatch):
    monkeypatch.setattr(readers, "SECONDS", 0.1)
    (one, *_) = fuzz.scored

    def score(doc, reply):
        while True:
            pass

    fuzz.scored = [replace(one, task=replace(one.task, score=score))]
    fuzz.run([0])
    ((told,),) = (tally.failures for tally in fuzz.tallies.values())
    assert "more than 0.1 s of CPU time" in told
