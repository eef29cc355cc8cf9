"""What tokens cost: the packaged price file, and the user's over it.

An unknown price is None and shown as unknown; it is never 0. The same model at another endpoint
does not have the same price, so the packaged file speaks for OpenAI's own endpoint only.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.verdict import DEFAULT_BASE_URL
from lmms_eval_tasks.utils.released_files import read_yaml
from lmms_eval_tasks.utils.validation import told

ANY = "*"  # every endpoint but OpenAI's
_PACKAGED = Path(__file__).with_name("prices.yml")
_SNAPSHOT = re.compile(r"-\d{4}-\d\d-\d\d$")

_Amount = Annotated[float, Field(ge=0, strict=True, allow_inf_nan=False)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    input: _Amount
    output: _Amount
    cached_input: _Amount | None = None
    source: str = ""


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")

    models: dict[str, _Entry]
    date: datetime.date | None = None
    currency: Literal["USD"] = "USD"
    per: Annotated[int, Field(gt=0, strict=True)] = 1_000_000
    batch_discount: Annotated[_Amount, Field(le=1)] = 0.5


@dataclass(frozen=True)
class Price:
    """What one model costs at one endpoint, in US dollars per `per` tokens."""

    input: float
    output: float
    cached_input: float | None  # None: prompt tokens from the endpoint's own cache cost `input`
    per: int
    batch_discount: float  # share that the Batch API takes off

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
        return total / self.per * (1 - self.batch_discount if batch else 1)


@dataclass(frozen=True)
class PriceList:
    """Prices by entry (`MODEL` at OpenAI, `MODEL@BASE_URL`, `MODEL@*`), and where they are from."""

    entries: Mapping[str, Price]
    origin: str  # for reports: "prices of 2026-11-21"

    def of(self, model: str, base_url: str | None) -> Price | None:
        """The price of `model` at an endpoint, or None: unknown.

        A name with a full date (gpt-4o-2024-08-06) has the price of the name without it unless it
        is listed itself.

        Args:
            base_url: None is OpenAI's own endpoint.
        """
        endpoint = _endpoint(base_url)
        places = [""] if endpoint == DEFAULT_BASE_URL else [f"@{endpoint}", f"@{ANY}"]
        for name in dict.fromkeys((model, _SNAPSHOT.sub("", model))):
            for place in places:
                if found := self.entries.get(name + place):
                    return found
        return None


def load(override: Path | None = None) -> PriceList:
    """The packaged prices with the user's file over them, entry by entry.

    Raises:
        JudgeError: the user's file cannot be read or an entry is wrong; names file and entry.
    """
    packaged = _read(_PACKAGED)
    entries = _entries(_PACKAGED, packaged)
    origin = f"prices of {packaged.date}"
    if override is not None:
        own = _read(override)
        entries |= _entries(override, own)
        date = f" of {own.date}" if own.date else " (no date)"
        origin += f", {override.name}{date} over them"
    return PriceList(entries, origin)


def _entries(path: Path, file: _File) -> dict[str, Price]:
    found = {}
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
        values = entry.model_dump(exclude={"source"})
        found[name] = Price(**values, per=file.per, batch_discount=file.batch_discount)
    return found


def _endpoint(base_url: str | None) -> str:
    return (base_url or DEFAULT_BASE_URL).rstrip("/")


def _read(path: Path) -> _File:
    form = "`models:` with entries such as `gpt-4o: {input: 2.5, output: 10}`"
    try:
        return _File.model_validate(read_yaml(path, form))
    except ValidationError as error:
        raise JudgeError(f"{path}: {told(error)}") from None
