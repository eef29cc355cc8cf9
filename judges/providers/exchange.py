"""Requests to a language model and its replies, as data and as they are stored.

A `Provider` makes one attempt to turn a `Request` into replies and knows nothing of retries,
budgets or caches: the engine does.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, Protocol

from lmms_eval_tasks.judges.verdict import MAX_REPLY, Sampling, Status
from lmms_eval_tasks.utils.json_files import Json, JsonObject

MOST_TOKENS = 1_000_000_000  # of one request: a larger number is no count


@dataclass(frozen=True)
class Request:
    """One question to a model, as data."""

    messages: Sequence[Mapping[str, Json]]  # OpenAI's chat form; images as `image_url` data URLs
    sampling: Sampling
    schema_name: str = ""
    schema: Mapping[str, Json] | None = None  # JSON schema of the reply; None: free text
    top_logprobs: int = 0  # log-probabilities of that many tokens at each place of the reply
    # What may be sent in place of `schema`. No part of the cache's key: it asks for the same reply.
    exact_schema: Mapping[str, Json] | None = None


class Token(NamedTuple):
    """One token of a reply, with the most probable tokens at its place (natural logarithms)."""

    text: str
    logprob: float
    top: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """A model's reply for one sample of a request, as the cache keeps it. Nothing is judged here.

    Token counts are the endpoint's own; None where it reports none, or what is no count. Of a text
    above MAX_REPLY so many characters and one are kept, which is as little a verdict.
    """

    text: str | None
    finish: str = "stop"  # one of _ENDINGS, or the endpoint's own word for a failure
    model: str = ""  # as the endpoint names it
    refusal: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # of the prompt's, read from the endpoint's own cache at a lower price
    tokens: tuple[Token, ...] | None = None  # log-probabilities, if asked for and given
    batch: bool = False  # it came from an offline batch, at that price

    def __post_init__(self) -> None:
        object.__setattr__(self, "finish", ending(self.finish))
        unknown = {"prompt_tokens": None, "completion_tokens": None, "cached_tokens": 0}
        for name, instead in unknown.items():
            if token_count(getattr(self, name)) is None:
                object.__setattr__(self, name, instead)
        if self.text is not None and len(self.text) > MAX_REPLY:
            object.__setattr__(self, "text", self.text[: MAX_REPLY + 1])
            object.__setattr__(self, "tokens", None)
        object.__setattr__(self, "refusal", self.refusal[:MAX_REPLY])

    @property
    def failure(self) -> str:
        """The reason why this is the endpoint's failure and no reply; empty for a reply."""
        if self.finish not in _ENDINGS:
            return f"a reply that ends with {self.finish!r}"
        if self.refusal or self.finish in (LENGTH, CONTENT_FILTER):
            return ""
        if self.finish == TOOL_CALLS and not (self.text or "").strip():
            return "a tool call in place of a reply"
        return "a reply without content" if self.text is None else ""


