"""Saved runs: the same numbers again from the samples alone, and what cannot be read."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.movierecapsqa import saved, scoring
from tests.local_endpoint import LocalEndpoint
from tests.movierecapsqa.items import answers
from tests.movierecapsqa.saved_runs import (
    EVERYTHING,
    FIRST,
    TASK,
    Rater,
    aggregated,
    asked,
    judged_run,
)

pytestmark = pytest.mark.usefixtures("user")


class TestAgain:
    """Every metric once more from the samples alone."""

    @pytest.mark.parametrize("baselines", ["", "geval,helmet"])
    def test_the_same_to_the_last_digit(
        self, baselines: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = judged_run(monkeypatch, Rater(fails="coherence"), baselines)
        expected = aggregated(run.samples)
        kept = copy.deepcopy(run.samples)
        mixed = dataclasses.replace(run, samples=run.samples[::-1])
        again = saved.rescore_saved([mixed], None)
        assert again.numbers == {TASK: expected}
        assert run.samples == kept
        assert 0 < expected["factuality_valid"] < 5
        assert expected["coherence_failed"] == 3
        assert 0 < expected["rouge_l"] < 1
        has = {name: expected[name] is not None for name in ("geval_samples", "helmet_fluency")}
        assert set(has.values()) == {bool(baselines)}
        assert again.sidecar[TASK]["items"] == 4
        assert again.notes == []
        pairs = again.verdicts[TASK]
        assert len(pairs) == 3 * 3
        assert all(pair.before == pair.after for pair in pairs)
        own = {f"{TASK} geval", f"{TASK} helmet_fluency", f"{TASK} helmet_correctness"}
        assert again.verdicts.keys() - {TASK} == (own if baselines else set())

    def test_each_sample_comes_out_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not the numbers alone: claims, labels, bounds and verdicts too."""
        run = judged_run(monkeypatch, baselines="geval,helmet")
        for sample in run.samples:
            item = sample[FIRST]
            made = scoring.reply_metrics(
                item,
                item["reply"],
                judge=judge_run_none(),
                which=("geval", "helmet"),
                saved=saved._saved_verdicts(item),
            )
            assert made == {name: value for name, value in sample.items() if name != "doc_id"}

    def test_every_condition_and_source(self, monkeypatch: pytest.MonkeyPatch) -> None:
        tasks = [TASK, "movierecapsqa_segment", "movierecapsqa_movie_frames"]
        made = [judged_run(monkeypatch, task=task) for task in tasks]
        again = saved.rescore_saved(made, None)
        assert again.numbers == {run.task: aggregated(run.samples) for run in made}
        assert again.notes == []

    def test_items_of_an_error_are_scored_now(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: Any, **__: Any) -> Any:
            raise RuntimeError("broken by the test")

        with monkeypatch.context() as patch:
            patch.setattr(scoring, "reply_metrics", fail)
            run = judged_run(monkeypatch)
        assert {sample[FIRST]["status"] for sample in run.samples} == {"error"}
        assert aggregated(run.samples)["factuality_failed"] == 4
        again = saved.rescore_saved([run], None)
        assert again.numbers[TASK]["factuality_valid"] is None  # it waits for its judge
        assert again.numbers[TASK]["rouge_l"] > 0
        with LocalEndpoint(Rater()) as endpoint:
            again = saved.rescore_saved([run], f"one@{endpoint.url}", missing_only=True)
            assert asked(endpoint) == EVERYTHING
        assert again.numbers[TASK] == aggregated(judged_run(monkeypatch).samples)

    def test_a_broken_item_in_a_run_with_baselines(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch, baselines="helmet")
        broken = scoring.failed_metrics(run.samples[0][FIRST], "It waits.")
        run.samples[0] = {"doc_id": 0, **json.loads(json.dumps(broken))}
        assert aggregated(run.samples)["helmet_fluency_failed"] == 1
        again = saved.rescore_saved([run], None).numbers[TASK]
        assert again["helmet_fluency_failed"] == 1
        with LocalEndpoint(Rater()) as endpoint:
            done = saved.rescore_saved([run], f"one@{endpoint.url}", missing_only=True)
        assert done.numbers[TASK]["helmet_fluency_failed"] == 0

    def test_several_models(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = [judged_run(monkeypatch, Rater(n), model=f"m{n} (x)") for n in (0, 1)]
        again = saved.rescore_saved(made, None)
        assert list(again.numbers) == [f"{TASK} m0 (x)", f"{TASK} m1 (x)"]
        assert again.numbers[f"{TASK} m0 (x)"] != again.numbers[f"{TASK} m1 (x)"]

    def test_conditions_that_were_asked_other_questions(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = [judged_run(monkeypatch, task=task) for task in (TASK, "movierecapsqa_segment")]
        del made[1].samples[1:]
        (note,) = saved.rescore_saved(made, None).notes
        assert "aligned recap segment: the conditions were not asked the same questions" in note
        assert "(both 1, only dialogue 4)" in note
        made = [*made, dataclasses.replace(made[1], model="n (y)")]
        (note,) = saved.rescore_saved(made, None).notes
        assert note.startswith("m (x): ")


def judge_run_none() -> Any:
    from lmms_eval_tasks.judges import make
    from lmms_eval_tasks.judges.config import NONE, JudgeConfig

    return make(JudgeConfig(NONE))


class TestBroken:
    """One clear line for what cannot be read."""

    @pytest.mark.parametrize("broken", [{}, {FIRST: 1}, {FIRST: {"id": "x"}}])
    def test_samples_of_someone_else(
        self, broken: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = judged_run(monkeypatch)
        run.samples.append(broken)
        with pytest.raises(DataError, match=rf"\.jsonl, line 5: no `{FIRST}` item of this suite"):
            saved.rescore_saved([run], None)

    def test_an_item_twice(self, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch)
        run.samples.append(run.samples[0])
        with pytest.raises(DataError, match=r"line 5: talk.1/10 occurs twice"):
            saved.rescore_saved([run], None)

    @pytest.mark.parametrize("model", ["m (x)", None])
    def test_a_run_twice(self, model: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        run = judged_run(monkeypatch, model=model)
        later = dataclasses.replace(run, file=Path("later.jsonl"))
        with pytest.raises(DataError, match=rf"later\.jsonl: a second {TASK} run of ") as caught:
            saved.rescore_saved([run, later], None)
        assert str(run.file) in str(caught.value)

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            ("facts", ..., "has no list of `facts`"),
            ("facts", "one", "has no list of `facts`"),
            ("facts", [1], "has no list of `facts`"),
            ("dialogue", ..., "has no `dialogue`"),
            ("reference", None, "has no `reference`"),
            ("modality", ..., "has no `modality`"),
            ("reply", 5, "has no `reply`"),
            ("dimensions", ..., "has no `dimensions`"),
            ("dimensions", {"factuality": 5}, "has no `dimensions`"),
            ("dimensions", {"truth": {}}, "is rated in truth, which is no dimension"),
            ("baselines", [], "has no `baselines`"),
            ("claims_verdict", ..., "has no `claims_verdict`"),
            ("claims_verdict", "ok", "has no `claims_verdict`"),
        ],
    )
    def test_what_an_item_lacks(
        self, name: str, value: Any, said: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = judged_run(monkeypatch)
        item = run.samples[2][FIRST]
        if value is ...:
            del item[name]
        else:
            item[name] = value
        with pytest.raises(DataError) as caught:
            saved.rescore_saved([run], None)
        message = str(caught.value)
        assert message.startswith(f"{run.file}: talk.2/20 {said}")
        assert "\n" not in message

    @pytest.mark.parametrize(
        ("path", "where"),
        [
            (("claims_verdict",), "claims"),
            (("dimensions", "relevance", "verdict"), "relevance"),
            (("baselines", "helmet_fluency", "verdict"), "baselines"),
            (("baselines", "geval", "dimensions", "coherence", "verdict"), "baselines"),
        ],
    )
    @pytest.mark.parametrize("content", [{"x": 1}, {"score": 3, "status": "gone"}, {"score": 7}])
    def test_a_verdict_that_is_none(
        self, path: tuple[str, ...], where: str, content: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = judged_run(monkeypatch, baselines="geval,helmet")
        place = run.samples[0][FIRST]
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = content
        with pytest.raises(DataError) as caught:
            saved.rescore_saved([run], None)
        message = str(caught.value)
        assert message.startswith(f"{run.file}: talk.1/10/{where}: the saved verdict is none (")
        assert "\n" not in message


def test_hand_made_items_are_like_real_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of items.py, on which the numbers are tested."""
    run = judged_run(monkeypatch)
    whole, made = run.samples[0][FIRST], answers("5")[0]
    assert made.keys() <= whole.keys()
    for name, rated in made["dimensions"].items():
        assert rated.keys() <= whole["dimensions"][name].keys()
    assert whole.keys() - made.keys() == {
        *("question", "facts", "dialogue", "data", "media"),
        *("claims", "claims_verdict", "reply"),
    }
