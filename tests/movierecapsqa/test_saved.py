"""Saved runs: every number again, another judge, the same one for what is missing, commands."""

from __future__ import annotations

import dataclasses

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa.judge import DIMENSIONS
from tests.movierecapsqa.asking import (
    EVERYTHING,
    GEVAL,
    TASK,
    Rater,
    again,
    asked,
    items_of,
    judged_at,
    judged_run,
    numbers,
    reply,
    saved_run,
    score,
)

pytestmark = pytest.mark.usefixtures("user")
BOTH = "geval,helmet"


def test_one_line_for_what_an_item_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    run = judged_run(monkeypatch)
    for name, value in (("facts", "one"), ("dialogue", None), ("judged_baselines", None)):
        sample = {"failed": {**items_of(run)[-1], "id": "x/1", name: value}}
        with pytest.raises(DataError) as caught:
            again(dataclasses.replace(run, samples=[*run.samples, sample]))
        assert str(caught.value).startswith(f"{run.file}: x/1 has no `{name}`; take its line out")


@pytest.mark.parametrize(
    ("fails", "missing"),
    [
        ("relevance", {"relevance": 3}),
        # What rests on other verdicts stays: the baselines know nothing of claims.
        ("claims", EVERYTHING),
        # G-Eval's two have to be of one mode: both are asked, then sampled.
        ("geval_coherence", dict.fromkeys(GEVAL, 3 + 3)),
    ],
)
def test_missing_only(fails: str, missing: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    rater = Rater(fails=fails)
    with judged_at(rater, monkeypatch, baselines=BOTH) as endpoint:
        run = saved_run(TASK, score(TASK, reply))
        rater.fails, before = "", len(endpoint.chats)
        # The baselines that a run has are kept.
        monkeypatch.setenv(settings.BASELINES, "")
        values = again(run, judge=f"one@{endpoint.url}").numbers[TASK]
        assert asked(endpoint, before) == missing
    failed = [values[f"{name}_failed"] for name in DIMENSIONS]
    assert failed == [values["empty"]] * len(DIMENSIONS)  # empty answers alone
    assert values == numbers(items_of(judged_run(monkeypatch, baselines=BOTH)))


def test_baselines_may_be_asked_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    with judged_at(Rater(), monkeypatch) as endpoint:
        run = saved_run(TASK, score(TASK, reply))
        monkeypatch.setenv(settings.BASELINES, "helmet")
        # Without a judge there is nobody to ask for them.
        assert again(run).numbers[TASK]["helmet_fluency_coverage"] is None
        done = again(run, judge=f"one@{endpoint.url}").numbers[TASK]
        assert done["helmet_fluency_coverage"] == 1
