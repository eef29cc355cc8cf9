"""BARTScore with a sequence-to-sequence model that is on this machine (Yuan et al., 2021).

The score is the mean log-likelihood of the candidate's tokens, given the reference, which the
encoder reads (the authors' "precision"); the special tokens that the tokenizer adds to it count as
tokens, as in their code.
MovieRecapsQA's paper (Table 4: 0.03 to 0.05) names neither its model nor its direction; its column
can only be the exponentiated score, exp(mean log-likelihood) in 0..1, which `likelihoods` holds.

Any model that transformers' AutoModelForSeq2SeqLM loads will do; the authors' is
facebook/bart-large-cnn. No model means no number: the value is None with the reason, never 0, and
nothing is downloaded.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lmms_eval_tasks.utils.metrics import aggregate, local_models, seq2seq
from lmms_eval_tasks.utils.metrics.text_metrics import check_corpus, tokenize

KIND = "sequence-to-sequence model"


@dataclass(frozen=True)
class BartScore:
    """BARTScore of some items and what it was computed with.

    Attributes:
        values: per item, in the order given, the mean log-likelihood of a token (natural logarithm,
            at most 0); None for an item of which one text has no word, or if not computed.
        n_truncated: texts cut to the model's length: candidates and references, once per item.
        model: name or path of the model, as asked for.
        revision: its commit in the Hugging Face cache; None for a folder of the user's.
        max_source: tokens that the encoder reads at most, special tokens included.
        max_target: tokens that are scored at most, special tokens included.
        reason: why nothing was computed, else None.
    """

    values: tuple[float | None, ...]
    n_truncated: int
    model: str
    revision: str | None
    max_source: int | None
    max_target: int | None
    reason: str | None

    @property
    def value(self) -> float | None:
        """Mean log-likelihood over the items that have one; None if none has."""
        return aggregate.mean(value for value in self.values if value is not None)

    @property
    def likelihoods(self) -> tuple[float | None, ...]:
        """The values exponentiated: per item the geometric mean of its tokens' probabilities."""
        return tuple(None if value is None else math.exp(value) for value in self.values)

    def describe(self) -> str:
        """One line for the results: the number with its model, direction, precision and cuts."""
        if self.reason is not None:
            return f"BARTScore not computed: {self.reason}"
        import transformers

        model = self.model + (f" at {self.revision[:12]}" if self.revision else "")
        shown = aggregate.mean(value for value in self.likelihoods if value is not None)
        numbers = (
            "of no item"
            if self.value is None
            else f"{self.value:.4f} (exponentiated per item {shown:.4f})"
        )
        return (
            f"BARTScore {numbers}, mean token log-likelihood P(candidate | reference) "
            f"(precision); model {model}, transformers "
            f"{transformers.__version__}, float32; {self.n_truncated} texts cut "
            f"(encoder {self.max_source}, decoder {self.max_target} tokens); "
            f"{self.values.count(None)} of {len(self.values)} items left out for lack of words"
        )


def bart_score(candidates: Sequence[str], references: Sequence[str], *, model: str) -> BartScore:
    """Mean token log-likelihood of each candidate given its reference.

    On the CPU, as the model under test may still fill the GPU. Texts are in NFC without blanks
    around them. Items are scored in batches with attention masks;
    equal ones once, and batches are put together by length and text: the order of items changes no
    bit, and a list agrees with the same list item by item up to the rounding of single precision
    (about 1e-6).

    Args:
        candidates: one text per item.
        references: one text per item.
        model: folder of a sequence-to-sequence model, or a name in the local Hugging Face cache.

    Raises:
        ValueError: there is no item, or the lengths differ. A model that is absent, broken or of
            another kind raises nothing: there are no values, and the reason says why.
    """
    check_corpus(candidates, [[reference] for reference in references])
    empty = BartScore((None,) * len(candidates), 0, model, None, None, None, None)
    folder = local_models.find(model, may_be_path=True)
    if folder is None:
        return replace(empty, reason=local_models.absent(KIND, model))
    pairs = [
        (_clean(reference), _clean(candidate))
        for candidate, reference in zip(candidates, references, strict=True)
    ]
    wanted = sorted({pair for pair in pairs if all(pair)})
    try:
        scorer = seq2seq.load(folder)
        known = scorer.scores(wanted)
    # As for BERTScore: loaders and models raise what they like, and an exception in an aggregation
    # costs the host's whole run (host.md).
    except Exception as error:
        return replace(empty, reason=local_models.told(folder, error))
    found = [known.get(pair) for pair in pairs]
    return BartScore(
        values=tuple(None if one is None else one.value for one in found),
        n_truncated=sum(one.n_cut for one in found if one is not None),
        model=model,
        revision=local_models.revision(folder),
        max_source=scorer.max_source,
        max_target=scorer.max_target,
        reason=None,
    )


def problem(model: str) -> str | None:
    """Why `model` cannot be used, in one line, or None (local_models.problem)."""

    def fits(config: Any) -> bool:
        from transformers.models.auto import modeling_auto

        return type(config) in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING

    return local_models.problem(KIND, model, fits, " such as BART or T5")


def _clean(text: str) -> str:
    """The text in NFC; "" if it has no word, and so nothing to score."""
    return unicodedata.normalize("NFC", text).strip() if tokenize(text) else ""
