"""The judge without a reference (paper, 4.2): an answer's claims, then a label for each claim.

    claims  one request about question and answer alone
    labels  one request for each dimension, side by side, each about the same claims

Requests about one segment begin with the same bytes, as providers' prompt caches want it: one
system text, then the segment's facts and dialogue, and only then what differs (dimension, question,
claims). Coherence is of the claims alone: facts and dialogue are not shown. OpenAI puts the reply's
JSON schema before the system text, so that is one and the same for every dimension and number of
claims too; what differs is checked when a reply is read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from lmms_eval_tasks.errors import JudgeError, PromptError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Status, Verdict, run
from lmms_eval_tasks.judges.asking import ahead, said
from lmms_eval_tasks.judges.verdict import (
    DEBATE,
    MAX_TOKENS,
    NONE,
    OF_THE_JUDGE,
    PANEL,
    Ask,
    Asks,
    graded,
)
from lmms_eval_tasks.utils import prompts
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES, NO_CLAIMS, NOT_JUDGED
from lmms_eval_tasks.utils.replies import answers

CLAIMS = "movierecapsqa_claims"  # names of the criteria
LABELS = "movierecapsqa_labels"

# A reply grows with the number of claims: one for a long answer does not fit the judges' defaults
# (512 tokens, 60 seconds), which stand for "the user has set nothing". 4,096 tokens hold about 300
# labels; a reply that was cut off is asked for once more with twice the room (engine.py).
REPLY_TOKENS = 4096
TIMEOUT = 180.0  # seconds


def suited(judge: JudgeConfig) -> JudgeConfig:
    """A judge with room for its replies.

    Raises:
        JudgeError: it is several judges in one.
    """
    if judge.provider in (PANEL, DEBATE):
        raise JudgeError(
            f"the judge {judge.label} is several judges, which have no claims in common to label: "
            "name one model for MovieRecapsQA, and judge again with another (rescore --judge)"
        )
    if judge.endpoints and judge.sampling.max_tokens == MAX_TOKENS:
        judge = replace(judge, sampling=replace(judge.sampling, max_tokens=REPLY_TOKENS))
    if judge.endpoints and judge.timeout == JudgeConfig.timeout:
        judge = replace(judge, timeout=TIMEOUT)
    return judge


# --- labels, and which scores a list of them allows ---------------------------------------------

LOWEST, HIGHEST = 0, 5  # of a score

# Dimension (4.2; coherence is in the paper's appendix) -> the labels of a claim in it, best first.
WORDS: dict[str, tuple[str, ...]] = {
    "factuality": (
        "supported",
        "partially_supported",
        "unsupported",
        "contradictory",
        "not_checkable",
    ),
    "relevance": ("relevant", "partially_relevant", "irrelevant"),
    "coherence": ("consistent", "redundant", "contradictory"),
}
DIMENSIONS = tuple(WORDS)
WITH_CONTEXT = ("factuality", "relevance")  # shown facts and dialogue
# Other words for them; letters are those that the authors' texts have behind the words.
_ALIASES = {
    "factuality": {
        **{"s": "supported", "ps": "partially_supported", "u": "unsupported"},
        **{"c": "contradictory", "nc": "not_checkable"},
    },
    "relevance": {
        "partially": "partially_relevant",
        "not": "irrelevant",
        "not_relevant": "irrelevant",
        **{"r": "relevant", "pr": "partially_relevant", "nr": "irrelevant"},
    },
    "coherence": {"co": "consistent", "r": "redundant", "c": "contradictory"},
}
_GAP = re.compile(r"[\s_\u2010\u2011-]+")
_LETTERS = re.compile(r"\s*\([A-Z]{1,2}\)$")


def label(dimension: str, written: str) -> str:
    """The label of `dimension` that a judge wrote: case, spaces, hyphens and underscores are free.

    So are stars around it, and the letters behind a word ("SUPPORTED (S)").

    Raises:
        ValueError: it is none; the message does not repeat it.
    """
    found = _GAP.sub("_", _LETTERS.sub("", written.strip()).strip("*").casefold())
    found = _ALIASES.get(dimension, {}).get(found, found)
    if found not in WORDS[dimension]:
        raise ValueError(f"a label that is none of {', '.join(WORDS[dimension])}")
    return found


def bounds(dimension: str, labels: Sequence[str]) -> tuple[int, int]:
    """The lowest and the highest score, each 0 to 5, that the labels of an answer's claims allow.

    Each score has its anchor in words (prompts/judge.yml) and there is no formula: of labels that
    several anchors fit, all of those scores are allowed. 5 is for answers whose claims all have the
    best label, and 0 for those with none even partly supported, or all irrelevant (paper, 4.2).

    Args:
        dimension: one of DIMENSIONS.
        labels: of each claim, at least one.

    Raises:
        ValueError: no labels (an answer without claims is not rated), or one of another dimension.
    """
    counts = Counter(labels)
    if not counts:
        raise ValueError("no labels: an answer without claims is not rated")
    if unknown := counts.keys() - set(WORDS[dimension]):
        raise ValueError(f"{min(unknown)!r} is no label of {dimension}")
    if counts.keys() == {WORDS[dimension][0]}:
        return HIGHEST, HIGHEST
    return _ANCHORED[dimension](counts, len(labels))


def _factuality(counts: Counter[str], number: int) -> tuple[int, int]:
    """A claim that is not checkable may pass for an unsupported one, and need not."""
    if not counts["supported"] + counts["partially_supported"]:
        return LOWEST, LOWEST
    unsupported = counts["unsupported"] + counts["not_checkable"]
    contradictory = counts["contradictory"]
    if contradictory > 1 or 2 * unsupported > number:
        low = 1
    else:
        low = 2 if contradictory or unsupported > 1 else 3
    if contradictory:
        return low, 2
    most = 2 * counts["supported"] > number and not counts["unsupported"]
    return low, 4 if most else 3


def _relevance(counts: Counter[str], number: int) -> tuple[int, int]:
    irrelevant, beside = counts["irrelevant"], counts["partially_relevant"]
    if irrelevant == number:
        return LOWEST, LOWEST
    if irrelevant:
        return 1 if irrelevant > 1 else 2, 2
    return 3, 4 if counts["relevant"] and beside <= _FEW else 3


def _coherence(counts: Counter[str], number: int) -> tuple[int, int]:
    contradictory = counts["contradictory"]
    if contradictory:
        low = 1 if contradictory > 1 else 2
        return LOWEST if 2 * contradictory > number else low, 2
    return 3, 4 if counts["redundant"] <= _FEW else 3


_FEW = 2  # claims with the second label that a score of 4 allows ("one or two")
_ANCHORED = {"factuality": _factuality, "relevance": _relevance, "coherence": _coherence}


# --- what is asked ------------------------------------------------------------------------------


class Claims(BaseModel):
    """The claims of an answer, one statement each."""

    model_config = ConfigDict(extra="forbid")

    claims: list[str] = Field(validation_alias=AliasChoices("claims", "atomic_claims"))

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


_ANY_LABEL = list(dict.fromkeys(word for words in WORDS.values() for word in words))


class Label(BaseModel):
    """One claim's label; `id` is the claim's number, from 1 on.

    Judges like to say the claim again and why it has its label, as the authors' texts have them do:
    what else is there is let be.
    """

    model_config = ConfigDict(extra="forbid")

    id: Annotated[int, BeforeValidator(_number)]
    label: Annotated[str, Field(json_schema_extra={"enum": _ANY_LABEL})]

    @model_validator(mode="before")
    @classmethod
    def _nothing_else(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        number = {"id": value["claim_number"]} if "claim_number" in value else {}
        return number | {name: value[name] for name in ("id", "label") if name in value}


# By the authors' names a judge's reply is read as well: see `labels_schema` for the score's.
_LABELS = AliasChoices("labels", "claim_evaluations")
_REASON = AliasChoices("reason", "score_justification", "explanation")


def _plain(schema: dict[str, Any]) -> None:
    """Strict mode knows no defaults."""
    del schema["default"]


class Labels(BaseModel):
    """A dimension's reply; the labels come first, so that they are written before the score."""

    model_config = ConfigDict(extra="forbid", title="Labels")

    labels: list[Label] = Field(validation_alias=_LABELS)
    reason: str = Field(default="", validation_alias=_REASON, json_schema_extra=_plain)
    score: int = Field(ge=LOWEST, le=HIGHEST)


