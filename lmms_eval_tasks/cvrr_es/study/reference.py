"""Reference ratings of 1 to 5: a debate of language models with the reference answer, or one model.

The models do not see the video (vlm_judge, 3.2 and 4.1). The debate of GPT-4o and GPT-3.5 is the
reference of kappa; GPT-3.5 alone is the study's text judge (`single`). The debate follows the
study's code (judges/debate.py): GPT-4o decides, after two calls or five. The prompts are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.cvrr_es.judge import load_judge_prompt
from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.study.ratings import AnswerKey, RatingRow, rated_hash
from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import Criterion, Judge, JudgeConfig, Verdict
from lmms_eval_tasks.judges.config import KEY
from lmms_eval_tasks.judges.costs import REPLY_TOKENS, CostEstimate, LikelyRequest, plan, summary
from lmms_eval_tasks.judges.report import price
from lmms_eval_tasks.judges.verdict import DEBATE, NONE, PANEL

if TYPE_CHECKING:
    from lmms_eval_tasks.cvrr_es.candidates import Aligned
    from lmms_eval_tasks.cvrr_es.release import CvrrQuestion, CvrrRelease

NAME = "cvrr_es_reference"  # name of the criterion, and of its costs
ROUND = "reference"  # one of labels.ROUNDS, and the name of the file of prompts
# Table 1; the second one may change its rating, and decides.
PAPER_AGENTS = ("gpt-3.5-turbo", "gpt-4o")
PAPER_SINGLE = "gpt-3.5-turbo"


class ReferenceRating(BaseModel):
    """A turn's reply; the reason comes first, so that it is written before the rating."""

    model_config = ConfigDict(extra="forbid")

    reason: str
    rating: int = Field(
        ge=min(RATINGS), le=max(RATINGS), validation_alias=AliasChoices("rating", "score")
    )
    pred: SkipJsonSchema[str] = ""  # the authors' text asks for it, and for the rating as `score`


class AnswerToRate(NamedTuple):
    """A candidate's answer to rate, with its question and reference."""

    of: CvrrQuestion
    candidate: str  # the model that answered; never shown
    answer: str  # unchanged, even if empty
    empty: bool  # True if it has no letter, digit or symbol

    @property
    def item(self) -> AnswerKey:
        """The key of the answer."""
        return AnswerKey(self.of.id, self.candidate)


class ReferenceVerdict(NamedTuple):
    """An answer and its verdict."""

    answer: AnswerToRate
    verdict: Verdict

    def row(self, label: str) -> RatingRow:
        """Return the rating as a row of a file; without a rating, the row's status tells why."""
        of, candidate, _, empty = self.answer
        score = self.verdict.score
        return RatingRow(
            *(of.dimension, of.id, of.video_id, candidate, label, ROUND),
            rating=None if score is None else int(score),
            reason="" if score is None else self.verdict.reason,
            status=self.verdict.status,
            empty=empty,
            rated=rated_hash(of.question, of.video_id, self.answer.answer),
        )

    def transcript(self, label: str) -> dict[str, object]:
        """Return the row, the texts and the verdict; `parts` has the turns of a debate in order."""
        one = self.answer.of
        texts = {"question": one.question, "reference": one.reference, "answer": self.answer.answer}
        return {**self.row(label).as_dict(), "asked": texts, "verdict": self.verdict.as_dict()}


def config(spec: str | None, env: Mapping[str, str], *, single: bool = False) -> JudgeConfig:
    """Return the configuration of the debate, or with `single` of the one judge.

    The setting of the answers' judge (`--judge` of a run) is ignored: it is another decision.

    Args:
        spec: a judge in its short form, or a file, such as a debate's; None: the paper's.
        env: environment variables, for the key.
        single: one judge instead of a debate.

    Raises:
        JudgeError: the judge cannot be used as configured, is a debate although `single`, or is no
            debate although not `single`.
    """
    if spec is None or not spec.strip():
        names = [PAPER_SINGLE] if single else PAPER_AGENTS
        if not env.get(KEY, "").strip():
            raise JudgeError(
                f"{' and '.join(names)} at OpenAI (the paper's choice) requires "
                f"a key: set {KEY}, or name others with --judge: "
                "MODEL@BASE_URL, hf:NAME_OR_FOLDER, or the file of a debate"
            )
        agents = [judges.resolve(name, env, default_model="") for name in names]
        return agents[0] if single else JudgeConfig(DEBATE, members=(*agents, agents[-1]))
    try:
        # "" equals no model's name, since no model is the paper's judge for reference ratings.
        found = judges.resolve(spec, env, default_model="")
    except JudgeError as error:
        raise JudgeError(str(error).replace(settings.JUDGE, "--judge")) from None
    if found.provider in (NONE, PANEL) or single == (found.provider == DEBATE):
        raise JudgeError(
            f"--judge {found.label}: reference ratings come from a debate (a file with `debate:`), "
            "or with --single from one model"
        )
    return found


