"""What goes over the wire to an OpenAI-compatible endpoint, and what it rejects or send."""

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

import faults
import pytest

from lmms_eval_tasks.judges import Verdict, resolve
from lmms_eval_tasks.judges import cache as replies
from lmms_eval_tasks.judges.providers import endpoint as endpoint_module
from lmms_eval_tasks.judges.providers.endpoint import call_with_retries
from lmms_eval_tasks.judges.providers.exchange import ProviderError, Request
from lmms_eval_tasks.judges.providers.openai_compatible import OpenAIProvider
from lmms_eval_tasks.judges.run import JudgeSession
from lmms_eval_tasks.judges.verdict import Sampling, Status
from lmms_eval_tasks.settings import JudgeLimits
from tests import local_endpoint as server
from tests.checks import refused, table
from tests.local_endpoint import Fault, LocalEndpoint, choice, completion

SCHEMA = {"type": "object", "properties": {"rating": {"type": "integer"}}}
USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
OK = '{"reason": "fine", "rating": 4}'


def asked(sampling: Sampling | None = None, **changes: Any) -> Request:
    messages = [{"role": "user", "content": "rate it"}]
    sampling = sampling or Sampling(0.0, 512)
    return Request(messages, sampling, **{"schema_name": "rating", "schema": SCHEMA, **changes})


def provider(url: str, model: str = "m", **changes: Any) -> OpenAIProvider:
    config = resolve(f"{model}@{url}", {}, default_model="gpt-4o")
    return OpenAIProvider(dataclasses.replace(config, **changes))


def bodies(endpoint: LocalEndpoint) -> list[dict[str, Any]]:
    return [request.json for request in endpoint.chats]


# --- parameters ---------------------------------------------------------------------------------


@table("model, reasons")
def test_reasoning_models_have_their_own_parameters(model, reasons):
    with LocalEndpoint(lambda request: OK) as endpoint:
        made = provider(endpoint.url, model)
        made.complete(asked(made.config.sampling), [0])
        (body,) = bodies(endpoint)
    if reasons:
        assert body["max_completion_tokens"] == 8192
        assert not {"max_tokens", "temperature", "top_p", "seed", "reasoning_effort"} & body.keys()
    else:
        assert (body["max_tokens"], body["temperature"]) == (512, 0.0)
        assert "max_completion_tokens" not in body


# What an endpoint refuses: the parameter, the words of real endpoints, what is sent instead.
REFUSALS: Mapping[str, tuple[str, str | None, str | None]] = {
    "max_tokens": ("Unsupported parameter: use another", "max_tokens", "max_completion_tokens"),
    "temperature": ("'temperature' does not support 0.0 with this model.", "temperature", None),
    "seed": ("Unrecognized request argument supplied: seed", None, None),
    "top_p": ('[{"loc": ["body", "top_p"], "msg": "extra fields not permitted"}]', None, None),
    "top_logprobs": ("top_logprobs is not supported by this server", None, None),
    "reasoning_effort": ("unknown field `reasoning_effort`", None, None),
    "n": ("Only n = 1 is supported", "n", None),
}
FULL = Sampling(0.0, 512, top_p=0.9, seed=3, reasoning_effort="low")


def refusing(*names: str, status: int = 400) -> Callable[[dict[str, Any]], Fault | str]:
    """An endpoint that rejects some parameters, and names one at a time."""

    def reply(request: dict[str, Any]) -> Fault | str:
        for name in names:
            if name in request:
                words, param, _ = REFUSALS[name]
                return server.error(status, words, "unsupported_parameter", param)
        return OK

    return reply


@table("name", REFUSALS)
@table("status", [400, 422])
def test_a_parameter_that_is_not_taken_is_left_out_and_remembered(name, status, capsys):
    request, samples = asked(FULL, top_logprobs=5), [0, 1] if name == "n" else [0]
    with LocalEndpoint(refusing(name, status=status)) as endpoint:
        made = provider(endpoint.url)
        for _ in range(3):
            assert [reply.text for reply in made.complete(request, samples)] == [OK]
        first, *later = bodies(endpoint)
    instead = REFUSALS[name][2]
    assert name in first
    without = {k: v for k, v in first.items() if k != name}
    assert later == [without | ({instead: first[name]} if instead else {})] * 3
    assert made.left_out == ([] if instead else [name])
    said = capsys.readouterr().err
    assert said.count(f"rejects {name}: requests are sent without it") == (0 if instead else 1)
    assert made.identity == provider(endpoint.url).identity  # the cache's keys do not move


def test_a_400_that_never_heals_teaches_nothing(capsys):
    """An endpoint that names a parameter in every 400: the next request starts as before."""
    refusal = server.error(400, "Invalid 'temperature' or another thing", param="temperature")
    replies = iter([refusal, refusal, OK])
    with LocalEndpoint(lambda request: next(replies)) as endpoint:
        made = provider(endpoint.url, reply_format="json_object")
        with pytest.raises(ProviderError) as caught:
            made.complete(asked(), [0])
        assert (caught.value.status, caught.value.retry) == (Status.API_ERROR, False)
        assert len(bodies(endpoint)) == 2  # as asked, and without the temperature
        made.complete(asked(), [0])
        assert bodies(endpoint)[-1]["temperature"] == 0.0
    assert made.left_out == []
    assert capsys.readouterr().err == ""


