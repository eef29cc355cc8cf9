"""MAIA's numbers on small hand-made items whose values can be checked by eye."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lmms_eval_tasks.maia import metrics, tasks
from lmms_eval_tasks.maia.tasks import BENCHMARK
from lmms_eval_tasks.report import aggregation
from lmms_eval_tasks.runs import scoring
from lmms_eval_tasks.utils.metrics import text_metrics
from tests.checks import table


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


def of_pairs(items: list[dict[str, Any]]) -> dict[str, Any]:
    return aggregation.numbers(BENCHMARK.tasks["maia_vsv"], items)


def of_answers(items: list[dict[str, Any]]) -> dict[str, Any]:
    return aggregation.numbers(BENCHMARK.tasks["maia_oevqa"], items)


def test_three_forms() -> None:
    """Plain counts failures as wrong, valid leaves them out, _failed counts those."""
    found = of_pairs([*pool("v/q", "11u"), pair("v/q", 3, 0, "refused")])
    assert (found["pair_acc"], found["pair_acc_valid"]) == (0.5, 2 / 3)  # abstaining does not pay
    assert (found["pair_acc_failed"], found["failed"]) == (1, 2)
    found = of_answers([answer("a", None, "unjudged"), answer("b", 0, "empty")])
    assert found["judge_acc"] is found["judge_acc_valid"] is None  # which is not zero
    found = of_answers([answer("a"), answer("b", None, "judge_api_error"), answer("c", 0)])
    assert (found["judge_acc"], found["judge_acc_valid"]) == (1 / 3, 1 / 2)
    assert found["judge_acc_failed"] == 1


@table(
    "reply, right, authors",
    [
        ("A", 1, 1),
        ("a", 1, 0),  # theirs knows capitals only
        ("Direi la seconda: B.", 0, 0),
        ("A destra c'è un gatto, quindi B", 0, 1),  # the preposition
        ("Option_A", 0, 0),
        ("[LMMS_EVAL_REQUEST_FAILED] A server error", 0, 0),
        ("", 0, 0),
    ],
)
def test_letters_by_the_authors_rule_stand_beside(reply: str, right: int, authors: int) -> None:
    kept = {"id": "v/Sentiment_A/0", "options": ["vero", "falso"], "answer": "A"}
    item = {**kept, "category": "sentiment", **tasks.vsv(kept, reply)}
    found = of_pairs([item])
    assert (found["pair_acc"], found["pair_acc_authors"]) == (right, authors)


@table(
    "rights, plain, valid, failed",
    [
        ("11111111", 1.0, 1.0, 0),
        ("11111110", 0.0, 0.0, 0),
        ("1111111", 0.0, None, 1),  # incomplete: --limit
        ("1111111u", 0.0, None, 1),  # a pair could not be read
        ("1111111m", 0.0, None, 1),  # a request failed
        ("1111111e", 0.0, 0.0, 0),  # the candidate said nothing
    ],
)
def test_one_pool(rights: str, plain: float, valid: float | None, failed: int) -> None:
    """8 of 8, and nothing less; from whole items and from those of the host's table."""
    items = pool("v/q", rights)
    found = of_pairs(items)
    assert found["pool_acc"] == plain
    assert found["pool_acc_valid"] == valid
    assert found["pool_acc_failed"] == failed
    task = BENCHMARK.tasks["maia_vsv"]
    short = [
        scoring.to_host_rows(task, BENCHMARK.joint_metrics, item)["pool_acc"] for item in items
    ]
    (shown,) = (one for one in task.metrics if one.name == "pool_acc")
    assert shown.compute(short) == plain


def test_pools() -> None:
    assert of_pairs([*pool("v/q", "1111111"), pair("v/q", 3)])["pool_acc"] == 0.0  # one twice
    items = pool("v/a", "1" * 8) + pool("v/b", "1" * 8)
    items += pool("v/c", "0" * 8, category="planning")
    found = of_pairs(items)
    assert (found["pool_acc"], found["pool_acc_avg"]) == (2 / 3, 1 / 2)  # categories weigh alike
    assert (found["pool_acc_causal"], found["pool_acc_planning"]) == (1.0, 0.0)
    assert "pool_acc_sentiment" not in found


# From the card of evaluate's metric; and where its lengths, tokens and lack of smoothing show.
KENOBI = ["hello there general kenobi", "foo bar foobar"]


@table(
    "candidates, references, bleu",
    [
        (KENOBI, [["hello there general kenobi", "hello there!"], ["foo bar foobar"]], 1.0),
        (["a b c d"], [["a b c d e"]], math.exp(1 - 5 / 4)),
        (["a b c d"], [["a b c d e", "x"]], 1.0),  # the shortest, not the closest
        (["a b c d."], [["a b c d ."]], 1.0),
        (["a b c"], [["a b c"]], 0.0),  # no four words in a row
        (["A b c d"], [["a b c d"]], 0.0),  # case counts
        ([""], [["a"]], 0.0),
    ],
)
def test_bleu_as_in_the_authors_code(candidates: Any, references: Any, bleu: float) -> None:
    assert text_metrics.bleu_13a(candidates, references) == pytest.approx(bleu)


@table(
    "candidate, references, rouge",
    [
        ("il gatto dorme", ["un cane", "Il gatto!"], 0.8),
        ("è là", ["l"], 1.0),  # its own tokenizer drops accented letters
        ("", ["a"], 0.0),
    ],
)
def test_rouge_as_in_the_authors_code(candidate: str, references: Any, rouge: float) -> None:
    assert text_metrics.rouge_1(candidate, references) == pytest.approx(rouge)


def test_aggregate_accuracy() -> None:
    """Joined by question, over the questions that both tasks cover (paper, 6)."""
    pairs = [
        *pool("v/both", "1" * 8),
        *pool("v/pool", "1" * 8),
        *pool("v/answer", "1" * 7 + "0"),
        *pool("v/neither", "0" * 8, category="planning"),
        *pool("v/vsv_only", "1" * 8),
    ]
    answers = [
        answer("v/both"),
        answer("v/pool", 2 / 3),  # of a panel's mean
        answer("v/answer"),
        answer("v/neither", None, "judge_api_error", category="planning"),
        answer("v/oevqa_only"),
    ]
    (join,) = (one for one in BENCHMARK.joint_metrics if one.group == "maia")
    sides = {"maia_vsv": pairs, "maia_oevqa": answers}
    expected = {
        "agg_acc": 1 / 4,
        "agg_acc_valid": 1 / 3,
        "agg_acc_failed": 1,
        "agg_acc_avg": (1 / 3 + 0) / 2,
        "agg_acc_n_joined": 4,
        **{f"agg_acc_n_{cell}": 1 for cell in metrics.CELLS.values()},
        "agg_acc_causal": 1 / 3,
        "agg_acc_planning": 0.0,
    }
    assert aggregation.joint_numbers(join, sides) == expected
    assert aggregation.joint_numbers(join, {"maia_vsv": pairs}) == {}
    waiting = [answer("v/both", None, "unjudged"), answer("v/pool", 0, "empty")]
    found = aggregation.joint_numbers(join, {"maia_vsv": pairs, "maia_oevqa": waiting})
    assert found["agg_acc"] is None
