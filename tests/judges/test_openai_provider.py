"""What goes over the wire to an OpenAI-compatible endpoint, and what it does not take or send."""

from __future__ import annotations

import base64
import dataclasses
import email.utils
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import faults
import httpx
import pytest
from pydantic import SecretStr

from lmms_eval_tasks.judges import JudgeConfig, resolve
from lmms_eval_tasks.judges.exchange import ProviderError, Request, Sampling
from lmms_eval_tasks.judges.openai_provider import OpenAIProvider, retry_after
from lmms_eval_tasks.judges.run import Run
from lmms_eval_tasks.judges.verdict import Status
from lmms_eval_tasks.settings import JudgeLimits
from tests import local_endpoint as server
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


@pytest.mark.parametrize("model", ["gpt-5", "gpt-5-mini", "o3", "o4-mini-2025-04-16", "openai/o1"])
def test_reasoning_models_have_their_own_parameters(model: str) -> None:
    with LocalEndpoint(lambda request: OK) as endpoint:
        made = provider(endpoint.url, model)
        made.complete(asked(made.config.sampling), [0])
        (body,) = bodies(endpoint)
    assert body["max_completion_tokens"] == 8192
    assert not {"max_tokens", "temperature", "top_p", "seed", "reasoning_effort"} & body.keys()


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5-chat-latest", "qwen-o3", "gpt-50", "olmo"])
def test_other_models_have_the_usual_ones(model: str) -> None:
    with LocalEndpoint(lambda request: OK) as endpoint:
        made = provider(endpoint.url, model)
        made.complete(asked(made.config.sampling), [0])
        (body,) = bodies(endpoint)
    assert (body["max_tokens"], body["temperature"]) == (512, 0.0)
    assert "max_completion_tokens" not in body


def test_the_effort_of_a_reasoning_model_comes_from_its_file(tmp_path: Path) -> None:
    with LocalEndpoint(lambda request: OK) as endpoint:
        file = tmp_path / "judge.yml"
        file.write_text(
            f"model: gpt-5-mini\nbase_url: {endpoint.url}\nreasoning_effort: low\n"
            "max_tokens: 3000\nseed: 7\nreply_format: json_object\n"
        )
        made = OpenAIProvider(resolve(str(file), {}, default_model="gpt-4o"))
        made.complete(asked(made.config.sampling), [0])
        (body,) = bodies(endpoint)
    assert body["reasoning_effort"] == "low"
    assert (body["max_completion_tokens"], body["seed"]) == (3000, 7)
    assert "temperature" not in body
    assert body["response_format"] == {"type": "json_object"}
    assert made.config.describe()["reasoning_effort"] == "low"


# What an endpoint refuses: the parameter, the words of real endpoints, what is sent instead.
REFUSALS: Mapping[str, tuple[str, str | None, str | None]] = {
    "max_tokens": (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        "max_tokens",
        "max_completion_tokens",
    ),
    "temperature": (
        "Unsupported value: 'temperature' does not support 0.0 with this model. Only the default "
        "(1) value is supported.",
        "temperature",
        None,
    ),
    "seed": ("Unrecognized request argument supplied: seed", None, None),
    "top_p": ('[{"loc": ["body", "top_p"], "msg": "extra fields not permitted"}]', None, None),
    "top_logprobs": ("top_logprobs is not supported by this server", None, None),
    "reasoning_effort": ("unknown field `reasoning_effort`", None, None),
    "n": ("Only n = 1 is supported", "n", None),
}
FULL = Sampling(0.0, 512, top_p=0.9, seed=3, reasoning_effort="low")


def refusing(*names: str, status: int = 400) -> Callable[[dict[str, Any]], Fault | str]:
    """An endpoint that does not take some parameters, and names one at a time."""

    def reply(request: dict[str, Any]) -> Fault | str:
        for name in names:
            if name in request:
                words, param, _ = REFUSALS[name]
                return server.error(status, words, "unsupported_parameter", param)
        return OK

    return reply


