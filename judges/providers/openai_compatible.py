"""Any OpenAI-compatible endpoint.

One transport for each judge: the threads of a process share its sockets. Features that an endpoint
does not accept (a reply format, a parameter) are learnt once, from its answers 400 and 422.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple
from urllib.parse import urlsplit

from lmms_eval_tasks.judges import JudgeConfig, Status
from lmms_eval_tasks.judges.config import AZURE_HOSTS, is_local, is_reasoning
from lmms_eval_tasks.judges.providers.completions import (
    MAX_MESSAGE,
    content_of,
    is_filtered,
    tokens_of,
)
from lmms_eval_tasks.judges.providers.exchange import (
    BUSY,
    SLOW,
    STOP,
    JudgeReply,
    ProviderError,
    Request,
    token_count,
)
from lmms_eval_tasks.judges.providers.observed import ALIKE, Observed
from lmms_eval_tasks.judges.providers.retry_after import asked_wait
from lmms_eval_tasks.judges.providers.transport import (
    DeadlineError,
    StatusError,
    Transport,
    TransportError,
)
from lmms_eval_tasks.judges.verdict import DEFAULT_BASE_URL
from lmms_eval_tasks.notify import notify
from lmms_eval_tasks.utils.json_files import JsonObject

# The payer, for accounts with several; the variables are those of OpenAI's client.
_BILLED_TO = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
# Their prompt cache begins with the schema, so all requests there share one schema.
_OPENAI_HOSTS = (".openai.com", *AZURE_HOSTS)
FORMS = ("json_schema", "json_object", "text")  # ways to request a schema, strictest first
# Optional parameters: a judge without them still works. `max_tokens` is first tried under its newer
# name.
_SAMPLING = ("max_tokens", "temperature", "top_p", "seed", "reasoning_effort")
_ADAPTABLE = (*_SAMPLING, "n", "top_logprobs", "logprobs")
# The same request may work later, as after 500 and above. 424 is TGI's failed generation.
_BUSY = {408, 409, 424, 425, 429}
_FULL = {429, 529}  # too much load: waiting helps
_SLOW = {408, 504}  # no reply within the time of a server in between
_SPENT = ("insufficient_quota", "billing_hard_limit_reached")  # a 429 that waiting does not cure
_TOO_LARGE = re.compile(r"request too large", re.I)  # a 429 for a single request above the limit
# A prompt that is too long gets a 400 too, with a text that names max_tokens.
_TOO_LONG = re.compile(r"context.?length|context.?window|too long|maximum.{0,20}tokens", re.I)
# Texts of servers that could not build a grammar from a schema, also with 500 (llama.cpp, Ollama).
_SCHEMA_WORDS = re.compile(r"response_format|schema|grammar|guided_|structured.?output", re.I)
_VERSION = re.compile(r"/(?:v[0-9]+\w*|openai)(?:/|$)")  # a version in the path of an endpoint
_KEY_LIKE = re.compile(r"\b(?:sk-|Bearer |Basic )[\w+/=*.-]{6,}")
# A question that shows how an endpoint uses its parameters (`departures`): open to an answer in
# prose, and different each time.
_SHOWING = "Invent one sentence of about twenty words on whatever comes to your mind."
_SHOWN = {
    "type": "object",
    "properties": {"sentence": {"type": "string"}},
    "required": ["sentence"],
    "additionalProperties": False,
}
_SHOWN_TOKENS, _SHOWN_LOGPROBS = 128, 2


class _Way(NamedTuple):
    """A way to put a request to the endpoint."""

    form: int  # index in FORMS
    exact: bool  # True: with the exact schema
    renamed: Mapping[str, str | None]  # parameters under other names; None: not sent


class OpenAIProvider:
    """A chat model at an endpoint; thread-safe."""

    def __init__(self, config: JudgeConfig) -> None:
        self.config = config
        self._lock = threading.Lock()
        self._form_known = config.reply_format != "auto"
        # The index in FORMS that this endpoint accepts; it only increases.
        self._form = FORMS.index(config.reply_format) if self._form_known else 0
        # The parameters' other names, or None for those that this endpoint does not accept.
        self._renamed: dict[str, str | None] = {}
        host = urlsplit(config.base_url or DEFAULT_BASE_URL).hostname or ""
        self._knows_exact = not host.endswith(_OPENAI_HOSTS)
        self._exact: dict[str, bool] = {}  # by name of a schema, True if its exact form is accepted
        self.observed = Observed(lambda line: notify(f"the judge {config.label} {line}"))
        if is_reasoning(config.model):
            self._renamed["max_tokens"] = "max_completion_tokens"
        key = config.key.get_secret_value() if config.key else ""
        # A shorter value (vLLM users set EMPTY) may be a common word.
        self._key = key if len(key) >= 8 else None

    @property
    def identity(self) -> JsonObject:
        """The endpoint and the model, as requested."""
        return {
            "provider": "openai",
            "base_url": self.config.base_url or DEFAULT_BASE_URL,
            "api_version": None,  # from earlier versions, in the keys of saved replies
            "model": self.config.model,
            "reply_format": self.config.reply_format,
        }

    @property
    def form(self) -> str:
        """The form in which a schema is requested here, as far as known (FORMS)."""
        return FORMS[self._form]

    @property
    def left_out(self) -> list[str]:
        """The parameters that the endpoint did not accept, and that are not sent."""
        return sorted(name for name, new in self._renamed.items() if new is None)

    @property
    def ignored(self) -> list[str]:
        """The parameters that the endpoint accepted and that had no effect."""
        return self.observed.ignored

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Return the choices of a chat completion, requested in the strictest form that works here.

        It may have fewer choices than samples; then the caller asks again.

        Raises:
            ProviderError: transport, HTTP status, or a reply that is no chat completion.
        """
        way = self._way(request)
        with self._lock:  # else each thread would build a transport
            transport = self._transport
        while True:
            body = self._body(request, len(samples), way)
            try:
                # As text: some servers send their JSON as text/plain.
                replies = self.replies(transport.post(body, self.config.timeout).text)
            except ProviderError:
                raise
            except StatusError as error:
                change = self._adapted(error, body, way)
                if change is None:
                    raise self._error(error) from None
                way = change
            except Exception as error:  # any error of the transport becomes a status, not a crash
                raise self._error(error) from None
            else:
                # Learn from a success only: the cause of a 400 may be the prompt.
                left_out, self._renamed = self.left_out, {**self._renamed, **way.renamed}
                if request.schema is not None:
                    self._form, self._form_known = max(self._form, way.form), True
                if request.exact_schema is not None:
                    self._exact[request.schema_name] = way.exact
                for name in sorted({*self.left_out} - {*left_out}):
                    notify(
                        f"the judge {self.config.label} rejects {name}: requests "
                        "are sent without it"
                    )
                self.observed.saw(request, samples, replies, FORMS[way.form], self.left_out)
                return replies[: len(samples)]

    def departures(self) -> list[str]:
        """Ask a question that shows which parameters the endpoint ignores; return a line for each.

        Its samples come in one reply, or one by one if the endpoint returns a single choice.
        """
        lines: list[str] = []
        watching = Observed(lines.append, min_lacking=1)
        sampling = replace(self.config.sampling, max_tokens=_SHOWN_TOKENS)
        if sampling.temperature is not None:
            sampling = replace(sampling, temperature=1.0)
        if is_reasoning(self.config.model):
            sampling = self.config.sampling
        messages = [{"role": "user", "content": _SHOWING}]
        request = Request(messages, sampling, "showing", _SHOWN, top_logprobs=_SHOWN_LOGPROBS)
        before, self.observed = self.observed, watching
        try:
            remaining = list(range(ALIKE))
            while remaining:
                remaining = remaining[len(self.complete(request, remaining)) :]
        except ProviderError as error:
            lines.append(
                f"does not answer the test question that shows which parameters it ignores: {error}"
            )
        finally:
            self.observed = before
        return [*lines, *(f"rejects {name}" for name in self.left_out)]

    def body(self, request: Request) -> JsonObject:
        """Return the JSON of a batch's request for one sample, as far as this endpoint is known.

        Without exact schemas: a batch's results come too late to learn that one was refused.
        """
        return self._body(request, 1, self._way(request)._replace(exact=False))

    def _way(self, request: Request) -> _Way:
        """Return the way to put a request to this endpoint, as far as it is known."""
        exact = request.exact_schema is not None and FORMS[self._form] == "json_schema"
        exact &= self._knows_exact and self._exact.get(request.schema_name, True)
        return _Way(self._form, exact, dict(self._renamed))

    def _body(self, request: Request, count: int, way: _Way) -> JsonObject:
        parameters: JsonObject = {
            **vars(request.sampling),
            "n": count if count > 1 else None,
            "logprobs": True if request.top_logprobs else None,
            "top_logprobs": request.top_logprobs or None,
        }
        schema, form = request.exact_schema if way.exact else request.schema, FORMS[way.form]
        if schema is not None and form != "text":
            parameters["response_format"] = {"type": form}
            if form == "json_schema":
                named = {"name": request.schema_name, "schema": schema, "strict": True}
                parameters["response_format"]["json_schema"] = named
        body: JsonObject = {"model": self.config.model, "messages": list(request.messages)}
        for name, value in parameters.items():
            sent = way.renamed.get(name, name)
            if value is not None and sent is not None:
                body[sent] = value
        return body

    def _adapted(self, error: StatusError, body: JsonObject, way: _Way) -> _Way | None:
        """Return another way to send the request after an error, or None.

        After a 400 or 422; also after a 424 or 500 about the exact schema.
        """
        words, status, named = str(error.body), error.status, str(error.param or "")
        about_schema = _SCHEMA_WORDS.search(words) is not None
        # A provider's content filter rejects requests with 400 too (Azure).
        filtered = is_filtered(error.body)
        # If the error names no parameter, its text is not searched: some repeat the whole request.
        blamed = about_schema and named.partition(".")[0] in ("", "response_format")
        refused = status in (400, 422, 424) or status >= 500
        if way.exact and blamed and refused and not filtered:
            return way._replace(exact=False)
        too_long = _TOO_LONG.search(words) and not about_schema
        if status not in (400, 422) or filtered or too_long:
            return None
        for name in _ADAPTABLE:
            sent = way.renamed.get(name, name)
            if sent in body and (named == sent or re.search(rf"\b{sent}\b", words)):
                renaming = name == "max_tokens" and name not in way.renamed
                instead = "max_completion_tokens" if renaming else None
                return way._replace(renamed={**way.renamed, name: instead})
        if way.exact:
            known = body["response_format"]["json_schema"]["name"] in self._exact
            return None if known else way._replace(exact=False)
        # No parameter is named: the reply's form may be the cause, unless it has worked here
        # before. Another request may have learnt meanwhile that a later form works.
        about_form = not self._form_known or named.startswith("response_format")
        if "response_format" in body and (about_form or way.form < self._form):
            return way._replace(form=max(way.form + 1, self._form))
        return None

    def replies(self, data: object) -> list[JudgeReply]:
        """Return the choices of a chat completion (JSON, or its text) that are no failures.

        The key is removed from all texts. Token counts are for the whole response: the prompt's go
        to the first reply, the completion's are spread evenly, so that sums over replies equal the
        bill.

        Raises:
            ProviderError: it is no chat completion, or each choice is a failure; with `retry`
                (routers answer 200 with an error inside).
        """
        if isinstance(data, str):
            with suppress(ValueError):
                data = json.loads(data.removeprefix("\ufeff"))
        data = self._redacted(data)
        values = data if isinstance(data, dict) else {}
        whole, failed, model = [], [], str(values.get("model") or "")[:MAX_MESSAGE]
        choices = values.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            try:  # an invalid choice must not lose the others, which are paid for
                message = choice.get("message") or {}
                text, refusal = content_of(message.get("content"))
                finish = choice.get("finish_reason") or choice.get("native_finish_reason") or STOP
                refusal = str(message.get("refusal") or refusal)
                tokens = tokens_of(choice.get("logprobs"))
                reply = JudgeReply(text, str(finish), model, refusal, tokens=tokens)
                why = values.get("error") or choice.get("error") or reply.failure
                failed.append(why) if why else whole.append(reply)
            except (TypeError, AttributeError):
                continue
        if not whole:
            why = next(iter(failed), None) or values.get("error")
            code = why.get("code") if isinstance(why, dict) else None
            # The status of a server behind a router.
            if isinstance(code, int) and 400 <= code < 600:
                raise self._error(StatusError(code, {}, why))
            sent = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            said = f"the endpoint failed: {why}" if why else f"no chat completion: {sent}"
            told = self.clean(said)[:MAX_MESSAGE]
            if is_filtered(why):
                raise ProviderError(told, Status.REFUSED)
            raise ProviderError(told, retry=True)
        usage = values["usage"] if isinstance(values.get("usage"), dict) else {}
        details = usage.get("prompt_tokens_details")
        prompt, completion = (
            token_count(usage.get(f"{of}_tokens")) for of in ("prompt", "completion")
        )
        if (prompt, completion) == (0, 0):  # no request has zero tokens
            prompt = completion = None
        cached = token_count(details.get("cached_tokens")) if isinstance(details, dict) else None
        each, more = divmod(completion or 0, len(whole))
        return [
            replace(
                reply,
                prompt_tokens=prompt if prompt is None or place == 0 else 0,
                completion_tokens=None if completion is None else each + (place < more),
                cached_tokens=(cached or 0) if place == 0 else 0,
            )
            for place, reply in enumerate(whole)
        ]

    def _error(self, error: Exception) -> ProviderError:
        """Return an exception of the transport as a ProviderError."""
        if isinstance(error, StatusError):
            told, status = self.clean(f"HTTP {error.status}: {error}")[:MAX_MESSAGE], error.status
            if status in (404, 405) and (url := self.config.base_url) and not _VERSION.search(url):
                told += f"; for an OpenAI-compatible server, use {url}/v1"
            if is_filtered(error.body):
                return ProviderError(told, status=Status.REFUSED)
            after = asked_wait(error.headers, f"{error} {error.body}", time.time())
            # A 503 with a time to wait is an overload; without one the server may be down.
            full = status in _FULL or (status == 503 and after is not None)
            load = SLOW if status in _SLOW else BUSY if full else ""
            spent = error.code in _SPENT or _TOO_LARGE.search(str(error))
            heals = (status in _BUSY or status >= 500) and not spent
            return ProviderError(told, retry=heals, retry_after=after, load=load)
        name = "" if isinstance(error, TransportError) else f"{type(error).__name__}: "
        told = self.clean(f"{name}{error}")[:MAX_MESSAGE]
        load = SLOW if isinstance(error, DeadlineError) else ""
        return ProviderError(told, retry=getattr(error, "heals", False), load=load)

    def clean(self, text: str) -> str:
        """Return an endpoint's text on one line, without anything that looks like a key."""
        return _KEY_LIKE.sub("[key]", str(self._redacted(" ".join(text.split()))))

    def _redacted(self, data: object) -> object:
        """Return a response's body without the key, which some endpoints repeat in errors."""
        if isinstance(data, dict):
            return {name: self._redacted(value) for name, value in data.items()}
        if isinstance(data, list):
            return [self._redacted(value) for value in data]
        return data.replace(self._key, "[key]") if self._key and isinstance(data, str) else data

    @cached_property
    def _transport(self) -> Transport:
        """The connections, made at the first request."""
        url, key = self.config.base_url or DEFAULT_BASE_URL, self.config.key
        host = urlsplit(url).hostname or ""
        headers = {"Authorization": f"Bearer {key.get_secret_value() if key else 'unused'}"}
        if host.endswith(".openai.com"):
            headers |= {header: os.environ.get(name, "") for header, name in _BILLED_TO.items()}
        return Transport(
            f"{url}/chat/completions",
            {header: value for header, value in headers.items() if value},
            # A cluster's proxy settings must not send a local endpoint's requests to the proxy.
            proxies=not is_local(host),
        )

    def close(self) -> None:
        """End the requests in flight; no further ones can be sent."""
        with self._lock:
            self._transport.close()
