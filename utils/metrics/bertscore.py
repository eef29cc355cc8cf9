"""BERTScore with an encoder that is on this machine (metrics.md, "Text"; Zhang et al., 2020).

The layer table, the embedding, the matching and the hash are bert-score's; loading the encoder is
ours, because bert-score looks on the network, takes any path with "t5" in it for a T5 model, and
fails on blank texts, on tokenizers without a length limit and on models whose layer it does not
know. Texts are in NFC. Scores are not rescaled and have no idf weights. MAIA's paper (Table 4: 0.79
to 0.84) names neither its encoder nor its layer.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmms_eval_tasks.utils.metrics import local_models
from lmms_eval_tasks.utils.metrics.local_models import Scores
from lmms_eval_tasks.utils.metrics.text_metrics import NO_REFERENCE, tokenize

Texts = tuple[str, ...]
KIND = "encoder"


def bert_score(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    model: str | None = None,
    lang: str = "it",
) -> Scores:
    """F1 of each item against the reference that fits best, at most 1; below 0 is possible.

    A candidate without a word scores 0; references without a word are left out, and an item that
    has no other scores 0. An item without references has no value. An item's score depends on that
    item alone, so the order and the company of items change no bit, and it is computed once for the
    process. On the CPU, as the model under test may still fill the GPU.

    Args:
        candidates: one text per item.
        references: per item any number of texts.
        model: folder of an encoder, or a name in the local Hugging Face cache. None: bert-score's
            default for `lang` (bert-base-multilingual-cased for Italian), from the cache only.
        lang: language code, used only if `model` is None.

    Raises:
        ValueError: the lengths differ. A model that is absent, broken or no encoder raises nothing:
            there are no values, and the note says why.
    """
    from bert_score import utils as library

    name = model or library.lang2model[lang.lower()]
    items = list(zip(candidates, references, strict=True))

    def score(encoder: _Encoder) -> Scores:
        values = tuple(encoder.best_f1(text, refs) if refs else None for text, refs in items)
        digest = library.get_hash(name, encoder.layer, False, False, False, False)
        note = (
            f"BERTScore F1 of the best reference, not rescaled, model {name}, layer "
            f"{encoder.layer}, hash {digest}; {encoder.cut()}"
        )
        return Scores(values, note)

    made, why = None, NO_REFERENCE
    if any(references):
        made, why = local_models.scored(KIND, name, _load, score, may_be_path=model is not None)
    return made or Scores((None,) * len(items), f"BERTScore not computed: {why}", computed=False)


@dataclass(frozen=True)
class _Encoder:
    """A loaded encoder and what it has scored so far."""

    model: Any
    tokenizer: Any  # its model_max_length is the true limit
    layer: int
    known: dict[tuple[tuple[str, ...], ...], tuple[float, int]] = field(default_factory=dict)

    def hidden(self, texts: Sequence[str]) -> tuple[Any, Any, Any]:
        """Hidden states (text, token, layer, size), mask and weights (text, token)."""
        from bert_score.utils import get_bert_embedding

        weights: defaultdict[int | None, float] = defaultdict(lambda: 1.0)
        weights |= {self.tokenizer.sep_token_id: 0.0, self.tokenizer.cls_token_id: 0.0}
        found: tuple[Any, Any, Any] = get_bert_embedding(
            list(texts), self.model, self.tokenizer, weights, device="cpu", all_layers=True
        )
        return found

    def cut(self) -> str:
        """How many texts were cut so far."""
        cut, most = sum(own for _, own in self.known.values()), self.tokenizer.model_max_length
        return f"{cut} texts of {len(self.known)} different items cut to {most} tokens"

    def best_f1(self, candidate: str, references: Sequence[str]) -> float:
        """Best F1 of one item."""
        given = _clean([candidate]), _clean(references)
        if given not in self.known:
            self.known[given] = self._best_f1(*given)
        return self.known[given][0]

    def _best_f1(self, candidate: Texts, references: Texts) -> tuple[float, int]:
        """Best F1, and how many of the texts were cut.

        One batch per item: a text's neighbours in a batch change its last digits.

        Pairs are matched without padding, which counts as similarity 0 in bert-score and would win
        over a negative one.
        """
        texts, tokenizer = candidate + references, self.tokenizer
        lengths = [len(tokenizer.encode(text, truncation=False, verbose=False)) for text in texts]
        cut = sum(length > tokenizer.model_max_length for length in lengths)
        if not candidate or not references:
            return 0.0, cut
        import torch
        from bert_score.utils import greedy_cos_idf

        hidden, mask, weights = self.hidden(texts)
        if not torch.isfinite(hidden[:, :, self.layer][mask.bool()]).all():
            raise ValueError("the encoder's output is not finite")  # bert-score would score it 0

        def tokens_of(row: int) -> tuple[Any, Any, Any]:
            own = (slice(row, row + 1), slice(int(mask[row].sum())))
            # Copies: the matching normalises its arguments in place.
            return hidden[own][:, :, self.layer].clone(), mask[own], weights[own].clone()

        pairs = (tokens_of(row) + tokens_of(0) for row in range(1, len(texts)))
        best = max(float(greedy_cos_idf(*pair)[2]) for pair in pairs)
        return min(best, 1.0), cut  # a text against itself can exceed 1 by a rounding error


def _clean(texts: Sequence[str]) -> Texts:
    """Each text that has a word, once, in NFC and in an order that does not depend on theirs."""
    words = (unicodedata.normalize("NFC", text).strip() for text in texts if tokenize(text))
    return tuple(sorted(set(words)))


def _load(name: str, folder: Path) -> _Encoder:
    """The encoder, tried on two short texts; raises what transformers raises, as `load` does."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=False, local_files_only=True)
    model = local_models.load(AutoModel, folder, optional="pooler")
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if (reserved := getattr(table, "padding_idx", None)) is not None:
        positions -= reserved + 1  # RoBERTa and its kin count from the padding index on
    tokenizer.model_max_length = local_models.least(positions, tokenizer.model_max_length)
    hidden, _, _ = _Encoder(model, tokenizer, 0).hidden(("prova", "una prova più lunga"))
    layer = _layer(name, folder, hidden.shape[2] - 1)
    blocks = getattr(getattr(model, "encoder", None), "layer", None)
    if blocks is not None:  # BERT and its kin: what is above the layer need not be computed
        model.encoder.layer = blocks[:layer]
    return _Encoder(model, tokenizer, layer)


def _layer(name: str, folder: Path, n_layers: int) -> int:
    """bert-score's tuned layer where it knows the model's (or its folder's) name, else the last."""
    from bert_score.utils import model2layers

    names = (*local_models.aliases(name), folder.name, f"{folder.parent.name}/{folder.name}")
    tuned = [model2layers[known] for known in names if known in model2layers]
    return next((layer for layer in tuned if layer <= n_layers), n_layers)
