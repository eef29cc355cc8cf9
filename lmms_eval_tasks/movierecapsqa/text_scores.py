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
from functools import lru_cache
from typing import TYPE_CHECKING

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils import text_metrics, text_scores
from lmms_eval_tasks.utils.text_scores import NO_REFERENCE, Pair, TextScores

if TYPE_CHECKING:
    from lmms_eval_tasks.utils.bartscore import BartScore

ROUGE_L = text_metrics.IMPLEMENTATIONS["rouge_l"]  # for results: no stemmer, Unicode words
LANGUAGE = "en"  # of the release; decides bert-score's default encoder (roberta-large)
NOT_ASKED = f"no model was named with --bartscore ({settings.BARTSCORE})"


def rouge_l(candidate: str, reference: str) -> float | None:
    """ROUGE-L F1 in 0..1 (`ROUGE_L` says how); None without a reference.

    Args:
        candidate: the answer without reasoning; "" for what is no answer.
        reference: the dataset's answer; "" if there is none.
    """
    return (
        text_metrics.rouge_l(candidate, [reference]) if text_scores.has_words(reference) else None
    )


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
    pairs = text_scores.pairs(candidates, references)
    if not pairs:
        return text_scores.none(candidates, f"BERTScore not computed: {NO_REFERENCE}")
    score = text_scores.bertscore(pairs, model, LANGUAGE)
    known = None if score.reason else dict(zip(pairs, score.values, strict=True))
    return text_scores.by_item(candidates, references, known, score.describe())


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
    pairs = text_scores.pairs(candidates, references)
    if model is None:
        return text_scores.none(candidates, f"BARTScore not computed: {NOT_ASKED}")
    if not pairs:
        return text_scores.none(candidates, f"BARTScore not computed: {NO_REFERENCE}")
    score = _bartscore(pairs, model)
    # Of an answer without a word there is no likelihood; in 0..1 its place is at the end.
    likelihoods = [0.0 if value is None else value for value in score.likelihoods]
    known = None if score.reason else dict(zip(pairs, likelihoods, strict=True))
    note = score.describe() + ("" if known is None else "; these are 0 in the exponentiated column")
    return text_scores.by_item(candidates, references, known, note)


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


# As text_scores.bertscore.
@lru_cache(maxsize=2)
def _bartscore(pairs: tuple[Pair, ...], model: str) -> BartScore:
    from lmms_eval_tasks.utils.bartscore import bart_score

    return bart_score([one for one, _ in pairs], [one for _, one in pairs], model=model)