def token_count(value: object) -> int | None:
    """A count of tokens as an endpoint may report it; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    return None


# How a reply ends: whole, cut off, filtered, or in a tool call that nobody offered. The words of
# OpenAI, vLLM, SGLang, TGI, llama.cpp, LM Studio, TensorRT-LLM, Mistral, DeepSeek, Anthropic,
# Gemini, Cohere, Bedrock, watsonx, DashScope and Zhipu, of each its letters alone. All others are
# failures (abort, error, insufficient_system_resource): a new word must not pass for a whole reply.
STOP, LENGTH, CONTENT_FILTER, TOOL_CALLS = "stop", "length", "content_filter", "tool_calls"
_ENDINGS = {
    STOP: r"none|null|stop(?:ped|sequences?|words?|tokens?|stringfound)?|eo[st](?:token|found)?"
    r"|endid|end(?:of)?(?:turn|text)|completed?|normal",
    LENGTH: r"(?:max|model)?len(?:gth)?|max(?:output|completion|new|predicted)?tokens?(?:reached)?"
    r"|maxoutput|tokenlimit|errorlimit|repetition"
    r"|(?:model|max)?context(?:length|window)(?:exceeded|reached)?",
    CONTENT_FILTER: r".*(?:contentfilter|safety|recitation|blocklist|prohibitedcontent|sensitive"
    r"|spii|guardrail|modelarmor|toxic|moderation|inspection).*|refusal|refused",
    TOOL_CALLS: r"toolcalls?|tooluse|functioncall",
}


@lru_cache(maxsize=256)
def ending(word: str) -> str:
    """An endpoint's word for how a reply ended as one of `_ENDINGS`, whatever its case and marks,
    also as an enum's member ("FinishReason.STOP"); any other word as it is.
    """
    plain = re.sub(r"[^a-z]", "", word.casefold() or STOP)
    plain = re.sub(r"^(?:finish|stop)?reason", "", plain)
    return next((name for name, words in _ENDINGS.items() if re.fullmatch(words, plain)), word)


BUSY, SLOW = "busy", "slow"  # what a failure says of an endpoint's load


class ProviderError(Exception):
    """There is no reply.

    Attributes:
        status: `api_error`; `refused` by a content filter; `skipped` if nobody was asked.
        retry: whether the same request may succeed later (overload, a dropped connection).
        retry_after: seconds the endpoint asked to wait, or None.
        load: BUSY if the endpoint said that it has too much to do, SLOW if no reply came in time;
            "" for anything else. Fewer requests go out after either.
    """

    def __init__(
        self,
        message: str,
        status: Status = Status.API_ERROR,
        *,
        retry: bool = False,
        retry_after: float | None = None,
        load: str = "",
    ) -> None:
        super().__init__(message)
        self.status, self.retry, self.retry_after, self.load = status, retry, retry_after, load


class Provider(Protocol):
    """Whoever turns requests into replies; called from many threads."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """All of the provider that can change a reply (model, endpoint, weights); in cache keys."""

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """One attempt: replies of the first one or more of `samples`, in their order.

        Raises:
            ProviderError: there is no reply.
        """


# --- a request's key, requests and replies as they are stored -------------------------------------

FORMAT = 1  # of keys and of the file; with another one no stored reply is found
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
# Surrogates are not escaped here: two escaped ones would read as the character they make up.
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_sorted_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=dict, sort_keys=True
).encode


def key(identity: Mapping[str, Json], request: Request, sample: int) -> str:
    """SHA-256 (hex) of all that can change a reply: provider, request, index of the sample.

    The order of keys counts only within the schema: models write a reply's fields in its order, and
    a reason before the score is another question than one after it.
    """
    asked = {**plain(request), "schema": to_json(request.schema)}
    for name in ("temperature", "top_p"):  # 0, 0.0 and -0.0 are one number
        if asked["sampling"][name] is not None:
            asked["sampling"][name] += 0.0
    everything = {"format": FORMAT, "identity": identity, "request": asked, "sample": sample}
    return sha256(_bytes(_sorted_json(everything))).hexdigest()


def plain(record: Request | JudgeReply | Sampling) -> JsonObject:
    """A record's fields as JSON takes them, with data URLs in messages as their digests; without
    `exact_schema`, which is another way to ask for the same reply.
    """
    names = (field.name for field in fields(record) if field.name != "exact_schema")
    values = {name: getattr(record, name) for name in names}
    if isinstance(record, Request):
        values["sampling"] = plain(record.sampling)
        values["messages"] = [_without_data(message) for message in record.messages]
    return values


def _without_data(part: Json) -> Json:
    if isinstance(part, str):
        is_data = _DATA_URL.match(part)
        return f"sha256:{sha256(_bytes(part)).hexdigest()}" if is_data else part
    if isinstance(part, Mapping):
        return {name: _without_data(value) for name, value in part.items()}
    return [_without_data(item) for item in part] if isinstance(part, list | tuple) else part


def reply_of(values: Mapping[str, Json]) -> JudgeReply:
    """The reply that `plain` was given. Raises TypeError or ValueError for anything else."""
    tokens = values["tokens"]
    if tokens is not None:
        tokens = tuple(
            Token(text, float(logprob), tuple((other, float(value)) for other, value in top))
            for text, logprob, top in tokens
        )
    texts = [values["text"] or "", *(values.get(one, "") for one in ("finish", "model", "refusal"))]
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("a text that is none")
    return JudgeReply(**{**values, "tokens": tokens})


_LONGEST = 64 * 2**20  # bytes of a row, unpacked: a file that others sent may hold anything


def pack(value: Json) -> bytes:
    """A value of plain types as the cache keeps it."""
    return zlib.compress(_bytes(to_json(value)), 1)


def unpack(packed: bytes) -> Json:
    """The value that `pack` was given; ValueError, zlib.error: it is none, or too long."""
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, _LONGEST)
    if not unpacker.eof:
        raise ValueError("a row that is cut off or too long")
    return json.loads(text.decode("utf-8", "surrogatepass"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