def reference_criterion() -> Criterion:
    """The criterion of a reference rating; see `fields` for its fields.

    Raises:
        PromptError: the user's file of prompts does not fit.
    """
    own = load_judge_prompt(ROUND)
    texts = own.text["system"], own.text["user"]

    def score(reply: ReferenceRating) -> float:
        return float(reply.rating)

    return Criterion(NAME, *texts, ReferenceRating, score, own.hash, bare="rating")


def fields(answer: AnswerToRate) -> dict[str, str]:
    """The fields of the criterion's template for an answer, without the candidate's name."""
    remark = f"\n{load_judge_prompt(ROUND).text['empty']}" if answer.empty else ""
    texts = {"question": answer.of.question, "reference": answer.of.reference}
    return {**texts, "candidate": answer.answer, "remark": remark}


def asked_about(release: CvrrRelease, aligned: Sequence[Aligned]) -> list[AnswerToRate]:
    """The answers to rate: by candidate, in the release's order; with empty answers."""
    return [
        AnswerToRate(one, own.candidate, own.answers[one.id], one.id in own.empty)
        for own in aligned
        for one in release.questions
        if one.id in own.answers
    ]


def rate(judge: Judge, answers: Sequence[AnswerToRate]) -> list[ReferenceVerdict]:
    """Rate answers, as many at once as requests may be in flight; an error becomes a status."""
    from lmms_eval_tasks.judges.run import ordered_map

    wanted = reference_criterion()
    return ordered_map(
        lambda one: ReferenceVerdict(one, judge.verdict(wanted, fields(one))), answers, NAME
    )


class _StandIn(Judge):
    """A judge that records its requests and always replies with the same rating at usual length."""

    def __init__(self, config: JudgeConfig, rating: int) -> None:
        self.config, self.rating = config, rating
        self.requests: list[LikelyRequest] = []

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        reason = " ".join(["word"] * (REPLY_TOKENS - 10))
        reply = json.dumps({"reason": reason, "rating": self.rating})
        self.requests += [(criterion, dict(fields), reply)] * samples
        said = Verdict(float(self.rating), "ok", reason, reply, judge=self.config.label)
        return [said] * samples


def estimate(config: JudgeConfig, answers: Sequence[AnswerToRate]) -> list[str]:
    """Estimate the work of rating answers in words, without requests: per model, in all, and notes.

    The requests of every turn of a debate are built between stand-ins. Repairs and cached replies
    are not counted.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.debate import DebateJudge

    # Two candidates may give the same answer, which needs one request.
    different = {(one.of.question, one.of.reference, one.answer): one for one in answers}
    models = dict.fromkeys(config.members or (config,))
    # The stand-ins give different ratings, for the longest possible debate.
    played = {one: _StandIn(one, number) for number, one in enumerate(models, 1)}
    members = [played[one] for one in config.members]
    judge: Judge = DebateJudge(config, members) if members else played[config]
    for one in different.values():
        judge.verdict(reference_criterion(), fields(one))
    plans = [plan(model, own.requests) for model, own in played.items()]
    total = CostEstimate()
    for each in plans:
        total.add(each)
    notes = [note for each in plans for note in each.notes]
    if config.members:
        notes.append("upper bound: where both agents agree at once, two calls instead of five")
    if len(different) < len(answers):
        notes.append(
            f"{len(answers) - len(different):,} answers are identical to another "
            "candidate's and cost nothing"
        )
    lines = [f"{one.label}: {summary(each)}" for one, each in zip(models, plans, strict=True)]
    return [
        *lines,
        f"all: {total.calls:,} calls, {price(total.cost)}",
        *notes,
        f"assumed: {REPLY_TOKENS} tokens for each reply; no repeated requests",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]