# --- samples ------------------------------------------------------------------------------------


def rating(value: int) -> str:
    return json.dumps({"reason": "so", "rating": value})


@table(
    "most, sent, prompt, replied",
    [
        (9, [3], 100, 10),
        (1, [3, 2, None], 300, 30),  # choices that it gives at most
        (0, [3, None, None, None], 300, 30),  # it rejects `n`
    ],
)
def test_three_samples_of_any_endpoint(most, sent, prompt, replied):
    run, values = JudgeSession(JudgeLimits()), [2, 3, 4]

    def reply(request: dict[str, Any]) -> Fault | str:
        if not most and isinstance(said := refusing("n")(request), Fault):
            return said
        given = range(min(most, request.get("n", 1)) or 1)
        return completion([choice(rating(values.pop(0))) for _ in given], USAGE)

    with LocalEndpoint(reply) as endpoint:
        judge = faults.judge_of(endpoint.url, run, sampling=Sampling(1.0, 64))
        found = judge.verdicts(faults.RATING, {"number": "1", "candidate": "x"}, 3)
    assert [verdict.score for verdict in found] == [2.0, 3.0, 4.0]
    assert [body.get("n") for body in bodies(endpoint)] == sent
    total = run.usage.total()
    counts = (total.paid_calls, total.prompt_tokens, total.completion_tokens)
    assert counts == (3, prompt, replied)
    if most == 9:  # what the endpoint billed once: the prompt's tokens are the first one's
        usages = [(v.usage.prompt_tokens, v.usage.completion_tokens) for v in found]
        assert usages == [(100, 4), (0, 3), (0, 3)]


# --- what comes back ----------------------------------------------------------------------------


def one(fault: Fault, **changes: Any) -> Any:
    with LocalEndpoint(lambda request: fault) as endpoint:
        (reply,) = provider(endpoint.url, "asked").complete(asked(**changes), [0])
    return reply


@table("usage, counts")
def test_counts_that_are_not_reported_are_unknown(usage, counts):
    reply = one(completion([choice(OK)], usage, model="asked-2026-01-01"))
    assert [reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens] == counts
    assert (reply.model, reply.finish) == ("asked-2026-01-01", "stop")


def test_a_text_that_is_no_verdict_is_not_kept_whole(tmp_path):
    """Neither in the cache nor in the samples, and from the cache it is the same verdict."""
    run, found = JudgeSession(JudgeLimits(), cache=tmp_path), []
    with LocalEndpoint(lambda request: "all work and no play " * 100_000) as endpoint:
        for _ in range(2):
            judge = faults.judge_of(endpoint.url, run, repairs=0)
            found.append(judge.verdict(faults.RATING, {"number": "1", "candidate": "x"}))
        assert len(endpoint.chats) == 1
    assert found[0] == found[1]
    assert found[0].status == "parse_failure"
    assert found[0].reason == "the reply has more than 200,000 characters"
    assert len(found[0].raw) < 10_100
    assert "[190,001 characters left out]" in found[0].raw
    (line,) = replies.cached_replies(run.cache.path)
    assert len(line["reply"]["text"]) == 200_001
    run.close()


TOP = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]


@table("logprobs, top")
def test_log_probabilities_of_another_form_are_none(logprobs, top):
    reply = one(completion([choice("4", logprobs=logprobs)], USAGE), top_logprobs=2)
    assert reply.text == "4"
    if top is None:
        assert reply.tokens is None
    else:
        (token,) = reply.tokens
        assert (token.text, token.logprob) == ("4", -0.1)
        assert token.top == tuple(map(tuple, top))


def sent(given: Mapping[str, Any]) -> Fault:
    """A text, a body, or one choice of a completion; what is not named is as usual."""
    if "text" in given:
        text, kind = given["text"].encode(), given.get("type", "text/plain")
        return Fault(body=text, content_type=kind)
    if "body" in given:
        return Fault(given.get("status", 200), body=json.dumps(given["body"]).encode())
    made = choice(given.get("content", OK))
    of_choice = ("finish_reason", "native_finish_reason", "error")
    made |= {name: given[name] for name in of_choice if name in given}
    made["message"] |= {name: value for name, value in given.items() if name not in of_choice}
    return completion([made], USAGE)


@table("given, expected")
def test_what_an_endpoint_sends_is_a_reply_or_its_failure(given, expected, tmp_path, monkeypatch):
    """Status, score, requests; and the requests of the same command, the endpoint being healthy."""
    quick = functools.partial(call_with_retries, base=0.001)
    monkeypatch.setattr(endpoint_module, "call_with_retries", quick)
    fields = {"number": "1", "candidate": "x"}

    def verdict(endpoint: LocalEndpoint) -> tuple[Verdict, int]:
        run = JudgeSession(JudgeLimits(), cache=tmp_path)
        found = faults.judge_of(endpoint.url, run, retries=1, repairs=0)
        before = len(endpoint.chats)
        said = found.verdict(faults.RATING, fields)
        run.close()
        return said, len(endpoint.chats) - before

    with LocalEndpoint(lambda request: sent(given)) as endpoint:
        first, requests = verdict(endpoint)
        endpoint.reply = lambda request: OK
        second, again = verdict(endpoint)
    assert [first.status, first.score, requests, again] == expected
    assert second == first if not again else (second.status, second.score) == ("ok", 4.0)


