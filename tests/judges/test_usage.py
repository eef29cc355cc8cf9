"""Sums by task and judge: exact from many threads and ranks, printed in one line, and shown while
they grow.
"""

import dataclasses
import json
import random

import pytest

from lmms_eval_tasks.judges.providers.exchange import JudgeReply
from lmms_eval_tasks.judges.report import Progress, UsageCounter, UsageRow, task, usage_lines
from lmms_eval_tasks.judges.verdict import Status, Verdict
from tests.checks import table

OK = Verdict(1.0, Status.OK)
FAILED = Verdict(None, Status.PARSE_FAILURE, "no JSON", raw="x" * 1000)


def reply(model="gpt-4o-2024-08-06", prompt=1000, completion=50):
    return JudgeReply("text", model=model, prompt_tokens=prompt, completion_tokens=completion)


@task("maia_oevqa")
def test_sums_and_their_line():
    """30 replies paid, 90 from the cache, 2 of 120 verdicts unreadable, one repaired."""
    usage = UsageCounter()
    for number in range(120):
        usage.reply("gpt-4o", reply(), paid=number < 30, cost=0.003)
        usage.verdict("gpt-4o", FAILED if number < 2 else OK)
    for _ in range(4):
        usage.retry("gpt-4o")
    usage.verdict("gpt-4o", Verdict(1.0, "ok", repaired=True))
    row = UsageRow(
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
        cost=0.36,
        paid_cost=0.09,
        models={"gpt-4o-2024-08-06": 120},
    )
    assert usage.rows() == [row]
    assert usage_lines([row], "prices of 2026-11-21") == [
        "judge gpt-4o, maia_oevqa: 121 verdicts (119 ok, 2 parse_failure), 30 calls paid, "
        "90 from the cache, 4 retries, 1 repair, 120,000 + 6,000 tokens, "
        "$0.36 ($0.0900 paid in this run; prices of 2026-11-21); last parse_failure: no JSON"
    ]


@table("replies, text")
def test_an_unknown_price_is_never_0(replies, text):
    usage = UsageCounter()
    for paid, cost in replies:
        usage.reply("j", reply(prompt=100, completion=5), paid=paid, cost=cost)
    (line,) = usage_lines(usage.rows(), "P")
    assert line.endswith(text)


def test_tokens_that_are_not_counted_and_those_of_the_endpoints_own_cache_are_told():
    usage = UsageCounter()
    usage.reply("j", reply(prompt=None), paid=True, cost=None)
    usage.reply("j", dataclasses.replace(reply(), cached_tokens=512), paid=True, cost=None)
    (row,) = usage.rows()
    assert (row.prompt_tokens, row.completion_tokens, row.unknown_tokens) == (1000, 100, 1)
    told = "1,000 + 100 tokens (512 of the prompts' from the endpoint's own cache; 1 replies "
    assert f"{told}without a token count), unknown price" in usage_lines([row])[0]


def test_a_judge_that_changed_and_the_sum_of_all_are_told():
    usage = UsageCounter()
    for name, judge, model in (("a", "j", "j-1"), ("b", "j", "j-2"), ("b", "o3", "o3-a")):
        with task(name):
            usage.reply(judge, reply(model), paid=True, cost=0.1)
    first, second, third, total = usage_lines(usage.rows())
    assert [one[-7:] for one in (first, second)] == ["j-1 (1)", "j-2 (1)"]
    assert "answered" not in third
    assert total.startswith("all judges: ")
    assert total.endswith("3,000 + 150 tokens, $0.30")


def test_ranks_are_merged_and_order_does_not_matter():
    costs = [random.Random(1).randrange(1, 9999) * 7.5e-8 for _ in range(2000)]
    whole, ranks = UsageCounter(), [UsageCounter(), UsageCounter(), UsageCounter()]
    for number, cost in enumerate(costs):
        whole.reply("j", reply(f"m{number % 2}"), paid=True, cost=cost)
        whole.verdict("j", OK)
    for number, cost in reversed(list(enumerate(costs))):
        ranks[number % 3].reply("j", reply(f"m{number % 2}"), paid=True, cost=cost)
        ranks[number % 3].verdict("j", OK)
    for rank in (2, 1):
        ranks[0].merge(json.loads(json.dumps(ranks[rank].as_dicts())))
    assert ranks[0].rows() == whole.rows()
    assert whole.total().cost == pytest.approx(sum(costs))
    other = UsageCounter()
    other.merge([{"judge": "j", "verdicts": 2, "cost": None, "dollars": 3}])  # of another version
    assert other.rows() == [UsageRow("", "j", verdicts=2, cost=None)]


def test_the_line_tells_verdicts_failures_and_cost(capsys):
    usage = UsageCounter()
    bar = Progress(usage)
    bar.expect(300)
    bar.expect(100)
    for number in range(40):
        usage.reply("j", JudgeReply("x", prompt_tokens=1), paid=number > 9, cost=0.04)
        bar.count(failed=number < 3)
    bar.close()
    bar.close()  # nothing new to say
    said = capsys.readouterr().err
    assert said.count("judging: ") == 1
    assert "40 of 400 verdicts" in said
    assert "3 without a score, 10 replies from the cache, $1.60" in said
    silent = Progress(usage, enabled=False)
    silent.count(failed=0)
    silent.close()
    assert (silent.n_done, capsys.readouterr().err) == (1, "")
