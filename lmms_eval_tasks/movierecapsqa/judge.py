"""What MovieRecapsQA asks of a judge: an answer's claims, then a label for each claim (paper, 4.2).

All requests about one segment begin with the same bytes, as providers' prompt caches want it: one
system text, then the segment's facts and dialogue, and only then what differs (dimension, question,
claims). OpenAI puts the reply's JSON schema before the system text, so that is one and the same for
every dimension and number of claims too; what differs is checked when a reply is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.judges.config import DEBATE, MAX_TOKENS, PANEL
from lmms_eval_tasks.movierecapsqa import bounds
from lmms_eval_tasks.movierecapsqa.labels import DIMENSIONS
from lmms_eval_tasks.utils import prompt_notes, prompts

PAPER_JUDGE = "gpt-4.1-mini"  # paper, 4.2; it names no dated version
CLAIMS = "movierecapsqa_claims"  # names of the criteria
LABELS = "movierecapsqa_labels"

# A reply grows with the number of claims: one for a long answer does not fit the judges' defaults
# (512 tokens, 60 seconds), which stand for "the user has set nothing". 4,096 tokens hold about 300
# labels; a reply that was cut off is asked for once more with twice the room (engine.py).
REPLY_TOKENS = 4096
TIMEOUT = 180.0  # seconds

_PLACEHOLDERS = {
    "claims_system": (),
    "claims": ("question", "candidate"),
    "system": (),
    "context": ("facts", "dialogue"),
    **dict.fromkeys(DIMENSIONS, ()),
    "reply": ("question", "claims", "words"),
}
_WORDS = list(dict.fromkeys(word for words in bounds.LABELS.values() for word in words))


class Claims(BaseModel):
    """The claims of an answer, one statement each."""

    model_config = ConfigDict(extra="forbid")

    claims: list[str]

    @field_validator("claims")
    @classmethod
    def _on_one_line(cls, claims: list[str]) -> list[str]:
        # They are numbered by line: a line break inside one could pass for the next. Those without
        # a letter or a digit are blank.
        lines = (" ".join(claim.split()) for claim in claims)
        return [line for line in lines if any(map(str.isalnum, line))]


def _number(value: Any) -> Any:
    """An id in another notation ("2", 2.0) as a whole number."""
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Label(BaseModel):
    """One claim's label; `id` is the claim's number, from 1 on."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[int, BeforeValidator(_number)]
    label: Annotated[str, Field(json_schema_extra={"enum": _WORDS})]


class Labels(BaseModel):
    """A dimension's reply; the labels come first, so that they are written before the score."""

    model_config = ConfigDict(extra="forbid", title="Labels")

    labels: list[Label]
    reason: str
    score: int = Field(ge=bounds.LOWEST, le=bounds.HIGHEST)


@lru_cache(maxsize=512)
def labels_schema(dimension: str, n_claims: int) -> type[Labels]:
    """`Labels` that must be one of `dimension` for each of `n_claims` claims; put in their order.

    Its JSON schema is the same for all of them.
    """

    class Checked(Labels):
        @field_validator("labels")
        @classmethod
        def _one_for_each(cls, labels: list[Label]) -> list[Label]:
            return _by_claim(dimension, n_claims, labels)

    return Checked


def _by_claim(dimension: str, n_claims: int, given: Sequence[Label]) -> list[Label]:
    if len(given) != n_claims:
        raise ValueError(f"{len(given)} labels for {n_claims} claims")
    found = {one.id: bounds.label(dimension, one.label) for one in given}
    if len(found) < n_claims:
        raise ValueError("two labels for one claim")
    if found.keys() != set(range(1, n_claims + 1)):
        raise ValueError("a label for a claim that there is not")
    return [Label(id=number, label=found[number]) for number in sorted(found)]