@lru_cache(maxsize=512)
def labels_schema(dimension: str, n_claims: int) -> type[Labels]:
    """`Labels` that must be one of `dimension` for each of `n_claims` claims; put in their order.

    Its JSON schema is the same for all of them.
    """

    class Checked(Labels):
        score: int = Field(
            ge=LOWEST,
            le=HIGHEST,
            validation_alias=AliasChoices("score", f"{dimension}_score"),
        )

        @field_validator("labels")
        @classmethod
        def _one_for_each(cls, labels: list[Label]) -> list[Label]:
            return _by_claim(dimension, n_claims, labels)

    return Checked


def _by_claim(dimension: str, n_claims: int, given: Sequence[Label]) -> list[Label]:
    if len(given) != n_claims:
        raise ValueError(f"{len(given)} labels for {n_claims} claims")
    found = {one.id: label(dimension, one.label) for one in given}
    if len(found) < n_claims:
        raise ValueError("two labels for one claim")
    if found.keys() != set(range(1, n_claims + 1)):
        raise ValueError("a label for a claim that there is not")
    return [Label(id=number, label=found[number]) for number in sorted(found)]


_PLACEHOLDERS = {
    "claims_system": (),
    "claims": ("question", "candidate"),
    "system": (),
    "context": ("facts", "dialogue"),
    **dict.fromkeys(DIMENSIONS, ()),
    "reply": ("question", "claims", "words"),
}
# As the authors' texts: a user's file may say all in the dimensions' parts. Then these are whole
# requests, and `system`, `context` and `reply` play no part.
_WHOLE = {
    "factuality": ("question", "claims", "facts", "dialogue"),
    "relevance": ("question", "claims", "facts", "dialogue"),
    "coherence": ("question", "claims"),
}


