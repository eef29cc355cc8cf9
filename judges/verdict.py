"""The types of this layer: judges, their requests, and their verdicts.

Every judge gives a `Verdict` on a `Criterion`. A language model gives it through a `Provider`, with
that layer's requests and replies (providers/exchange.py).
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
    SKIPPED = "skipped"  # no request was sent: no judge, over budget, the endpoint given up
    TIE = "tie"  # a panel's tied votes, an option of earlier versions


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of all replies for one verdict, repairs included; None if not reported."""

    replies: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0  # tokens of the prompts that the endpoint read from its cache
    batch: bool = False  # True if all came from an offline batch


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement. A failure has no score: neither 0 nor a middle value.

    A run that is repeated from the cache gives equal verdicts. `parts` are the verdicts behind it:
    a panel's votes, a debate's turns.

    Raises:
        ValueError: an unknown status, an `ok` without a finite score, or a failure with a score.
    """

    score: float | None
    status: str
    reason: str = ""  # the judge's reason, or the error
    raw: str = ""  # the reply as received, even if it could not be read
    judge: str = ""  # `JudgeConfig.label` of the judge
    model: str = ""  # the endpoint's name for the model in its reply
    setup: str = ""  # hash of the judge's settings and prompt: `judges.judge_fingerprint`
    # True if the first reply could not be used: this is the second one's verdict.
    repaired: bool = False
    usage: Usage | None = None
    # G-Eval: the score's mean over the probabilities of its token, and the probability of all
    # scores together (geval.py). None for a judge without probabilities.
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
            ValueError, TypeError: it is of another form.
        """
        usage = saved.get("usage") and Usage(**saved["usage"])
        parts = tuple(cls.from_dict(part) for part in saved.get("parts", ()))
        return cls(**{**saved, "usage": usage, "parts": parts})


def sum_known(counts: Sequence[N | None]) -> N | None:
    """Return the sum; None as soon as one is unknown: a partial sum would pass for the whole."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def total_usage(verdicts: Iterable[Verdict]) -> Usage | None:
    """Return the sum of the verdicts' usages; None if none of them has one.

    A token count is None as soon as one verdict with replies does not report it.
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
    """Return the most frequent status that is not ok; of several the first in Status."""
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
MAX_REPLY = 200_000  # characters; a longer reply is no verdict: neither read nor kept whole


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
    """All settings of a judge. Hashable: one judge per config and run."""

    provider: str  # one of the names above
    model: str = ""  # as requested; for `replay` a file of recordings
    base_url: str | None = None  # None: OpenAI's own
    sampling: Sampling = field(default_factory=lambda: Sampling(0.0, MAX_TOKENS))
    reply_format: str = "auto"  # or json_schema, json_object, text
    repairs: int = 1  # repeated requests for a reply that could not be used
    timeout: float = 60.0  # seconds of each attempt
    retries: int = 5  # after the first attempt
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
        found: JsonObject = {"provider": self.provider, "model": self.model or None}
        if self.provider in (OPENAI, HUGGINGFACE):
            found |= {**vars(self.sampling), "repairs": self.repairs}
        if self.provider == OPENAI:
            found |= {
                "base_url": self.base_url or DEFAULT_BASE_URL,
                "api_version": None,  # from earlier versions, in fingerprints of saved verdicts
                "reply_format": self.reply_format,
                "timeout": self.timeout,
                "retries": self.retries,
            }
        if self.provider == HUGGINGFACE:
            found |= {name: getattr(self, name) for name in ("device", "dtype", "revision")}
            found |= {f"{name}_version": _version(name) for name in ("transformers", "torch")}
        if self.provider == PANEL:
            found |= {"rule": self.rule, "tie": "lower"}  # tie: as api_version
        if self.members:
            found["members"] = [member.describe() for member in self.members]
        return found | {"version": _version("lmms-eval-tasks"), "comparable": self.comparable}


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
    # The field of a rating without JSON (`[[4]]`, `Rating: 4`, `4`); None: only an object is a
    # verdict.
    bare: str | None = None
    # Words that may each be a whole reply, with their meanings. With these no JSON is requested.
    labels: tuple[tuple[str, BaseModel], ...] = ()
    # Alternatives per token to request log-probabilities of (G-Eval); see judges/geval.py.
    top_logprobs: int = 0
    # The JSON schema of this very request, if `schema` serves several; for endpoints that enforce a
    # schema (engine.exact_schema).
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
        """Judge an item several times, for G-Eval's mean over samples; a verdict for each."""


@dataclass(frozen=True)
class JudgeRequest:
    """A request for a judgement; a scoring with further needs has a subclass."""

    name: str  # unique in an item; finds its saved verdict
    criterion: Criterion
    fields: Mapping[str, object]  # the criterion's placeholders
    # Name of an earlier one; if that one is asked anew, this one's saved verdict is invalid.
    rests_on: str = ""
    stand_in: str = ""  # a likely reply of the judge, for estimates, if later ones rest on it
    # True: a list's saved verdicts are valid only if all of them are.
    in_one: ClassVar[bool] = False

    def answered(self, judge: Judge) -> Verdict:
        """Return the judge's verdict."""
        return judge.verdict(self.criterion, self.fields)

    def stands(self, saved: Verdict) -> bool:  # noqa: ARG002
        """Return True if a saved verdict of this ask is still valid."""
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
        """The score, as an int if it is whole: the mean of a panel need not be."""
        return self.score if self.score is None or self.score % 1 else int(self.score)


def judged_answer(candidate: str, verdict: Verdict) -> JudgedAnswer:
    """Return an answer with its verdict; the status tells whose failure a missing score is."""
    if verdict.judge == NONE:
        # Not `judge_skipped`: an answer over the budget is a failure of a judged run, this is not.
        return JudgedAnswer(candidate, NOT_JUDGED, None, verdict)
    ok = verdict.status == Status.OK.value
    return JudgedAnswer(
        candidate, "ok" if ok else OF_THE_JUDGE + verdict.status, verdict.score, verdict
    )
