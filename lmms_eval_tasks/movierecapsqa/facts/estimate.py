"""What `lmms-eval-tasks facts` will cost: its calls, tokens and dollars, before anybody is asked.

Later steps are asked about earlier replies, which nobody knows yet. So every segment gets stand-ins
of the usual size, and these are counted like the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmms_eval_tasks.judges import Criterion, JudgeConfig
from lmms_eval_tasks.movierecapsqa.facts import replies, steps
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.utils.prompts import Prompt

if TYPE_CHECKING:
    from rich.table import Table

# Means of the released sample (8 segments, 113 facts, 52 questions), in tokens; a fact comes with
# 5 s of recap, in which a narrator says about as much as the fact does.
FACT, QUESTION, ANSWER = 16, 13, 23
FACTS_PER_PAIR = 2
_VERBOSE = 1.5  # length of a question before it is simplified; a guess


class Step(NamedTuple):
    """One step over all segments, or all of them. `cost` in dollars; None: unknown."""

    name: str
    calls: int
    prompt_tokens: int
    reply_tokens: int
    cost: float | None


def estimate(
    segments: Sequence[Narrated], given: Prompt, config: JudgeConfig
) -> tuple[list[Step], list[str]]:
    """The steps with their sum at the end, and notes on how they were estimated.

    Args:
        segments: those that are to be asked about.
        given: the instructions.
        config: the model.
    """
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.config import is_reasoning
    from lmms_eval_tasks.judges.costs import REASONING_TOKENS, plan
    from lmms_eval_tasks.judges.tokens import counter

    count = counter(config.model)
    asked: dict[str, list[tuple[Criterion, Mapping[str, Any], str]]]
    asked = {name: [] for name in replies.SCHEMAS}
    for segment in segments:
        number = max(1, round(count.count(segment.narration) / FACT))
        for name, fields, reply in _asked(segment, number):
            asked[name].append((steps.criterion(name, given), fields, json.dumps(reply)))
    found = []
    for name, requests in asked.items():
        work = plan(config, requests)
        found.append(Step(name, work.calls, work.judge_tokens, work.reply_tokens, work.cost))
    costs = [step.cost for step in found if step.cost is not None]
    total = Step(
        "all",
        sum(step.calls for step in found),
        sum(step.prompt_tokens for step in found),
        sum(step.reply_tokens for step in found),
        sum(costs) if len(costs) == len(found) else None,
    )
    found.append(total)
    notes = [
        f"tokens by {count.name}; assumed: a fact for {FACT} tokens of narration, a pair for "
        f"{FACTS_PER_PAIR} facts, as in the released sample; no repairs",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]
    if is_reasoning(config.model):
        notes.insert(1, f"{REASONING_TOKENS} tokens of reasoning assumed for each reply")
    return found, notes


def _asked(segment: Narrated, number: int) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Each step's fields and its reply, with stand-ins for `number` facts."""
    facts = [_words(FACT)] * number
    places = range(1, max(1, round(number / FACTS_PER_PAIR)) + 1)
    used = [[1, 2]] * len(places)
    long = [(_words(_VERBOSE * QUESTION), _words(ANSWER))] * len(places)
    short = [(_words(QUESTION), _words(ANSWER))] * len(places)
    listed = steps.listed
    yield "facts", {"narration": segment.narration}, {"facts": facts}
    made = [{"question": q, "answer": a, "facts": [1, 2]} for q, a in long]
    yield "pairs", {"facts": facts}, {"pairs": made}
    simple = [{"id": n, "question": short[0][0], "answer": short[0][1]} for n in places]
    yield "simplify", {"pairs": listed(long)}, {"pairs": simple}
    if segment.dialogue:
        shown = {"dialogue": segment.dialogue, "facts": facts, "pairs": listed(short, used)}
        yield "modality", shown, {"labels": [{"id": n, "label": "multimodal"} for n in places]}
    labels = [{"id": n, "label": "NPA"} for n in places]
    yield "category", {"pairs": listed(short)}, {"labels": labels}


def _words(tokens: float) -> str:
    """A text of about so many tokens."""
    return " ".join(["word"] * round(tokens))


def summary(steps: Sequence[Step]) -> str:
    """The sum in words."""
    total = steps[-1]
    return (
        f"about {total.calls:,} calls, {total.prompt_tokens:,} + {total.reply_tokens:,} tokens, "
        f"{_dollars(total.cost)}"
    )


def table(steps: Sequence[Step]) -> Table:
    """The steps and their sum."""
    from rich import box
    from rich.table import Table

    made = Table(title="Estimate", title_justify="left", box=box.SIMPLE_HEAD)
    made.add_column("step")
    for title in ("calls", "tokens in + out", "cost"):
        made.add_column(title, justify="right")
    for step in steps:
        tokens = f"{step.prompt_tokens:,} + {step.reply_tokens:,}"
        made.add_row(step.name, f"{step.calls:,}", tokens, _dollars(step.cost))
    return made


def _dollars(amount: float | None) -> str:
    from lmms_eval_tasks.judges.report import dollars

    return "price unknown" if amount is None else dollars(amount)
