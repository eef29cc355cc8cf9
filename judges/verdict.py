"""What a judge is asked and what it says: the types of this layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pydantic import BaseModel

    from lmms_eval_tasks.judges.config import JudgeConfig


class Status(str, Enum):
    """How a verdict came about. Only `ok` carries a score (metrics.md, every number in three)."""

    OK = "ok"
    PARSE_FAILURE = "parse_failure"  # a reply that is not one verdict of the criterion's schema
    API_ERROR = "api_error"  # no reply: transport, key, quota, after all retries
    REFUSED = "refused"  # the judge declined, or its provider's filter stopped it
    TRUNCATED = "truncated"  # the reply was cut off
    SKIPPED = "skipped"  # nobody was asked


@dataclass(frozen=True)
class Verdict:
    """One judgement. A failure has no score: it is neither 0 nor a middle value.

    Raises:
        ValueError: an unknown status, an `ok` without a finite score, or a failure with a score.
    """

    score: float | None
    status: str
    reason: str = ""  # the judge's own reason, or what went wrong
    raw: str = ""  # the reply as received; kept also when it could not be read
    judge: str = ""  # who was asked: `JudgeConfig.label`
    model: str = ""  # the model as the endpoint named it in its reply

    def __post_init__(self) -> None:
        status = Status(self.status)
        object.__setattr__(self, "status", status.value)
        if status is not Status.OK:
            if self.score is not None:
                raise ValueError(f"a verdict with status {status.value} has no score")
        elif self.score is None or not math.isfinite(self.score):
            raise ValueError(f"a verdict with status ok needs a finite score, not {self.score}")

    def as_dict(self) -> dict[str, Any]:
        """The same as plain types, for samples and logs."""
        return asdict(self)


@dataclass(frozen=True)
class Criterion:
    """One kind of verdict; each benchmark defines its own.

    `template` and `system` hold `{placeholders}`; `score` maps any valid reply to a number and
    does not raise. A schema's text field `reason` becomes the verdict's reason.
    """

    name: str
    system: str
    template: str
    schema: type[BaseModel]
    score: Callable[[Any], float]  # called with an instance of `schema`
    prompt_hash: str
    untrusted: tuple[str, ...] = ("candidate",)  # fields whose text a model under test wrote


class Judge(Protocol):
    """Whoever gives verdicts. Calls come from several threads and from forked processes."""

    @property
    def config(self) -> JudgeConfig:
        """How this judge was configured."""

    def supports(self, criterion: str) -> bool:
        """Whether this judge can decide that criterion at all; asked before a run."""

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        """Judge one item. Trouble with the judge becomes a status, never an exception."""
