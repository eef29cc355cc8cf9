"""MAIA's numbers on small hand-made items whose values can be checked by eye."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from lmms_eval_tasks.maia import scores
from lmms_eval_tasks.maia.categories import CATEGORIES, SLUGS
from lmms_eval_tasks.utils import aggregate


def pair(
    question: str, index: int, right: int = 1, status: str = "ok", **more: Any
) -> dict[str, Any]:
    return {
        "id": f"{question}/{index}",
        "question_id": question,
        "video": question.partition("/")[0],
        "category": "causal",
        "status": status,
        "right": right,
        **more,
    }


def pool(question: str, rights: str, **more: Any) -> list[dict[str, Any]]:
    """A pool from a string: 1 right, 0 wrong, u unparsed, e empty, m the host's request failed."""
    status = {"u": "unparsed", "e": "empty", "m": "model_error"}
    return [
        pair(question, index, int(mark == "1"), status.get(mark, "ok"), **more)
        for index, mark in enumerate(rights)
    ]


def answer(question: str, right: int | None = 1, status: str = "ok", **more: Any) -> dict[str, Any]:
    return {**pair(question, 0, status=status), "right": right, "id": question, **more}


class TestThreeForms:
    """Plain counts failures as wrong, valid leaves them out, failed is the count."""

    def test_unparsed_leaves_valid(self) -> None:
        items = pool("v/q", "11u0")
        assert scores.VSV["pair_acc"](items) == 0.5
        assert scores.VSV["pair_acc_valid"](items) == 2 / 3
        assert scores.VSV["pair_acc_failed"](items) == 1

    def test_abstaining_does_not_pay(self) -> None:
        """An empty answer, a refusal or a cut-off one is 0 in both, and counted."""
        for status in ("empty", "refused", "truncated"):
            items = [*pool("v/q", "11"), pair("v/q", 2, 0, status)]
            assert scores.VSV["pair_acc"](items) == scores.VSV["pair_acc_valid"](items) == 2 / 3
            assert scores.VSV["pair_acc_failed"](items) == 1

    def test_judge_failures_leave_valid(self) -> None:
        items = [answer("a"), answer("b", None, "judge_api_error"), answer("c", 0)]
        assert scores.OEVQA["judge_acc"](items) == 1 / 3
        assert scores.OEVQA["judge_acc_valid"](items) == 1 / 2
        assert scores.OEVQA["judge_acc_failed"](items) == 1

    def test_not_judged_is_not_zero(self) -> None:
        items = [answer("a", None, "unjudged"), answer("b", 0, "empty")]
        assert scores.OEVQA["judge_acc"](items) is None
        assert scores.OEVQA["judge_acc_valid"](items) is None

    def test_nothing_is_not_zero(self) -> None:
        for name in ("pair_acc", "pair_acc_valid", "pool_acc", "pool_acc_avg"):
            assert scores.VSV[name]([]) is None


class TestPools:
    """8 of 8, and nothing less."""

    @pytest.mark.parametrize(
        ("rights", "plain", "valid", "failed"),
        [
            ("11111111", 1.0, 1.0, 0),
            ("11111110", 0.0, 0.0, 0),
            ("1111111", 0.0, None, 1),  # incomplete: --limit
            ("1111111u", 0.0, None, 1),  # a pair could not be read
            ("1111111m", 0.0, None, 1),  # a request failed
            ("1111111e", 0.0, 0.0, 0),  # the candidate said nothing
        ],
    )
    def test_one_pool(self, rights: str, plain: float, valid: float | None, failed: int) -> None:
        items = pool("v/q", rights)
        assert scores.VSV["pool_acc"](items) == plain
        assert scores.VSV["pool_acc_valid"](items) == valid
        assert scores.VSV["pool_acc_failed"](items) == failed

    def test_a_repeated_item_does_not_complete_a_pool(self) -> None:
        items = [*pool("v/q", "1111111"), pair("v/q", 3)]
        assert scores.VSV["pool_acc"](items) == 0.0

    def test_chance(self) -> None:
        """A coin solves 0.5^8 of the pools: 0.39 %."""
        outcomes = list(itertools.product("01", repeat=8))
        items = [i for n, o in enumerate(outcomes) for i in pool(f"v/{n}", "".join(o))]
        assert scores.VSV["pair_acc"](items) == 0.5
        assert scores.VSV["pool_acc"](items) == 0.5**8

    def test_average_weighs_categories_and_not_questions(self) -> None:
        items = pool("v/a", "1" * 8) + pool("v/b", "1" * 8)
        items += pool("v/c", "0" * 8, category="planning")
        assert scores.VSV["pool_acc"](items) == 2 / 3
        assert scores.VSV["pool_acc_avg"](items) == 1 / 2


