"""The judges' questions: the benchmark's own about an answer, and the study's (vlm_judge).

The benchmark's judge compares an answer with the reference: is it correct, and its score of 0 to 5.
Both numbers come from one reply, with the keys of the published judgements. An empty answer is not
put to it, but worth 0 (judges/asking.py); published scripts skip such answers (metrics.py).

A judge of the study sees the video, alone or with other judges' ratings (vlm_judge, 3.2 and 3.3).
The video goes before its text (the host puts it there). Whatever a candidate or another judge wrote
stands in a block whose tag does not occur in it (judges/engine.py), so that no text can end its
block. Neither the reference nor any name is given: `request` does not take them.
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
PAPER_JUDGE = "gpt-3.5-turbo"  # theirs was -0125, which the plain name stands for
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

    # One released judgement has its label under `type`; models write the whole word too.
    pred: Literal["correct", "incorrect"] = Field(
        validation_alias=AliasChoices("pred", "type", "prediction")
    )
    score: float = Field(ge=LOWEST_SCORE, le=HIGHEST_SCORE)
    reason: str

    @model_validator(mode="before")
    @classmethod
    def _as_published(cls, value: object) -> object:
        """One released judgement has no reason; None, which Python's dicts may have, is none."""
        if isinstance(value, dict) and value.get("reason") is None:
            return {**value, "reason": ""}
        return value


@prompts.once
def load_judge_prompt(name: str) -> prompts.Prompt:
    """One of the files of prompts, the user's before ours.

    Raises:
        PromptError: the user's file lacks a part or a placeholder.
    """
    return prompts.load_prompt("cvrr_es", name, PARTS[name])


@prompts.once
def answer_criterion() -> Criterion:
    """The criterion of an answer: 1.0 if it is correct, else 0.0; `points` has the score as well.

    Its fields are `question`, `reference` and `candidate`. Recorded replies are told apart by
    further ones, such as the question's id, since questions repeat. Raises as `prompt`.
    """
    own = load_judge_prompt("judge")
    texts = own.text["system"], own.text["user"]
    return Criterion(NAME, *texts, Judgement, lambda one: float(one.pred == "correct"), own.hash)


def points(verdict: Verdict | None, answer: str = "") -> float | None:
    """A verdict's 0 to 5 for `answer`, read from the reply that it keeps; None if it failed.

    Of a panel it is the mean of those members that voted, whatever its rule for the label.
    """
    if verdict is None or verdict.score is None:
        return None
    votes = [part for part in verdict.parts if part.score is not None]
    if votes and not verdict.raw:  # a panel's verdict has no reply of its own
        return aggregate.mean(points(vote, answer) for vote in votes)
    try:
        value: Any = reader.read_reply(verdict.raw, Judgement, [answer])
    except UnreadableError:
        return None  # saved by somebody else's hand: its two numbers cannot be told
    return float(value.score)


# --- a judge of the study -------------------------------------------------------------------------

_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST = len(_NAMES)  # judges that can be shown beside one answer


def request(question: str, answer: str, others: Sequence[RatingRow] = ()) -> str:
    """The text for one item; without `others` it is the first round's.

    Args:
        answer: the candidate's; an empty one is shown, and said to be empty.
        others: their ratings of this answer, one of each judge and at most MOST; those without a
            rating are left out.
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
    """Rows of one item by their judges' neutral names, Judge A first.

    The order is drawn for each item by a hash of item and judge: so no name and no place stays with
    one judge, which a final judge could learn to trust; and it is the same on every rank, in every
    order of the rows, and for the judges that are left where one is not shown.
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
