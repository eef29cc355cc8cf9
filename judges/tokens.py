"""How many tokens a text has, before anything was sent: for estimates and for reserving limits.

The built-in counter needs no vocabulary. It cuts a text as OpenAI's byte-pair encodings do (words
with the sign before them, up to three digits, runs of signs, line ends) and counts one token for
each piece and more for what these vocabularies split: long words of lines that read like Italian
(most of their words end in a vowel), capitalised names, rare scripts. tests/judges/test_tokens.py
holds it to a table of cases. After a run the ledger has what the endpoint itself reported.

How the constants were found and the error measured: least squares on half of ../shared/data (three
of MAIA's five videos, every other segment of MovieRecapsQA, six of CVRR-ES's eleven dimensions),
rounded so that MAIA's half has the right total; then measured on the other half against o200k_base
and cl100k_base themselves (twice: once before the rounding and a repaired pattern, which showed
-4 % for Italian). Texts of 20 tokens or more were off by 1 to 7 % on average, all texts of a data
set together by 0 to 4 %. Other languages, scripts and emoji were set on the few sentences of the
test's table; other vocabularies were not measured.
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
from functools import lru_cache, partial
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

O200K, CL100K = "o200k_base", "cl100k_base"

PER_MESSAGE = 3  # role and markers of one chat message, as in OpenAI's own cookbook
PER_REQUEST = 3  # the beginning of the reply

STATED_ERROR = 0.10  # of a total, Italian or English: over twice the largest that was measured


class _Slopes(NamedTuple):
    """Tokens beyond one a piece."""

    romance: float  # each letter after the 4th
    other: float  # each letter after the 6th
    romance_name: float  # a capitalised word of five letters or more
    other_name: float
    romance_joined: float  # a word of four letters or more after a sign: "l'uomo"
    other_joined: float
    script: float  # each letter of Greek, Cyrillic, Arabic and the like
    ideograph: float
    picture: float  # each emoji, beyond its piece's own


_SLOPES = {
    O200K: _Slopes(0.235, 0.04, 0.2, 0.35, 1.1, 0.18, 0.22, 0.75, 0.7),
    CL100K: _Slopes(0.345, 0.048, 0.37, 0.45, 1.2, 0.18, 0.5, 1.1, 1.6),
}
_NO_WORD = 20  # letters; longer runs are no words (hashes, base64) and split all over:
_NO_WORD_SLOPE = 0.35  # tokens each further letter

_LINE = re.compile(r"[^\n]+\n*|\n+")
_PIECE = re.compile(
    r"(?P<word>[^\r\n\w]?(?:[A-ZÀ-ÖØ-Þ]*[a-zß-öø-ɏ]+|[A-ZÀ-ÖØ-Þ]+)(?:'(?:[sdmt]|ll|ve|re)\b)?)"
    r"|(?P<script>[^\r\n\w]?[^\W\d_A-Za-zÀ-ɏ]+)"
    r"|(?P<digits>\d{1,3})"
    r"|(?P<signs> ?(?:[^\s\w]|_)+[\r\n/]*)"
    r"|(?P<space>\s*[\r\n]+|\s+(?!\S)|\s+)"
)
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_VOWELS = frozenset("aiouàèéìíòóùú")


def count(text: str, encoding: str = O200K) -> int:
    """Tokens of `text`, estimated for OpenAI's vocabulary `encoding`; 0 only for an empty text."""
    return round(sum(_line(line, encoding) for line in _LINE.findall(text)))


# A judge's prompt is the same in every request but for a few lines.
@lru_cache(maxsize=1024)
def _line(line: str, encoding: str) -> float:
    slopes, romance = _SLOPES[encoding], _romance(line)
    total = 0.0
    for match in _PIECE.finditer(line):
        kind, piece = match.lastgroup, match[0]
        total += 1
        if kind == "word":
            total += _word(piece, romance, slopes)
        elif kind == "script":
            each = slopes.ideograph if piece[-1] > "\u2e80" else slopes.script
            total += each * (len(piece) - 1)
        elif kind == "signs" and not piece.isascii():
            total += slopes.picture * sum(sign > "\u2600" for sign in piece)
    return total


def _word(piece: str, romance: float, slopes: _Slopes) -> float:
    word = piece if piece[0].isalpha() else piece[1:]
    length, other = len(word), 1 - romance
    known = min(length, _NO_WORD)
    extra = romance * slopes.romance * max(0, known - 4) + other * slopes.other * max(0, known - 6)
    extra += _NO_WORD_SLOPE * (length - known)
    if length > 4 and word[0].isupper():
        extra += romance * slopes.romance_name + other * slopes.other_name
    if length > 3 and piece[0] != " " and word is not piece:
        extra += romance * slopes.romance_joined + other * slopes.other_joined
    return extra


def _romance(line: str) -> float:
    """0 to 1: how much a line reads like Italian, from the share of words that end in a vowel.

    e does not count: English ends in it as often. About 5 % in English, 50 % in Italian.
    """
    words = _LONG_WORD.findall(line)
    if not words:
        return 0.0
    share = sum(word[-1] in _VOWELS for word in words) / len(words)
    return min(1.0, max(0.0, (share - 0.15) / 0.15))


@dataclass(frozen=True)
class Counter:
    """A way to count: its name for reports, and the stated error of a total (None: unknown)."""

    name: str
    count: Callable[[str], int]
    error: float | None


def counter(model: str) -> Counter:
    """The best counter for `model` that needs no download.

    tiktoken's, which is exact for OpenAI's models, if it is installed and the model's vocabulary is
    in its cache folder (TIKTOKEN_CACHE_DIR) already; else the built-in one.
    """
    try:
        import tiktoken

        encoding = tiktoken.encoding_name_for_model(model)
    except (ImportError, KeyError):  # no tiktoken, or not a model of OpenAI
        return Counter(f"built-in estimate for {O200K}, not {model}'s own vocabulary", count, None)
    if is_cached(encoding):
        exact = tiktoken.get_encoding(encoding)
        # encode_ordinary: a text that spells <|endoftext|> is text.
        return Counter(f"tiktoken {encoding}", lambda text: len(exact.encode_ordinary(text)), 0.0)
    encoding = encoding if encoding in _SLOPES else O200K
    return Counter(
        f"built-in estimate for {encoding}", partial(count, encoding=encoding), STATED_ERROR
    )


_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"


def is_cached(encoding: str) -> bool:
    """Whether tiktoken can load `encoding` without a download.

    tiktoken fetches a vocabulary that it does not find, or whose hash is not the one in its own
    source. So both are looked up before it is called.
    """
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    address = _ADDRESS.format(encoding)
    file = Path(folder) / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    if not folder or not file.is_file():  # an empty name switches tiktoken's cache off
        return False
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    public = import_module("tiktoken_ext.openai_public")
    source = Path(str(public.__file__)).read_text(encoding="utf-8")
    return re.search(f'{re.escape(address)}"[^"]*"{digest}', source) is not None


def count_messages(messages: Sequence[Mapping[str, Any]], counter: Counter | None = None) -> int:
    """Tokens of a request's chat messages: texts, images, and what the chat form adds."""
    number = count if counter is None else counter.count
    texts = sum(number(text) for text in _texts(messages))
    return texts + _around(messages)


def upper_bound(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens that a request hardly exceeds, to reserve a budget and a rate before it is sent.

    A quarter over the larger estimate and ten for each text, at most its bytes. None of the 24,000
    texts that were measured exceeds it in either vocabulary.
    """
    texts = sum(
        min(len(text.encode("utf-8", "surrogatepass")), 10 + math.ceil(1.25 * count(text, CL100K)))
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
