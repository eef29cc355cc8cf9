"""Requests to a language model and its replies, as data and in storage.

A `Provider` makes one attempt to get replies for a `Request`. Retries, budgets and caches are the
engine's.
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

MOST_TOKENS = 1_000_000_000  # of one request; a larger number is an error of the endpoint


@dataclass(frozen=True)
class Request:
    """One request to a model, as data."""

    messages: Sequence[Mapping[str, Json]]  # OpenAI's chat form; images as `image_url` data URLs
    sampling: Sampling
    schema_name: str = ""
    schema: Mapping[str, Json] | None = None  # JSON schema of the reply; None: free text
    top_logprobs: int = 0  # number of alternatives per token; 0: no log-probabilities
    # A schema that may be sent instead of `schema`. Not part of the cache's key: the reply is the
    # same.
    exact_schema: Mapping[str, Json] | None = None


class Token(NamedTuple):
    """One token of a reply, with the most probable tokens at its place (natural logarithms)."""

    text: str
    logprob: float
    top: Sequence[tuple[str, float]]


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """A model's reply for one sample of a request, as the cache stores it, before any reading.

    Token counts are the endpoint's; None if it reports none, or no valid count. A text above
    MAX_REPLY characters is cut to one more than MAX_REPLY, which is no verdict either.
    """

    text: str | None
    finish: str = "stop"  # one of _ENDINGS, or the endpoint's word for a failure
    model: str = ""  # the endpoint's name for it
    refusal: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    # The prompt's tokens that the endpoint read from its cache, at a lower price.
    cached_tokens: int = 0
    tokens: tuple[Token, ...] | None = None  # log-probabilities, if requested and returned
    batch: bool = False  # True for a reply from an offline batch, at its price

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
        """The reason why this is a failure of the endpoint and no reply; "" for a reply."""
        if self.finish not in _ENDINGS:
            return f"a reply that ends with {self.finish!r}"
        if self.refusal or self.finish in (LENGTH, CONTENT_FILTER):
            return ""
        if self.finish == TOOL_CALLS and not (self.text or "").strip():
            return "a tool call in place of a reply"
        return "a reply without content" if self.text is None else ""


def token_count(value: object) -> int | None:
    """Return a valid count of tokens; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
        return value
    return None


# The endings of a reply: whole, cut off, filtered, or a tool call, though no tool was offered. The
# words of OpenAI, vLLM, SGLang, TGI, llama.cpp, LM Studio, TensorRT-LLM, Mistral, DeepSeek,
# Anthropic, Gemini, Cohere, Bedrock, watsonx, DashScope and Zhipu, only their letters. All others
# are failures (abort, error, insufficient_system_resource): a new word must not pass for a whole
# reply.
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
    """Return an endpoint's word for a reply's ending as one of `_ENDINGS`, else the word itself.

    Case and punctuation do not matter; a member of an enum ("FinishReason.STOP") counts too.
    """
    plain = re.sub(r"[^a-z]", "", word.casefold() or STOP)
    plain = re.sub(r"^(?:finish|stop)?reason", "", plain)
    return next((name for name, words in _ENDINGS.items() if re.fullmatch(words, plain)), word)


BUSY, SLOW = "busy", "slow"  # kinds of load at an endpoint, from its failures


class ProviderError(Exception):
    """A request without a reply.

    Attributes:
        status: `api_error`; `refused` by a content filter; `skipped` if no request was sent.
        retry: True if the same request may succeed later (overload, a dropped connection).
        retry_after: seconds that the endpoint asks to wait, or None.
        load: BUSY if the endpoint reported too much load, SLOW if no reply came in time, else "".
            After either fewer requests go out.
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
    """A source of replies to requests; called from many threads."""

    @property
    def identity(self) -> Mapping[str, Json]:
        """All of the provider that can change a reply (model, endpoint, weights); in cache keys."""

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Make one attempt; return replies for the first one or more of `samples`, in order.

        Raises:
            ProviderError: there is no reply.
        """


# --- keys and stored forms of requests and replies ------------------------------------------------

FORMAT = 1  # of keys and of the cache's file; another number makes stored replies invalid
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
# Surrogates are not escaped here: two escaped ones would read as the character that they form.
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_sorted_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=dict, sort_keys=True
).encode


def key(identity: Mapping[str, Json], request: Request, sample: int) -> str:
    """Return the SHA-256 (hex) of all that can change a reply: provider, request, sample index.

    The order of keys counts only in the schema: models write a reply's fields in its order, and a
    reason before the score is another request than one after it.
    """
    asked = {**plain(request), "schema": to_json(request.schema)}
    for name in ("temperature", "top_p"):  # 0, 0.0 and -0.0 are the same number
        if asked["sampling"][name] is not None:
            asked["sampling"][name] += 0.0
    everything = {"format": FORMAT, "identity": identity, "request": asked, "sample": sample}
    return sha256(_bytes(_sorted_json(everything))).hexdigest()


def plain(record: Request | JudgeReply | Sampling) -> JsonObject:
    """Return a record's fields as JSON types, with data URLs in messages as their digests.

    `exact_schema` is left out, since it is another way to request the same reply.
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
    """Return the reply of which `plain` returned the fields.

    Raises:
        KeyError, TypeError, ValueError: the values are of another form.
    """
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


_LONGEST = 64 * 2**20  # bytes of an unpacked row: a file from others may hold anything


def pack(value: Json) -> bytes:
    """Return a value of plain types in the cache's form."""
    return zlib.compress(_bytes(to_json(value)), 1)


def unpack(packed: bytes) -> Json:
    """Return the value that was passed to `pack`.

    Raises:
        ValueError, zlib.error: the content is damaged or too long.
    """
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, _LONGEST)
    if not unpacker.eof:
        raise ValueError("a row that is cut off or too long")
    return json.loads(text.decode("utf-8", "surrogatepass"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
