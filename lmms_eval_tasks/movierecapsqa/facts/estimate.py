"""What `lmms-eval-tasks facts` will cost: its calls, tokens and dollars, before anybody is asked.

Later steps are asked about earlier replies, which nobody knows yet. So every segment gets stand-ins
of the usual size, and these are counted like the real ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmms_eval_tasks.judges import JudgeConfig, writer
from lmms_eval_tasks.movierecapsqa.facts import replies, steps
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.utils.prompts import Prompt

if TYPE_CHECKING:
    from lmms_eval_tasks.judges.costs import Asked, Plan

# Means of the released sample (8 segments, 113 facts, 52 questions), in tokens; a fact comes with
# 5 s of recap, in which a narrator says about as much as the fact does.
FACT, QUESTION, ANSWER = 16, 13, 23
FACTS_PER_PAIR = 2
_VERBOSE = 1.5  # length of a question before it is simplified; a guess


def estimate(
    segments: Sequence[Narrated], given: Prompt, config: JudgeConfig
) -> tuple[dict[str, Plan], list[str]]:
    """The work of each step and of `all` of them, and notes on how it was estimated."""
    from lmms_eval_tasks.judges import run
    from lmms_eval_tasks.judges.config import is_reasoning
    from lmms_eval_tasks.judges.costs import REASONING_TOKENS
    from lmms_eval_tasks.judges.prices import counter

    count = counter(config.model)
    asked: dict[str, list[Asked]] = {name: [] for name in replies.SCHEMAS}
    for segment in segments:
        number = max(1, round(count.count(segment.narration) / FACT))
        for name, fields, reply in _asked(segment, number):
            asked[name].append((steps.criterion(name, given), fields, json.dumps(reply)))
    notes = [
        f"tokens by {count.name}; assumed: a fact for {FACT} tokens of narration, a pair for "
        f"{FACTS_PER_PAIR} facts, as in the released sample; no repairs",
        f"cost: {run.current().prices.origin}; replies in the cache are free",
    ]
    if is_reasoning(config.model):
        notes.insert(1, f"{REASONING_TOKENS} tokens of reasoning assumed for each reply")
    return writer.estimate(config, asked), notes


def _asked(segment: Narrated, number: int) -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    """Each step's fields and its reply, with stand-ins for `number` facts."""
    facts = [writer.words(FACT)] * number
    places = range(1, max(1, round(number / FACTS_PER_PAIR)) + 1)
    used = [[1, 2]] * len(places)
    long = [(writer.words(_VERBOSE * QUESTION), writer.words(ANSWER))] * len(places)
    short = [(writer.words(QUESTION), writer.words(ANSWER))] * len(places)
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


def summary(work: Mapping[str, Plan]) -> str:
    """The sum in words."""
    total = work["all"]
    return f"about {total.calls:,} calls, {writer.tokens(total)} tokens, {writer.cost(total)}"
