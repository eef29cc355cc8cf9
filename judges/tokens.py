"""How many tokens a text has, before anything was sent: for estimates and for reserving limits.

tiktoken's own count, where its vocabulary is in its cache already: it is exact for OpenAI's models.
Else a rule that needs none: a token for each piece that OpenAI's encodings cut a text into (words
with the sign before them, up to three digits, runs of signs, line ends), and more for long words,
most of all in lines that read like Italian, and for rare scripts. Its constants were set on the
texts of tests/cases/token_counts.json, whose English and Italian it counts within STATED_ERROR by
o200k_base and cl100k_base; other languages were a few sentences, other vocabularies not measured.
After a run the ledger has what the endpoint itself reported.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

PER_MESSAGE = 3  # role and markers of one chat message, as in OpenAI's own cookbook
PER_REQUEST = 3  # the beginning of the reply
STATED_ERROR = 0.10  # of a total, Italian or English

_PIECE = re.compile(
    r"[^\r\n\w]?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_VOWELS = frozenset("aiouàèéìíòóùú")
_NO_WORD = 20  # letters; longer runs are no words (hashes, base64) and split all over


def count(text: str) -> int:
    """Tokens of `text` by the rule; 0 only for an empty text."""
    return round(sum(map(_line, re.findall(r"[^\n]+\n*|\n+", text))))


# A judge's prompt is the same in every request but for a few lines.
@lru_cache(maxsize=1024)
def _line(line: str) -> float:
    romance, total = _romance(line), 0.0
    for piece in _PIECE.findall(line):
        length, known = len(piece), min(len(piece), _NO_WORD)
        total += 1
        if not piece[-1].isalpha():
            total += 0 if piece.isascii() else 0.7 * (length - 1)
        elif piece[-1] < "\u0250":  # Latin
            total += romance * 0.33 * max(0, known - 5) + (1 - romance) * 0.05 * max(0, known - 7)
            total += 0.35 * (length - known)
        else:
            total += (0.9 if piece[-1] > "\u2e80" else 0.3) * (length - 1)  # ideographs split more
    return total


def _romance(line: str) -> float:
    """0 to 1: how much a line reads like Italian, from the share of words that end in a vowel.

    e does not count: English ends in it as often. About 5 % in English, 50 % in Italian.
    """
    words = _LONG_WORD.findall(line)
    share = sum(word[-1] in _VOWELS for word in words) / max(1, len(words))
    return min(1.0, max(0.0, (share - 0.15) / 0.15))


@dataclass(frozen=True)
class Counter:
    """A way to count: its name for reports, and the stated error of a total (None: unknown)."""

    name: str
    count: Callable[[str], int]
    error: float | None


def counter(model: str) -> Counter:
    """The best counter for `model` that needs no download."""
    try:
        import tiktoken

        encoding = tiktoken.encoding_name_for_model(model)
    except (ImportError, KeyError):  # no tiktoken, or not a model of OpenAI
        return Counter(f"built-in estimate, not {model}'s own vocabulary", count, None)
    if not is_cached(encoding):
        return Counter(f"built-in estimate for {encoding}", count, STATED_ERROR)
    exact = tiktoken.get_encoding(encoding)
    # encode_ordinary: a text that spells <|endoftext|> is text.
    return Counter(f"tiktoken {encoding}", lambda text: len(exact.encode_ordinary(text)), 0.0)


def is_cached(encoding: str) -> bool:
    """Whether tiktoken has `encoding` in its folder (TIKTOKEN_CACHE_DIR): it would fetch it."""
    given = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    folder = Path(tempfile.gettempdir()) / "data-gym-cache" if given is None else Path(given)
    address = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
    name = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    return given != "" and (folder / name).is_file()  # an empty name switches the cache off


def count_messages(messages: Sequence[Mapping[str, Any]], counter: Counter | None = None) -> int:
    """Tokens of a request's chat messages: texts, images, and what the chat form adds."""
    number = count if counter is None else counter.count
    texts = sum(number(text) for text in _texts(messages))
    return texts + _around(messages)


def upper_bound(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens that a request hardly exceeds, to reserve a budget and a rate before it is sent.

    Two fifths over the estimate and ten for each text, at most its bytes.
    """
    texts = sum(
        min(len(text.encode("utf-8", "surrogatepass")), 10 + math.ceil(1.4 * count(text)))
        for text in _texts(messages)
    )
    return texts + _around(messages)


def _texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            yield content
        else:
            yield from (part["text"] for part in content if part["type"] == "text")


def _around(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens of everything that is no text."""
    total = PER_REQUEST + PER_MESSAGE * len(messages)
    for message in messages:
        if not isinstance(message["content"], str):
            pictures = (part for part in message["content"] if part["type"] == "image_url")
            total += sum(_image(picture["image_url"]["url"]) for picture in pictures)
    return total


def image_tokens(width: int, height: int) -> int:
    """Estimated tokens of an image in pixels: OpenAI's published rule for gpt-4o and gpt-4.1.

    Made to fit 2048 x 2048, then its shorter side to 768, never enlarged; 85 tokens and 170 for
    each tile of 512 x 512. Small models (gpt-4o-mini, gpt-5-mini, o4-mini), reasoning models and
    models at other endpoints count otherwise.
    """
    scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
    # Rounded: 1366 * (512 / 1366) must not reach into another tile.
    across, down = (math.ceil(round(side * scale, 6) / 512) for side in (width, height))
    return 85 + 170 * across * down


def _image(url: str) -> int:
    from PIL import Image

    with Image.open(BytesIO(b64decode(url.partition("base64,")[2]))) as opened:  # the header only
        return image_tokens(*opened.size)
