"""The judge without a reference (paper, 4.2): an answer's claims, then a label for each claim.

    claims  one request about question and answer alone
    labels  one request for each dimension, at the same time, all about the same claims

All requests about one segment begin with the same bytes, so that providers' prompt caches apply:
one system text, then the segment's facts and dialogue, then the parts that differ (dimension,
question, claims). Coherence concerns the claims alone, so its request has no facts and no dialogue.

OpenAI puts the JSON schema of the reply before the system text. The schema is therefore the same
for every dimension and number of claims, and the differences are checked when a reply is read.
Other endpoints get the exact schema, because a small model needs it to end its reply.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import methodcaller
from typing import NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from lmms_eval_tasks import prompts
from lmms_eval_tasks.errors import PromptError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Status, Verdict, run
from lmms_eval_tasks.judges.asking import RereadRequest, parsed_reply
from lmms_eval_tasks.judges.engine import MAX_REASON
from lmms_eval_tasks.judges.verdict import MAX_TOKENS, JudgeRequest, ScoringSteps, judged_answer
from lmms_eval_tasks.movierecapsqa.items import ClaimScore, LabelledRating
from lmms_eval_tasks.utils.metrics.aggregate import CANDIDATE_FAILURES, NO_CLAIMS, NOT_JUDGED
from lmms_eval_tasks.utils.replies import reply_text

CLAIMS = "movierecapsqa_claims"  # names of the criteria
LABELS = "movierecapsqa_labels"

# A reply grows with the number of claims. The judges' defaults (512 tokens, 60 seconds), which mean
# that the user set nothing, are too small for a long answer. 4,096 tokens hold about 300 labels. A
# truncated reply is requested once more with twice the room (engine.py).
REPLY_TOKENS = 4096
TIMEOUT = 180.0  # seconds


def with_room(judge: JudgeConfig) -> JudgeConfig:
    """Return the judge with limits that fit long replies, unless the user set limits."""
    if not judge.endpoints:
        return judge
    room = judge.sampling.max_tokens if judge.sampling.max_tokens != MAX_TOKENS else REPLY_TOKENS
    timeout = judge.timeout if judge.timeout != JudgeConfig.timeout else TIMEOUT
    return replace(judge, sampling=replace(judge.sampling, max_tokens=room), timeout=timeout)


# --- labels of claims ---------------------------------------------------------------------------

LOWEST, HIGHEST = 0, 5  # the range of a score

# Dimension (4.2; coherence is in the paper's appendix) -> label of a claim, best first -> its other
# written forms. The letters stand behind the words in the authors' texts.
_FORMS: dict[str, dict[str, tuple[str, ...]]] = {
    "factuality": {
        "supported": ("s",),
        "partially_supported": ("ps",),
        "unsupported": ("u",),
        "contradictory": ("c",),
        "not_checkable": ("nc",),
    },
    "relevance": {
        "relevant": ("r",),
        "partially_relevant": ("pr", "partially"),
        "irrelevant": ("nr", "not", "not_relevant"),
    },
    "coherence": {"consistent": ("co",), "redundant": ("r",), "contradictory": ("c",)},
}
WORDS = {dimension: tuple(own) for dimension, own in _FORMS.items()}
DIMENSIONS = tuple(WORDS)
# The worst labels: if all claims have one of these, the dimension has the lowest score.
_WORST: dict[str, set[str]] = {
    "factuality": {"unsupported", "contradictory"},
    "relevance": {"irrelevant"},
    "coherence": {"contradictory"},
}
WITH_CONTEXT = ("factuality", "relevance")  # dimensions whose requests have facts and dialogue


def read_label(dimension: str, written: str) -> str:
    """Return the label of a dimension that a judge wrote.

    Upper and lower case count as equal, as do spaces, hyphens and underscores. Stars around the
    label and letters behind it ("SUPPORTED (S)") are ignored.

    Raises:
        ValueError: the text is no label of the dimension.
    """
    plain = re.sub(r"\s*\([A-Z]{1,2}\)$", "", written.strip()).strip("*").casefold()
    found = re.sub(r"[\s_\u2010\u2011-]+", "_", plain)
    for word, others in _FORMS[dimension].items():
        if found in (word, *others):
            return word
    raise ValueError(f"a label that is none of {', '.join(WORDS[dimension])}")


def contradicts(dimension: str, labels: Sequence[str], score: float | None) -> bool:
    """Return True if a score is at the other end of the rubric than all of its labels.

    That is the lowest score with only the best labels, or the highest score with only the worst
    labels. Such a score counts as it is, and the number of such scores is reported
    (`MovieRecapsQA.describe`).
    """
    best, given = WORDS[dimension][0], set(labels)
    too_low = score == LOWEST and given == {best}
    return too_low or (score == HIGHEST and bool(given) and given <= _WORST[dimension])


# --- requests -------------------------------------------------------------------------------------


class Claims(BaseModel):
    """The claims of an answer, one statement each."""

    claims: list[str] = Field(validation_alias=AliasChoices("claims", "atomic_claims"))

    @field_validator("claims")
    @classmethod
    def _on_one_line(cls, claims: list[str]) -> list[str]:
        """Return each claim on one line, since the prompt numbers lines; drop blank claims.

        A claim without a letter or a digit is blank.
        """
        lines = (" ".join(claim.split()) for claim in claims)
        return [line for line in lines if any(map(str.isalnum, line))]


class Label(BaseModel):
    """One claim's label; `id` is the claim's number, from 1 on. What else is said is let be."""

    id: int = Field(validation_alias=AliasChoices("id", "claim_number"))
    label: str = Field(json_schema_extra={"enum": list(dict.fromkeys(chain(*WORDS.values())))})

    @field_validator("id", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        """Return an id in another notation ("2", 2.0) as a whole number."""
        if isinstance(value, str) and value.strip().isdecimal():
            return int(value)
        return int(value) if isinstance(value, float) and value.is_integer() else value


class Labels(BaseModel):
    """A dimension's reply; the labels are written before the score."""

    labels: list[Label] = Field(validation_alias=AliasChoices("labels", "claim_evaluations"))
    reason: str = Field(
        default="",
        validation_alias=AliasChoices("reason", "score_justification", "explanation"),
        json_schema_extra=methodcaller("pop", "default"),  # OpenAI's strict mode allows no default
    )
    score: int = Field(ge=LOWEST, le=HIGHEST)


