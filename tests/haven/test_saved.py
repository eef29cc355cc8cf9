"""Saved runs: the same numbers again from the samples alone, joins, and what cannot be read."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.haven import saved
from lmms_eval_tasks.haven.labels import TASKS
from lmms_eval_tasks.haven.uncertainty import details
from lmms_eval_tasks.judges import run as judge_run
from lmms_eval_tasks.runs import rescore
from tests.haven.scored import (
    FIRST,
    broken,
    clip_by_hand,
    no_encoder,
    no_notes,
    runs,
    saved_run,
    scored,
    shown,
    values,
)


@pytest.fixture(autouse=True)
def no_models(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No judge, and BERTScore and CLIPScore by hand."""
    monkeypatch.setenv(settings.JUDGE, "none")
    no_encoder(monkeypatch)
    clip_by_hand(monkeypatch)
    no_notes(monkeypatch)
    judge_run.forget()
    yield
    judge_run.forget()


class TestAgain:
    """Every metric once more from the samples alone."""

    @pytest.mark.parametrize("task", list(TASKS))
    def test_the_same_to_the_last_digit(self, task: str) -> None:
        (run,) = runs(task)
        mixed = dataclasses.replace(run, samples=run.samples[::-1])
        kept = copy.deepcopy(run.samples)
        again = saved.rescore_saved([mixed], None)
        assert run.samples == kept
        assert again.numbers[task] == shown(values(task, scored(task)))
        assert again.sidecar[task] == details(task, [one[FIRST] for one in scored(task)])
        assert again.notes == []
        assert list(again.verdicts) == ([task] if TASKS[task].kind in ("v2t", "v2vt") else [])

    @pytest.mark.parametrize("task", ["haven_v2v", "haven_v2vt"])
    def test_scoring_that_broke(self, task: str) -> None:
        """It breaks again, as in the run, and nothing is lost; or it is mended by now."""
        one = json.loads(json.dumps(broken(task, id="tvsum/video_9", budget=0)))
        all_made = [*scored(task), one]
        again = saved.rescore_saved([saved_run(task, all_made)], None)
        assert again.numbers[task] == shown(values(task, all_made))
        assert again.sidecar[task]["status"]["error"] == 1
        one[FIRST]["budget"] = 1
        again = saved.rescore_saved([saved_run(task, all_made)], None)
        assert "error" not in again.sidecar[task]["status"]

    def test_all_at_once_with_what_joins_them(self) -> None:
        """Joint 1 + 2 frames: 0.33 and 0.37; separate 0.26 and 0.62."""
        again = saved.rescore_saved(runs(), None)
        assert again.numbers.keys() == {*TASKS, "haven", "haven_text"}
        found = again.numbers["haven"]
        assert found["joined_clip_joint"] == pytest.approx(0.35)
        assert found["joined_clip_separate"] == pytest.approx((0.25 + 0.01 + 0.5 + 0.12) / 2)
        assert found["joined_clip_gain"] == pytest.approx(0.35 - 0.44)
        assert found["joined_clip_videos"] == 2
        # Only video 0 has a whole ranking: shots 4 and 1 on top, frame 1 lies in shot 1.
        assert [found[f"joined_saliency{form}"] for form in ("", "_chance", "_videos")] == [
            1,
            0.5,
            1,
        ]
        # Clips 2 and 1 of four; frame 1 lies in clip 1.
        assert [found[f"joined_grounding{f}"] for f in ("", "_chance", "_videos")] == [1, 0.5, 1]

    def test_some_tasks_are_not_joined(self) -> None:
        again = saved.rescore_saved(runs("haven_v2v", "haven_saliency"), None)
        found = again.numbers["haven"]
        assert found.keys() == {
            "joined_saliency",
            "joined_saliency_chance",
            "joined_saliency_videos",
        }
        alone = saved.rescore_saved(runs("haven_v2v", "haven_saliency_text"), None)
        assert alone.numbers.keys() == {"haven_v2v", "haven_saliency_text"}

    def test_two_models(self) -> None:
        tasks = ("haven_v2v", "haven_saliency")
        one, other = runs(*tasks, model="one (a)"), runs(*tasks, model="two (b)")
        for sample in other[1].samples:  # the second model ranks the other half on top
            sample[FIRST]["reply"] = "Shot 3 > Shot 2 > Shot 1 > Shot 4"
        again = saved.rescore_saved([*one, *other], None)
        names = {
            f"{task} {model}" for task in (*tasks, "haven") for model in ("one (a)", "two (b)")
        }
        assert again.numbers.keys() == names
        assert again.numbers["haven one (a)"]["joined_saliency"] == 1
        # Frame 1 lies in shot 1, frames 5 and 7 in shots 2 and 3.
        assert again.numbers["haven two (b)"]["joined_saliency"] == 0.5
        assert again.sidecar.keys() == names - {"haven one (a)", "haven two (b)"}


