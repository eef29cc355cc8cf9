"""The five requests from a segment's narration to facts, questions and labels.

    narration -> facts -> question-answer pairs -> simplified pairs -> modality, category

Source: paper, 3.2. The file keeps the answer of the first pair and the question of the simplified
pair. A pair has to name existing facts, and there has to be one simplified pair and one label for
each pair. Python checks these rules, so that the JSON schema of a request is the same for any
number of facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator

from lmms_eval_tasks.judges.writer import (
    SOME,
    Line,
    ReplySchema,
    Step,
    Unit,
    checked,
    needed,
    words,
)
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.movierecapsqa.release import without_numbers
from lmms_eval_tasks.prompts import Prompt

R = TypeVar("R", bound=BaseModel)


class Facts(ReplySchema):
    """Atomic facts."""

    facts: Annotated[list[Line], SOME, BeforeValidator(without_numbers)]


class Pair(ReplySchema):
    """A question, its answer and the numbers of the facts they rest on, from 1."""

    question: Line
    answer: Line
    facts: Annotated[list[int], SOME]


class Pairs(ReplySchema):
    """Question-answer pairs."""

    pairs: Annotated[list[Pair], SOME]


class SimplePair(ReplySchema):
    """The simpler version of the pair with this number."""

    id: int
    question: Line
    answer: Line


class SimplePairs(ReplySchema):
    """Simplified pairs."""

    pairs: list[SimplePair]


class ModalityLabel(ReplySchema):
    """What the question with this number needs."""

    id: int
    label: Literal["dialogue", "vision", "multimodal"]


class Modalities(ReplySchema):
    """Modality labels."""

    labels: list[ModalityLabel]


class CategoryLabel(ReplySchema):
    """What the question with this number is about."""

    id: int
    label: Literal["NPA", "CRD", "TH", "STA", "TEMP"]


class Categories(ReplySchema):
    """Category labels."""

    labels: list[CategoryLabel]


FACTS = Step("movierecapsqa", "facts", Facts, ("narration",))
PAIRS = Step("movierecapsqa", "pairs", Pairs, ("facts",))
SIMPLIFY = Step("movierecapsqa", "simplify", SimplePairs, ("pairs",))
MODALITY = Step("movierecapsqa", "modality", Modalities, ("dialogue", "facts", "pairs"))
CATEGORY = Step("movierecapsqa", "category", Categories, ("pairs",))
STEPS: tuple[Step[Any], ...] = (FACTS, PAIRS, SIMPLIFY, MODALITY, CATEGORY)

# Tokens, for estimates: means of the released sample (8 segments, 113 facts, 52 questions).
# Narration of 5 s, the time of one fact, has about as many tokens as the fact.
FACT, QUESTION, ANSWER = 16, 13, 23
FACTS_PER_PAIR = 2
ASSUMED = (
    f"a fact for {FACT} tokens of narration, a pair for {FACTS_PER_PAIR} facts, as in the released "
    "sample"
)
_TOKENS_PER_WORD = 4 / 3


def unit(prompt: Prompt, segment: Narrated) -> Unit[dict[str, Any]]:
    """Return the unit of work that writes one segment in the released form (judges/writer.py).

    The modality is requested only if the segment has dialogue, since facts alone do not tell what
    is said. `factsUsed` and `qid` count from 0.
    """
    number = max(1, round(len(segment.narration.split()) * _TOKENS_PER_WORD / FACT))
    likely: list[Any] = [f"{words(FACT - 1)} {n}" for n in range(number)]
    fields: dict[str, Any] = {"narration": segment.narration}
    facts = (yield from needed(FACTS.want(prompt, fields, {"facts": likely}))).facts

    def on_facts(reply: Pairs) -> Pairs:
        for place, pair in enumerate(reply.pairs, 1):
            if wrong := [fact for fact in pair.facts if not 1 <= fact <= len(facts)]:
                raise ValueError(f"pair {place} names fact {wrong[0]} of {len(facts)}")
        return reply

    text = {"answer": words(ANSWER), "facts": [1]}
    count = max(1, round(number / FACTS_PER_PAIR))
    likely = [{"question": f"{words(1.5 * QUESTION)} {n}", **text} for n in range(count)]
    want = PAIRS.want(prompt, {"facts": facts}, {"pairs": likely}, checked(Pairs, on_facts))
    pairs = (yield from needed(want)).pairs
    ids = range(1, len(pairs) + 1)

    def numbered(schema: type[R]) -> type[R]:
        """Return the schema of pairs or labels with one numbered entry for each pair."""

        def complete(reply: R) -> R:
            (items,) = (value for _, value in reply)
            if (found := sorted(item.id for item in items)) != [*ids]:
                told = f"expected the numbers 1 to {len(ids)}, each once, found {found[:50]}"
                raise ValueError(told)
            return reply

        return checked(schema, complete)

    shown = {"pairs": listed([(pair.question, pair.answer) for pair in pairs])}
    likely = [{"id": n, "question": words(QUESTION), "answer": words(ANSWER)} for n in ids]
    easier = SIMPLIFY.want(prompt, shown, {"pairs": likely}, numbered(SimplePairs))
    questions = {one.id: one.question for one in (yield from needed(easier)).pairs}
    final = [(questions[n], pair.answer) for n, pair in zip(ids, pairs, strict=True)]
    used = [list(dict.fromkeys(pair.facts)) for pair in pairs]
    modality: dict[int, str] = {}
    if segment.dialogue:
        fields = {"dialogue": segment.dialogue, "facts": facts, "pairs": listed(final, used)}
        likely = [{"id": n, "label": "multimodal"} for n in ids]
        kind = MODALITY.want(prompt, fields, {"labels": likely}, numbered(Modalities))
        modality = {one.id: one.label for one in (yield from needed(kind)).labels}
    likely, fields = [{"id": n, "label": "NPA"} for n in ids], {"pairs": listed(final)}
    about = CATEGORY.want(prompt, fields, {"labels": likely}, numbered(Categories))
    category = {one.id: one.label for one in (yield from needed(about)).labels}
    return {
        **segment.released,
        "facts": facts,
        "questions": [
            {
                "qid": n - 1,
                "factsUsed": [fact - 1 for fact in used[n - 1]],
                "question": question,
                "datasetAnswer": answer,
                **({"modality": modality[n]} if modality else {}),
                "category": category[n],
            }
            for n, (question, answer) in zip(ids, final, strict=True)
        ],
    }


def listed(pairs: Sequence[tuple[str, str]], facts: Sequence[Sequence[int]] = ()) -> list[str]:
    """Return pairs in the form of the prompt, with the numbers of their facts if given."""
    shown = [f"Question: {question}\n   Answer: {answer}" for question, answer in pairs]
    ends = [f"\n   Facts: {', '.join(map(str, own))}" for own in facts] or [""] * len(shown)
    return [text + end for text, end in zip(shown, ends, strict=True)]
