"""Endpoints that are slow, busy or expensive, or ignore what they are asked."""

import itertools
import json
import threading
import time
from collections import Counter

import faults
import pytest

from lmms_eval_tasks.judges import resolve
from lmms_eval_tasks.judges.prices import Price, PriceList
from lmms_eval_tasks.judges.providers.exchange import JudgeReply, Request
from lmms_eval_tasks.judges.providers.observed import Observed
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.judges.providers.probe import probe
from lmms_eval_tasks.judges.report import Progress, UsageCounter, departures
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.judges.verdict import Sampling
from lmms_eval_tasks.settings import JudgeLimits
from tests import local_endpoint as server
from tests.checks import table
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion

ITEMS = faults.items(200)


# --- an endpoint with one slot --------------------------------------------------------------------


class OneSlot:
    """Works on one request at a time, and on what was given up all the same."""

    def __init__(self, seconds):
        self.seconds, self.asked, self.slot = seconds, Counter(), threading.Lock()

    def __call__(self, request):
        self.asked[faults.name_of(request)] += 1
        with self.slot:
            time.sleep(self.seconds)
        return faults.right(faults.name_of(request))


def test_a_slow_endpoint_is_sent_fewer_requests_and_loses_few():
    player = OneSlot(0.06)
    run = JudgeSession(JudgeLimits(concurrency=16, timeout=0.6))  # room for ten in its queue
    with LocalEndpoint(player) as endpoint:
        verdicts = faults.judged(faults.judge_of(endpoint.url, run), ITEMS[:60], threads=60)
        assert endpoint.most_in_flight < 16
    assert Counter(verdict.status for verdict in verdicts)["ok"] >= 57
    assert max(player.asked.values()) <= 2
    assert sum(player.asked.values()) <= 60 * 1.25


def test_a_limit_by_the_minute_is_waited_out(capsys):
    """Here by a window of a second, in which three requests are taken."""
    window = Counter()

    def reply(request):
        window[int(time.time())] += 1
        if window[int(time.time())] > 3:
            return Fault(status=429, message="Too many requests in this window")
        return faults.right(faults.name_of(request))

    run = JudgeSession(JudgeLimits(concurrency=16, patience=60.0))
    with LocalEndpoint(reply) as endpoint:
        judge = faults.judge_of(endpoint.url, run, retries=1)
        verdicts = faults.judged(judge, ITEMS[:12], threads=12)
    assert {verdict.status for verdict in verdicts} == {"ok"}
    assert "is busy (" in capsys.readouterr().err


# --- an endpoint whose bills are larger than it was asked for -----------------------------------

PRICES = PriceList({"m@*": Price(input=0.0, output=1000.0)}, "the test's prices")  # $ a million
TOKENS = 60_000  # of each reply: $60, where max_tokens allows $0.512


@table("usage", ["told", "not told"])
@table("takes", ["ignores max_tokens", "refuses max_tokens"])
def test_a_budget_holds_where_max_tokens_does_not(takes, usage, capsys):
    def reply(request):
        if takes.startswith("refuses") and {"max_tokens", "max_completion_tokens"} & request.keys():
            name = next(one for one in request if one.startswith("max_"))
            return server.error(400, f"Unsupported parameter: '{name}'", param=name)
        time.sleep(0.02)
        text = faults.right(faults.name_of(request))
        if usage == "told":
            return completion([choice(text)], {"prompt_tokens": 9, "completion_tokens": TOKENS})
        return completion([choice("ab " * TOKENS + text)], None)

    limit = 1000.0
    run = JudgeSession(JudgeLimits(concurrency=64, max_cost=limit), prices=PRICES)
    with LocalEndpoint(reply) as endpoint:
        judge = faults.judge_of(endpoint.url, run, repairs=0)
        faults.judged(judge, ITEMS, threads=64)
        replies = sum("max_tokens" not in one.json for one in endpoint.chats)
    paid = run.budget.calls
    assert 5 <= paid <= limit / 60
    assert run.budget.cost <= limit
    told = capsys.readouterr().err
    assert "sends more tokens than max_tokens allows" in told
    assert ("does not report tokens" in told) is (usage == "not told")
    assert replies or takes.startswith("ignores")


def test_a_limit_that_could_not_be_kept_is_said(capsys):
    tokens = itertools.chain([10], itertools.repeat(900_000))

    def reply(request):
        text = faults.right(faults.name_of(request))
        return completion([choice(text)], {"prompt_tokens": 9, "completion_tokens": next(tokens)})

    run = JudgeSession(JudgeLimits(max_cost=500.0), prices=PRICES)
    with LocalEndpoint(reply) as endpoint:
        faults.judged(faults.judge_of(endpoint.url, run), ITEMS[:20], threads=1)
    assert run.budget.calls == 2
    assert "over the $500 of --max-cost" in capsys.readouterr().err