def claims_criterion(override_dir: Path | None = None) -> Criterion:
    """The claims of an answer: fields `question`, `candidate`; the score is their number.

    Args:
        override_dir: folder of prompts whose `movierecapsqa/judge.yml` replaces ours; None for the
            user's setting. Read once for each folder.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _claims_criterion(override_dir or settings.prompts_dir())


def dimension_criterion(
    dimension: str, n_claims: int, override_dir: Path | None = None
) -> Criterion:
    """A label for each of an answer's claims and a score, an integer 0 to 5, in one dimension.

    Fields: `facts` and `claims` (lists), `dialogue`, `question`; and `dimension`, by which
    recorded replies are told apart, since the criteria of all dimensions have one name.

    Raises:
        PromptError: the user's file does not fit.
    """
    return _dimension_criterion(dimension, n_claims, override_dir or settings.prompts_dir())


def config(spec: str | None = None, env: Mapping[str, str] | None = None) -> JudgeConfig:
    """The judge of `spec`, or of the user's setting, or the paper's, with room for its replies.

    Raises:
        JudgeError: it cannot be used as configured, or is several judges in one.
    """
    found = judges.configured(PAPER_JUDGE, spec, env)
    if found.provider in (PANEL, DEBATE):
        raise JudgeError(
            f"the judge {found.label} is several judges, which have no claims in common to label: "
            "name one model for MovieRecapsQA, and judge again with another (rescore --judge)"
        )
    if found.endpoints and found.sampling.max_tokens == MAX_TOKENS:
        found = replace(found, sampling=replace(found.sampling, max_tokens=REPLY_TOKENS))
    if found.endpoints and found.timeout == JudgeConfig.timeout:
        found = replace(found, timeout=TIMEOUT)
    return found


def check(spec: str | None = None, more: Iterable[Criterion] = ()) -> None:
    """Stop before a run whose judge (`spec`, or the user's) or judge's prompts cannot be used.

    Args:
        spec: a judge in its short form, or a file.
        more: criteria beside claims and labels that it will be asked.

    Raises:
        JudgeError, PromptError: what is wrong and the choices there are.
    """
    judges.preflight(config(spec), [claims_criterion(), *_for_one_claim(), *more])


def describe(spec: str | None = None) -> dict[str, Any]:
    """Judge and prompts for a run's results, as plain types; no secrets."""
    return prompt_notes.judge(config(spec), _prompt(settings.prompts_dir()))


def prompt_name() -> str:
    """The prompts in use: their file and its hash."""
    return prompt_notes.name(_prompt(settings.prompts_dir()))


def _for_one_claim() -> list[Criterion]:
    return [dimension_criterion(dimension, 1) for dimension in DIMENSIONS]


def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("movierecapsqa", "judge", _PLACEHOLDERS, override_dir)


@lru_cache(maxsize=8)
def _loaded(override_dir: Path | None) -> prompts.Prompt:
    return _prompt(override_dir)


@lru_cache(maxsize=8)
def _claims_criterion(override_dir: Path | None) -> Criterion:
    prompt = _loaded(override_dir)
    return Criterion(
        name=CLAIMS,
        system=prompt.text["claims_system"],
        template=prompt.text["claims"],
        schema=Claims,
        score=_count,
        prompt_hash=prompt.hash,
    )


@lru_cache(maxsize=512)
def _dimension_criterion(dimension: str, n_claims: int, override_dir: Path | None) -> Criterion:
    prompt = _loaded(override_dir)
    kept = {name: f"{{{name}}}" for name in ("question", "claims")}
    words = ", ".join(bounds.LABELS[dimension])
    reply = prompts.fill(prompt.text["reply"], {**kept, "words": words})
    return Criterion(
        name=LABELS,
        system=prompt.text["system"],
        # By its order no file of a user's can put what differs before facts and dialogue.
        template="\n".join([prompt.text["context"], prompt.text[dimension], reply]),
        schema=labels_schema(dimension, n_claims),
        score=_score,
        prompt_hash=prompt.hash,
        untrusted=("claims",),
    )


def _count(reply: Claims) -> float:
    return float(len(reply.claims))


def _score(reply: Labels) -> float:
    return float(reply.score)
