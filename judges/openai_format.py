"""OpenAI's chat completions as data: a request's JSON, a response's replies. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lmms_eval_tasks.judges.exchange import ProviderError, Reply, Request, Token

FORMS = ("json_schema", "json_object", "text")  # ways to ask for a schema, strictest first


def chat_body(
    model: str,
    request: Request,
    count: int,
    form: str,
    renamed: Mapping[str, str | None],
) -> dict[str, Any]:
    """The JSON of a chat completion request.

    Args:
        model: as the endpoint knows it.
        request: the question.
        count: number of samples.
        form: a member of FORMS.
        renamed: other names of parameters at this endpoint; None leaves one out.
    """
    sampling = request.sampling
    parameters: dict[str, Any] = {
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "reasoning_effort": sampling.reasoning_effort,
        "n": count if count > 1 else None,
        "logprobs": True if request.top_logprobs else None,
        "top_logprobs": request.top_logprobs or None,
    }
    if request.schema is not None and form == "json_schema":
        schema = {"name": request.schema_name, "schema": request.schema, "strict": True}
        parameters["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.schema is not None and form == "json_object":
        parameters["response_format"] = {"type": "json_object"}
    body: dict[str, Any] = {"model": model, "messages": list(request.messages)}
    for name, value in parameters.items():
        sent = renamed.get(name, name)
        if value is not None and sent is not None:
            body[sent] = value
    return body


def read_chat(data: object, form: str, clean: Callable[[str], str]) -> list[Reply]:
    """The replies in a chat completion's JSON, one for each choice.

    Token counts are for the whole response: the prompt's go to the first reply, the completion's
    are spread evenly, so that sums over replies are what was billed.

    Args:
        data: the response's body.
        form: how the schema was asked for.
        clean: makes an endpoint's own words fit for a message.

    Raises:
        ProviderError: it is no chat completion; worth another attempt (routers answer 200 with an
            error inside).
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(choices, list) or not choices:
        told = data.get("error") if isinstance(data, dict) else None
        why = f": {clean(str(told))}" if told else ""
        raise ProviderError(f"the endpoint's reply is no chat completion{why}", retry=True)
    usage = data.get("usage")
    if not isinstance(usage, dict):
        usage = {}
    details = usage.get("prompt_tokens_details")
    prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    replies = []
    for place, choice in enumerate(choices):
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            raise ProviderError("the endpoint's reply is no chat completion", retry=True)
        text = message.get("content")
        if text is not None and not isinstance(text, str):
            raise ProviderError("the content of the endpoint's reply is not text", retry=True)
        replies.append(
            Reply(
                text=text,
                finish=str(choice.get("finish_reason") or "stop"),
                model=str(data.get("model") or ""),
                refusal=str(message.get("refusal") or ""),
                form=form,
                prompt_tokens=prompt if prompt is None or place == 0 else 0,
                completion_tokens=_share(completion, len(choices), place),
                cached_tokens=(cached or 0) if place == 0 else 0,
                tokens=_tokens(choice.get("logprobs")),
            )
        )
    return replies


def _share(total: int | None, parts: int, place: int) -> int | None:
    return None if total is None else total // parts + (place < total % parts)


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _tokens(logprobs: object) -> tuple[Token, ...] | None:
    """A choice's log-probabilities; None where there are none, or not of OpenAI's form."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not content:
        return None
    try:
        return tuple(
            Token(
                str(token["token"]),
                float(token["logprob"]),
                tuple((str(t["token"]), float(t["logprob"])) for t in token["top_logprobs"]),
            )
            for token in content
        )
    except (KeyError, TypeError, ValueError):
        return None
