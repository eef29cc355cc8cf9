"""From a segment's narration to facts, questions and labels: five requests with checked replies.

    narration -> facts -> question-answer pairs -> simplified pairs -> modality, category

Paper, 3.2: the answer of the first pair is kept, and the question of the simplified one. What a
reply must be is its schema and, since that depends on what was asked, a check of numbers: a pair
names facts that exist, and simplified pairs and labels are one for one with the pairs. A reply that
fails gets one repair like every reply of a judge (judges/engine.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from lmms_eval_tasks.judges import Criterion, Judge, writer
from lmms_eval_tasks.movierecapsqa.facts import replies
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.movierecapsqa.facts.review import NOT_RELEASED, folded
from lmms_eval_tasks.movierecapsqa.schema import Segment
from lmms_eval_tasks.utils import prompts
from lmms_eval_tasks.utils.validation import told

_SHOWN: Mapping[str, tuple[str, ...]] = {
    "facts": ("narration",),
    "pairs": ("facts",),
    "simplify": ("pairs",),
    "modality": ("dialogue", "facts", "pairs"),
    "category": ("pairs",),
}


R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")


def prompt() -> prompts.Prompt:
    """The instructions: ours, or `movierecapsqa/facts.yml` of the user's folder of prompts.

    Raises:
        PromptError: the user's file does not fit.
    """
    required: dict[str, tuple[str, ...]] = dict.fromkeys(_SHOWN, ())
    required |= {f"{step}_user": shown for step, shown in _SHOWN.items()}
    return prompts.load("movierecapsqa", "facts", required)


def criterion(step: str, given: prompts.Prompt, schema: type[BaseModel] | None = None) -> Criterion:
    """One step as the judges' layer asks it; its score is the number of items in the reply."""
    return Criterion(
        name=f"movierecapsqa_{step}",
        system=given.text[step],
        template=given.text[f"{step}_user"],
        schema=schema or replies.SCHEMAS[step],
        score=_items,
        prompt_hash=given.hash,
        untrusted=_SHOWN[step],  # a narrator wrote it, or a model that read what he says
    )


def _items(reply: Any) -> float:
    return float(sum(len(value) for _, value in reply))


def listed(pairs: Sequence[tuple[str, str]], facts: Sequence[Sequence[int]] = ()) -> list[str]:
    """Pairs as they are shown, with the numbers of their facts where given."""
    shown = [f"Question: {question}\n   Answer: {answer}" for question, answer in pairs]
    return [
        f"{text}\n   Facts: {', '.join(map(str, facts[n]))}" if facts else text
        for n, text in enumerate(shown)
    ]


@dataclass(frozen=True)
class Written:
    """A segment with all that was asked for, or at which step and why it has none."""

    id: str
    entry: dict[str, Any] | None = None  # in the released form
    failure: str = ""
    repeated_facts: int = 0  # left out
    repeated_pairs: int = 0  # left out


def write(judge: Judge, given: prompts.Prompt, segment: Narrated) -> Written:
    """Ask the steps of one segment; trouble becomes its `failure`, never an exception.

    Labels: a modality is judged where the segment has dialogue, since nobody can tell from facts
    alone what is said. `factsUsed` counts from 0, `qid` too.
    """
    try:
        return _write(judge, given, segment)
    except writer.FailedError as error:
        return Written(segment.id, failure=str(error))


def _write(judge: Judge, given: prompts.Prompt, segment: Narrated) -> Written:
    def ask(step: str, schema: type[R], fields: Mapping[str, Any]) -> R:
        try:
            return writer.reply(judge, criterion(step, given, schema), fields, schema)
        except writer.FailedError as error:
            raise writer.FailedError(f"{step}: {error}") from None

    said = ask("facts", replies.Facts, {"narration": segment.narration}).facts
    read = _checked({**segment.released, "facts": said, "questions": []}, "facts")
    facts = distinct(read.facts, folded)
    drawn = ask("pairs", replies.pairs_on(len(facts)), {"facts": facts}).pairs
    pairs = distinct(drawn, lambda pair: folded(pair.question))
    shown = listed([(pair.question, pair.answer) for pair in pairs])
    simple = ask(
        "simplify", replies.numbered(replies.SimplePairs, len(pairs)), {"pairs": shown}
    ).pairs
    questions = [one.question for one in sorted(simple, key=lambda one: one.id)]
    final = [(question, pair.answer) for question, pair in zip(questions, pairs, strict=True)]
    used = [list(dict.fromkeys(pair.facts)) for pair in pairs]
    modality: dict[int, str] = {}
    if segment.dialogue:
        fields = {"dialogue": segment.dialogue, "facts": facts, "pairs": listed(final, used)}
        labels = ask("modality", replies.numbered(replies.Modalities, len(final)), fields).labels
        modality = {one.id: one.label for one in labels}
    found = ask(
        "category", replies.numbered(replies.Categories, len(final)), {"pairs": listed(final)}
    ).labels
    category = {one.id: one.label for one in found}
    entry: dict[str, Any] = {**segment.released, "facts": facts}
    entry["questions"] = [
        {
            "qid": number - 1,
            "factsUsed": [fact - 1 for fact in used[number - 1]],
            "question": question,
            "datasetAnswer": answer,
            **({"modality": modality[number]} if modality else {}),
            "category": category[number],
        }
        for number, (question, answer) in enumerate(final, 1)
    ]
    _checked(entry, "questions")
    return Written(segment.id, entry, "", len(said) - len(facts), len(drawn) - len(pairs))


def _checked(entry: Mapping[str, Any], what: str) -> Segment:
    """An entry as whoever reads the file will see it: facts without numbers, labels as slugs."""
    try:
        return Segment.model_validate(entry)
    except ValidationError as error:
        raise writer.FailedError(f"{what}: {NOT_RELEASED}: {told(error)}") from None


def distinct(items: Sequence[T], key: Callable[[T], str]) -> list[T]:
    """The first of all items with the same key, in their order."""
    first: dict[str, T] = {}
    for item in items:
        first.setdefault(key(item), item)
    return list(first.values())
