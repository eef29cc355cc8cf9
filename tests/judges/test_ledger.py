"""Sums by task and judge: exact from many threads and ranks, and printed in one line."""

import dataclasses
import json
import random

import pytest

from lmms_eval_tasks.judges.report import Ledger, Row, from_dicts, lines, task
from lmms_eval_tasks.judges.verdict import Reply, Status, Verdict
from tests.checks import table

OK = Verdict(1.0, Status.OK)
FAILED = Verdict(None, Status.PARSE_FAILURE, "no JSON", raw="x" * 1000)


def reply(model="gpt-4o-2024-08-06", prompt=1000, completion=50):
    return Reply("text", model=model, prompt_tokens=prompt, completion_tokens=completion)


@task("maia_oevqa")
def filled() -> Ledger:
    """30 replies paid, 90 from the cache, 2 of 120 verdicts unreadable, one repaired."""
    ledger = Ledger()
    for number in range(120):
        ledger.reply("gpt-4o", reply(), paid=number < 30, cost=0.003)
        ledger.verdict("gpt-4o", FAILED if number < 2 else OK)
    for _ in range(4):
        ledger.retry("gpt-4o")
    ledger.verdict("gpt-4o", Verdict(1.0, "ok", repaired=True))
    return ledger


FILLED = Row(
    "maia_oevqa",
    "gpt-4o",
    verdicts=121,
    by_status={"parse_failure": 2, "ok": 119},
    reasons={"parse_failure": "no JSON"},
    repaired=1,
    paid_calls=30,
    cached_calls=90,
    retries=4,
    prompt_tokens=120_000,
    completion_tokens=6_000,
    paid_prompt_tokens=30_000,
    paid_completion_tokens=1_500,
    cost=0.36,
    paid_cost=0.09,
    models={"gpt-4o-2024-08-06": 120},
)


def test_sums_and_their_line():
    ledger = filled()
    before = ledger.rows()
    assert before == [FILLED]
    assert lines(before, "prices of 2026-11-21") == [
        "judge gpt-4o, maia_oevqa: 121 verdicts (119 ok, 2 parse_failure), 30 calls paid, "
        "90 from the cache, 4 retries, 1 repair, 120,000 + 6,000 tokens, "
        "$0.36 ($0.0900 paid in this run; prices of 2026-11-21); last parse_failure: no JSON"
    ]


@table("replies, text")
def test_an_unknown_price_is_never_0(replies, text):
    ledger = Ledger()
    for paid, cost in replies:
        ledger.reply("j", reply(prompt=100, completion=5), paid=paid, cost=cost)
    assert text in lines(ledger.rows(), "P")[0]


def test_tokens_that_are_not_counted_and_those_of_the_endpoints_own_cache_are_told():
    ledger, rank = Ledger(), Ledger()
    ledger.reply("j", reply(prompt=None), paid=True, cost=None)
    ledger.reply("j", reply(), paid=True, cost=None)
    (row,), (plain,) = ledger.rows(), ledger.as_dicts()
    assert (row.prompt_tokens, row.completion_tokens, row.unknown_tokens) == (1000, 100, 1)
    assert (plain["cost"], plain["paid_cost"]) == (None, None)
    assert from_dicts([plain]) == [row]
    assert "1,000 + 100 tokens (1 replies without a count)" in lines([row])[0]
    ledger = Ledger()
    for number, one in enumerate((ledger, ledger, rank)):
        cached = dataclasses.replace(reply(), prompt_tokens=1500, cached_tokens=1024 * number)
        one.reply("j", cached, paid=True, cost=None)
    ledger.merge(json.loads(json.dumps(rank.as_dicts())))
    (row,) = ledger.rows()
    assert (row.prompt_tokens, row.as_dict()["prefix_tokens"]) == (4500, 3072)
    (line,) = lines(ledger.rows())
    assert "tokens (3,072 of the prompts' from the endpoint's own cache)" in line
    old = {name: value for name, value in row.as_dict().items() if name != "prefix_tokens"}
    assert from_dicts([old])[0].prefix_tokens == 0  # saved by an older version


def test_a_judge_that_changed_is_told_in_all_its_lines():
    ledger = Ledger()
    for name, judge, model in (
        ("a", "gpt-4o", "gpt-4o-2024-08-06"),
        ("b", "gpt-4o", "gpt-4o-2024-11-20"),
        ("b", "gpt-4o", "gpt-4o-2024-08-06"),
        ("b", "o3", "o3-2025-04-16"),
    ):
        with task(name):
            ledger.reply(judge, reply(model), paid=True, cost=0.1)
    first, second, third, total = lines(ledger.rows())
    assert first.endswith("answered by gpt-4o-2024-08-06 (1)")
    assert second.endswith("answered by gpt-4o-2024-08-06 (1), gpt-4o-2024-11-20 (1)")
    assert "answered" not in third
    assert total.startswith("all judges: ")
    assert total.endswith("4,000 + 200 tokens, $0.40")


def test_ranks_are_merged_and_order_does_not_matter():
    costs = [random.Random(1).randrange(1, 9999) * 7.5e-8 for _ in range(2000)]
    whole, ranks = Ledger(), [Ledger(), Ledger(), Ledger()]
    for number, cost in enumerate(costs):
        whole.reply("j", reply(f"m{number % 2}"), paid=True, cost=cost)
        whole.verdict("j", OK)
    for number, cost in reversed(list(enumerate(costs))):
        ranks[number % 3].reply("j", reply(f"m{number % 2}"), paid=True, cost=cost)
        ranks[number % 3].verdict("j", OK)
    for rank in (2, 1):
        ranks[0].merge(json.loads(json.dumps(ranks[rank].as_dicts())))
    assert ranks[0].rows() == whole.rows()
    assert from_dicts(whole.as_dicts()) == whole.rows()
    assert whole.total().cost == pytest.approx(sum(costs))
    with pytest.raises(TypeError):
        whole.merge([{"task": "t", "dollars": 3}])