def labels_schema(dimension: str, n_claims: int) -> type[Labels]:
    """Return the schema of a reply with one label of `dimension` for each of `n_claims` claims.

    Reading a reply sorts the labels by claim. The JSON schema is the same for all dimensions and
    numbers of claims.
    """

    class CheckedLabels(Labels):
        model_config = ConfigDict(title="Labels")

        score: int = Field(
            ge=LOWEST, le=HIGHEST, validation_alias=AliasChoices("score", f"{dimension}_score")
        )

        @field_validator("labels")
        @classmethod
        def _one_for_each(cls, labels: list[Label]) -> list[Label]:
            found = {one.id: read_label(dimension, one.label) for one in labels}
            if len(labels) != n_claims or found.keys() != set(range(1, n_claims + 1)):
                raise ValueError(f"expected one label for each of {n_claims} claims, by its number")
            return [Label(id=number, label=found[number]) for number in sorted(found)]

    return CheckedLabels


def exact_schema(dimension: str, n_claims: int) -> dict[str, object]:
    """Return the JSON schema of a reply with a label of `dimension` for each claim, in their order.

    The array has `prefixItems` and no `items`, because llama.cpp would use `items` instead.
    """
    label = {"type": "string", "enum": list(WORDS[dimension])}
    ids = ({"type": "integer", "enum": [number]} for number in range(1, n_claims + 1))
    labels = [_closed({"id": number, "label": label}) for number in ids]
    count = {"minItems": n_claims, "maxItems": n_claims}
    return _closed(
        {
            "labels": {"type": "array", "prefixItems": labels, **count},
            "reason": {"type": "string", "maxLength": MAX_REASON},
            "score": {"type": "integer", "enum": list(range(LOWEST, HIGHEST + 1))},
        }
    )


def _closed(properties: dict[str, object]) -> dict[str, object]:
    """Return the JSON schema of an object with exactly these properties."""
    required = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties, **required}


@prompts.once
def load_judge_prompts() -> prompts.Prompt:
    """Return the judge's prompts, the packaged ones or the user's.

    In a user's file, the part of a dimension may be a complete request, as in the authors' texts.
    Then `system`, `context` and `reply` are not used.
    """
    context, fields = ("facts", "dialogue"), ("question", "claims")
    ours = {
        "claims_system": (),
        "claims": ("question", "candidate"),
        "system": (),
        "context": context,
        **dict.fromkeys(DIMENSIONS, ()),
        "reply": (*fields, "words"),
    }
    try:
        return prompts.load_prompt("movierecapsqa", "judge", ours)
    except PromptError:
        whole = {n: fields + (context if n in WITH_CONTEXT else ()) for n in DIMENSIONS}
        with contextlib.suppress(PromptError):
            return prompts.load_prompt("movierecapsqa", "judge", ours | whole)
        raise


@prompts.once
def claims_criterion() -> Criterion:
    """Return the criterion for an answer's claims; the score is the number of claims.

    Its fields are `question` and `candidate`.
    """
    given = load_judge_prompts()
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
    """Return the criterion for one dimension: a label for each claim, and a score 0 to 5.

    Its fields are those of `asked`. The criteria of all dimensions have the same name; recorded
    replies tell them apart by the field `dimension`.
    """
    prompt = load_judge_prompts()
    system, template = prompt.text["system"], prompt.text[dimension]
    if "claims" in prompts.placeholders(template):
        system = ""
    else:
        kept = {name: f"{{{name}}}" for name in ("question", "claims")}
        reply = prompts.fill(prompt.text["reply"], {**kept, "words": ", ".join(WORDS[dimension])})
        context = [prompt.text["context"]] if dimension in WITH_CONTEXT else []
        # In this order, no prompt file can put a varying part before facts and dialogue.
        template = "\n".join([*context, template, reply])
    return Criterion(
        name=LABELS,
        system=system,
        template=template,
        schema=labels_schema(dimension, n_claims),
        exact_schema=exact_schema(dimension, n_claims),
        score=lambda reply: float(reply.score),
        prompt_hash=prompt.hash,
        untrusted=("claims",),
    )


