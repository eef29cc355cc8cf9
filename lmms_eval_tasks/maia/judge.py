"""The judge's criterion for MAIA: an open answer agrees with a reference (paper, 4.2, B.2)."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict

from lmms_eval_tasks import prompts
from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.judges.verdict import HUGGINGFACE, MAX_TOKENS, OPENAI, PANEL

NAME = "reference_agreement"
prompt = prompts.file(
    "maia", "judge", {"system": (), "user": ("question", "references", "candidate")}
)


class ReferenceAgreement(BaseModel):
    """What the judge says: one of LABELS, or an object where the user's prompt asks for JSON."""

    # The docstring is part of the schema that the judge gets, so a change of it would repeat all
    # judgements.

    model_config = ConfigDict(extra="forbid", frozen=True)

    reason: str
    correct: bool


LABELS = (
    ("Correct", ReferenceAgreement(reason="", correct=True)),
    ("Incorrect", ReferenceAgreement(reason="", correct=False)),
)
WORD = {"type": "string", "enum": [label for label, _ in LABELS]}  # the JSON schema of a label
REPLY_TOKENS = 16  # enough for a label with any tokenizer; the authors' code allows 4


@prompts.once
def agreement_criterion() -> Criterion:
    """Return the criterion of `judge_acc`: 1.0 if the answer agrees with a reference, else 0.0.

    Its fields are `question`, `references` (list of texts) and `candidate`.
    """
    given = prompt()
    asks_json = "json" in "".join(given.text.values()).lower()
    return Criterion(
        name=NAME,
        system=given.text["system"],
        template=given.text["user"],
        schema=ReferenceAgreement,
        score=lambda reply: float(reply.correct),
        prompt_hash=given.hash,
        labels=LABELS,
        exact_schema=None if asks_json else WORD,
    )


def limit_reply(judge: JudgeConfig) -> JudgeConfig:
    """Return the judge with a limit of REPLY_TOKENS for its reply, unless the user set a limit.

    A judge that reasons in its reply needs more, so the user has to set a limit (`max_tokens` in a
    judge file).
    """
    if judge.provider == PANEL:
        return replace(judge, members=tuple(map(limit_reply, judge.members)))
    # The turns of a debate hold reasons and need more room.
    is_asked = judge.provider in (OPENAI, HUGGINGFACE)
    if not is_asked or judge.sampling.max_tokens != MAX_TOKENS:
        return judge
    return replace(judge, sampling=replace(judge.sampling, max_tokens=REPLY_TOKENS))
