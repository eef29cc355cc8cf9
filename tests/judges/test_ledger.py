"""Sums by task and judge: exact from many threads and ranks, small, and printed in one line."""

import dataclasses
import json
import os
import random
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from lmms_eval_tasks.judges.exchange import Reply
from lmms_eval_tasks.judges.ledger import (
    Ledger,
    Row,
    current_task,
    dollars,
    from_dicts,
    lines,
    task,
)
from lmms_eval_tasks.judges.verdict import Status, Verdict

OK = Verdict(1.0, Status.OK)
FAILED = Verdict(None, Status.PARSE_FAILURE, "no JSON", raw="x" * 1000)


def reply(model="gpt-4o-2024-08-06", prompt=1000, completion=50):
    return Reply("text", model=model, prompt_tokens=prompt, completion_tokens=completion)


def filled() -> Ledger:
    """30 replies paid, 90 from the cache, 2 of 120 verdicts unreadable, one repaired."""
    ledger = Ledger()
    for number in range(120):
        ledger.reply("maia_oevqa", "gpt-4o", reply(), paid=number < 30, cost=0.003)
        ledger.verdict("maia_oevqa", "gpt-4o", FAILED if number < 2 else OK)
    for _ in range(4):
        ledger.retry("maia_oevqa", "gpt-4o")
    ledger.verdict("maia_oevqa", "gpt-4o", Verdict(1.0, "ok", repaired=True))
    return ledger


def test_sums():
    (row,) = filled().rows()
    assert row == Row(
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


def test_line():
    ledger = filled()
    assert lines(ledger.rows(), "prices of 2026-11-21") == [
        "judge gpt-4o, maia_oevqa: 121 verdicts (119 ok, 2 parse_failure), 30 calls paid, "
        "90 from the cache, 4 retries, 1 repair, 120,000 + 6,000 tokens, "
        "$0.36 ($0.0900 paid in this run; prices of 2026-11-21); last parse_failure: no JSON"
    ]


def test_line_of_a_judge_that_calls_nobody():
    ledger = Ledger()
    ledger.verdict("", "offline", OK)
    assert lines(ledger.rows(), "prices of 2026-11-21") == ["judge offline: 1 verdict (1 ok)"]


def test_nothing_happened():
    assert lines(Ledger().rows()) == []
    assert Ledger().total() == Row()


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([(True, 0.25)], "100 + 5 tokens, $0.25 (P)"),
        ([(True, None)], "100 + 5 tokens, unknown price"),
        ([(True, None), (True, 0.25)], "at least $0.25, 1 reply of unknown price (P)"),
        ([(False, 0.25)], "$0.25 (nothing paid in this run; P)"),
        ([(False, 0.25), (True, None)], "price (an unknown amount paid in this run; P)"),
        (
            [(False, 1.0), (True, None), (True, None), (True, 0.5)],
            "at least $1.50, 2 replies of unknown price (at least $0.50 paid in this run; P)",
        ),
        ([(False, None), (True, 0.0)], "at least $0.00, 1 reply of unknown price ($0.00 paid"),
    ],
)
def test_an_unknown_price_is_never_0(replies, text):
    ledger = Ledger()
    for paid, cost in replies:
        ledger.reply("t", "j", reply(prompt=100, completion=5), paid=paid, cost=cost)
    assert text in lines(ledger.rows(), "P")[0]


def test_an_unknown_price_is_never_0_as_plain_types():
    ledger = Ledger()
    ledger.reply("t", "q", reply(), paid=True, cost=None)
    (row,) = ledger.as_dicts()
    assert (row["cost"], row["paid_cost"]) == (None, None)
    other = Ledger()
    other.merge([row])
    assert other.rows() == ledger.rows()


def test_replies_without_token_counts_are_told():
    ledger = Ledger()
    ledger.reply("t", "j", reply(prompt=None), paid=True, cost=None)
    ledger.reply("t", "j", reply(), paid=True, cost=None)
    (row,) = ledger.rows()
    assert (row.prompt_tokens, row.completion_tokens, row.unknown_tokens) == (1000, 100, 1)
    assert "1,000 + 100 tokens (1 replies without a count)" in lines([row])[0]


