"""What judging costs, known or estimated: tokens of texts, prices of models, the work of a plan.

A price that is listed nowhere is None and shown as unknown; it is never 0. The same model at
another endpoint does not have the same price: the packaged file speaks for OpenAI's own alone.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import os
import re
import tempfile
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.config import is_reasoning
from lmms_eval_tasks.judges.verdict import DEBATE, DEFAULT_BASE_URL, Criterion, JudgeConfig
from lmms_eval_tasks.utils.released_files import read_yaml
from lmms_eval_tasks.utils.validation import told

# --- tokens ---------------------------------------------------------------------------------------
#
# tiktoken's own count where its vocabulary is in its cache already: exact for OpenAI's models, and
# nothing is downloaded. Else a rule that needs none: a token for each piece that OpenAI's encodings
# cut a text into, and more for long words, most of all in lines that read like Italian, and for
# rare scripts. Its constants were set on the texts of tests/cases/token_counts.json, whose English
# and Italian it counts within STATED_ERROR; other languages and vocabularies were not measured.

PER_MESSAGE = 3  # role and markers of one chat message, as in OpenAI's own cookbook
PER_REQUEST = 3  # the beginning of the reply
STATED_ERROR = 0.10  # of a total, Italian or English

_PIECE = re.compile(
    r"[^\r\n\w]?[^\W\d_]+|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_VOWELS = frozenset("aiouàèéìíòóùú")  # not e: English words end in it as often
_NO_WORD = 20  # letters; longer runs are no words (hashes, base64) and split all over


def count(text: str) -> int:
    """Tokens of `text` by the rule; 0 only for an empty text."""
    return round(sum(map(_line, re.findall(r"[^\n]+\n*|\n+", text))))


# A judge's prompt is the same in every request but for a few lines.
@lru_cache(maxsize=1024)
def _line(line: str) -> float:
    # How much it reads like Italian, from the words that end in a vowel: 5 % in English, 50 there.
    words = _LONG_WORD.findall(line)
    share = sum(word[-1] in _VOWELS for word in words) / max(1, len(words))
    romance, total = min(1.0, max(0.0, (share - 0.15) / 0.15)), 0.0
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


@dataclass(frozen=True)
class Counter:
    """A way to count: its name for reports, and the stated error of a total (None: unknown)."""

    name: str
    count: Callable[[str], int]
    error: float | None


def counter(model: str) -> Counter:
    """The best counter for `model` that needs no download."""
    import tiktoken

    try:
        encoding = tiktoken.encoding_name_for_model(model)
    except KeyError:  # not a model of OpenAI
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


def count_messages(messages: Sequence[Mapping[str, Any]], number: Callable[[str], int]) -> int:
    """Tokens of a request's chat messages: texts, images, and what the chat form adds."""
    total = PER_REQUEST + PER_MESSAGE * len(messages)
    for part in _parts(messages):
        text = part.get("text")
        total += _image(part["image_url"]["url"]) if text is None else number(text)
    return total


def upper_bound(messages: Sequence[Mapping[str, Any]]) -> int:
    """Tokens that a request hardly exceeds, to reserve a budget and a rate before it is sent.

    Two fifths over the estimate and ten for each text, at most its bytes.
    """

    def most(text: str) -> int:
        return min(len(text.encode("utf-8", "surrogatepass")), 10 + math.ceil(1.4 * count(text)))

    return count_messages(messages, most)


