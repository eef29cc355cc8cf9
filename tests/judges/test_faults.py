"""Faults of an endpoint: those that pass leave no trace in the scores, those that last no score."""

import dataclasses
import functools
import json
from collections import Counter

import faults
import pytest
from faults import CONTENT, RATING, TRANSPORT, Player, judge_of, judged

from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.engine import render
from lmms_eval_tasks.judges.prices import Price, PriceList, upper_bound
from lmms_eval_tasks.judges.providers import endpoint as endpoint_module
from lmms_eval_tasks.judges.providers.endpoint import call_with_retries
from lmms_eval_tasks.judges.report import UsageRow, task, usage_lines
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.judges.verdict import Sampling
from lmms_eval_tasks.settings import JudgeLimits
from tests.checks import in_threads, table
from tests.local_endpoint import LocalEndpoint

ITEMS = faults.items(240)


@pytest.fixture(scope="module", autouse=True)
def short_waits():
    """Backoff in hundredths of the usual seconds; what an endpoint asks for is still waited."""
    with pytest.MonkeyPatch.context() as patch:
        quick = functools.partial(call_with_retries, base=0.005, cap=0.02)
        patch.setattr(endpoint_module, "call_with_retries", quick)
        yield


def row_of(run: JudgeSession) -> UsageRow:
    (row,) = run.usage.rows()
    return row


# --- faults that pass ---------------------------------------------------------------------------


def test_30_percent_broken_replies_change_nothing(tmp_path):
    with LocalEndpoint(Player()) as endpoint:
        clean = judged(judge_of(endpoint.url, JudgeSession(JudgeLimits())), ITEMS)
    run, player = JudgeSession(JudgeLimits(), cache=tmp_path), Player(faults.passing)
    with LocalEndpoint(player) as endpoint, task("faulty"):
        broken = judged(judge_of(endpoint.url, run), ITEMS)
    assert [v.score for v in broken] == [v.score for v in clean]
    assert [v.score for v in clean] == [faults.right_score(item.name) for item in ITEMS]
    assert {v.status for v in (*broken, *clean)} == {"ok"}

    assert set(player.broken) == {*TRANSPORT, *CONTENT}  # every kind occurred
    sent = sum(player.seen.values())
    assert 0.27 < sum(player.broken.values()) / sent < 0.33
    row = row_of(run)
    transport = sum(player.broken[kind] for kind in TRANSPORT)
    repairs = sum(name.endswith("repair") for name in player.seen)
    assert (row.retries, row.repaired, row.paid_calls) == (transport, repairs, sent - transport)
    (line,) = usage_lines(run.usage.rows())
    assert f"240 verdicts (240 ok), {row.paid_calls} calls paid, 0 from the cache" in line
    assert f"{row.retries} retries, {row.repaired} repairs" in line

    # Once more, from the cache alone: the same verdicts to the last character.
    again = JudgeSession(JudgeLimits(max_calls=0), cache=tmp_path)
    assert judged(judge_of(endpoint.url, again), ITEMS) == broken
    assert (again.usage.total().paid_calls, again.usage.total().retries) == (0, 0)


def test_faults_that_last_have_a_status_no_score_and_are_paid_for_once(tmp_path):
    """A healed endpoint is asked for what is missing only."""
    player = Player(faults.lasting)
    run = JudgeSession(JudgeLimits(stop_after=0, patience=0.0), cache=tmp_path)
    with LocalEndpoint(player) as endpoint:
        verdicts = judged(judge_of(endpoint.url, run, retries=1), ITEMS)
        counts = Counter(verdict.status for verdict in verdicts)
        assert set(counts) == {"ok", "api_error", "refused", "truncated", "parse_failure"}
        unpaid = set()
        for item, verdict in zip(ITEMS, verdicts, strict=True):
            kind = faults.lasting(item.name, 0)
            right = faults.right_score(item.name) if kind is None else None
            assert (verdict.score, bool(verdict.reason)) == (right, True)
            if kind in CONTENT:
                fault, status = CONTENT[kind]
                assert (verdict.status, verdict.raw) == (status, fault.content or "")
                assert "and before" in verdict.reason
            elif kind is not None:
                assert verdict.status == "api_error"
                unpaid.add(item.name)
        row = row_of(run)
        transport = sum(player.broken[kind] for kind in TRANSPORT)
        paid = sum(player.seen.values()) - transport
        assert (row.retries, row.repaired, row.paid_calls) == (transport / 2, 0, paid)
        told = usage_lines(run.usage.rows())[0]
        assert all(f"{count} {status}" in told for status, count in counts.items())

        # The cache has every reply that was paid for, once.
        kept = [faults.name_of(line["request"]) for line in replies.cached_replies(run.cache.path)]
        assert len(set(kept)) == len(kept) == row.paid_calls
        assert not unpaid & set(kept)

        endpoint.reply = healed = Player()
        again = JudgeSession(JudgeLimits(), cache=tmp_path)
        after = judged(judge_of(endpoint.url, again), ITEMS)
        assert healed.seen == dict.fromkeys(unpaid, 1)
        assert row_of(again).paid_calls == len(unpaid)
        for item, before, now in zip(ITEMS, verdicts, after, strict=True):
            if item.name in unpaid:
                assert now.score == faults.right_score(item.name)
            else:
                assert now == before  # also what could not be read: it was paid for