@prompts.once
def prompt() -> prompts.Prompt:
    """The judge's prompts, ours or the user's.

    Raises:
        PromptError: the user's file does not fit.
    """
    try:
        return prompts.load("movierecapsqa", "judge", _PLACEHOLDERS)
    except PromptError:
        try:
            return prompts.load("movierecapsqa", "judge", _PLACEHOLDERS | _WHOLE)
        except PromptError:
            pass
        raise


@prompts.once
def claims_criterion() -> Criterion:
    """The claims of an answer: fields `question`, `candidate`; the score is their number."""
    given = prompt()
    return Criterion(
        name=CLAIMS,
        system=given.text["claims_system"],
        template=given.text["claims"],
        schema=Claims,
        score=lambda reply: float(len(reply.claims)),
        prompt_hash=given.hash,
    )


@prompts.once
def dimension_criterion(dimension: str, n_claims: int) -> Criterion:
    """A label for each of an answer's claims and a score, an integer 0 to 5, in one dimension.

    Its fields are those of `asked`. The criteria of all dimensions have one name: recorded replies
    are told apart by the field `dimension`.
    """
    given = prompt()
    system, parts = given.text["system"], [given.text[dimension]]
    if "claims" in prompts.placeholders(given.text[dimension]):
        system = ""
    else:
        kept = {name: f"{{{name}}}" for name in ("question", "claims")}
        words = ", ".join(WORDS[dimension])
        context = [given.text["context"]] if dimension in WITH_CONTEXT else []
        # By its order no file of ours can put what differs before facts and dialogue.
        parts = [*context, *parts, prompts.fill(given.text["reply"], {**kept, "words": words})]
    return Criterion(
        name=LABELS,
        system=system,
        template="\n".join(parts),
        schema=labels_schema(dimension, n_claims),
        score=lambda reply: float(reply.score),
        prompt_hash=given.hash,
        untrusted=("claims",),
    )


class Context(NamedTuple):
    """What a judge knows of a segment: facts (data.py) and dialogue, "" where there is none."""

    segment: str
    facts: Sequence[str]
    dialogue: str


def asked(context: Context, dimension: str, question: str, claims: Sequence[str]) -> dict[str, Any]:
    """The fields of a dimension's request; recordings hold the same."""
    known = {"facts": list(context.facts), "dialogue": context.dialogue}
    return {
        "dimension": dimension,
        **(known if dimension in WITH_CONTEXT else {}),
        "question": question,
        "claims": list(claims),
    }


# --- one answer ---------------------------------------------------------------------------------