def _parts(messages: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        content = message["content"]
        yield from [{"text": content}] if isinstance(content, str) else content


def image_tokens(width: int, height: int) -> int:
    """Estimated tokens of an image in pixels: OpenAI's published rule for gpt-4o and gpt-4.1.

    Made to fit 2048 x 2048, then its shorter side to 768, never enlarged; 85 tokens and 170 for
    each tile of 512 x 512. Small and reasoning models and other endpoints' count otherwise.
    """
    scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
    # Rounded: 1366 * (512 / 1366) must not reach into another tile.
    across, down = (math.ceil(round(side * scale, 6) / 512) for side in (width, height))
    return 85 + 170 * across * down


def _image(url: str) -> int:
    from PIL import Image

    with Image.open(BytesIO(b64decode(url.partition("base64,")[2]))) as opened:  # the header only
        return image_tokens(*opened.size)


# --- prices ---------------------------------------------------------------------------------------

PER = 1_000_000  # tokens that a price is for
BATCH_DISCOUNT = 0.5  # share that OpenAI's Batch API takes off
ANY = "*"  # every endpoint but OpenAI's
_PACKAGED = Path(__file__).with_name("prices.yml")
_SNAPSHOT = re.compile(r"-\d{4}-\d\d-\d\d$")
_Amount = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


class Price(BaseModel):
    """What one model costs at one endpoint, in US dollars per million tokens."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None  # from the endpoint's own prompt cache; None: as `input`
    source: str = ""

    def cost(
        self,
        prompt_tokens: int | None,
        completion_tokens: int | None,
        cached_tokens: int = 0,
        batch: bool = False,
    ) -> float | None:
        """Dollars for one reply, or None if a token count is unknown.

        Args:
            prompt_tokens: all of the prompt's, `cached_tokens` included.
            completion_tokens: all of the reply's, with those of hidden reasoning.
            cached_tokens: read from the endpoint's own prompt cache.
            batch: asked through the Batch API.
        """
        if prompt_tokens is None or completion_tokens is None:
            return None
        cached = min(cached_tokens, prompt_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        total = (
            (prompt_tokens - cached) * self.input
            + cached * cached_price
            + completion_tokens * self.output
        )
        return total / PER * (1 - BATCH_DISCOUNT if batch else 1)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    models: dict[str, Price]
    date: datetime.date | None = None
    currency: Literal["USD"] = "USD"


@dataclass(frozen=True)
class PriceList:
    """Prices by entry (`MODEL` at OpenAI, `MODEL@BASE_URL`, `MODEL@*`), and where they are from."""

    entries: Mapping[str, Price]
    origin: str  # for reports: "prices of 2026-11-21"

    def of(self, model: str, base_url: str | None) -> Price | None:
        """The price of `model` at an endpoint (None: OpenAI's own), or None: unknown.

        A name with a full date (gpt-4o-2024-08-06) has the price of the name without it unless it
        is listed itself.
        """
        endpoint = _endpoint(base_url)
        places = [""] if endpoint == DEFAULT_BASE_URL else [f"@{endpoint}", f"@{ANY}"]
        for name in (model, _SNAPSHOT.sub("", model)):
            for place in places:
                if found := self.entries.get(name + place):
                    return found
        return None


def load_prices(override: Path | None = None) -> PriceList:
    """The packaged prices with the user's file over them, entry by entry.

    Raises:
        JudgeError: the user's file cannot be read or an entry is wrong; names file and entry.
    """
    date, entries = _read(_PACKAGED)
    origin = f"prices of {date}"
    if override is not None:
        date, own = _read(override)
        entries |= own
        origin += f", {override.name}{f' of {date}' if date else ' (no date)'} over them"
    return PriceList(entries, origin)


def _read(path: Path) -> tuple[datetime.date | None, dict[str, Price]]:
    form = "`models:` with entries such as `gpt-4o: {input: 2.5, output: 10}`"
    try:
        file = _File.model_validate(read_yaml(path, form))
    except ValidationError as error:
        raise JudgeError(f"{path}: {told(error)}") from None
    found: dict[str, Price] = {}
    for key, entry in file.models.items():
        model, at, url = key.partition("@")
        if not model or (at and url != ANY and not re.match(r"https?://\S", url)):
            raise JudgeError(
                f"{path}: models: {key}: an entry is MODEL, MODEL@http(s)://... or MODEL@{ANY}"
            )
        endpoint = _endpoint(url) if at else DEFAULT_BASE_URL
        name = model if endpoint == DEFAULT_BASE_URL else f"{model}@{endpoint}"
        if name in found:
            raise JudgeError(f"{path}: models: {key}: {name} is there twice")
        found[name] = entry
    return file.date, found


def _endpoint(base_url: str | None) -> str:
    return (base_url or DEFAULT_BASE_URL).rstrip("/")


# --- the work of a plan, asking nobody ------------------------------------------------------------

REPLY_TOKENS = 60  # of a verdict with one short reason
REASONING_TOKENS = 600  # more for a model that thinks first
SECONDS_PER_CALL = 2.0  # of one request, where no rate is given

# A criterion, its fields, and a reply of the likely length.
Asked = tuple[Criterion, Mapping[str, Any], str]


@dataclass
class Plan:
    """The work of a task, a step or a model. Dollars are None where the price is unknown."""

    task: str = ""
    generations: int = 0
    prompt_tokens: int = 0  # text of the model's own prompts
    verdicts: int = 0
    calls: int = 0
    judge_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = 0.0
    batch_cost: float | None = 0.0
    notes: list[str] = field(default_factory=list)

    def add(self, other: Plan) -> None:
        """Add another one's numbers."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("cost", "batch_cost"):
            one, more = getattr(self, name), getattr(other, name)
            setattr(self, name, None if one is None or more is None else one + more)

    def enlarged(self, factor: float) -> Plan:
        """The work if there were `factor` times as much of it; without its notes."""
        cost, batch_cost = (
            None if one is None else factor * one for one in (self.cost, self.batch_cost)
        )
        counts = {name: round(factor * getattr(self, name)) for name in _NUMBERS}
        return replace(self, **counts, cost=cost, batch_cost=batch_cost, notes=[])


_NUMBERS = [one.name for one in fields(Plan) if one.type == "int"]  # annotations are strings here


def calls_per_verdict(config: JudgeConfig, model: JudgeConfig) -> int:
    """How often a verdict asks one of its models: a debate's agents once a round, others once.

    At most: as published (no rounds) a debate's agents are asked once where they agree, else twice.
    """
    is_agent = config.provider == DEBATE and model is not config.endpoints[-1]
    return (config.rounds or 2) if is_agent else 1


def add_judge(
    found: Plan,
    model: JudgeConfig,
    judged: Sequence[tuple[Criterion, Mapping[str, Any]]],
    times: int,
) -> None:
    """Add to an estimate what one model is asked, `times` times each."""
    number = counter(model.model)
    each = min(REPLY_TOKENS, model.sampling.max_tokens or REPLY_TOKENS)  # MAIA's says one word
    thinks = is_reasoning(model.model)
    each += REASONING_TOKENS if thinks else 0
    calls = times * len(judged)
    found.add(_priced(model, times * _asked(judged, number), calls * each, calls))
    error = "error unknown" if number.error is None else f"within {number.error:.0%} of a total"
    found.notes.append(
        f"{model.label}: tokens by {number.name} ({error if number.error != 0 else 'exact'}); "
        f"replies: {each} tokens assumed{', most of them reasoning' if thinks else ''}"
    )


def plan(config: JudgeConfig, asked: Sequence[Asked], picture_tokens: int = 0) -> Plan:
    """The work of a judge that is asked once for each of `asked`; none for one that asks nobody.

    Without repairs and without what is in our own cache already.

    Args:
        picture_tokens: of all their pictures, which they leave out.
    """
    if not config.endpoints:
        return Plan(verdicts=len(asked), notes=[f"{config.label} sends no requests"])
    number = counter(config.model)
    thought = REASONING_TOKENS if is_reasoning(config.model) else 0
    prompt = picture_tokens + _asked([(one, given) for one, given, _ in asked], number)
    reply = sum(number.count(text) + thought for _, _, text in asked)
    found = _priced(config, prompt, reply, len(asked))
    found.verdicts = len(asked)
    assumed = f"; {thought} tokens of reasoning assumed for each reply" if thought else ""
    found.notes.append(f"{config.label}: tokens by {number.name}{assumed}")
    return found


def _asked(judged: Sequence[tuple[Criterion, Mapping[str, Any]]], number: Counter) -> int:
    from lmms_eval_tasks.judges.engine import render

    return sum(count_messages(render(one, given), number.count) for one, given in judged)


def _priced(model: JudgeConfig, prompt: int, reply: int, calls: int) -> Plan:
    from lmms_eval_tasks.judges import run

    price = run.current().price(model)
    plain, batch = (
        None if price is None else price.cost(prompt, reply, batch=batch) for batch in (False, True)
    )
    return Plan(calls=calls, judge_tokens=prompt, reply_tokens=reply, cost=plain, batch_cost=batch)


def default_rate() -> tuple[float, str]:
    """Calls a second that the user's limits allow, and how that was found."""
    from lmms_eval_tasks.judges.run import CONCURRENCY

    limits = settings.judge_limits()
    flight = limits.concurrency or CONCURRENCY
    rate, why = flight / SECONDS_PER_CALL, f"{flight} in flight, {SECONDS_PER_CALL:g} s each"
    per_minute = limits.requests_per_minute
    if per_minute is not None and per_minute / 60 < rate:
        rate, why = per_minute / 60, f"{settings.JUDGE_RPM}={per_minute:g}"
    return rate, why


def summary(found: Plan) -> str:
    """The estimate in words, in one line."""
    from lmms_eval_tasks.judges.report import dollars, duration

    if not found.calls:
        return f"{found.verdicts:,} verdicts, no requests"
    rate, why = default_rate()
    cost = "unknown price" if found.cost is None else dollars(found.cost)
    return (
        f"{found.verdicts:,} verdicts, {found.calls:,} calls, about {found.judge_tokens:,} + "
        f"{found.reply_tokens:,} tokens, {cost}, {duration(found.calls / rate)} at {rate:g} calls "
        f"a second ({why})"
    )
