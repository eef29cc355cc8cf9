"""Saved runs: the same numbers again from the samples alone, other verdicts, a later reference."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.cvrr_es import judge, saved
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from lmms_eval_tasks.cvrr_es.metrics import details
from lmms_eval_tasks.cvrr_es.study import ratings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.runs import rescore
from tests.cvrr_es.scored import (
    PART,
    TIME,
    Made,
    Stated,
    answered,
    eight,
    rated,
    rated_doc,
    row,
    saved_run,
    shown,
    values,
)
from tests.local_endpoint import LocalEndpoint

ANSWER, OTHER = f"cvrr_es_{PART}", f"cvrr_es_{TIME}"
REPLIES = ("right 5", "wrong 1", "", "hm")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(settings.JUDGE, "none")
    judge_run.forget()
    yield
    judge_run.forget()


@pytest.fixture
def answers(stated: Stated) -> list[Made]:
    return [answered(reply, place) for place, reply in enumerate(REPLIES, 1)]


def again(*runs: rescore.Run, judge: str | None = None, **more: Any) -> rescore.Rescored:
    return saved.rescore_saved(runs, judge, **more)


class TestTheSame:
    """To the last digit, in whatever order, and the samples stay as they are."""

    def check(self, run: rescore.Run, made: list[Made], first: str) -> rescore.Rescored:
        mixed = dataclasses.replace(run, samples=run.samples[::-1])
        kept = copy.deepcopy(run.samples)
        found = again(mixed)
        assert run.samples == kept
        assert found.numbers[run.task] == shown(values(made))
        assert found.sidecar[run.task] == details(run.task, [one[first] for one in made])
        return found

    def test_answers(self, answers: list[Made]) -> None:
        found = self.check(saved_run(ANSWER, answers), answers, "acc")
        assert [pair.id for pair in found.verdicts[ANSWER]] == [
            f"{PART}/00{n}" for n in range(1, 5)
        ]
        assert all(pair.before == pair.after for pair in found.verdicts[ANSWER])

    @pytest.mark.parametrize("task", ["cvrr_judge", "cvrr_judge_collective", "cvrr_judge_mixture"])
    def test_ratings(self, task: str) -> None:
        found = self.check(saved_run(task, eight()), eight(), "kappa")
        assert found.verdicts == {}
        assert found.notes == []
        assert found.numbers[task]["kappa_of_bob"] == pytest.approx(-1 / 6)

    def test_a_rating_that_broke_is_read(self) -> None:
        made = eight()
        for one in made[0].values():
            one |= {"rating": None, "status": "error"}
        assert again(saved_run("cvrr_judge", made)).numbers["cvrr_judge"] == values(eight())


class TestMeans:
    def test_of_the_dimensions_that_are_there(self, answers: list[Made]) -> None:
        second = [answered("right 3", 1, TIME)]
        found = again(saved_run(ANSWER, answers), saved_run(OTHER, second))
        assert found.numbers["cvrr_es"]["mean_acc"] == pytest.approx((1 / 4 + 1) / 2)
        assert found.numbers["cvrr_es"]["mean_acc_skip_empty"] == pytest.approx((1 / 2 + 1) / 2)
        (note,) = found.notes
        assert note == "cvrr_es: means over 2 of 11 dimensions: those that were given"
        assert not [name for name in found.numbers[ANSWER] if name.startswith("mean_")]

    def test_of_all(self, stated: Stated) -> None:
        runs = [saved_run(f"cvrr_es_{d}", [answered("right 3", 1, d)]) for d in DIMENSIONS]
        found = again(*runs)
        assert found.notes == []
        assert found.numbers["cvrr_es"]["mean_score_valid"] == 3

    def test_of_several_models(self, stated: Stated) -> None:
        runs = [
            saved_run(task, [answered(reply, 1, dimension)], model)
            for task, dimension in ((ANSWER, PART), (OTHER, TIME))
            for model, reply in (("a (x)", "right 5"), ("b (y)", "wrong 1"))
        ]
        found = again(*runs).numbers
        assert found["cvrr_es a (x)"]["mean_acc"] == 1
        assert found["cvrr_es b (y)"]["mean_acc"] == 0
        assert found[f"{ANSWER} b (y)"]["acc"] == 0
        apart = again(runs[0], runs[3]).numbers  # two models, a dimension each
        assert apart["cvrr_es a (x)"]["mean_acc"] == 1
        assert apart["cvrr_es b (y)"]["mean_acc"] == 0


class TestReference:
    """The user's of now, or the run's own."""

    def name(self, rows: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ratings.write(tmp_path / "reference.jsonl", rows)
        monkeypatch.setenv(settings.CVRR_REFERENCE, str(tmp_path / "reference.jsonl"))

    def test_filled_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        made = [rated(n, rated_doc(n)) for n in (1, 3, 5)]
        run = saved_run("cvrr_judge", made)
        assert again(run).numbers["cvrr_judge"]["kappa"] is None
        reference = [row(n, 6 - n, "debate", round="reference") for n in (1, 3, 5)]
        self.name(reference, tmp_path, monkeypatch)
        found = again(run)
        assert found.numbers["cvrr_judge"]["kappa"] == -1
        assert found.sidecar["cvrr_judge"]["kappa"]["mean"]["kappa"] == -1
        assert found.notes == []

    def test_it_replaces_the_runs_whole(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = [rated(n, rated_doc(n, reference=n)) for n in (1, 3, 5)]
        self.name([row(1, 2, "debate", round="reference")], tmp_path, monkeypatch)
        found = again(saved_run("cvrr_judge", made))
        assert found.numbers["cvrr_judge"]["leniency"] == -1
        assert found.sidecar["cvrr_judge"]["kappa"]["pooled"]["missing"] == 2

    def test_of_other_answers(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.name([row(9, 2, "debate", round="reference")], tmp_path, monkeypatch)
        found = again(saved_run("cvrr_judge", [rated(1, rated_doc(1, reference=1))]))
        assert found.numbers["cvrr_judge"]["kappa"] is None
        (note,) = found.notes
        assert note.startswith("cvrr_judge: the reference has no rating of these answers")


class TestAnotherJudge:
    def test_asked_again(self, answers: list[Made]) -> None:
        reply = json.dumps({"pred": "correct", "score": 4, "reason": "yes"})
        with LocalEndpoint(lambda _: reply, model="local") as endpoint:
            found = again(saved_run(ANSWER, answers), judge=f"other@{endpoint.url}")
            assert len(endpoint.chats) == 3  # nobody is asked about the empty one
        assert found.numbers[ANSWER]["acc"] == 3 / 4
        assert found.numbers[ANSWER]["score_valid"] == pytest.approx((4 * 3 + 0) / 4)
        scores = [pair.after and pair.after.score for pair in found.verdicts[ANSWER]]
        assert scores == [1, 1, None, 1]

    def test_only_what_is_missing(
        self, answers: list[Made], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reply = json.dumps({"pred": "incorrect", "score": 2, "reason": "no"})
        with LocalEndpoint(lambda _: reply, model="local") as endpoint:
            spec = f"other@{endpoint.url}"
            setup = judges.setup(judge.config(spec), judge.criterion())
            for one in answers[:2]:
                one["acc"]["verdict"]["setup"] = setup
            judge_run.forget()
            found = again(saved_run(ANSWER, answers), judge=spec, missing_only=True)
            assert len(endpoint.chats) == 1
        assert found.numbers[ANSWER]["acc"] == 1 / 4
        assert found.numbers[ANSWER]["score_valid"] == pytest.approx((5 + 1 + 0 + 2) / 4)


class TestWhatCannotBeRead:
    def test_no_task_of_ours(self, answers: list[Made]) -> None:
        with pytest.raises(DataError, match="cvrr_es_other is no task of CVRR-ES"):
            again(saved_run("cvrr_es_other", answers))

    @pytest.mark.parametrize("field", ["question", "reference", "dimension", "video"])
    def test_an_answer_that_lacks_something(self, field: str, answers: list[Made]) -> None:
        del answers[1]["acc"][field]
        with pytest.raises(DataError, match=rf"jsonl: {PART}/002 has no `{field}`; take its line"):
            again(saved_run(ANSWER, answers))

    @pytest.mark.parametrize("field", ["answer", "judge", "empty", "fell_back", "reference_rating"])
    def test_a_rating_that_lacks_something(self, field: str) -> None:
        made = eight()
        del made[1]["kappa"][field]
        with pytest.raises(DataError, match=rf"{PART}/002/ada has no `{field}`; take its line"):
            again(saved_run("cvrr_judge", made))

    def test_twice(self, answers: list[Made]) -> None:
        with pytest.raises(DataError, match=f"{PART}/001 occurs twice"):
            again(saved_run(ANSWER, [*answers, answers[0]]))
        with pytest.raises(DataError, match=f"a second {ANSWER} run of m"):
            again(saved_run(ANSWER, answers), saved_run(ANSWER, answers))