def test_a_judge_that_changed_is_told_in_all_its_lines():
    ledger = Ledger()
    ledger.reply("a", "gpt-4o", reply("gpt-4o-2024-08-06"), paid=True, cost=0.1)
    ledger.reply("b", "gpt-4o", reply("gpt-4o-2024-11-20"), paid=True, cost=0.1)
    ledger.reply("b", "gpt-4o", reply("gpt-4o-2024-08-06"), paid=True, cost=0.1)
    ledger.reply("b", "o3", reply("o3-2025-04-16"), paid=True, cost=0.1)
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
        whole.reply("t", "j", reply(f"m{number % 2}"), paid=True, cost=cost)
        whole.verdict("t", "j", OK)
    for number, cost in reversed(list(enumerate(costs))):
        ranks[number % 3].reply("t", "j", reply(f"m{number % 2}"), paid=True, cost=cost)
        ranks[number % 3].verdict("t", "j", OK)
    for rank in (2, 1):
        ranks[0].merge(json.loads(json.dumps(ranks[rank].as_dicts())))
    assert ranks[0].rows() == whole.rows()
    assert from_dicts(whole.as_dicts()) == whole.rows()
    assert whole.total().cost == pytest.approx(sum(costs))
    with pytest.raises(TypeError):
        whole.merge([{"task": "t", "dollars": 3}])


def test_cents_add_up():
    ledger = Ledger()
    for _ in range(30_000):  # as floats 2099.9999999995
        ledger.reply("t", "j", reply(), paid=True, cost=0.07)
    assert (ledger.total().cost, ledger.total().paid_cost) == (2100.0, 2100.0)


def test_tokens_from_the_endpoints_own_cache_are_told():
    ledger, rank = Ledger(), Ledger()
    for number, one in enumerate((ledger, ledger, rank)):
        cached = dataclasses.replace(reply(), prompt_tokens=1500, cached_tokens=1024 * number)
        one.reply("t", "j", cached, paid=True, cost=None)
    ledger.merge(json.loads(json.dumps(rank.as_dicts())))
    (row,) = ledger.rows()
    assert (row.prompt_tokens, row.prefix_tokens) == (4500, 3072)
    assert row.as_dict()["prefix_tokens"] == 3072
    (line,) = lines(ledger.rows())
    assert "tokens (3,072 of the prompts' from the endpoint's own cache)" in line
    old = {name: value for name, value in row.as_dict().items() if name != "prefix_tokens"}
    assert from_dicts([old])[0].prefix_tokens == 0  # saved by an older version


def test_rows_are_copies():
    ledger = filled()
    before = ledger.rows()[0]
    ledger.reply("maia_oevqa", "gpt-4o", reply("other"), paid=True, cost=1.0)
    ledger.verdict("maia_oevqa", "gpt-4o", Verdict(None, Status.SKIPPED))
    assert before == filled().rows()[0]
    ledger.rows()[0].models.clear()
    assert ledger.rows()[0].models["other"] == 1


def test_threads_lose_nothing():
    ledger = Ledger()

    def work(number: int) -> None:
        with task(f"task {number % 2}"):
            for _ in range(250):
                ledger.reply(current_task(), "j", reply(), paid=True, cost=0.001)
                ledger.verdict(current_task(), "j", OK)
                ledger.retry(current_task(), "j")

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    first, second = ledger.rows()
    assert first.verdicts == second.verdicts == second.retries == second.paid_calls == 2000
    assert ledger.total().cost == 4.0


def test_task_holds_for_its_block_and_thread_only():
    assert current_task() == ""
    seen = []
    with task("outer"):
        with task("inner"):
            assert current_task() == "inner"
        thread = threading.Thread(target=lambda: seen.append(current_task()))
        thread.start()
        thread.join()
        assert current_task() == "outer"
    assert (current_task(), seen) == ("", [""])
    with pytest.raises(KeyError), task("broken"):
        raise KeyError
    assert current_task() == ""


def test_counts_only_and_cheap():
    ledger = Ledger()

    def work(number: int) -> None:
        for _ in range(number):
            ledger.reply("t", "j", reply(), paid=True, cost=0.001)
            ledger.verdict("t", "j", FAILED)

    work(100)
    tracemalloc.start()
    work(20_000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 20_000  # bytes; one byte a verdict would be more
    started = time.perf_counter()
    work(5_000)
    assert (time.perf_counter() - started) / 5_000 < 100e-6  # about 5e-6 on an idle machine


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_while_others_count_is_not_stuck():
    ledger, stop = Ledger(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            ledger.retry("t", "j")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                ledger.retry("t", "child")
                os._exit(0 if ledger.rows()[-1].retries >= 0 else 1)
            deadline = time.monotonic() + 10
            while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
                if time.monotonic() > deadline:
                    os.kill(child, 9)
                    os.waitpid(child, 0)
                    pytest.fail("the child hangs in the ledger")
                time.sleep(0.001)
            assert ended[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.00001, "under $0.0001"),
        (0.0042, "$0.0042"),
        (0.16, "$0.16"),
        (1234.5, "$1,234.50"),
    ],
)
def test_dollars(amount, text):
    assert dollars(amount) == text
