"""Text metrics of an answer against the dataset's one (paper, 4.1 and Table 4, "Semantic Metrics").

Each gives a value per item, so that the mean and the variance of the paper's table follow, all in
0..1: ROUGE-L F1, BERTScore F1, and BARTScore exponentiated, exp(mean token log-likelihood) of the
answer given the reference. The paper names no implementation, stemmer, encoder, model or direction:
ours are named with each result, and are unverified.

An answer without a word, which stands for an empty or refused one as well, is worth 0 in all three:
it answered nothing. An item without a reference has no value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils import text_metrics

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.bartscore import BartScore
    from lmms_eval_tasks.utils.bertscore import BertScore

ROUGE_L = text_metrics.IMPLEMENTATIONS["rouge_l"]  # for results: no stemmer, Unicode words
LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)
_NO_REFERENCE = "no answer has a reference"
NOT_ASKED = f"no model was named with --bartscore ({settings.BARTSCORE})"


@dataclass(frozen=True)
class TextScores:
    """A metric of many items.

    Attributes:
        values: per item, in the order given, 0..1 (BERTScore can be below 0); None for an item
            without a reference, or where the metric was not computed.
        note: one line for the results: the model and its settings, or why there are no values.
        computed: False if the metric has no values for a reason that `note` tells.
    """

    values: tuple[float | None, ...]
    note: str
    computed: bool


def rouge_l(candidate: str, reference: str) -> float | None:
    """ROUGE-L F1 in 0..1 (`ROUGE_L` says how); None without a reference.

    Args:
        candidate: the answer without reasoning; "" for what is no answer.
        reference: the dataset's answer; "" if there is none.
    """
    return text_metrics.rouge_l(candidate, [reference]) if _has_words(reference) else None


def bertscore(
    candidates: Sequence[str], references: Sequence[str], model: str | None = None
) -> TextScores:
    """BERTScore F1 per item, not rescaled.

    Computed once for the same texts, in whatever order: mean and variance need it twice.

    Args:
        candidates: answers without reasoning; "" for what is no answer.
        references: the dataset's answers; "" where there is none.
        model: folder of an encoder, or a name in the local Hugging Face cache; None for
            bert-score's default, from the cache only.

    Raises:
        ValueError: the lengths differ.
    """
    pairs = _pairs(candidates, references)
    if not pairs:
        return _none(candidates, f"BERTScore not computed: {_NO_REFERENCE}")
    score = _bertscore(pairs, model)
    known = None if score.reason else dict(zip(pairs, score.values, strict=True))
    return _by_item(candidates, references, known, score.describe())


def bartscore(
    candidates: Sequence[str], references: Sequence[str], model: str | None
) -> TextScores:
    """BARTScore per item, exponentiated: the geometric mean of the answer's token probabilities.

    Computed once for the same texts, as for `bertscore`.

    Args:
        candidates: answers without reasoning; "" for what is no answer.
        references: the dataset's answers; "" where there is none.
        model: folder of a sequence-to-sequence model, or a name in the local Hugging Face cache
            (`settings.bartscore_model()`); None: not computed.

    Raises:
        ValueError: the lengths differ.
    """
    pairs = _pairs(candidates, references)
    if model is None:
        return _none(candidates, f"BARTScore not computed: {NOT_ASKED}")
    if not pairs:
        return _none(candidates, f"BARTScore not computed: {_NO_REFERENCE}")
    score = _bartscore(pairs, model)
    # Of an answer without a word there is no likelihood; in 0..1 its place is at the end.
    likelihoods = [0.0 if value is None else value for value in score.likelihoods]
    known = None if score.reason else dict(zip(pairs, likelihoods, strict=True))
    note = score.describe() + ("" if known is None else "; these are 0 in the exponentiated column")
    return _by_item(candidates, references, known, note)


def check() -> None:
    """Stop before a run whose BARTScore model, if the user named one, cannot be used.

    Raises:
        TasksError: what is wrong with it.
    """
    from lmms_eval_tasks.utils import bartscore as implementation

    model = settings.bartscore_model()
    if model and (problem := implementation.problem(model)):
        raise TasksError(
            f"{settings.BARTSCORE}={model}: {problem}; nothing is downloaded: name the folder of a "
            "model such as facebook/bart-large-cnn, or leave the option out"
        )


Pairs = tuple[tuple[str, str], ...]  # candidate, reference


def _pairs(candidates: Sequence[str], references: Sequence[str]) -> Pairs:
    """The pairs with a reference, sorted, so that the same items are found again in the caches."""
    both = zip(candidates, references, strict=True)
    return tuple(sorted(pair for pair in both if _has_words(pair[1])))


# Nothing depends on how often these are called; an encoder is loaded once instead of per metric.
@lru_cache(maxsize=2)
def _bertscore(pairs: Pairs, model: str | None) -> BertScore:
    from lmms_eval_tasks.utils.bertscore import bert_score

    return bert_score(
        [candidate for candidate, _ in pairs],
        [[reference] for _, reference in pairs],
        model=model,
        lang=LANGUAGE,
    )


@lru_cache(maxsize=2)
def _bartscore(pairs: Pairs, model: str) -> BartScore:
    from lmms_eval_tasks.utils.bartscore import bart_score

    return bart_score([one for one, _ in pairs], [one for _, one in pairs], model=model)


def _by_item(
    candidates: Sequence[str],
    references: Sequence[str],
    known: dict[tuple[str, str], float] | None,
    note: str,
) -> TextScores:
    """Values in the items' order; None for `known` says that the metric could not be computed."""
    if known is None:
        return _none(candidates, note)
    pairs = zip(candidates, references, strict=True)
    return TextScores(tuple(known.get(pair) for pair in pairs), note, computed=True)


def _none(candidates: Sequence[str], note: str) -> TextScores:
    return TextScores((None,) * len(candidates), note, computed=False)


def _has_words(text: str) -> bool:
    return bool(text_metrics.tokenize(text))