class TestBad:
    """One line that names the file and the item."""

    def refused(self, run: rescore.Run) -> str:
        with pytest.raises(DataError) as error:
            saved.rescore_saved([run], None)
        assert "\n" not in str(error.value)
        assert str(error.value).startswith(str(run.file))
        return str(error.value)

    def test_no_task_of_ours(self) -> None:
        (run,) = runs("haven_v2t")
        said = self.refused(dataclasses.replace(run, task="haven_v2x"))
        assert said.endswith("haven_v2x is no task of HAVEN")

    @pytest.mark.parametrize(
        "name",
        [
            "id",
            "source",
            "video",
            "kind",
            "data",
            "record",
            "status",
            "text",
            "with_document",
            "keyframes",
            "shots",
            "importance",
            "document",
            "summary",
            "summary_shots",
            "units",
            "asked",
            "budget",
            "n_sentences",
            "n_frames",
        ],
    )
    @pytest.mark.parametrize("value", [None, {}])
    def test_a_field_is_missing_or_of_another_kind(self, name: str, value: Any) -> None:
        (run,) = runs("haven_v2t")
        if value is None:
            del run.samples[1][FIRST][name]
        else:
            run.samples[1][FIRST][name] = value
        said = self.refused(run)
        assert ": line 2, " in said
        assert f"`{name}`; take its line out or run the task again" in said

    @pytest.mark.parametrize("other", ["haven_v2v", "haven_temporal_doc", "haven_v2t_text"])
    def test_items_of_another_task(self, other: str) -> None:
        (run,) = runs(other)
        said = self.refused(dataclasses.replace(run, task="haven_v2t"))
        assert f"line 1, tvsum/video_0 is an item of {other}; take its line out" in said

    @pytest.mark.parametrize(
        ("task", "name", "value"),
        [
            ("haven_temporal", "units", ["a", 1]),
            ("haven_saliency", "importance", [0.5]),
            ("haven_grounding", "asked", [9]),
            ("haven_v2v", "keyframes", []),
            ("haven_v2t", "summary", [3]),
        ],
    )
    def test_lists_that_do_not_fit(self, task: str, name: str, value: Any) -> None:
        (run,) = runs(task)
        run.samples[0][FIRST][name] = value
        assert "tvsum/video_0 cannot be scored (" in self.refused(run)

    @pytest.mark.parametrize("item", [None, {"id": "a"}, "x"])
    def test_a_foreign_sample(self, item: Any) -> None:
        (run,) = runs("haven_v2t")
        run.samples[2][FIRST] = item
        assert "line 3" in self.refused(run)

    def test_one_item_twice(self) -> None:
        (run,) = runs("haven_v2t")
        run.samples.append(run.samples[0])
        assert "tvsum/video_0 occurs twice" in self.refused(run)

    def test_a_damaged_verdict(self) -> None:
        (run,) = runs("haven_v2t")
        run.samples[0][FIRST]["geval"] = {"verdict": {"score": "x"}}
        assert "tvsum/video_0: the saved verdict is none" in self.refused(run)

    def test_two_runs_of_a_task_and_model(self) -> None:
        with pytest.raises(DataError, match="a second haven_v2v run of m"):
            saved.rescore_saved(runs("haven_v2v") + runs("haven_v2v"), None)


def test_rescored_items_are_the_runs() -> None:
    """Not the numbers alone: each item under each metric."""
    for task in TASKS:
        (run,) = runs(task)
        items = saved._items(run)
        again, _ = saved._again(run, items, saved.usable(saved.judging.config), missing_only=False)
        assert len(again) == 3
        by_id = {sample[FIRST]["id"]: sample for sample in run.samples}
        for one in again:
            sample = by_id[one[FIRST]["id"]]
            assert json.loads(json.dumps(one)) == {n: v for n, v in sample.items() if n != "doc_id"}
