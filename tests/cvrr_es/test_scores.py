"""Accuracy and score of a dimension in their forms, the means over dimensions, the host's list."""

from __future__ import annotations

import copy
import math
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmms_eval_tasks import cvrr_es, settings
from lmms_eval_tasks.cvrr_es import data, metrics
from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS, JUDGE_TASKS
from lmms_eval_tasks.utils.aggregate import Carrier
from tests.cvrr_es.scored import FAILED, PART, REFUSED, TIME, Made, Stated, answered, shown, values


def several(*replies: str, dimension: str = PART) -> list[Made]:
    return [answered(reply, place, dimension) for place, reply in enumerate(replies, 1)]


class TestDimension:
    def test_forms(self, stated: Stated) -> None:
        """Two right, one wrong, an empty answer, a refusal, a failed verdict, a failed request."""
        replies = ("right 5", "right 4.5", "wrong 1", "", REFUSED, "hm", FAILED)
        found = values(several(*replies))
        assert found["acc"] == pytest.approx(2 / 7)
        assert found["acc_valid"] == pytest.approx(2 / 5)
        assert found["acc_skip_empty"] == pytest.approx(2 / 4)
        assert (found["acc_failed"], found["empty"]) == (4, 1)
        assert found["score_valid"] == pytest.approx((5 + 4.5 + 1) / 5)
        assert found["score_skip_empty"] == pytest.approx((5 + 4.5 + 1) / 4)
        assert (found["score_failed"], found["score_coverage"]) == (2, pytest.approx(5 / 7))

    def test_only_empty_answers(self, stated: Stated) -> None:
        """Abstaining does not pay; as the published scripts count there is no number."""
        found = values(several("", " "))
        assert (found["acc"], found["acc_valid"], found["acc_skip_empty"]) == (0.0, 0.0, None)
        assert (found["empty"], found["score_valid"], found["score_skip_empty"]) == (2, 0.0, None)

    def test_waiting_for_the_judge(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(settings.JUDGE, "none")
        found = values(several("A dog.", "", "A cat."))
        for name in ("acc", "acc_valid", "acc_skip_empty", "score_valid", "score_skip_empty"):
            assert found[name] is None, name
        assert (found["empty"], found["acc_failed"], found["score_failed"]) == (1, 3, 3)

    def test_the_judge_failed_everywhere(self, stated: Stated) -> None:
        found = values(several("hm", "hm"))
        assert (found["acc"], found["acc_valid"], found["score_valid"]) == (0.0, None, None)


class TestMeans:
    """Each dimension weighs the same, whatever its size."""

    def test_join(self, stated: Stated) -> None:
        small = values(several("right 5"))
        large = values(several("right 2", "wrong 0", "wrong 1", dimension=TIME))
        carriers = [small["mean_acc"], large["mean_acc"]]
        assert all(isinstance(one, Carrier) and math.isnan(one) for one in carriers)
        assert metrics.join(carriers) == pytest.approx((1 + 1 / 3) / 2)
        assert metrics.join(carriers, [1, 3], False) == pytest.approx(2 / 3)
        rated = [one["mean_score_valid"] for one in (small, large)]
        assert metrics.join(rated) == pytest.approx((5 + 1) / 2)

    def test_a_dimension_without_a_number(self, stated: Stated) -> None:
        parts = [values(several("right 5")), values(several("hm", dimension=TIME))]
        assert metrics.join([one["mean_acc_valid"] for one in parts]) is None
        assert metrics.join([one["mean_acc"] for one in parts]) == 0.5
        assert metrics.join([]) is None
        assert metrics.join([0.5]) is None  # a number of another task
        assert metrics.join([parts[0]["mean_acc"], None]) is None  # broke, and was reported

    def test_shown_alone_it_is_no_number(self, stated: Stated) -> None:
        found = values(several("right 5"))
        assert {name for name in found if name not in shown(found)} == {
            f"mean_{name}" for name in metrics.MEANS
        }


class TestHostsList:
    def test_order_and_copies_do_not_matter(self, stated: Stated) -> None:
        some = several("right 4.5", "wrong 0.1", "", "hm", "right 0.7")
        mixed = pickle.loads(pickle.dumps(copy.deepcopy(some)))
        random.Random(1).shuffle(mixed)
        assert shown(values(mixed)) == shown(values(some))

    def test_items_of_further_metrics_are_small(self, stated: Stated) -> None:
        made = answered("right 5")
        assert made.keys() == metrics.SCORES.keys()
        light = {"id", "video", "dimension", "status", "right", "dimensions"}
        assert made["acc_valid"].keys() == light < made["acc"].keys()

    def test_an_aggregation_never_raises(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert [one["metric"] for one in metrics.METRICS] == list(metrics.SCORES)
        for one in metrics.METRICS:
            assert one["aggregation"]([None]) is None
            line = f"{one['metric']} failed and is reported as N/A"
            assert line in capsys.readouterr().err
        told = {one["metric"]: one["higher_is_better"] for one in metrics.METRICS}
        worse = {name for name, better in told.items() if better is False}
        assert worse == {"acc_failed", "score_failed", "empty"}


class Loader(yaml.SafeLoader):
    """Names of functions as they are."""


Loader.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))
FOLDER = Path(cvrr_es.__file__).parent


def yaml_of(name: str) -> Any:
    return yaml.load((FOLDER / name).read_text(encoding="utf-8"), Loader)


class TestYamls:
    @pytest.mark.parametrize("name", DIMENSIONS)
    def test_a_dimension(self, name: str) -> None:
        assert yaml_of(f"cvrr_es_{name}.yaml") == {
            "include": "_answer_template_yaml",
            "task": f"cvrr_es_{name}",
            "process_docs": f"lmms_eval_tasks.cvrr_es.data.{name}",
        }
        assert getattr(data, name) is data.process_docs(f"cvrr_es_{name}")

    @pytest.mark.parametrize("name", JUDGE_TASKS)
    def test_a_judge_task(self, name: str) -> None:
        own = name.removeprefix("cvrr_judge").removeprefix("_") or "judge"
        found = yaml_of(f"{name}.yaml")
        assert found["process_docs"] == f"lmms_eval_tasks.cvrr_es.data.{own}"
        assert getattr(data, own) is data.process_docs(name)
        assert (found["include"], found["task"]) == ("_judge_template_yaml", name)

    def test_the_group(self) -> None:
        group = yaml_of("cvrr_es.yaml")
        assert group["task"] == [f"cvrr_es_{name}" for name in DIMENSIONS]
        (metric,) = group["aggregate_metric_list"]
        assert metric["metric"] == metrics.PREFIX
        for name in (*metrics.SCORES, *metrics.SCORES):
            assert (metrics.PREFIX in name) is (name.removeprefix("mean_") in metrics.MEANS) or (
                name in metrics.MEANS
            )

    def test_templates(self) -> None:
        answer, judge = yaml_of("_answer_template_yaml"), yaml_of("_judge_template_yaml")
        assert (answer["metadata"]["judged"], judge["metadata"]["judged"]) == (True, False)
        assert answer["metric_list"] == "lmms_eval_tasks.cvrr_es.scores.METRICS"
        assert judge["metric_list"] == "lmms_eval_tasks.cvrr_es.rating_scores.METRICS"
        assert "reference" not in judge["doc_to_target"]
