"""BARTScore with a sequence-to-sequence model that is on this machine (Yuan et al., 2021).

The score is the mean log-likelihood of the candidate's tokens, given the reference, which the
encoder reads (the authors' "precision"); the special tokens that the tokenizer adds to it count as
tokens, as in their code.
MovieRecapsQA's paper (Table 4: 0.03 to 0.05) names neither its model nor its direction; its column
can only be the exponentiated score, exp(mean log-likelihood) in 0..1.

Any model that transformers' AutoModelForSeq2SeqLM loads will do; the authors' is
facebook/bart-large-cnn.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks.utils.metrics import local_models
from lmms_eval_tasks.utils.metrics.local_models import Scores
from lmms_eval_tasks.utils.metrics.text_metrics import NO_REFERENCE, tokenize

Pair = tuple[str, str]  # source, target
Known = dict[Pair, tuple[float | None, int]]
_Tokens = tuple[list[int], list[int], Pair, int]  # of target and source; how many were cut
KIND = "sequence-to-sequence model"
_BATCH = 16  # pairs of one forward pass at most: one at a time took 6 times as long (2 threads)
# Target tokens of one batch, padding included: with a vocabulary of 50,000 their logits take 400 MB
# in single precision, and the model's own loss as much again.
_MAX_BATCH_TOKENS = 2048


def bart_score(
    candidates: Sequence[str], references: Sequence[str | None], *, model: str
) -> Scores:
    """Mean log-likelihood of a token of each candidate given its reference (natural, at most 0).

    On the CPU, as the model under test may still fill the GPU. Texts are in NFC without blanks
    around them. An item of which one text has no word has no value. Equal items are scored once,
    and batches are put together by length and text: the order of items changes no
    bit, and a list agrees with the same list item by item up to the rounding of single precision
    (about 1e-6).

    Args:
        candidates: one text per item.
        references: one text per item; None: there is none.
        model: folder of a sequence-to-sequence model, or a name in the local Hugging Face cache.

    Raises:
        ValueError: the lengths differ. A model that is absent, broken or of another kind raises
            nothing: there are no values, and the note says why.
    """
    pairs = list(zip(map(_clean, references), map(_clean, candidates), strict=True))

    def score(scorer: _Scorer) -> Scores:
        known = _scored(scorer, tuple(sorted({pair for pair in pairs if all(pair)})))
        return Scores(
            tuple(known.get(pair, (None, 0))[0] for pair in pairs),
            "BARTScore, mean token log-likelihood P(candidate | reference) (precision); "
            f"{local_models.made_by(model, scorer.folder)}; "
            f"{sum(cut for _, cut in known.values())} texts of {len(known)} different pairs cut "
            f"(encoder {scorer.max_source}, decoder {scorer.max_target} tokens); "
            "texts without a word have none",
        )

    made, why = None, NO_REFERENCE
    if any(one is not None for one in references):
        made, why = local_models.scored(KIND, model, _load, score)
    return made or Scores((None,) * len(pairs), f"BARTScore not computed: {why}", computed=False)


def _clean(text: str | None) -> str:
    """The text in NFC; "" if it has no word, and so nothing to score."""
    return unicodedata.normalize("NFC", text).strip() if text and tokenize(text) else ""


@dataclass(frozen=True, eq=False)
class _Scorer:
    """A loaded model; the two limits count special tokens too."""

    folder: Path
    model: Any
    tokenizer: Any
    max_source: int
    max_target: int

    def ids(self, limit: int, **text: str) -> tuple[list[int], bool]:
        """Tokens with the special ones, and whether the text had more than `limit` of them."""
        ids = self.tokenizer(**text, verbose=False)["input_ids"]
        if len(ids) <= limit:
            return ids, False
        # By the tokenizer, which keeps the special tokens at the end.
        return self.tokenizer(**text, truncation=True, max_length=limit)["input_ids"], True

    def log_likelihoods(self, batch: Sequence[_Tokens]) -> list[float]:
        """Mean log-likelihood of each target's tokens; what is padded has no part in it."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        def padded(rows: Sequence[Sequence[int]], value: int) -> Any:
            return pad_sequence([torch.tensor(row) for row in rows], True, value)

        # The model itself shifts labels to the right, in the way it was trained; -100 is no token.
        labels = padded([target for target, *_ in batch], -100)
        sources = [source for _, source, *_ in batch]
        with torch.inference_mode():
            logits = self.model(
                input_ids=padded(sources, self.tokenizer.pad_token_id or 0),
                attention_mask=padded([[1] * len(source) for source in sources], 0),
                labels=labels,
            ).logits
            chosen = logits.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
            found = torch.where(labels < 0, 0.0, chosen - logits.logsumexp(-1))
        return [float(value) for value in found.double().sum(1) / (labels >= 0).sum(1)]


@lru_cache(maxsize=2)  # a mean and its variance ask about the same
def _scored(scorer: _Scorer, pairs: tuple[Pair, ...]) -> Known:
    """Mean log-likelihood of each (source, target)'s target, and how many texts were cut.

    A pair is missing if the tokenizer finds nothing in one of its texts.

    Raises:
        ValueError: the model's output is not finite.
    """
    read: list[_Tokens] = []
    for pair in pairs:
        source, cut = scorer.ids(scorer.max_source, text=pair[0])
        target, too = scorer.ids(scorer.max_target, text_target=pair[1])
        read += [(target, source, pair, cut + too)] if source and target else []
    read.sort(key=lambda one: (len(one[0]), len(one[1]), one[2]))
    found: Known = {}
    while read:
        longest = len(read[:_BATCH][-1][0])  # targets come shortest first
        size = max(1, min(_BATCH, _MAX_BATCH_TOKENS // longest))
        batch, read = read[:size], read[size:]
        for (*_, pair, cuts), value in zip(batch, scorer.log_likelihoods(batch), strict=True):
            if not math.isfinite(value):
                raise ValueError("the model's output is not finite")
            found[pair] = value, cuts
    return found


def _load(_: str, folder: Path) -> _Scorer:
    """The model with its limits; raises what transformers raises, as `local_models.load` does."""
    from transformers import AutoModelForSeq2SeqLM

    tokenizer = local_models.tokenizer_of(folder)
    model = local_models.load(AutoModelForSeq2SeqLM, folder)

    def most(side: str) -> int:
        """Tokens that one side can tell the positions of; T5 has no such limit."""
        config = getattr(model.config, side, None) or model.config  # of one put together from two
        names = (f"max_{side}_position_embeddings", "max_position_embeddings")  # LED; others
        limits = (getattr(config, name, None) for name in names)
        positions = next((limit for limit in limits if limit is not None), None)
        return local_models.least(positions, tokenizer.model_max_length)

    return _Scorer(folder, model, tokenizer, most("encoder"), most("decoder"))
