"""What a judge of the study is asked, alone or with other judges' ratings (vlm_judge, 3.2 and 3.3).

The video goes before this text (the host puts it there). Whatever a candidate or another judge
wrote stands in a block whose tag does not occur in it (judges/prompts.py), so that no text can end
its block. Neither the reference nor any name is given: `request` does not take them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.cvrr_es.rating_rows import Item, RatingRow
from lmms_eval_tasks.judges.prompts import block
from lmms_eval_tasks.utils import answers, prompts

_PARTS: dict[str, tuple[str, ...]] = {
    "role": (),
    "rubric": (),
    "material": (),
    "instruction": ("question",),
    "answer": ("answer",),
    "empty": (),
    "others": ("ratings",),
    "judge": ("name", "rating", "reason"),
    "no_reason": ("name", "rating"),
    "reply": (),
}
_NAMES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
MOST = len(_NAMES)  # judges that can be shown beside one answer


def prompt() -> prompts.Prompt:
    """The texts, the user's `cvrr_es/rating.yml` before ours; read once for each folder.

    Raises:
        PromptError: the user's file lacks a part or a placeholder.
    """
    return _prompt(settings.prompts_dir())


def request(
    question: str, answer: str, item: Item | None = None, others: Sequence[RatingRow] = ()
) -> str:
    """The text for one item; without `others` it is the first round's.

    Args:
        question: the instruction about the video.
        answer: the candidate's; an empty one is shown, and said to be empty.
        item: whose hash gives the other judges their names; needed with `others`.
        others: their ratings of this answer; those without a rating are left out.

    Raises:
        ValueError: ratings of another item, two by one judge, or more than 26 judges.
    """
    text = prompt().text
    parts = [text["role"], text["rubric"], text["material"]]
    parts.append(prompts.fill(text["instruction"], {"question": block("instruction", question)}))
    parts.append(prompts.fill(text["answer"], {"answer": block("reply", answer)}))
    if is_empty(answer):
        parts.append(text["empty"])
    if rated := [row for row in others if row.rating is not None]:
        shown = "\n\n".join(_judge(text, *one) for one in named(item, rated).items())
        parts.append(prompts.fill(text["others"], {"ratings": shown}))
    return "\n\n".join(part.strip() for part in [*parts, text["reply"]])


def is_empty(answer: str) -> bool:
    """Whether an answer holds no letter, digit or symbol, as where candidates are read."""
    return answers.reply_status(answer) == "empty"


def named(item: Item | None, rows: Sequence[RatingRow]) -> dict[str, RatingRow]:
    """The rows by their judges' neutral names, Judge A first.

    A judge's place among the others is drawn for each item by a hash of item and judge: so no name
    and no place stays with one judge, which a final judge could learn to trust or which would show
    its first judge most; and it is the same on every rank, in every order of the rows, under
    --limit, and for the judges that are left where one is not shown (mixture, failed ratings).

    Raises:
        ValueError: as `request`.
    """
    judges = [row.judge for row in rows]
    if len(set(judges)) < len(judges):
        raise ValueError(f"two ratings of {item} by one judge")
    if len(rows) > MOST:
        raise ValueError(f"{len(rows)} judges: there are names for {MOST}")
    if any(row.item != item for row in rows):
        raise ValueError(f"ratings of another item than {item}")

    def place(row: RatingRow) -> str:
        return hashlib.sha256("\n".join([*row.item, row.judge]).encode()).hexdigest()

    ordered = sorted(rows, key=place)
    return {f"Judge {name}": row for name, row in zip(_NAMES, ordered, strict=False)}


def _judge(text: dict[str, str], name: str, row: RatingRow) -> str:
    rating = f"{row.rating:g}"
    if row.rating in RATINGS:
        rating += f" ({RATINGS[int(row.rating)].capitalize()})"
    if not row.reason.strip():
        return prompts.fill(text["no_reason"], {"name": name, "rating": rating}).strip()
    tag = f"{name.lower().replace(' ', '_')}_reason"
    values = {"name": name, "rating": rating, "reason": block(tag, row.reason.strip())}
    return prompts.fill(text["judge"], values).strip()


@lru_cache(maxsize=8)
def _prompt(override_dir: Path | None) -> prompts.Prompt:
    return prompts.load("cvrr_es", "rating", _PARTS, override_dir)