@pytest.mark.parametrize("name", list(REFUSALS))
@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_that_is_not_taken_is_left_out_and_remembered(
    name: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    request, samples = asked(FULL, top_logprobs=5), [0, 1] if name == "n" else [0]
    with LocalEndpoint(refusing(name, status=status)) as endpoint:
        made = provider(endpoint.url)
        for _ in range(3):
            assert [reply.text for reply in made.complete(request, samples)] == [OK]
        first, second, third, fourth = bodies(endpoint)
    instead = REFUSALS[name][2]
    assert name in first
    for body in (second, third, fourth):
        assert name not in body
        assert body == {k: v for k, v in first.items() if k != name} | (
            {instead: first[name]} if instead else {}
        )
    assert made.left_out == ([] if instead else [name])
    said = capsys.readouterr().err
    assert said.count("sent without it") == (0 if instead else 1)
    assert instead or f"does not take {name}: sent without it" in said
    assert made.identity == provider(endpoint.url).identity  # the cache's keys do not move


def test_several_refused_parameters_in_one_request(capsys: pytest.CaptureFixture[str]) -> None:
    with LocalEndpoint(refusing("max_tokens", "temperature", "seed"), accepts=["text"]) as endpoint:
        made = provider(endpoint.url)
        made.complete(asked(FULL), [0])
        made.complete(asked(FULL), [0])
        sent = bodies(endpoint)
    assert len(sent) == 7  # three parameters and two reply formats less, then right at once
    assert sent[-1] == sent[-2]
    assert sent[-1]["max_completion_tokens"] == 512
    assert made.left_out == ["seed", "temperature"]
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_400_that_never_heals_teaches_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint that names a parameter in every 400: the next request starts as before."""
    words = "Invalid 'temperature' or another thing"
    script: list[Fault | str] = [server.error(400, words, param="temperature")] * 5 + [OK]
    replies = iter(script)
    with LocalEndpoint(lambda request: next(replies)) as endpoint:
        made = provider(endpoint.url, reply_format="json_object")
        with pytest.raises(ProviderError) as caught:
            made.complete(asked(), [0])
        assert (caught.value.status, caught.value.retry) == (Status.API_ERROR, False)
        tried = len(bodies(endpoint))
        assert tried == 2  # as asked, and without the temperature
        replies = iter([OK])
        made.complete(asked(), [0])
        assert bodies(endpoint)[-1]["temperature"] == 0.0
    assert made.left_out == []
    assert capsys.readouterr().err == ""


# --- samples ------------------------------------------------------------------------------------


def judge_three(reply: Callable[[dict[str, Any]], Fault | str]) -> tuple[Any, Run, LocalEndpoint]:
    run = Run(JudgeLimits())
    with LocalEndpoint(reply) as endpoint:
        judge = faults.judge_of(endpoint.url, run, sampling=Sampling(1.0, 64))
        found = judge.verdicts(faults.RATING, {"number": "1", "candidate": "x"}, 3)
    return found, run, endpoint


def rating(value: int) -> str:
    return json.dumps({"reason": "so", "rating": value})


def test_n_choices_in_one_request() -> None:
    def reply(request: dict[str, Any]) -> Fault:
        return completion([choice(rating(2 + i)) for i in range(request.get("n", 1))], USAGE)

    found, run, endpoint = judge_three(reply)
    assert [v.score for v in found] == [2.0, 3.0, 4.0]
    assert [body.get("n") for body in bodies(endpoint)] == [3]
    total = run.ledger.total()
    # What the endpoint billed once: the prompt's tokens are the first verdict's.
    assert (total.paid_calls, total.prompt_tokens, total.completion_tokens) == (3, 100, 10)
    assert [v.usage.completion_tokens for v in found] == [4, 3, 3]
    assert [v.usage.prompt_tokens for v in found] == [100, 0, 0]


def test_an_endpoint_that_ignores_n_is_asked_again() -> None:
    values = iter([2, 3, 4])
    found, run, endpoint = judge_three(
        lambda request: completion([choice(rating(next(values)))], USAGE)
    )
    assert [v.score for v in found] == [2.0, 3.0, 4.0]
    assert [body.get("n") for body in bodies(endpoint)] == [3, 2, None]
    total = run.ledger.total()
    assert (total.paid_calls, total.prompt_tokens, total.completion_tokens) == (3, 300, 30)


def test_an_endpoint_that_refuses_n_is_asked_again() -> None:
    values = iter([2, 3, 4])

    def reply(request: dict[str, Any]) -> Fault | str:
        refused = refusing("n")(request)
        return refused if isinstance(refused, Fault) else rating(next(values))

    found, _, endpoint = judge_three(reply)
    assert [v.score for v in found] == [2.0, 3.0, 4.0]
    assert [body.get("n") for body in bodies(endpoint)] == [3, None, None, None]


def test_an_endpoint_with_more_choices_than_asked_for() -> None:
    with LocalEndpoint(lambda request: completion([choice(OK)] * 4, USAGE)) as endpoint:
        assert len(provider(endpoint.url).complete(asked(), [0, 1])) == 2


# --- what comes back ----------------------------------------------------------------------------


def one(fault: Fault, **changes: Any) -> Any:
    with LocalEndpoint(lambda request: fault) as endpoint:
        (reply,) = provider(endpoint.url, "asked").complete(asked(**changes), [0])
    return reply


def test_token_counts_and_the_models_name() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 64}}
    reply = one(completion([choice(OK)], usage, model="asked-2026-01-01"))
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens) == (100, 10, 64)
    assert (reply.model, reply.form, reply.finish) == ("asked-2026-01-01", "json_schema", "stop")


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (None, (None, None)),
        ({}, (None, None)),
        ({"prompt_tokens": None, "completion_tokens": 3}, (None, 3)),
        ({"prompt_tokens": "12", "completion_tokens": -1}, (None, None)),
        ({"prompt_tokens": True, "completion_tokens": 0}, (None, 0)),
    ],
)
def test_counts_that_are_not_reported_are_unknown(usage: Any, counts: tuple[Any, Any]) -> None:
    reply = one(completion([choice(OK)], usage))
    assert (reply.prompt_tokens, reply.completion_tokens) == counts


def test_log_probabilities() -> None:
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
    content = [{"token": "4", "logprob": -0.1, "top_logprobs": top}]
    reply = one(completion([choice("4", logprobs={"content": content})], USAGE), top_logprobs=2)
    (token,) = reply.tokens
    assert (token.text, token.logprob) == ("4", -0.1)
    assert token.top == (("4", -0.1), ("5", -2.5))


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        {},
        {"content": []},
        {"content": None},
        {"tokens": ["4"], "token_logprobs": [-0.1]},  # the old completions form
        {"content": [{"token": "4"}]},
        {"content": [{"token": "4", "logprob": None, "top_logprobs": []}]},
        "none",
    ],
)
def test_log_probabilities_of_another_form_are_none(logprobs: Any) -> None:
    reply = one(completion([choice("4", logprobs=logprobs)], USAGE), top_logprobs=2)
    assert reply.tokens is None
    assert reply.text == "4"


def test_images_are_sent_as_data_urls() -> None:
    from PIL import Image

    from lmms_eval_tasks.judges import Criterion

    criterion = Criterion(
        name="seen",
        system="Grade. JSON.",
        template="Frames: {frames} What of item 1? {candidate}",
        schema=faults.Rating,
        score=lambda reply: float(reply.rating),
        prompt_hash="0",
        images=("frames",),
    )
    frames = [Image.new("RGB", (8, 6), color) for color in ("red", "blue")]
    run = Run(JudgeLimits())
    with LocalEndpoint(lambda request: OK) as endpoint:
        judge = faults.judge_of(endpoint.url, run)
        verdict = judge.verdict(criterion, {"frames": frames, "candidate": "a ball"})
        (body,) = bodies(endpoint)
    assert verdict.score == 4.0
    content = body["messages"][1]["content"]
    assert [part["type"] for part in content] == ["text", "image_url", "image_url", "text"]
    for part in content[1:3]:
        kind, _, data = part["image_url"]["url"].partition(";base64,")
        assert kind in ("data:image/png", "data:image/jpeg")
        assert len(base64.b64decode(data, validate=True)) > 50


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "status", "retry"),
    [
        (server.rate_limited(), "api_error", True),
        (server.error(408), "api_error", True),
        (server.error(409), "api_error", True),
        (server.error(500), "api_error", True),
        (server.error(529), "api_error", True),
        (Fault(status=502, body=b"<html>", content_type="text/html"), "api_error", True),
        (server.dropped(), "api_error", True),
        (Fault(body=b'{"error": {"message": "overloaded"}}'), "api_error", True),
        (server.error(429, "You exceeded your quota", "insufficient_quota"), "api_error", False),
        (server.error(429, "limit", "billing_hard_limit_reached"), "api_error", False),
        (server.error(401), "api_error", False),
        (server.error(403), "api_error", False),
        (server.error(404), "api_error", False),
        (server.error(400, "bad request"), "api_error", False),
        (server.error(413), "api_error", False),
        (server.error(400, "filtered", "content_filter"), "refused", False),
    ],
)
def test_which_errors_are_worth_another_attempt(fault: Fault, status: str, retry: bool) -> None:
    with LocalEndpoint(lambda request: fault) as endpoint:
        made = provider(endpoint.url, reply_format="json_object")
        with pytest.raises(ProviderError) as caught:
            made.complete(asked(Sampling(None, None)), [0])
    assert (caught.value.status.value, caught.value.retry) == (status, retry)
    assert "\n" not in str(caught.value)


def test_an_empty_quota_is_asked_once() -> None:
    fault = server.error(429, "You exceeded your current quota", "insufficient_quota")
    run = Run(JudgeLimits())
    with LocalEndpoint(lambda request: fault) as endpoint:
        judge = faults.judge_of(endpoint.url, run, retries=5)
        verdict = judge.verdict(faults.RATING, {"number": "1", "candidate": "x"})
        assert len(endpoint.chats) == 1
    assert verdict.status == "api_error"
    assert "exceeded your current quota" in verdict.reason
    assert run.ledger.total().retries == 0


NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "0"}, 0.0),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After-Ms": "250", "Retry-After": "1"}, 0.25),
        ({"Retry-After": email.utils.formatdate(NOW + 30, usegmt=True)}, 30.0),
        ({"Retry-After": email.utils.formatdate(NOW - 30, usegmt=True)}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": ""}, None),
        ({"Retry-After-Ms": "soon"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(httpx.Headers(headers), NOW) == seconds


def test_a_retry_after_without_end_is_not_waited_for() -> None:
    run, endless = Run(JudgeLimits()), server.rate_limited("inf")
    with LocalEndpoint(lambda request: endless) as endpoint:
        judge = faults.judge_of(endpoint.url, run)
        verdict = judge.verdict(faults.RATING, {"number": "1", "candidate": "x"})
        assert len(endpoint.chats) == 1
    assert verdict.status == "api_error"
    assert "longer than" in verdict.reason


# --- Azure --------------------------------------------------------------------------------------


def test_azures_dated_api() -> None:
    """A deployment's own path, the version as a query, and the key in its own header."""
    with LocalEndpoint(lambda request: OK) as endpoint:
        base = endpoint.url.removesuffix("/v1")
        config = JudgeConfig(
            "openai",
            "my-gpt-4o",
            base,
            api_version="2024-10-21",
            authorization=SecretStr("Bearer planted-azure-key"),
        )
        made = OpenAIProvider(config)
        assert made.complete(asked(), [0])[0].text == OK
        (request,) = endpoint.chats
    path, _, query = request.path.partition("?")
    assert path == "/openai/deployments/my-gpt-4o/chat/completions"
    assert query == "api-version=2024-10-21"
    assert request.headers["api-key"] == "planted-azure-key"
    assert "planted" not in request.headers.get("authorization", "")
    assert made.identity["api_version"] == "2024-10-21"


def test_azure_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "azure.yml"
    file.write_text(
        "model: my-gpt-4o\nbase_url: https://team.openai.azure.com\napi_version: 2024-10-21\n"
    )
    with pytest.raises(Exception, match="api_version"):  # YAML reads a date: it has to be quoted
        resolve(str(file), {"AZURE_OPENAI_API_KEY": "k" * 20}, default_model="gpt-4o")
    file.write_text(file.read_text().replace("2024-10-21", "'2024-10-21'"))
    config = resolve(str(file), {"AZURE_OPENAI_API_KEY": "k" * 20}, default_model="gpt-4o")
    assert (config.api_version, config.base_url) == ("2024-10-21", "https://team.openai.azure.com")
    assert config.authorization is not None
    assert config.authorization.get_secret_value() == f"Bearer {'k' * 20}"
