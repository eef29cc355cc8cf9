"""Reference ratings of 1 to 5: agents with the reference answer debate, or one model has it.

Language models without the video (vlm_judge, 3.2 and 4.1): GPT-4o and GPT-3.5 debate, which is what
kappa is taken against; GPT-3.5 alone is the study's text judge (`single`). They debate as the
study's code has it (judges/debate.py): GPT-4o decides, after two calls or five. Prompts are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from lmms_eval_tasks import judges, settings
from lmms_eval_tasks.cvrr_es.judge import prompt
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

NAME = "cvrr_es_reference"  # of the criterion, and under which the ledger books
ROUND = "reference"  # one of labels.ROUNDS, and the file of prompts
PAPER_AGENTS = ("gpt-3.5-turbo", "gpt-4o")  # Table 1; the second one may change, and decides
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
    """One candidate's answer to rate, and what it is rated by."""

    of: CvrrQuestion
    candidate: str  # who answered; never shown
    answer: str  # as it stands, even if it is empty
    empty: bool  # it holds no letter, digit or symbol

    @property
    def item(self) -> AnswerKey:
        """What is rated."""
        return AnswerKey(self.of.id, self.candidate)


class ReferenceVerdict(NamedTuple):
    """An answer and its verdict."""

    asked: AnswerToRate
    verdict: Verdict

    def row(self, label: str) -> RatingRow:
        """The rating as a line of a file; without one, its status says why."""
        of, candidate, _, empty = self.asked
        score = self.verdict.score
        return RatingRow(
            *(of.dimension, of.id, of.video_id, candidate, label, ROUND),
            rating=None if score is None else int(score),
            reason="" if score is None else self.verdict.reason,
            status=self.verdict.status,
            empty=empty,
            rated=rated_hash(of.question, of.video_id, self.asked.answer),
        )

    def transcript(self, label: str) -> dict[str, object]:
        """The rating, what it is of, and the verdict: `parts` are a debate's turns in order."""
        one = self.asked.of
        texts = {"question": one.question, "reference": one.reference, "answer": self.asked.answer}
        return {**self.row(label).as_dict(), "asked": texts, "verdict": self.verdict.as_dict()}


def config(spec: str | None, env: Mapping[str, str], *, single: bool = False) -> JudgeConfig:
    """The debate, or with `single` the one judge, that gives the reference ratings.

    The user's setting of the judge is not looked at: who judges answers is another decision.

    Args:
        spec: a judge in its short form, or a file, such as a debate's; None for the paper's.

    Raises:
        JudgeError: it cannot be used as configured, or is of the other kind.
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
        # No model's name equals this one, since no judge is the paper's for reference ratings.
        found = judges.resolve(spec, env, default_model="")
    except JudgeError as error:
        raise JudgeError(str(error).replace(settings.JUDGE, "--judge")) from None
    if found.provider in (NONE, PANEL) or single == (found.provider == DEBATE):
        raise JudgeError(
            f"--judge {found.label}: reference ratings come from a debate (a file with `debate:`), "
            "or with --single from one model"
        )
    return found


def criterion() -> Criterion:
    """The criterion of a reference rating; `fields` has its fields.

    Raises:
        PromptError: the user's file does not fit.
    """
    own = prompt(ROUND)
    texts = own.text["system"], own.text["user"]

    def score(reply: ReferenceRating) -> float:
        return float(reply.rating)

    return Criterion(NAME, *texts, ReferenceRating, score, own.hash, bare="rating")


def fields(asked: AnswerToRate) -> dict[str, str]:
    """What the criterion's template shows of an answer; the candidate's name is not among it."""
    remark = f"\n{prompt(ROUND).text['empty']}" if asked.empty else ""
    texts = {"question": asked.of.question, "reference": asked.of.reference}
    return {**texts, "candidate": asked.answer, "remark": remark}


def asked_about(release: CvrrRelease, aligned: Sequence[Aligned]) -> list[AnswerToRate]:
    """The answers to rate: candidate by candidate, in the release's order; empty ones too."""
    return [
        AnswerToRate(one, own.candidate, own.answers[one.id], one.id in own.empty)
        for own in aligned
        for one in release.questions
        if one.id in own.answers
    ]


def rate(judge: Judge, asked: Sequence[AnswerToRate]) -> list[ReferenceVerdict]:
    """Rate answers, as many at once as requests may be in flight; trouble becomes a status."""
    from lmms_eval_tasks.judges.run import ordered_map

    wanted = criterion()
    return ordered_map(
        lambda one: ReferenceVerdict(one, judge.verdict(wanted, fields(one))), asked, NAME
    )


class _StandIn(Judge):
    """Notes what it is asked and gives a reply of the usual length, always the same rating."""

    def __init__(self, config: JudgeConfig, rating: int) -> None:
        self.config, self.rating = config, rating
        self.asked: list[LikelyRequest] = []

    def verdicts(
        self, criterion: Criterion, fields: Mapping[str, object], samples: int
    ) -> list[Verdict]:
        reason = " ".join(["word"] * (REPLY_TOKENS - 10))
        reply = json.dumps({"reason": reason, "rating": self.rating})
        self.asked += [(criterion, dict(fields), reply)] * samples
        said = Verdict(float(self.rating), "ok", reason, reply, judge=self.config.label)
        return [said] * samples


def estimate(config: JudgeConfig, asked: Sequence[AnswerToRate]) -> list[str]:
    """The work of rating `asked` in words, asking nobody: each model, all together, notes.

    Every turn of a debate is put together as it is, between stand-ins. Without repairs and without
    what is in the cache already.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.debate import DebateJudge

    # Two candidates may give the same answer, which is asked about once.
    different = {(one.of.question, one.of.reference, one.answer): one for one in asked}
    models = dict.fromkeys(config.members or (config,))
    # The agents differ, so that the debate is as long as it can be.
    played = {one: _StandIn(one, number) for number, one in enumerate(models, 1)}
    members = [played[one] for one in config.members]
    judge: Judge = DebateJudge(config, members) if members else played[config]
    for one in different.values():
        judge.verdict(criterion(), fields(one))
    plans = [plan(model, own.asked) for model, own in played.items()]
    total = CostEstimate()
    for each in plans:
        total.add(each)
    notes = [note for each in plans for note in each.notes]
    if config.members:
        notes.append("upper bound: where both agents agree at once, two calls instead of five")
    if len(different) < len(asked):
        notes.append(
            f"{len(asked) - len(different):,} answers are identical to another "
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
