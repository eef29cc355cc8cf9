"""How likely a sequence-to-sequence model holds one text, given another: what BARTScore rests on.

The likelihood of a text is that of its tokens, the special ones that the tokenizer adds included,
each predicted from those before it and from the other text, which the encoder reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from lmms_eval_tasks.utils.metrics import local_models

_BATCH = 16  # pairs of one forward pass at most
# Target tokens of one batch, padding included: with a vocabulary of 50,000 their logits take 400 MB
# in single precision, and the model's own loss as much again.
_MAX_BATCH_TOKENS = 2048


class Score(NamedTuple):
    """One text given another."""

    value: float  # mean log-likelihood of a token
    n_cut: int  # of the item's two texts


class _Tokens(NamedTuple):
    """A pair's tokens, cut to the model's limits."""

    pair: tuple[str, str]
    source: list[int]
    target: list[int]
    n_cut: int


@dataclass(frozen=True)
class Scorer:
    """A loaded model.

    Attributes:
        model, tokenizer: transformers' own.
        max_source: tokens that the encoder reads at most, special tokens included.
        max_target: tokens that are scored at most, special tokens included.
    """

    model: Any
    tokenizer: Any
    max_source: int
    max_target: int

    def scores(self, pairs: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Score]:
        """Mean log-likelihood of each pair's target, given its source, and how many texts were cut.

        Batches are put together by length and text, so that the order of pairs changes no bit. A
        pair is missing if the tokenizer finds nothing in one of its texts.

        Args:
            pairs: (source, target), none twice and none with an empty text.

        Raises:
            ValueError: the model's output is not finite.
        """
        found = {}
        read = [one for one in map(self._tokens, pairs) if one.source and one.target]
        ordered = sorted(read, key=lambda one: (len(one.target), len(one.source), one.pair))
        for batch in _batches(ordered):
            for one, value in zip(batch, self._log_likelihoods(batch), strict=True):
                if not math.isfinite(value):
                    raise ValueError("the model's output is not finite")
                found[one.pair] = Score(value, one.n_cut)
        return found

    def _tokens(self, pair: tuple[str, str]) -> _Tokens:
        source, target = pair
        read, cut_source = self._ids({"text": source}, self.max_source)
        scored, cut_target = self._ids({"text_target": target}, self.max_target)
        return _Tokens(pair, read, scored, cut_source + cut_target)

    def _ids(self, text: Mapping[str, str], limit: int) -> tuple[list[int], bool]:
        """Tokens with the special ones, and whether the text had more than `limit` of them."""
        ids = self.tokenizer(**text, verbose=False)["input_ids"]
        if len(ids) <= limit:
            return ids, False
        # By the tokenizer, which keeps the special tokens at the end.
        return self.tokenizer(**text, truncation=True, max_length=limit)["input_ids"], True

    def _log_likelihoods(self, batch: Sequence[_Tokens]) -> list[float]:
        """Mean log-likelihood of each target's tokens; what is padded has no part in it."""
        import torch

        padding = self.tokenizer.pad_token_id or 0
        source, read = _padded([one.source for one in batch], padding)
        target, scored = _padded([one.target for one in batch], padding)
        with torch.inference_mode():
            # As `labels` the model itself shifts them to the right, in the way it was trained.
            # -100 marks what is no token; the decoder sees no position after its own.
            logits = self.model(
                input_ids=source,
                attention_mask=read.long(),
                labels=target.masked_fill(~scored, -100),
            ).logits
            chosen = logits.gather(-1, target.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)
            sums = torch.where(scored, chosen, 0.0).double().sum(1)
        return [float(value) for value in sums / scored.sum(1)]


def load(folder: Path) -> Scorer:
    """The model with its limits.

    Raises:
        ValueError: weights are missing, or it is no sequence-to-sequence model.
        Exception: whatever transformers raises for a folder that it cannot read.
    """
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(
        folder, local_files_only=True, trust_remote_code=False
    )
    model = local_models.load(AutoModelForSeq2SeqLM, folder)
    longest = tokenizer.model_max_length
    return Scorer(
        model=model,
        tokenizer=tokenizer,
        max_source=local_models.least(_positions(model.config, "encoder"), longest),
        max_target=local_models.least(_positions(model.config, "decoder"), longest),
    )


def _positions(config: Any, side: str) -> int | None:
    """Tokens that one side can tell the positions of; None if it has no such limit (T5)."""
    config = getattr(config, side, None) or config  # of a model put together from two
    for name in (f"max_{side}_position_embeddings", "max_position_embeddings"):  # LED; others
        if (found := getattr(config, name, None)) is not None:
            return int(found)
    return None


def _batches(ordered: Sequence[_Tokens]) -> Iterator[list[_Tokens]]:
    """Batches of at most `_BATCH` and `_MAX_BATCH_TOKENS`; targets come shortest first."""
    batch: list[_Tokens] = []
    for one in ordered:
        full = (len(batch) + 1) * len(one.target) > _MAX_BATCH_TOKENS
        if batch and (full or len(batch) == _BATCH):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Any, Any]:
    """Rows of ids on the left of a tensor (rows, longest), and where they are (True)."""
    import torch

    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), padding)
    mask = torch.zeros((len(rows), longest), dtype=torch.bool)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row)
        mask[place, : len(row)] = True
    return ids, mask
