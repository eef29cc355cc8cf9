"""Tokens of texts and pictures, and prices of models.

A price that is not listed is None and shown as unknown, never 0. The same model at another endpoint
has another price: the packaged file is about OpenAI's endpoint alone.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import os
import re
import tempfile
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.verdict import DEFAULT_BASE_URL
from lmms_eval_tasks.utils.json_files import Json
from lmms_eval_tasks.utils.released_files import read_yaml
from lmms_eval_tasks.utils.validation import validation_problems

# --- tokens ---------------------------------------------------------------------------------------
# tiktoken's count, if its vocabulary is in its cache: exact for OpenAI's models, without a
# download. Else a rule without a vocabulary: a token for each piece that OpenAI's encodings cut a
# text into, and more for long words, most of all in lines that read like Italian, and for rare
# scripts. Its constants were set on the texts of tests/cases/token_counts.json, whose English and
# Italian it counts within STATED_ERROR; other languages and vocabularies were not measured.

PER_MESSAGE = 3  # role and markers of one chat message, as in OpenAI's cookbook
PER_REQUEST = 3  # the beginning of the reply
STATED_ERROR = 0.10  # relative error of a total, Italian or English

_PIECE = re.compile(
    r"[^\r\n\w]?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_VOWELS = frozenset("aiouàèéìíòóùú")  # not e: English words end in it as often as Italian ones
_NO_WORD = 20  # letters; longer runs are no words (hashes, base64) and split everywhere


def count(text: str) -> int:
    """Return the tokens of `text` by the rule; 0 only for an empty text."""
    return round(sum(map(_line, re.findall(r"[^\n]+\n*|\n+", text))))


# Cached: a judge's prompt is the same in every request but for a few lines.
@lru_cache(maxsize=1024)
def _line(line: str) -> float:
    # How Italian the line is: about 5 % of English words end in such a vowel, 50 % of Italian ones.
    words = _LONG_WORD.findall(line)
    share = sum(word[-1] in _VOWELS for word in words) / max(1, len(words))
    romance, total = min(1.0, max(0.0, (share - 0.15) / 0.15)), 0.0
    for piece in _PIECE.findall(line):
        length, known = len(piece), min(len(piece), _NO_WORD)
        total += 1
        if not piece[-1].isalpha():
            total += 0 if piece.isascii() else 0.7 * (length - 1)
        elif piece[-1] < "\u0250":  # a Latin letter
            total += romance * 0.33 * max(0, known - 5) + (1 - romance) * 0.05 * max(0, known - 7)
            total += 0.35 * (length - known)
        else:
            total += (0.9 if piece[-1] > "\u2e80" else 0.3) * (length - 1)  # ideographs split more
    return total


class Counter(NamedTuple):
    """A way to count: its name for reports, and the relative error of a total (None: unknown)."""

    name: str
    count: Callable[[str], int]
    error: float | None


def counter(model: str) -> Counter:
    """Return the best counter for `model` that needs no download."""
    import tiktoken

    try:
        encoding = tiktoken.encoding_name_for_model(model)
    except KeyError:  # not a model of OpenAI
        return Counter(f"built-in estimate, not {model}'s own vocabulary", count, None)
    if not is_cached(encoding):
        return Counter(f"built-in estimate for {encoding}", count, STATED_ERROR)
    exact = tiktoken.get_encoding(encoding)
    # encode_ordinary: <|endoftext|> in a text is text.
    return Counter(f"tiktoken {encoding}", lambda text: len(exact.encode_ordinary(text)), 0.0)


def is_cached(encoding: str) -> bool:
    """Return True if tiktoken has `encoding` in its folder (TIKTOKEN_CACHE_DIR)."""
    given = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    folder = Path(tempfile.gettempdir()) / "data-gym-cache" if given is None else Path(given)
    address = f"https://openaipublic.blob.core.windows.net/encodings/{encoding}.tiktoken"
    name = hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()
    return given != "" and (folder / name).is_file()  # an empty name switches tiktoken's cache off


def count_messages(messages: Sequence[Mapping[str, Json]], number: Callable[[str], int]) -> int:
    """Return the tokens of a request's chat messages: texts, images, and the chat format's."""
    total = PER_REQUEST + PER_MESSAGE * len(messages)
    for message in messages:
        content = message["content"]
        parts: Json = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            if (text := part.get("text")) is None:
                from PIL import Image

                data = b64decode(part["image_url"]["url"].partition("base64,")[2])
                with Image.open(BytesIO(data)) as opened:  # the header only
                    total += image_tokens(*opened.size)
            else:
                total += number(text)
    return total


def upper_bound(messages: Sequence[Mapping[str, Json]]) -> int:
    """Return a number of tokens that a request hardly exceeds, for reservations of budget and rate.

    It is 1.4 times the estimate plus ten for each text, but at most the text's bytes.
    """

    def most(text: str) -> int:
        return min(len(text.encode("utf-8", "surrogatepass")), 10 + math.ceil(1.4 * count(text)))

    return count_messages(messages, most)


def image_tokens(width: int, height: int) -> int:
    """Return the estimated tokens of an image in pixels: OpenAI's rule for gpt-4o and gpt-4.1.

    The image is shrunk to fit 2048 x 2048, then its shorter side to 768, never enlarged; 85 tokens,
    and 170 for each tile of 512 x 512. Small and reasoning models and other endpoints count
    differently.
    """
    scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
    # Rounded: 1366 * (512 / 1366) must not need another tile.
    across, down = (math.ceil(round(side * scale, 6) / 512) for side in (width, height))
    return 85 + 170 * across * down


# --- prices ---------------------------------------------------------------------------------------

BATCH_DISCOUNT = 0.5  # discount of OpenAI's Batch API
_Amount = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


class Price(BaseModel):
    """The price of one model at one endpoint, in US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None  # tokens from the endpoint's prompt cache; None: as `input`
    source: str = ""

    def cost(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        cached_tokens: int = 0,
        batch: bool = False,
    ) -> float | None:
        """Return the dollars of one reply, or None if a token count is unknown.

        Args:
            prompt_tokens: tokens of the prompt.
            completion_tokens: tokens of the reply, with hidden reasoning.
            cached_tokens: the prompt's tokens that the endpoint read from its cache.
            batch: True for OpenAI's Batch API.
        """
        if prompt_tokens is None or completion_tokens is None:
            return None
        cached = min(cached_tokens, prompt_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        prompt = (prompt_tokens - cached) * self.input + cached * cached_price
        total = (prompt + completion_tokens * self.output) / 1_000_000
        return total * (1 - BATCH_DISCOUNT if batch else 1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    models: dict[str, Price]
    date: datetime.date | None = None


@dataclass(frozen=True)
class PriceList:
    """Prices by entry (`MODEL` at OpenAI, `MODEL@BASE_URL`, `MODEL@*`), and their origin."""

    entries: Mapping[str, Price]
    origin: str  # for reports: "prices of 2026-11-21"

    def of(self, model: str, base_url: str | None) -> Price | None:
        """Return the price of `model` at an endpoint (None: OpenAI's own), or None if unknown.

        A name with a full date (gpt-4o-2024-08-06) that is not listed has the price of the name
        without it.
        """
        endpoint = (base_url or DEFAULT_BASE_URL).rstrip("/")
        places = [""] if endpoint == DEFAULT_BASE_URL else [f"@{endpoint}", "@*"]
        for name in (model, re.sub(r"-\d{4}-\d\d-\d\d$", "", model)):
            for place in places:
                if found := self.entries.get(name + place):
                    return found
        return None


def load_prices(override: Path | None = None) -> PriceList:
    """Return the packaged prices, with the entries of the user's file in place of ours.

    Raises:
        JudgeError: the user's file cannot be read or an entry is wrong; names file and entry.
    """
    entries: dict[str, Price] = {}
    origin: list[str] = []
    for path in (Path(__file__).with_name("prices.yml"), *([override] if override else [])):
        form = "`models:` with entries such as `gpt-4o: {input: 2.5, output: 10}`"
        try:
            file = _File.model_validate(read_yaml(path, form))
        except ValidationError as error:
            raise JudgeError(f"{path}: {validation_problems(error)}") from None
        entries |= {name.rstrip("/"): price for name, price in file.models.items()}
        dated = f" of {file.date}" if file.date else " (no date)"
        origin.append(f"{path.name}{dated} over them" if origin else f"prices{dated}")
    return PriceList(entries, ", ".join(origin))
