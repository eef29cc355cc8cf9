"""A request's key in the cache, and requests and replies as the cache stores them. Pure."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from typing import Any

from lmms_eval_tasks.judges.exchange import Reply, Request, Sampling, Token

FORMAT = 1  # of keys and of the file; with another one no stored reply is found
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,")
# Surrogates are not escaped here: two escaped ones would read as the character they make up.
to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict).encode
_sorted_json = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), default=dict, sort_keys=True
).encode


def key(identity: Mapping[str, Any], request: Request, sample: int) -> str:
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


def plain(record: Request | Reply | Sampling) -> dict[str, Any]:
    """A record's fields as JSON takes them, with data URLs in messages as their digests."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    if isinstance(record, Request):
        values["sampling"] = plain(record.sampling)
        values["messages"] = [_without_data(message) for message in record.messages]
    return values


def _without_data(part: Any) -> Any:
    if isinstance(part, str):
        is_data = _DATA_URL.match(part)
        return f"sha256:{sha256(_bytes(part)).hexdigest()}" if is_data else part
    if isinstance(part, Mapping):
        return {name: _without_data(value) for name, value in part.items()}
    return [_without_data(item) for item in part] if isinstance(part, list | tuple) else part


def reply_of(values: Mapping[str, Any]) -> Reply:
    """The reply that `plain` was given. Raises TypeError or ValueError for anything else."""
    tokens = values["tokens"]
    if tokens is not None:
        tokens = tuple(
            Token(text, float(logprob), tuple((other, float(value)) for other, value in top))
            for text, logprob, top in tokens
        )
    return Reply(**{**values, "tokens": tokens})


def pack(value: Any) -> bytes:
    """JSON values as the table holds them."""
    return zlib.compress(_bytes(to_json(value)), 1)


def unpack(packed: bytes) -> Any:
    """What `pack` was given."""
    return json.loads(zlib.decompress(packed).decode("utf-8", "surrogatepass"))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