class TestAggregateAccuracy:
    """Joined by question, over the questions that both tasks cover (paper, 6)."""

    def carriers(self, reduce: str = "") -> list[Any]:
        pools = [
            *pool("v/both", "1" * 8),
            *pool("v/pool", "1" * 8),
            *pool("v/answer", "1" * 7 + "0"),
            *pool("v/neither", "0" * 8, category="planning"),
            *pool("v/vsv_only", "1" * 8),
        ]
        answers = [
            answer("v/both"),
            answer("v/pool", 0),
            answer("v/answer"),
            answer("v/neither", None, "judge_api_error", category="planning"),
            answer("v/oevqa_only"),
        ]
        name = f"agg_acc{reduce}"
        return [scores.VSV[name](pools), scores.OEVQA[name](answers)]

    @pytest.mark.parametrize(
        ("reduce", "expected"),
        [
            ("", 1 / 4),
            ("_valid", 1 / 3),
            ("_failed", 1),
            ("_avg", (1 / 3 + 0) / 2),
            ("_n_joined", 4),
            ("_n_both", 1),
            ("_n_pool_only", 1),
            ("_n_answer_only", 1),
            ("_n_neither", 1),
        ],
    )
    def test_reductions(self, reduce: str, expected: float) -> None:
        first, second = self.carriers(reduce)
        assert scores.join([first, second]) == expected
        assert scores.join([second, first], [5, 5], False) == expected

    def test_a_task_alone_has_no_number(self) -> None:
        first, second = self.carriers()
        assert math.isnan(first)
        assert math.isnan(second)
        assert scores.join([first]) is None
        assert scores.join([first, 0.5]) is None
        assert scores.join([]) is None

    def test_without_a_judge_nothing_is_joined(self) -> None:
        vsv = scores.VSV["agg_acc"](pool("v/q", "1" * 8))
        answers = [answer("v/q", None, "unjudged"), answer("v/r", 0, "empty")]
        oevqa = scores.OEVQA["agg_acc"](answers)
        assert scores.join([vsv, oevqa]) is None

    def test_every_reduction_is_a_metric_of_both_tasks(self) -> None:
        names = {f"agg_acc{part}" for part in scores.JOINED} | {f"agg_acc_{s}" for s in SLUGS}
        assert {n for n in scores.VSV if n.startswith("agg_acc")} == names
        assert {n for n in scores.OEVQA if n.startswith("agg_acc")} == names
        assert not {n for n in scores.UNIMODAL if n.startswith("agg_acc")}


def test_of_category() -> None:
    assert scores.of_category("pool_acc", "causal")
    assert scores.of_category("pool_acc_failed", "causal")
    assert scores.of_category("pool_acc_causal", "causal")
    assert not scores.of_category("pool_acc_planning", "causal")
    assert not scores.of_category("pool_acc_spatial_partial", "implicit_partial")
    for category in CATEGORIES:
        own = [name for name in scores.VSV if scores.of_category(name, category.slug)]
        assert len(own) == len(scores.VSV) - 3 * 11


def test_sums_do_not_depend_on_the_order() -> None:
    rng = random.Random(7)
    items = [answer(str(n), value=rng.random()) for n in range(999)]
    expected = scores.OEVQA["rouge_l"](items)
    for seed in range(5):
        again = random.Random(seed).sample(items, len(items))
        assert scores.OEVQA["rouge_l"](again) == expected


def test_a_broken_aggregation_is_reported_and_not_raised(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def wrong(_items: Any) -> float:
        raise ZeroDivisionError

    assert aggregate.never_raises(wrong)([]) is None
    said = capsys.readouterr().err
    assert "wrong failed and is reported as N/A" in said
    for entry in scores.VSV_METRICS:
        assert entry["aggregation"]([None]) is None
        assert f"{entry['metric']} failed and is reported as N/A" in capsys.readouterr().err
    assert "ZeroDivisionError" in said
