"""What the texts of a record will cost, before anybody is asked: calls, tokens and dollars.

The document and the summary are asked about descriptions that nobody has yet: these get stand-ins
of the usual size, which are counted like the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.haven.build import steps
from lmms_eval_tasks.haven.build.steps import Texts
from lmms_eval_tasks.haven.build.structure import Structure
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.utils.prompts import Prompt

if TYPE_CHECKING:
    from rich.table import Table

# Tokens; assumptions, as nothing of the kind has been measured.
FRAME, SHOT, SENTENCE = 40, 60, 30
SHOTS_PER_SENTENCE = 2


@dataclass
class Step:
    """One step over all videos. `cost` in dollars; None: unknown."""

    name: str
    calls: int = 0
    pictures: int = 0
    prompt_tokens: int = 0
    reply_tokens: int = 0
    cost: float | None = None


@dataclass(frozen=True)
class Work:
    """A video's structure, the texts it has, and the size of its pictures in pixels."""

    made: Structure
    have: Texts
    size: tuple[int, int]


def estimate(works: Sequence[Work], given: Prompt, config: JudgeConfig) -> list[Step]:
    """The steps with what they need.

    Args:
        works: the videos that are to be asked about.
        given: the instructions.
        config: the model.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.config import is_reasoning
    from lmms_eval_tasks.judges.prompts import render
    from lmms_eval_tasks.judges.tokens import count_messages, counter, image_tokens
    from lmms_eval_tasks.runs.estimate import REASONING_TOKENS

    count = counter(config.model)
    thought = REASONING_TOKENS if is_reasoning(config.model) else 0
    found = {name: Step(name) for name in steps.STEPS}
    for work in works:
        picture = image_tokens(*work.size)
        for name, pictures, texts, reply in _asked(work):
            step, asked = found[name], steps.criterion(name, given)
            step.calls += 1
            step.pictures += pictures
            step.prompt_tokens += count_messages(render(asked, steps.fields(name, texts)), count)
            step.prompt_tokens += pictures * picture
            step.reply_tokens += count.count(json.dumps(reply)) + thought
    price = run.current().price(config)
    for step in found.values():
        if price is not None:
            step.cost = price.cost(step.prompt_tokens, step.reply_tokens)
    return list(found.values())


def notes(config: JudgeConfig) -> list[str]:
    """How the numbers came about, one line each."""
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.tokens import counter

    return [
        f"tokens by {counter(config.model).name}, pictures by OpenAI's rule for gpt-4o; assumed: "
        f"{FRAME} for a frame's description, {SHOT} for a shot's, a sentence of {SENTENCE} for "
        f"{SHOTS_PER_SENTENCE} shots; no repairs",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]


def _asked(work: Work) -> Iterator[tuple[str, int, list[str], Any]]:
    """Each request: its step, number of pictures, descriptions shown, and a reply like the real."""
    have, made = work.have, work.made
    for text in have.frames:
        if not text:
            yield "frame", 1, [], {"description": _words(FRAME)}
    for text, shot in zip(have.shots, made.shots, strict=True):
        if not text:
            yield "shot", len(shot), [], {"description": _words(SHOT)}
    shown = [text or _words(SHOT) for text in have.shots]
    if not have.document:
        yield "document", 0, shown, _sentences(len(shown))
    if made.key_shots and not have.summary:
        chosen = [shown[n] for n in made.key_shots]
        yield "summary", 0, chosen, _sentences(len(chosen))


def _sentences(shots: int) -> Any:
    number = -(-shots // SHOTS_PER_SENTENCE)
    return {"sentences": [{"sentence": _words(SENTENCE), "shots": [1, 2]}] * number}


def _words(tokens: int) -> str:
    """A text of about so many tokens."""
    return " ".join(["word"] * tokens)


def total(found: Sequence[Step]) -> Step:
    """The sum; its cost is unknown as soon as one is."""
    known = [step.cost for step in found if step.cost is not None]
    return Step(
        "all",
        sum(step.calls for step in found),
        sum(step.pictures for step in found),
        sum(step.prompt_tokens for step in found),
        sum(step.reply_tokens for step in found),
        sum(known) if len(known) == len(found) else None,
    )


def table(found: Sequence[Step]) -> Table:
    """The steps with their sum."""
    from rich import box
    from rich.table import Table

    from lmms_eval_tasks.judges.ledger import dollars

    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("step")
    for title in ("calls", "pictures", "tokens in + out", "cost"):
        made.add_column(title, justify="right")
    for step in [*found, total(found)]:
        made.add_row(
            step.name,
            f"{step.calls:,}",
            f"{step.pictures:,}",
            f"{step.prompt_tokens:,} + {step.reply_tokens:,}",
            "price unknown" if step.cost is None else dollars(step.cost),
        )
    return made