# --- parameters that are ignored -----------------------------------------------------------------

PROSE = "The answer names the same colour as the reference does, so it is right."
SCHEMA = {"type": "object", "properties": {"reason": {"type": "string"}}}


@table("replies, asked, ignored")
def test_what_counts_as_ignored(replies, asked, ignored):
    """After these samples of a question, each list so many times."""
    told = []
    watching = Observed(told.append)
    for number, texts in enumerate(one for one, times in replies for _ in range(times)):
        sampling = Sampling(asked.get("temperature", 0.0), 64)
        schema = asked.get("schema", SCHEMA)
        messages = [{"role": "user", "content": str(number)}]
        request = Request(messages, sampling, "", schema, asked.get("top_logprobs", 0))
        made = [JudgeReply(**one) if isinstance(one, dict) else JudgeReply(one) for one in texts]
        watching.saw(request, range(len(made)), made, "json_schema")
    assert [line.split()[1] for line in told] == watching.ignored == ignored


def transformers_serve(request):
    """Takes every parameter and uses none, as `transformers serve` does."""
    return completion([choice(PROSE)], {"prompt_tokens": 9, "completion_tokens": 20})


def vllm(request, number=itertools.count()):  # noqa: B008 - one count for all calls
    """Holds its replies to what is asked."""
    logprob = {"content": [{"token": "{", "logprob": -0.1, "top_logprobs": []}]}
    texts = [json.dumps({"sentence": f"one {next(number)}"}) for _ in range(request.get("n", 1))]
    made = [choice(text, logprobs=logprob if request.get("logprobs") else None) for text in texts]
    return completion(made, {"prompt_tokens": 9, "completion_tokens": 20})


@table(
    "endpoint, ignored",
    [(transformers_serve, ["logprobs", "n", "response_format", "temperature"]), (vllm, [])],
)
def test_one_question_shows_what_an_endpoint_ignores(endpoint, ignored):
    with LocalEndpoint(endpoint) as local:
        made = OpenAIProvider(resolve(f"m@{local.url}", {}, default_model="gpt-4o"))
        told = made.departures()
        assert sorted(line.split()[1] for line in told) == ignored
        assert len(local.chats) == (3 if ignored else 1)
        assert made.ignored == []  # the run's own counts begin with the run


def test_what_is_ignored_is_told_once_and_stands_in_the_record(capsys):
    run = JudgeSession(JudgeLimits())
    with LocalEndpoint(transformers_serve) as endpoint:
        judge = faults.judge_of(endpoint.url, run, repairs=0)
        faults.judged(judge, ITEMS[:20], threads=4)
    (line,) = departures([*run.departed(), *run.departed()])
    assert line == f"the judge m@{endpoint.url} accepts but ignores response_format"
    assert line in run.report_lines()
    assert capsys.readouterr().err.count("ignores it") == 1


def test_the_probe_of_a_judge_that_ignores(monkeypatch, tmp_path):
    def reply(request):
        right = faults.right("agreement 1")
        return right if "of item" in server.last_user_text(request) else PROSE

    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(tmp_path))
    with LocalEndpoint(reply) as endpoint:
        config = resolve(f"m@{endpoint.url}", {}, default_model="gpt-4o")
        item = ITEMS[0]
        verdict, form, told = probe(config, item.criterion, item.fields)
    assert (verdict.status, form) == ("ok", "json_schema")
    assert [line for line in told if "response_format" in line]


def test_a_line_comes_while_no_verdict_does(capsys, monkeypatch):
    """With what is tried again and what is in flight."""
    usage, shown = UsageCounter(), threading.Event()
    monkeypatch.setattr("lmms_eval_tasks.judges.report.EVERY", 0.01)
    progress = Progress(usage, lambda: shown.set() or 8)
    usage.retry("m")
    progress.expect(60)
    assert shown.wait(30)
    progress.close()  # ends its thread
    progress._ticker.join(30)
    (line, *_) = capsys.readouterr().err.splitlines()
    assert "0 of 60 verdicts" in line
    assert "1 retry, 8 running" in line


@pytest.mark.parametrize("timeout", [0.3])
def test_the_option_is_every_attempts_time(timeout, capsys):
    run = JudgeSession(JudgeLimits(timeout=timeout))
    with LocalEndpoint(lambda _: Fault(content="late", delay=3.0)) as endpoint:
        begun = time.monotonic()
        verdicts = faults.judged(
            faults.judge_of(endpoint.url, run, timeout=60.0, retries=0), ITEMS[:2]
        )
        assert time.monotonic() - begun < 2.5
    assert [verdict.status for verdict in verdicts] == ["api_error"] * 2
    (told,) = [one for one in capsys.readouterr().err.splitlines() if "--judge-timeout" in one]
    assert "--judge-concurrency" in told
