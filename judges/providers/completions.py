"""The parts of a chat completion and of an endpoint's error, as servers send them. Pure."""

from __future__ import annotations

import re
from typing import Any

from lmms_eval_tasks.judges.providers.exchange import Token

MAX_MESSAGE = 300  # characters of an endpoint's error text that are kept
# Codes of providers that rejected a request for its content, and texts of providers without codes.
_FILTER_CODES = re.compile(
    r"content_?(?:filter|policy|safety|violation)|data_?inspection|sensitive|moderation"
    r"|responsible_?ai|prohibited_content|invalid_prompt",
    re.I,
)
_FILTER_WORDS = re.compile(
    r"content exists risk|considered high risk|(?:was|been) flagged|usage (?:policy|guidelines)"
    r"|content (?:management|filtering|moderation) policy|inappropriate content|敏感",
    re.I,
)


def is_filtered(error: object) -> bool:
    """Return True if an error is from an endpoint's content filter."""
    values = error if isinstance(error, dict) else {"message": error}
    inner = values.get("innererror")  # Azure's
    codes = [values.get("code"), values.get("type"), isinstance(inner, dict) and inner.get("code")]
    # Cut, since a longer message may repeat the request.
    words = str(values.get("message"))[:MAX_MESSAGE]
    return any(_FILTER_CODES.search(str(one)) for one in codes) or bool(_FILTER_WORDS.search(words))


def content_of(content: object) -> tuple[str | None, str]:
    """Return a message's text, None without one, and its refusal.

    The texts of a list of parts are joined; reasoning is another kind of part, or a text marked so.

    Raises:
        TypeError, AttributeError: `content` is neither a text nor a list of parts.
    """
    if content is None or isinstance(content, str):
        return content, ""
    texts: dict[str, list[str]] = {"text": [], "refusal": []}
    parts: Any = content if isinstance(content, list) else [content]
    for part in parts:
        kind = str(part.get("type") or "text").removeprefix("output_")
        if isinstance(part.get(kind), str) and kind in texts and not part.get("thought"):
            texts[kind].append(part[kind])
    return "".join(texts["text"]) if texts["text"] else None, "".join(texts["refusal"])


def tokens_of(logprobs: object) -> tuple[Token, ...] | None:
    """Return a choice's log-probabilities; None if there are none, or not in OpenAI's form."""
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
