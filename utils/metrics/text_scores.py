"""Text metrics of many items at once, one value per item; what the benchmarks have in common.

A text without a word, which stands for an empty or refused reply as well, is worth 0: it answered
nothing. An item without a reference has no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lmms_eval_tasks.utils.metrics import text_metrics

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.metrics.bertscore import BertScore

NO_REFERENCE = "no answer has a reference"
Pair = tuple[str, str]  # candidate, reference


@dataclass(frozen=True)
class TextScores:
    """A metric of many items.

    Attributes:
        values: per item, in the order given, 0..1 (BERTScore can be below 0); None for an item
            without a reference, or where the metric was not computed.
        note: one line for the results: the model and its settings, or why there are no values.
    """

    values: tuple[float | None, ...]
    note: str


def pairs(candidates: Sequence[str], references: Sequence[str]) -> tuple[Pair, ...]:
    """The pairs with a reference, sorted, so that the same items are found again in the caches.

    Raises:
        ValueError: the lengths differ.
    """
    both = zip(candidates, references, strict=True)
    return tuple(sorted(pair for pair in both if has_words(pair[1])))


def by_item(
    candidates: Sequence[str],
    references: Sequence[str],
    known: Mapping[Pair, float] | None,
    note: str,
) -> TextScores:
    """Values in the items' order; None for `known` says that the metric could not be computed."""
    if known is None:
        return none(candidates, note)
    both = zip(candidates, references, strict=True)
    return TextScores(tuple(known.get(pair) for pair in both), note)


def none(candidates: Sequence[str], note: str) -> TextScores:
    """No values, for the reason in `note`."""
    return TextScores((None,) * len(candidates), note)


def has_words(text: str) -> bool:
    """Whether there is anything in a text that a metric could compare."""
    return bool(text_metrics.tokenize(text))


# Nothing depends on how often it is called: an encoder is loaded once instead of per metric.
@lru_cache(maxsize=2)
def bertscore(known: tuple[Pair, ...], model: str | None, language: str) -> BertScore:
    """BERTScore of some pairs and what it was computed with; the last ones asked for are kept.

    Args:
        known: what `pairs` returned, at least one.
        model: folder of an encoder, or a name in the local Hugging Face cache; None for
            bert-score's default for `language`, from the cache only.
        language: of the texts, as a code.
    """
    from lmms_eval_tasks.utils.metrics.bertscore import bert_score

    return bert_score(
        [candidate for candidate, _ in known],
        [[reference] for _, reference in known],
        model=model,
        lang=language,
    )