@table("given, words")
def test_an_error_shows_what_came(given, words):
    with LocalEndpoint(lambda request: sent(given)) as endpoint:
        assert refused(ProviderError, ".*", provider(endpoint.url).complete, asked(), [0]) == words


@table("path, told", [("", "; for an OpenAI-compatible server, use URL/v1"), ("/v1", "")])
def test_an_address_without_its_version_is_told(path, told):
    with LocalEndpoint(lambda request: Fault(404, body=b"Not Found")) as endpoint:
        url = endpoint.url.removesuffix("/v1")
        ask = provider(url + path).complete
        words = refused(ProviderError, ".*", ask, asked(), [0])
    assert words == f"HTTP 404: Not Found{told.replace('URL', url)}"


def test_of_several_choices_the_failed_ones_are_asked_for_again():
    """The tokens of the whole response are the others'."""
    choices = [choice(OK, finish_reason="abort"), choice("b"), choice(None), choice("d")]
    usage = {"prompt_tokens": 100, "completion_tokens": 11}
    with LocalEndpoint(lambda request: completion(choices, usage)) as endpoint:
        replies = provider(endpoint.url).complete(asked(), [0, 1, 2, 3])
    found = [(one.text, one.prompt_tokens, one.completion_tokens) for one in replies]
    assert found == [("b", 100, 6), ("d", 0, 5)]


# --- exact schemas ------------------------------------------------------------------------------

EXACT = {"type": "object", "properties": {"rating": {"type": "integer", "enum": [1, 2]}}}


@table("url, format, exact")
def test_who_is_sent_the_exact_schema(url, format, exact):  # noqa: A002
    made = provider("http://127.0.0.1:1/v1", base_url=url, reply_format=format)

    def body_of(request: Request) -> dict[str, Any]:
        return made._body(request, 1, made._way(request))

    body = body_of(asked(exact_schema=EXACT))
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    assert schema == (EXACT if exact else SCHEMA if format in ("auto", "json_schema") else None)
    word = asked(schema=None, exact_schema=EXACT)  # without a general one
    assert ("response_format" in body_of(word)) is exact
    assert "response_format" not in made.body(word)  # a batch does not learn that it is refused


# What real servers answer to a schema that they do not take.
REFUSED = [
    (400, "Invalid schema for response_format 'rating': 'maxItems' is not permitted."),
    (400, "For 'array' type, property 'prefixItems' is not supported"),
    (422, "Extra inputs are not permitted"),
    (500, "failed to parse grammar"),
    (424, "Request failed during generation: Grammar error"),
    (400, "Unsupported: {'max_tokens': 16, 'temperature': 0, 'guided_json': {}}"),
]


@table("status, words", REFUSED)
@table("schema", [SCHEMA, None])
def test_an_exact_schema_that_is_refused_is_not_sent_again(status, words, schema):
    def reply(request: dict[str, Any]) -> Fault | str:
        form = request.get("response_format", {"json_schema": {"schema": None}})
        return server.error(status, words) if form["json_schema"]["schema"] == EXACT else OK

    request = asked(schema=schema, exact_schema=EXACT)
    with LocalEndpoint(reply) as endpoint:
        made = provider(endpoint.url)
        for _ in range(2):
            assert made.complete(request, [0])[0].text == OK
        made.complete(asked(schema_name="other", schema=SCHEMA), [0])
        forms = [body.get("response_format", {}).get("json_schema") for body in bodies(endpoint)]
    sent_schemas = [form and form["schema"] for form in forms]
    assert sent_schemas == [EXACT, schema, schema, SCHEMA]


@table("words, sent", [("no", 1), ("This schema is too complex", 2)])
def test_an_exact_schema_that_worked_is_blamed_for_a_400_only_in_its_words(words, sent):
    replies = iter([OK, *[server.error(400, words)] * 2])
    with LocalEndpoint(lambda request: next(replies)) as endpoint:
        made = provider(endpoint.url)
        made.complete(asked(exact_schema=EXACT), [0])
        with pytest.raises(ProviderError):
            made.complete(asked(exact_schema=EXACT), [0])
        assert len(endpoint.chats) == 1 + sent


def test_a_500_without_a_word_on_schemas_is_a_fault_that_may_pass():
    with LocalEndpoint(lambda request: server.error(500, "busy")) as endpoint:
        with pytest.raises(ProviderError) as caught:
            provider(endpoint.url).complete(asked(exact_schema=EXACT), [0])
        assert (caught.value.retry, len(endpoint.chats)) == (True, 1)