def judged(
    context: Context, question: str, reply: str
) -> Generator[Asks, Sequence[Verdict], dict[str, Any]]:
    """A model's reply to a question about a segment (asking.py); trouble becomes a status.

    An answer that is empty, cut off or without claims is the candidate's failure, worth
    0. Where the claims are not known (the judge failed, or they stand in a batch file) the
    dimensions are not asked: `judge_skipped`, or `unjudged` for the judge `none`.

    Args:
        context: the segment; it reaches the judge in the dimensions' requests alone.
        question: as the model got it.
        reply: the model's text, as the host hands it over.

    Returns:
        `candidate` (what was put to the judge: without reasoning; "" if it is no answer), `status`
        (ok; the candidate's failures; unjudged; judge_<status>, the first one's), `claims`,
        `n_claims`, and `dimensions`, each with score (0 to 5; None where there is none), status
        (of this dimension alone), labels (of each claim), low and high (the scores that the labels
        allow) and consistent (whether the score is one of them; None without labels).
    """
    status, candidate = answers.to_judge(reply)
    if status != "ok":
        return _item("", status)
    fields = {"question": question, "candidate": candidate}
    # An estimate reckons with a claim for each sentence: those of an answer are not known before.
    sentences = [part.strip() for part in candidate.split(". ") if part.strip()]
    stand_in = json.dumps({"claims": sentences})
    first = Ask("claims", claims_criterion(), fields, reads=True, stand_in=stand_in)
    (verdict,) = yield [first]
    status = graded(candidate, verdict).status
    if status == NOT_JUDGED:
        return _item(candidate, status)
    found = said(first, verdict) if status == "ok" else None
    if status == "ok" and found is None:
        status = OF_THE_JUDGE + Status.PARSE_FAILURE.value  # of a judge that is no language model
    claims = list(found.claims) if found else []
    if status == "ok" and not claims:
        return _item(candidate, NO_CLAIMS)
    asks = [_about_claims(context, name, question, claims, verdict) for name in DIMENSIONS]
    verdicts = yield asks
    dimensions = {ask.name: _rated(ask, one) for ask, one in zip(asks, verdicts, strict=True)}
    statuses = [status, *(one["status"] for one in dimensions.values())]
    first_failure = next((one for one in statuses if one != "ok"), "ok")
    return _item(candidate, first_failure, claims, dimensions)


def _item(
    candidate: str,
    status: str,
    claims: Sequence[str] = (),
    dimensions: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Without dimensions: those of an answer that is not put to the judge, or not yet."""
    if dimensions is None:
        score = 0 if status in CANDIDATE_FAILURES else None
        dimensions = {name: _rating(name, score, status) for name in DIMENSIONS}
    return {
        "candidate": candidate,
        "status": status,
        "claims": list(claims),
        "n_claims": len(claims),
        "dimensions": dict(dimensions),
    }


def _about_claims(
    context: Context, dimension: str, question: str, claims: Sequence[str], found: Verdict
) -> Ask:
    """A dimension's request; where the claims are not known its place is taken."""
    criterion = dimension_criterion(dimension, len(claims))
    # The config and the prompt decide on every byte before the segment's own.
    shown = (context.segment, tuple(context.facts))
    turn = ahead((criterion.prompt_hash, *shown)) if dimension in WITH_CONTEXT else None
    if not claims:
        turn = _unknown(found)
    fields = asked(context, dimension, question, claims)
    likely = [{"id": number, "label": WORDS[dimension][0]} for number, _ in enumerate(claims, 1)]
    stand_in = json.dumps({"labels": likely, "reason": "word " * 20, "score": HIGHEST})
    return Ask(
        dimension, criterion, fields, reads=True, rests_on="claims", before=turn, stand_in=stand_in
    )


def _unknown(claims: Verdict) -> Callable[[Judge, Callable[[], Verdict]], Verdict]:
    """In place of a request about claims that are not known: skipped, and booked as missing."""

    def skip(judge: Judge, _request: Callable[[], Verdict]) -> Verdict:
        label = judge.config.label
        reason = f"the claims are not known ({claims.status})"
        verdict = Verdict(None, Status.SKIPPED.value, reason, judge=label, setup=claims.setup)
        run.current().ledger.verdict(label, verdict)
        return verdict

    return skip


def _rated(ask: Ask, verdict: Verdict) -> dict[str, Any]:
    if verdict.judge == NONE:
        return _rating(ask.name, None, NOT_JUDGED)
    if verdict.score is None:
        return _rating(ask.name, None, OF_THE_JUDGE + verdict.status)
    found = said(ask, verdict)
    if found is None:  # of a judge that is no language model
        return _rating(ask.name, None, OF_THE_JUDGE + Status.PARSE_FAILURE.value)
    return _rating(ask.name, int(verdict.score), "ok", [one.label for one in found.labels])


def _rating(
    dimension: str, score: int | None, status: str, labels: Sequence[str] = ()
) -> dict[str, Any]:
    low, high = bounds(dimension, labels) if labels else (None, None)
    inside = None if low is None or high is None else low <= (score or 0) <= high
    return {
        "score": score,
        "status": status,
        "labels": list(labels),
        "low": low,
        "high": high,
        "consistent": inside,
    }