# --- budget, breaker, rate ----------------------------------------------------------------------


@table("plan", [faults.none, faults.passing])
def test_a_budget_of_calls_is_met_exactly_by_16_threads(plan):
    limit, player, few = 37, Player(plan, delay=0.01), ITEMS[:120]
    run = JudgeSession(JudgeLimits(max_calls=limit))
    with LocalEndpoint(player) as endpoint:
        verdicts = judged(judge_of(endpoint.url, run), few)
    row = row_of(run)
    transport = sum(n for kind, n in player.broken.items() if kind in TRANSPORT)
    assert row.paid_calls == limit == run.budget.calls
    assert sum(player.seen.values()) - transport == limit  # replies that really went out
    assert row.by_status.keys() <= {"skipped", "ok", "refused", "truncated", "parse_failure"}
    assert sum(row.by_status.values()) == len(few)
    if plan is faults.none:
        assert row.by_status == {"ok": limit, "skipped": len(few) - limit}
    assert all(v.score is not None or v.status != "ok" for v in verdicts)


def test_a_budget_in_dollars_is_never_passed():
    price = Price(input=1000.0, output=1000.0)
    prices = PriceList({"m@*": price}, "the test's prices")
    with LocalEndpoint(Player(delay=0.02)) as endpoint:
        sampling = dataclasses.replace(Sampling(), max_tokens=1)
        # A call costs two tokens; before it is made, its upper bound must fit too.
        most = (upper_bound(render(RATING, ITEMS[1].fields)) + 1) / 1000
        limit = most + 0.002 * 40
        run = JudgeSession(JudgeLimits(max_cost=limit), prices=prices)
        judged(judge_of(endpoint.url, run, sampling=sampling), ITEMS[:120])
    row = row_of(run)
    assert row.by_status == {"ok": row.paid_calls, "skipped": 120 - row.paid_calls}
    assert run.budget.cost == pytest.approx(0.002 * row.paid_calls)
    assert 38 <= row.paid_calls < 120  # some prompts are a few tokens shorter
    assert row.paid_cost <= limit


@table("kind, statuses, sent, retries")
def test_when_an_endpoint_is_given_up(kind, statuses, sent, retries):
    player, run = (
        Player(lambda name, attempt: kind),
        JudgeSession(JudgeLimits(stop_after=4, patience=0.0)),
    )
    with LocalEndpoint(player) as endpoint:
        verdicts = judged(judge_of(endpoint.url, run, retries=2), ITEMS[:12], threads=1)
    assert Counter(v.status for v in verdicts) == statuses
    assert (sum(player.seen.values()), row_of(run).retries) == (sent, retries)
    assert bool(run.stopped()) == (kind == "500")


def test_a_second_repair_where_the_user_wants_one():
    """Three requests, of which the last is read; each is another question with its own key."""
    broken = iter(["cut", "prose"])
    run, player = JudgeSession(JudgeLimits()), Player(lambda name, attempt: next(broken, None))
    with LocalEndpoint(player) as endpoint:
        (verdict,) = judged(judge_of(endpoint.url, run, repairs=2), ITEMS[:1])
        assert [request.json["max_tokens"] for request in endpoint.chats] == [512, 1024, 512]
    assert (verdict.score, verdict.repaired) == (faults.right_score(ITEMS[0].name), True)
    assert (verdict.usage.replies, row_of(run).paid_calls, row_of(run).repaired) == (3, 3, 1)


def test_the_number_in_flight_is_kept():
    run = JudgeSession(JudgeLimits(concurrency=5))
    with LocalEndpoint(Player(delay=0.05)) as endpoint:
        verdicts = judged(judge_of(endpoint.url, run), ITEMS[:20], threads=20)
        assert endpoint.most_in_flight == 5
    assert {v.status for v in verdicts} == {"ok"}


def test_equal_questions_in_16_threads_are_paid_for_once(tmp_path):
    run, player = JudgeSession(JudgeLimits(), cache=tmp_path), Player(delay=0.1)
    with LocalEndpoint(player) as endpoint:
        judge = judge_of(endpoint.url, run)
        found = in_threads(16, lambda _: judge.verdict(ITEMS[0].criterion, ITEMS[0].fields))
    assert len({json.dumps(v.as_dict()) for v in found}) == 1
    assert sum(player.seen.values()) == 1
    assert (row_of(run).paid_calls, row_of(run).cached_calls) == (1, 15)
