"""The types of this layer: judges, their requests, and their verdicts.

Every judge gives a `Verdict` on a `Criterion`. A judge that is a language model gets its replies
from a `Provider`, whose types are in providers/exchange.py.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from functools import cached_property
from importlib import metadata
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from pydantic import SecretStr

from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.metrics.aggregate import NOT_JUDGED

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

N = TypeVar("N", int, float)

# --- verdicts -------------------------------------------------------------------------------------


class Status(str, Enum):
    """The results of a judgement. Only `ok` has a score (docs/judges.md)."""

    OK = "ok"
    PARSE_FAILURE = "parse_failure"  # a reply that is not one verdict of the criterion's schema
    API_ERROR = "api_error"  # no reply after all retries: transport, key, quota
    REFUSED = "refused"  # the judge declined, or its provider's filter stopped it
    TRUNCATED = "truncated"  # the reply was cut off
    SKIPPED = "skipped"  # no request was sent: no judge, over the budget, or endpoint given up
    TIE = "tie"  # a panel's votes were tied; only in verdicts of earlier versions


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of all replies for one verdict, repairs included; None if not reported."""

    replies: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # tokens of the prompts that the endpoint read from its cache
    batch: bool = False  # True if all came from an offline batch


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement. A failure has no score: neither 0 nor a middle value.

    A run that is repeated from the cache gives equal verdicts. `parts` are the verdicts from which
    this one was made: a panel's votes, a debate's turns.

    Raises:
        ValueError: the status is unknown, `ok` has no finite score, or a failure has a score.
    """

    score: float | None
    status: str
    reason: str = ""  # the judge's reason, or the error
    raw: str = ""  # the reply as received, even if it could not be read
    judge: str = ""  # `JudgeConfig.label` of the judge
    model: str = ""  # the endpoint's name for the model in its reply
    setup: str = ""  # hash of the judge's settings and prompt: `judges.judge_fingerprint`
    # True if the first reply could not be used, and a repeated request gave this verdict.
    repaired: bool = False
    usage: Usage | None = None
    # G-Eval: the mean of the possible scores, weighted by their tokens' probabilities, and the sum
    # of these probabilities (geval.py). None for a judge without probabilities.
    expected: float | None = None
    expected_mass: float | None = None
    parts: tuple[Verdict, ...] = ()

    def __post_init__(self) -> None:
        status = Status(self.status).value
        object.__setattr__(self, "status", status)
        if status != Status.OK.value:
            if self.score is not None:
                raise ValueError(f"a verdict with status {status} has no score")
        elif self.score is None or not math.isfinite(self.score):
            raise ValueError(f"a verdict with status ok needs a finite score, not {self.score}")

    def as_dict(self) -> JsonObject:
        """Return the verdict as plain types, for samples and logs, without empty fields."""
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        kept["usage"] = self.usage and asdict(self.usage)
        kept["parts"] = [part.as_dict() for part in self.parts]
        always = ("score", "status", "reason", "raw", "judge", "model")
        # An expectation of 0.0 is a number, not an empty field.
        return {n: v for n, v in kept.items() if n in always or v or isinstance(v, float)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Json]) -> Verdict:
        """Return a verdict that `as_dict` wrote, also that of an older version.

        Raises:
            ValueError, TypeError: `saved` has another form.
        """
        usage = saved.get("usage") and Usage(**saved["usage"])
        parts = tuple(cls.from_dict(part) for part in saved.get("parts", ()))
        return cls(**{**saved, "usage": usage, "parts": parts})


def sum_known(counts: Sequence[N | None]) -> N | None:
    """Return the sum of the counts; None if one is None, since a partial sum would mislead."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def total_usage(verdicts: Iterable[Verdict]) -> Usage | None:
    """Return the sum of the verdicts' usages; None if none of them has one.

    A token count is None if a verdict with replies does not report it.
    """
    usages = [verdict.usage for verdict in verdicts if verdict.usage is not None]
    asked = [usage for usage in usages if usage.replies]
    if not asked:
        return Usage() if usages else None
    return Usage(
        sum(usage.replies for usage in asked),
        sum_known([usage.prompt_tokens for usage in asked]),
        sum_known([usage.completion_tokens for usage in asked]),
        sum(usage.cached_tokens for usage in asked),
        all(usage.batch for usage in asked),
    )


