"""What a judge is asked and what it says: the types of this layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
    SKIPPED = "skipped"  # nobody was asked: no judge, over budget, the endpoint given up


# Statuses that were added: what they mean, and whether the judge is to blame (`add_status`).
_added: dict[str, tuple[str, bool]] = {}


def add_status(name: str, meaning: str, *, judges_failure: bool = False) -> str:
    """Declare a status of a benchmark's own, such as `no_claims`; returns its name.

    Call it where the benchmark's module is imported. Verdicts with a status that nobody declared
    are refused, so that a misspelt one cannot pass for a new kind of failure.

    Args:
        name: a lower-case identifier.
        meaning: what it says, for documentation.
        judges_failure: whether it counts towards the failures that make a run invalid.

    Raises:
        ValueError: the name is taken with another meaning, or is no lower-case identifier.
    """
    known = {status.value for status in Status}
    if not name.isidentifier() or name != name.lower():
        raise ValueError(f"{name!r}: a status is a lower-case identifier")
    entry = (meaning, judges_failure)
    if name in known or _added.get(name, entry) != entry:
        raise ValueError(f"the status {name!r} has another meaning already")
    _added[name] = entry
    return name


def is_judges_failure(status: str) -> bool:
    """Whether a verdict with this status is missing through the judge's fault."""
    return _added[status][1] if status in _added else status != Status.OK.value


# A panel's (panel.py); declared here, since saved verdicts are read without it.
TIE = add_status(
    "tie",
    "a panel's votes are tied, and its rule for ties is to give no score",
    judges_failure=True,
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of all replies that one verdict took, a repair included; None: not reported."""

    replies: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # of the prompts', read from the endpoint's own cache
    batch: bool = False  # all of them came from an offline batch


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgement. A failure has no score: it is neither 0 nor a middle value.

    Everything in it is the same when a run is repeated from the cache. `parts` are the verdicts
    that it was made of: a panel's votes, a debate's turns.

    Raises:
        ValueError: an unknown status, an `ok` without a finite score, or a failure with a score.
    """

    score: float | None
    status: str
    reason: str = ""  # the judge's own reason, or what went wrong
    raw: str = ""  # the reply as received; kept also when it could not be read
    judge: str = ""  # who was asked: `JudgeConfig.label`
    model: str = ""  # the model as the endpoint named it in its reply
    setup: str = ""  # hash of the judge's settings and prompt: `judges.setup`
    repaired: bool = False  # the first reply could not be used, this is the second one's verdict
    usage: Usage | None = None
    # G-Eval: the score's mean over the probabilities of the score's own token, and the share of the
    # probability that lies on scores at all (geval.py). None where the judge gives none.
    expected: float | None = None
    expected_mass: float | None = None
    parts: tuple[Verdict, ...] = ()

    def __post_init__(self) -> None:
        status = self.status if self.status in _added else Status(self.status).value
        object.__setattr__(self, "status", status)
        if status != Status.OK.value:
            if self.score is not None:
                raise ValueError(f"a verdict with status {status} has no score")
        elif self.score is None or not math.isfinite(self.score):
            raise ValueError(f"a verdict with status ok needs a finite score, not {self.score}")

    def as_dict(self) -> dict[str, Any]:
        """The same as plain types, for samples and logs; what is empty is left out."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        kept["usage"] = None if self.usage is None else asdict(self.usage)
        kept["parts"] = [part.as_dict() for part in self.parts]
        always = ("score", "status", "reason", "raw", "judge", "model")
        # An expectation of 0.0 is a number, not an empty field.
        return {
            name: value
            for name, value in kept.items()
            if name in always or value or isinstance(value, float)
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Verdict:
        """A verdict that `as_dict` wrote, also that of an older version.

        Raises:
            ValueError, TypeError: it is none.
        """
        values = dict(saved)
        if values.get("usage") is not None:
            values["usage"] = Usage(**values["usage"])
        values["parts"] = tuple(cls.from_dict(part) for part in values.get("parts", ()))
        return cls(**values)


def total_usage(verdicts: Iterable[Verdict]) -> Usage | None:
    """Sum of what the verdicts took; None if none of them reports anything.

    A token count is None as soon as one verdict that had replies does not report it: a partial sum
    would pass for the whole.
    """
    usages = [verdict.usage for verdict in verdicts if verdict.usage is not None]
    if not usages:
        return None
    asked = [usage for usage in usages if usage.replies]
    return Usage(
        sum(usage.replies for usage in usages),
        _sum([usage.prompt_tokens for usage in asked]),
        _sum([usage.completion_tokens for usage in asked]),
        sum(usage.cached_tokens for usage in asked),
        bool(asked) and all(usage.batch for usage in asked),
    )


def _sum(values: Sequence[int | None]) -> int | None:
    reported = [value for value in values if value is not None]
    return sum(reported) if reported and len(reported) == len(values) else None


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
    images: tuple[str, ...] = ()  # fields whose value is a list of images (images.image_part)
    # The field that a bare rating fills (`[[4]]`, `Rating: 4`, `4`), for judges that answer
    # without JSON; None: only an object is a verdict.
    bare: str | None = None
    top_logprobs: int = 0  # ask for log-probabilities (G-Eval); see judges/geval.py


class Judge(Protocol):
    """Whoever gives verdicts. Calls come from several threads and from forked processes."""

    @property
    def config(self) -> JudgeConfig:
        """How this judge was configured."""

    def supports(self, criterion: str) -> bool:
        """Whether this judge can decide that criterion at all; asked before a run."""

    def verdict(self, criterion: Criterion, fields: Mapping[str, Any]) -> Verdict:
        """Judge one item. Trouble with the judge becomes a status, never an exception."""

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, Any], samples: int
    ) -> Sequence[Verdict]:
        """The same item judged several times, for G-Eval's mean over samples; one each."""


class Ask(NamedTuple):
    """One thing to be judged.

    Attributes:
        name: finds its saved verdict again; unique in an item.
        criterion: what is asked.
        fields: the criterion's placeholders.
        samples: draw so many and take their mean (G-Eval without log-probabilities); 0: ask once.
        first: the verdict whose request the samples follow; its usage counts with theirs.
        together: a saved verdict stands only if those of the whole list do.
        reads: a saved verdict stands only if its reply can still be read (asking.said).
        rests_on: name of an earlier ask; a saved verdict falls when that one is asked anew.
        before: called around the request, for those that want an order among requests.
        stand_in: a reply as the judge may give it, for estimates, where later asks rest on it.
    """

    name: str
    criterion: Criterion
    fields: Mapping[str, Any]
    samples: int = 0
    first: Verdict | None = None
    together: bool = False
    reads: bool = False
    rests_on: str = ""
    before: Callable[[Judge, Callable[[], Verdict]], Verdict] | None = None
    stand_in: str = ""


Asks = Sequence[Ask]
Scoring = Generator[Asks, Sequence[Verdict], dict[str, Any]]
