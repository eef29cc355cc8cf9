"""A judge behind an OpenAI-compatible endpoint, through the openai package's synchronous client.

One client for each judge and process: sockets are shared by the threads of a process and never
across a fork. Trouble with the judge (transport, refusals, cut or unreadable replies) becomes a
verdict's status; nothing is raised from `verdict`.
"""

from __future__ import annotations

import os
import re
import threading
from base64 import b64decode
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.judges import reader
from lmms_eval_tasks.judges.config import DEFAULT_BASE_URL, JudgeConfig, is_local
from lmms_eval_tasks.judges.prompts import render
from lmms_eval_tasks.judges.verdict import Criterion, Status, Verdict

if TYPE_CHECKING:
    from openai import OpenAI
    from pydantic import BaseModel

_LOCK = threading.RLock()  # creation of clients only; requests run in parallel
if hasattr(os, "register_at_fork"):
    # A fork in the middle of a creation would leave the child a lock that nobody releases.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )

_KEY_LIKE = re.compile(r"\b(?:sk-|Bearer |Basic )[\w+/=*.-]{6,}")
_MAX_REASON = 300  # characters of an endpoint's error text that a verdict keeps


class OpenAIJudge:
    """Asks one chat model for one verdict at a time; thread-safe."""

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self._created: tuple[int, OpenAI] | None = None  # process id, client
        # The strictest way to ask for JSON that this endpoint has taken; it only ever moves down.
        self._form = 0

    def supports(self, criterion: str) -> bool:  # noqa: ARG002 - a language model takes any
        """Every criterion."""
        return True

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        """Judge one item.

        Statuses: `api_error` after the configured retries or for a reply that is no chat
        completion; `refused` for a refusal, a content filter or a reply without content;
        `truncated` where the reply was cut off; `parse_failure` where it is not one verdict of the
        schema (`reader.read`). The reply's text is kept in `raw` in every case.

        Raises:
            PromptError: the template names a field that is not in `fields` (a benchmark's bug).
        """
        messages = render(criterion, fields)
        try:
            completion = self._complete(criterion, messages)
        except Exception as error:  # whatever the transport raises is a counted status, not a crash
            status = Status.REFUSED if _filtered(error) else Status.API_ERROR
            return self._failure(status, _describe(error))
        choices = getattr(completion, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            return self._failure(Status.API_ERROR, "the endpoint's reply is no chat completion")
        raw, model = choices[0].message.content, str(completion.model or "")
        if failure := _failed(choices[0]):
            return self._failure(*failure, raw if isinstance(raw, str) else None, model)
        return self._read(criterion, fields, raw, model)

    def _read(
        self, criterion: Criterion, fields: Mapping[str, Any], raw: str, model: str
    ) -> Verdict:
        untrusted = [str(fields[name]) for name in criterion.untrusted if name in fields]
        try:
            value = reader.read(raw, criterion.schema, untrusted)
        except reader.UnreadableError as problem:
            return self._failure(problem.status, str(problem), raw, model)
        reason = self._redact(str(getattr(value, "reason", "")))
        score = float(criterion.score(value))
        return Verdict(
            score, Status.OK, reason, self._redact(raw), judge=self.config.label, model=model
        )

    def _complete(self, criterion: Criterion, messages: list[dict[str, Any]]) -> Any:
        """One chat completion, with the strictest reply format that the endpoint takes.

        An endpoint that does not know a format answers 400 (some 422). Only if a looser one then
        works is it remembered: a 400 about something else, such as a prompt that is too long, must
        not cost the following requests their schema.
        """
        import openai

        forms = _reply_formats(criterion.name, criterion.schema)
        for form in range(self._form, len(forms)):
            try:
                completion = self._client().chat.completions.create(
                    model=self.config.model,
                    messages=messages,  # type: ignore[arg-type]
                    temperature=self.config.temperature,
                    max_tokens=self.config.max_tokens,
                    **forms[form],
                )
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if form == len(forms) - 1 or _filtered(error):
                    raise
            else:
                self._form = max(self._form, form)
                return completion
        raise AssertionError("unreachable: the last format returns or raises")

    def _client(self) -> OpenAI:
        """This process's client."""
        created = self._created
        if created is None or created[0] != os.getpid():
            with _LOCK:
                created = self._created
                if created is None or created[0] != os.getpid():
                    created = self._created = (os.getpid(), _new_client(self.config))
        return created[1]

    def _failure(
        self, status: Status, reason: str, raw: str | None = None, model: str = ""
    ) -> Verdict:
        return Verdict(
            None,
            status,
            self._redact(reason)[:_MAX_REASON],
            self._redact(raw or ""),
            judge=self.config.label,
            model=model or "",
        )

    def _redact(self, text: str) -> str:
        """`text` without the key: some endpoints repeat it in their errors.

        What is shorter than 8 characters (vLLM users set EMPTY) is no key but a common word.
        """
        for secret in (secret for secret in _secrets(self.config) if len(secret) >= 8):
            text = text.replace(secret, "[key]")
        return text


def _failed(choice: Any) -> tuple[Status, str] | None:
    """Why a choice holds no whole reply, or None."""
    message, finish = choice.message, choice.finish_reason
    refusal = getattr(message, "refusal", None)
    checks = (
        (finish == "length", Status.TRUNCATED, "the reply hit its token limit"),
        (finish == "content_filter", Status.REFUSED, "stopped by a content filter"),
        (bool(refusal), Status.REFUSED, str(refusal)),
        (message.content is None, Status.REFUSED, "a reply without content"),
        # The openai package does not validate what an endpoint sends.
        (not isinstance(message.content, str), Status.API_ERROR, "the content is not text"),
    )
    return next(((status, reason) for failed, status, reason in checks if failed), None)


def _new_client(config: JudgeConfig) -> OpenAI:
    import openai

    base_url = config.base_url or DEFAULT_BASE_URL
    host = base_url.partition("://")[2].partition("/")[0]
    host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    headers = {}
    if config.authorization is not None:
        headers["Authorization"] = config.authorization.get_secret_value()
    return openai.OpenAI(
        api_key="unused",  # the header below is what is sent
        base_url=base_url,
        default_headers=headers,
        timeout=config.timeout,
        max_retries=config.retries,
        # A cluster's proxy settings must not send a local endpoint's requests to the proxy.
        http_client=openai.DefaultHttpxClient(trust_env=not is_local(host)),
    )


def _reply_formats(name: str, schema: type[BaseModel]) -> list[dict[str, Any]]:
    """Ways to ask for the schema, strictest first: JSON schema, JSON mode, plain text."""
    json_schema = {"name": name, "schema": _closed(schema.model_json_schema()), "strict": True}
    return [
        {"response_format": {"type": "json_schema", "json_schema": json_schema}},
        {"response_format": {"type": "json_object"}},
        {},
    ]


def _closed(node: Any) -> Any:
    """A JSON schema with every object closed and all its keys required, as strict mode wants."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed |= {"additionalProperties": False, "required": list(closed["properties"])}
    return closed


def _filtered(error: Exception) -> bool:
    """Whether a provider's content filter turned the request down (Azure answers 400)."""
    return getattr(error, "code", None) == "content_filter"


def _describe(error: Exception) -> str:
    """One line: the class, the HTTP status where there is one, the endpoint's own words."""
    status = getattr(error, "status_code", None)
    name = type(error).__name__ + (f" {status}" if status else "")
    words = _KEY_LIKE.sub("[key]", " ".join(str(error).split()))
    return f"{name}: {words}"


def _secrets(config: JudgeConfig) -> list[str]:
    if config.authorization is None:
        return []
    header = config.authorization.get_secret_value()
    scheme, _, token = header.partition(" ")
    if scheme == "Basic":
        return [token, b64decode(token).decode().partition(":")[2] or token]
    return [token]