def first_problem(error: ValidationError) -> str:
    """Return the first error of a validation with its place, without the validated text."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc']) or 'verdict'}: {first['msg']}"


def failure_of(verdicts: Iterable[Verdict]) -> str:
    """Return the most frequent status that is not ok; in a tie, the first one in `Status`."""
    counts = Counter(verdict.status for verdict in verdicts)
    failures: list[str] = [one.value for one in Status if one is not Status.OK]
    return max(failures, key=lambda one: counts[one])


# --- judges ---------------------------------------------------------------------------------------

OPENAI, HUGGINGFACE, REPLAY = "openai", "huggingface", "replay"
NONE, PANEL, DEBATE = "none", "panel", "debate"
# Always passed to the client: it would otherwise use OPENAI_BASE_URL, which on many machines is the
# endpoint of the model under test.
DEFAULT_BASE_URL = "https://api.openai.com/v1"
MAX_TOKENS = 512  # tokens of a reply: one short reason and a verdict
MAX_REPLY = 200_000  # characters; a longer reply is no verdict, and only its beginning is kept


@dataclass(frozen=True)
class Sampling:
    """The sampling of the judge's reply; None leaves a choice to the endpoint."""

    temperature: float | None = 0.0
    max_tokens: int | None = None  # of the reply; None: the provider's default for the model
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None  # reasoning models: minimal, low, medium, high


