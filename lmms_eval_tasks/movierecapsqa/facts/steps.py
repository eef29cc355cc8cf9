"""From a segment's narration to facts, questions and labels: five requests with checked replies.

    narration -> facts -> question-answer pairs -> simplified pairs -> modality, category

Paper, 3.2: the answer of the first pair is kept, and the question of the simplified one. A pair
names facts that exist, and simplified pairs and labels are one for one with the pairs: these checks
are in Python, so that the JSON schema that is sent is the same for any number of facts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator

from lmms_eval_tasks.judges.writer import SOME, Form, Line, Step, Unit, checked, needed, words
from lmms_eval_tasks.movierecapsqa.facts.recap_file import Narrated
from lmms_eval_tasks.movierecapsqa.schema import without_numbers
from lmms_eval_tasks.utils.prompts import Prompt

R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")


def folded(text: str) -> str:
    """A text without what does not change it: case, signs, spaces, compatibility forms."""
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def _distinct(key: Callable[[T], str]) -> AfterValidator:
    """The first of all items with the same key, in their order."""

    def first(items: list[T]) -> list[T]:
        found: dict[str, T] = {}
        for item in items:
            found.setdefault(folded(key(item)), item)
        return list(found.values())

    return AfterValidator(first)


def _word(change: Callable[[str], str]) -> BeforeValidator:
    return BeforeValidator(lambda one: change(one.strip()) if isinstance(one, str) else one)


class Facts(Form):
    """Atomic facts."""

    facts: Annotated[list[Line], SOME, BeforeValidator(without_numbers), _distinct(str)]


class Pair(Form):
    """A question, its answer and the numbers of the facts they rest on, from 1."""

    question: Line
    answer: Line
    facts: Annotated[list[int], SOME]


class Pairs(Form):
    """Question-answer pairs."""

    pairs: Annotated[list[Pair], SOME, _distinct(lambda pair: pair.question)]


class SimplePair(Form):
    """The simpler version of the pair with this number."""

    id: int
    question: Line
    answer: Line


class SimplePairs(Form):
    """Simplified pairs."""

    pairs: list[SimplePair]


class ModalityLabel(Form):
    """What the question with this number needs."""

    id: int
    label: Annotated[Literal["dialogue", "vision", "multimodal"], _word(str.lower)]


class Modalities(Form):
    """Modality labels."""

    labels: list[ModalityLabel]


class CategoryLabel(Form):
    """What the question with this number is about."""

    id: int
    label: Annotated[Literal["NPA", "CRD", "TH", "STA", "TEMP"], _word(str.upper)]


class Categories(Form):
    """Category labels."""

    labels: list[CategoryLabel]


FACTS = Step("movierecapsqa", "facts", Facts, ("narration",))
PAIRS = Step("movierecapsqa", "pairs", Pairs, ("facts",))
SIMPLIFY = Step("movierecapsqa", "simplify", SimplePairs, ("pairs",))
MODALITY = Step("movierecapsqa", "modality", Modalities, ("dialogue", "facts", "pairs"))
CATEGORY = Step("movierecapsqa", "category", Categories, ("pairs",))
STEPS: tuple[Step[Any], ...] = (FACTS, PAIRS, SIMPLIFY, MODALITY, CATEGORY)

# For estimates. Means of the released sample (8 segments, 113 facts, 52 questions), in tokens; a
# narrator says about as much in the 5 s of a fact as the fact does.
FACT, QUESTION, ANSWER = 16, 13, 23
FACTS_PER_PAIR = 2
ASSUMED = (
    f"a fact for {FACT} tokens of narration, a pair for {FACTS_PER_PAIR} facts, as in the released "
    "sample"
)
_TOKENS_PER_WORD = 4 / 3


def unit(given: Prompt, segment: Narrated) -> Unit[dict[str, Any]]:
    """A segment in the released form, by the writer (judges/writer.py).

    A modality is asked for where the segment has dialogue, since nobody can tell from facts alone
    what is said. `factsUsed` counts from 0, `qid` too. Facts and questions that repeat others of
    their segment are left out.
    """
    # Stand-ins differ by a number at their end, or they would be repetitions.
    number = max(1, round(len(segment.narration.split()) * _TOKENS_PER_WORD / FACT))
    likely: list[Any] = [f"{words(FACT - 1)} {n}" for n in range(number)]
    fields: dict[str, Any] = {"narration": segment.narration}
    facts = (yield from needed(FACTS.want(given, fields, {"facts": likely}))).facts

    count = max(1, round(number / FACTS_PER_PAIR))
    text = {"answer": words(ANSWER), "facts": [1]}
    likely = [{"question": f"{words(1.5 * QUESTION)} {n}", **text} for n in range(count)]
    want = PAIRS.want(given, {"facts": facts}, {"pairs": likely}, _pairs_on(len(facts)))
    pairs = (yield from needed(want)).pairs

    ids = range(1, len(pairs) + 1)
    shown = {"pairs": listed([(pair.question, pair.answer) for pair in pairs])}
    likely = [{"id": n, "question": words(QUESTION), "answer": words(ANSWER)} for n in ids]
    schema = _numbered(SimplePairs, len(pairs))
    simple = yield from needed(SIMPLIFY.want(given, shown, {"pairs": likely}, schema))
    questions = {one.id: one.question for one in simple.pairs}
    final = [(questions[n], pair.answer) for n, pair in zip(ids, pairs, strict=True)]
    used = [list(dict.fromkeys(pair.facts)) for pair in pairs]

    modality: dict[int, str] = {}
    if segment.dialogue:
        fields = {"dialogue": segment.dialogue, "facts": facts, "pairs": listed(final, used)}
        likely = [{"id": n, "label": "multimodal"} for n in ids]
        kind = MODALITY.want(given, fields, {"labels": likely}, _numbered(Modalities, len(pairs)))
        modality = {one.id: one.label for one in (yield from needed(kind)).labels}
    likely, fields = [{"id": n, "label": "NPA"} for n in ids], {"pairs": listed(final)}
    about = CATEGORY.want(given, fields, {"labels": likely}, _numbered(Categories, len(pairs)))
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
    """Pairs as they are shown, with the numbers of their facts where given."""
    shown = [f"Question: {question}\n   Answer: {answer}" for question, answer in pairs]
    return [
        f"{text}\n   Facts: {', '.join(map(str, facts[n]))}" if facts else text
        for n, text in enumerate(shown)
    ]


@lru_cache(maxsize=256)
def _pairs_on(facts: int) -> type[Pairs]:
    """Pairs that name only facts 1 to `facts`."""

    def known(reply: Pairs) -> Pairs:
        for number, pair in enumerate(reply.pairs, 1):
            if wrong := [fact for fact in pair.facts if not 1 <= fact <= facts]:
                raise ValueError(f"pair {number} names fact {wrong[0]} of {facts}")
        return reply

    return checked(Pairs, known)


@lru_cache(maxsize=256)
def _numbered(schema: type[R], number: int) -> type[R]:
    """A schema of simplified pairs or labels, with the numbers 1 to `number`, each once."""

    def complete(reply: R) -> R:
        (items,) = (value for _, value in reply)
        ids = sorted(item.id for item in items)
        if ids != list(range(1, number + 1)):
            raise ValueError(f"expected the numbers 1 to {number}, each once, found {ids[:50]}")
        return reply

    return checked(schema, complete)
