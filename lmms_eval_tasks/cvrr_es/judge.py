"""The prompts of both judges: the benchmark's, and the model under test in the study (vlm_judge).

The benchmark's judge compares an answer with the reference: is it correct, and a score of 0 to 5.
Both come from one reply, with the keys of the published judgements. An empty answer is not sent to
the judge and is worth 0 (judges/asking.py); the published scripts skip such answers (metrics.py).

A judge of the study sees the video, alone or with other judges' ratings (vlm_judge, 3.2 and 3.3).
lmms-eval puts the video before the text. Text of a candidate or of another judge stands in a block
whose tag does not occur in that text (judges/engine.py), so that no text can end its block. The
prompt has neither the reference nor any name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from lmms_eval_tasks import prompts
from lmms_eval_tasks.cvrr_es.labels import HIGHEST_SCORE, LOWEST_SCORE, RATINGS
from lmms_eval_tasks.cvrr_es.study.ratings import RatingRow
from lmms_eval_tasks.judges import Criterion, Verdict, reader
from lmms_eval_tasks.judges.engine import block
from lmms_eval_tasks.judges.reading.objects import UnreadableError
from lmms_eval_tasks.utils.metrics import aggregate
from lmms_eval_tasks.utils.replies import reply_text

NAME = "cvrr_es"
PAPER_JUDGE = "gpt-3.5-turbo"  # the paper used gpt-3.5-turbo-0125, which the plain name means
# File of prompts -> part -> its placeholders.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "task": {"question": ("question",)},
    "hint": {"question": ("question",)},
    "judge": {"system": (), "user": ("question", "reference", "candidate")},
    "rating": {
        **dict.fromkeys(("role", "rubric", "material", "empty", "reply"), ()),
        "instruction": ("question",),
        "answer": ("answer",),
        "others": ("ratings",),
        "judge": ("name", "rating", "reason"),
        "no_reason": ("name", "rating"),
    },
    "reference": {
        **dict.fromkeys(("system", "empty"), ()),
        "user": ("question", "reference", "candidate", "remark"),
    },
}


class Judgement(BaseModel):
    """The judge's reply, its keys in the published order. One of the published scores is 4.5."""

    model_config = ConfigDict(extra="forbid")

    # One released judgement has its label under `type`; models also write `prediction`.
    pred: Literal["correct", "incorrect"] = Field(
        validation_alias=AliasChoices("pred", "type", "prediction")
    )
    score: float = Field(ge=LOWEST_SCORE, le=HIGHEST_SCORE)
    reason: str

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, value: object) -> object:
        """Return a reply with "" for a missing reason or None, as in a released judgement."""
        if isinstance(value, dict) and value.get("reason") is None:
            return {**value, "reason": ""}
        return value


@prompts.once
def load_judge_prompt(name: str) -> prompts.Prompt:
    """Return a file of prompts: the user's if there is one, else ours.

    Raises:
        PromptError: the user's file lacks a part or a placeholder.
    """
    return prompts.load_prompt("cvrr_es", name, PARTS[name])


@prompts.once
def answer_criterion() -> Criterion:
    """The criterion of an answer: 1.0 if it is correct, else 0.0; see `points` for the score.

    Its fields are `question`, `reference` and `candidate`. Since questions repeat, recorded replies
    are told apart by further fields, such as the question's id.

    Raises:
        PromptError: see `load_judge_prompt`.
    """
    own = load_judge_prompt("judge")
    texts = own.text["system"], own.text["user"]
    return Criterion(NAME, *texts, Judgement, lambda one: float(one.pred == "correct"), own.hash)


def points(verdict: Verdict | None, answer: str = "") -> float | None:
    """The score of 0 to 5 in the reply of a verdict on `answer`; None if the verdict failed.

    For a panel, the mean over the members that voted, whatever the panel's rule for the label.
    """
    if verdict is None or verdict.score is None:
        return None
    votes = [part for part in verdict.parts if part.score is not None]
    if votes and not verdict.raw:  # a panel's verdict has no reply
        return aggregate.mean(points(vote, answer) for vote in votes)
    try:
        value: Any = reader.read_reply(verdict.raw, Judgement, [answer])
    except UnreadableError:
        return None  # a reply that another program saved, and that has no readable score
    return float(value.score)


# --- the prompt of the study ----------------------------------------------------------------------

_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST = len(_NAMES)  # the largest number of other judges' ratings that can be shown


def request(question: str, answer: str, others: Sequence[RatingRow] = ()) -> str:
    """The text of a judge's prompt for one item; without `others` that of the first round.

    Args:
        question: the question's text.
        answer: the candidate's; an empty one is shown, with a remark that it is empty.
        others: other judges' ratings of this answer, at most one per judge and MOST in all; those
            without a rating are left out.
    """
    text = load_judge_prompt("rating").text
    parts = [text["role"], text["rubric"], text["material"]]
    parts.append(prompts.fill(text["instruction"], {"question": block("instruction", question)}))
    parts.append(prompts.fill(text["answer"], {"answer": block("reply", answer)}))
    if reply_text.reply_status(answer) == "empty":  # no letter, digit or symbol
        parts.append(text["empty"])
    if rated := [row for row in others if row.rating is not None]:
        shown = "\n\n".join(_judge(text, *one) for one in rows_by_judge(rated).items())
        parts.append(prompts.fill(text["others"], {"ratings": shown}))
    return "\n\n".join(part.strip() for part in [*parts, text["reply"]])


def rows_by_judge(rows: Sequence[RatingRow]) -> dict[str, RatingRow]:
    """The rows of one item by neutral names of their judges: Judge A, Judge B, ...

    A hash of item and judge decides the order for each item. So no judge keeps a name or place that
    a final judge could learn to trust. The order is the same in every process, for every order of
    the rows, and for the other judges if one is not shown.
    """

    def place(row: RatingRow) -> str:
        return hashlib.sha256("\n".join([*row.item, row.judge]).encode()).hexdigest()

    ordered = sorted(rows, key=place)
    return {f"Judge {name}": row for name, row in zip(_NAMES, ordered, strict=False)}


def _judge(text: Mapping[str, str], name: str, row: RatingRow) -> str:
    rating = f"{row.rating:g}"
    if row.rating in RATINGS:
        rating += f" ({RATINGS[int(row.rating)].capitalize()})"
    values = {"name": name, "rating": rating}
    if reason := row.reason.strip():
        values["reason"] = block(f"{name.lower().replace(' ', '_')}_reason", reason)
    return prompts.fill(text["judge" if reason else "no_reason"], values).strip()