@dataclass(frozen=True)
class JudgeConfig:
    """All settings of a judge; hashable, since a run has one judge object for each config."""

    provider: str  # one of the names above
    model: str = ""  # as requested; for `replay` a file of recordings
    base_url: str | None = None  # None: OpenAI's own
    sampling: Sampling = field(default_factory=lambda: Sampling(0.0, MAX_TOKENS))
    reply_format: str = "auto"  # or json_schema, json_object, text
    repairs: int = 1  # repeated requests for a reply that could not be used
    timeout: float = 60.0  # seconds of each attempt
    retries: int = 5  # further attempts after the first one
    device: str = "auto"  # huggingface
    dtype: str = "auto"  # huggingface
    revision: str | None = None  # huggingface
    trust_remote_code: bool = False  # huggingface
    members: tuple[JudgeConfig, ...] = ()  # a panel's judges; a debate's agents, consolidator last
    rule: str = "majority"  # panel: majority, mean, median
    name: str = ""  # label of a panel or debate
    comparable: bool = False  # True for the judge of the benchmark's paper, at its own endpoint
    key: SecretStr | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """The short name of the judge in verdicts and tables."""
        if self.provider == OPENAI:
            return f"{self.model}@{self.base_url}" if self.base_url else self.model
        members = f"({', '.join(one.label for one in self.members)})" if self.members else ""
        named = {HUGGINGFACE: f"hf:{self.model}", REPLAY: f"{REPLAY}:{self.model}"}
        return named.get(self.provider, self.name or self.provider + members)

    @cached_property
    def fingerprint(self) -> str:
        """12 hex digits of all settings that can change a verdict, without the key."""
        described = self.describe()
        for name in ("timeout", "retries", "version", "comparable"):
            described.pop(name, None)
        described["members"] = [member.fingerprint for member in self.members]
        text = json.dumps(described, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def endpoints(self) -> tuple[JudgeConfig, ...]:
        """The language models behind this judge: itself, a panel's members, a debate's agents."""
        if self.members:
            return tuple(model for member in self.members for model in member.endpoints)
        return (self,) if self.provider in (OPENAI, HUGGINGFACE) else ()

    def describe(self) -> JsonObject:
        """Return the settings as plain types, for results and logs; no secrets."""
        description: JsonObject = {"provider": self.provider, "model": self.model or None}
        if self.provider in (OPENAI, HUGGINGFACE):
            description |= {**vars(self.sampling), "repairs": self.repairs}
        if self.provider == OPENAI:
            description |= {
                "base_url": self.base_url or DEFAULT_BASE_URL,
                # A setting of earlier versions, which fingerprints of saved verdicts include.
                "api_version": None,
                "reply_format": self.reply_format,
                "timeout": self.timeout,
                "retries": self.retries,
            }
        if self.provider == HUGGINGFACE:
            description |= {name: getattr(self, name) for name in ("device", "dtype", "revision")}
            description |= {f"{name}_version": _version(name) for name in ("transformers", "torch")}
        if self.provider == PANEL:
            description |= {"rule": self.rule, "tie": "lower"}  # `tie` stays for the same reason
        if self.members:
            description["members"] = [member.describe() for member in self.members]
        return description | {"version": _version("lmms-eval-tasks"), "comparable": self.comparable}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# --- requests -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Criterion:
    """A kind of verdict; each benchmark defines its own.

    `template` and `system` have `{placeholders}`. `score` maps any valid reply to a number and does
    not raise. A schema's text field `reason` becomes the verdict's reason.
    """

    name: str
    system: str
    template: str
    schema: type[BaseModel]
    score: Callable[[Any], float]  # called with an instance of `schema`
    prompt_hash: str
    untrusted: tuple[str, ...] = ("candidate",)  # fields with text of a model under test
    images: tuple[str, ...] = ()  # fields with a list of pictures (Pillow's)
    # The schema's field for a rating without JSON (`[[4]]`, `Rating: 4`, `4`). None: such
    # a reply is no verdict.
    bare: str | None = None
    # Words that can be the judge's whole reply, each with its meaning. If there are any, no JSON is
    # requested.
    labels: tuple[tuple[str, BaseModel], ...] = ()
    # Number of alternatives per token whose log-probabilities are requested (judges/geval.py).
    top_logprobs: int = 0
    # A stricter JSON schema for this request alone, if `schema` serves several requests; for
    # endpoints that enforce a schema (engine.exact_schema).
    exact_schema: Mapping[str, Any] | None = field(default=None, hash=False)


class Judge(ABC):
    """A source of verdicts; called from several threads."""

    config: JudgeConfig

    def verdict(self, criterion: Criterion, fields: Mapping[str, object]) -> Verdict:
        """Judge one item. An error of the judge becomes a status, never an exception."""
        return self.verdicts(criterion, fields, 1)[0]

    @abstractmethod
    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> Sequence[Verdict]:
        """Judge an item `samples` times (for G-Eval's mean), and return all verdicts."""


@dataclass(frozen=True)
class JudgeRequest:
    """A request for a judgement. Subclasses may define other ways to get or to keep a verdict."""

    name: str  # unique in an item; the key of the request's saved verdict
    criterion: Criterion
    fields: Mapping[str, object]  # the criterion's placeholders
    # Name of the earlier request on whose verdict this one depends; if that verdict is new, the
    # saved verdict of this request is invalid.
    rests_on: str = ""
    # A likely reply of the judge, for estimates, if later requests depend on the reply.
    stand_in: str = ""
    # True: the saved verdicts of the requests in one list are valid only if all of them are.
    in_one: ClassVar[bool] = False

    def answered(self, judge: Judge) -> Verdict:
        """Return the judge's verdict."""
        return judge.verdict(self.criterion, self.fields)

    def stands(self, saved: Verdict) -> bool:  # noqa: ARG002
        """Return True if a saved verdict on this request is still valid."""
        return True


JudgeRequests = Sequence[JudgeRequest]
R = TypeVar("R")
ScoringSteps = Generator[JudgeRequests, Sequence[Verdict], R]  # returns an item's fields
OF_THE_JUDGE = "judge_"  # prefix of an item's status for failures of the judge


class JudgedAnswer(NamedTuple):
    """An answer with its verdict, status and score."""

    candidate: str  # the text for the judge, without reasoning; "" if it is no answer
    status: str
    score: float | None
    verdict: Verdict | None  # None if there was no answer to judge

    @property
    def number(self) -> float | None:
        """The score, as an int if it is a whole number; the mean of a panel may be a fraction."""
        return self.score if self.score is None or self.score % 1 else int(self.score)


def judged_answer(candidate: str, verdict: Verdict) -> JudgedAnswer:
    """Return an answer with its verdict and its own status: ok, `unjudged` or `judge_STATUS`."""
    if verdict.judge == NONE:
        # Not `judge_skipped`, which is a failure, such as a budget that ended in a judged run.
        return JudgedAnswer(candidate, NOT_JUDGED, None, verdict)
    ok = verdict.status == Status.OK.value
    return JudgedAnswer(
        candidate, "ok" if ok else OF_THE_JUDGE + verdict.status, verdict.score, verdict
    )