class SegmentContext(NamedTuple):
    """The facts (data.py) and the dialogue of a segment for the judge; "" without dialogue."""

    segment: str
    facts: Sequence[str]
    dialogue: str


def request_fields(
    context: SegmentContext, dimension: str, question: str, claims: Sequence[str]
) -> dict[str, object]:
    """Return the fields of a dimension's request; recorded replies have the same fields."""
    known = {"facts": list(context.facts), "dialogue": context.dialogue}
    shown = known if dimension in WITH_CONTEXT else {}
    return {"dimension": dimension, **shown, "question": question, "claims": list(claims)}


# --- one answer ---------------------------------------------------------------------------------


def judge_claims(context: SegmentContext, question: str, reply: str) -> ScoringSteps[ClaimScore]:
    """Judge a model's reply to a question about a segment.

    A truncated answer and an answer without claims are failures of the candidate, with score 0. If
    the claims are not known, because the judge failed or because they wait in a batch file, the
    dimensions are not requested. Their status is then `judge_skipped`, or `unjudged` for the judge
    `none`.

    Yields:
        Requests for judgements (asking.py).

    Returns:
        The claims and the ratings. The status is the first one of claims and dimensions that is not
        ok. No failure raises an error.
    """
    status, candidate = reply_text.to_judge(reply)
    claims: list[str] = []
    dimensions: dict[str, LabelledRating] = {}
    if status == "ok":
        # An estimate counts a claim for each sentence, since the claims are not known in advance.
        likely = [part.strip() for part in candidate.split(". ") if part.strip()]
        fields = {"question": question, "candidate": candidate}
        stand_in = json.dumps({"claims": likely})
        request = RereadRequest("claims", claims_criterion(), fields, stand_in=stand_in)
        (verdict,) = yield [request]
        status = judged_answer("", verdict).status
        found = parsed_reply(request, verdict) if status == "ok" else None
        claims = found.claims if found else []
        if status == "ok" and not claims:
            status = NO_CLAIMS
        elif status != NOT_JUDGED:
            requests = [
                _about_claims(context, one, question, claims, verdict) for one in DIMENSIONS
            ]
            verdicts = yield requests
            for own, one in zip(requests, verdicts, strict=True):
                state = judged_answer("", one).status
                rated = parsed_reply(own, one) if state == "ok" else None
                labels = [given.label for given in rated.labels] if rated else []
                score = rated.score if rated else None
                dimensions[own.name] = {"score": score, "status": state, "labels": labels}
            statuses = [status, *(one["status"] for one in dimensions.values())]
            status = next((one for one in statuses if one != "ok"), "ok")
    score = 0 if status in CANDIDATE_FAILURES else None
    nothing: LabelledRating = {"score": score, "status": status, "labels": []}
    return {
        "candidate": candidate,
        "status": status,
        "claims": claims,
        "n_claims": len(claims),
        "dimensions": dimensions or dict.fromkeys(DIMENSIONS, nothing),
    }


@dataclass(frozen=True)
class _SkippedRequest(RereadRequest):
    """A dimension's request without known claims: it is not sent, but counted as skipped."""

    claims: Verdict = field(kw_only=True)

    def answered(self, judge: Judge) -> Verdict:
        """Return and count a verdict with the status `judge_skipped` and the reason."""
        label, reason = judge.config.label, f"the claims are not known ({self.claims.status})"
        setup = self.claims.setup
        verdict = Verdict(None, Status.SKIPPED.value, reason, judge=label, setup=setup)
        run.current().usage.verdict(label, verdict)
        return verdict


def _about_claims(
    context: SegmentContext, dimension: str, question: str, claims: Sequence[str], verdict: Verdict
) -> JudgeRequest:
    """Return a dimension's request; without claims, a request that is skipped and counted."""
    criterion = dimension_criterion(dimension, len(claims))
    fields = request_fields(context, dimension, question, claims)
    if not claims:
        return _SkippedRequest(dimension, criterion, fields, rests_on="claims", claims=verdict)
    likely = [{"id": number, "label": WORDS[dimension][0]} for number, _ in enumerate(claims, 1)]
    return RereadRequest(
        dimension,
        criterion,
        fields,
        rests_on="claims",
        stand_in=json.dumps({"labels": likely, "reason": "word " * 20, "score": HIGHEST}),
    )
