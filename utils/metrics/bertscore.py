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
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

from lmms_eval_tasks.utils.metrics import local_models
from lmms_eval_tasks.utils.metrics.text_metrics import Pair, check_corpus, tokenize


@dataclass(frozen=True)
class BertScore:
    """A corpus's BERTScore and what it was computed with.

    Attributes:
        value: mean over items of the best reference's F1, at most 1 (0 and less is possible where
            embeddings point apart); None if not computed.
        n_truncated: texts cut to the encoder's length: candidates, and references once per item.
        model: name or path of the encoder, as asked for.
        layer: the hidden layer used, counted from 1 (0 are the embeddings).
        hash: bert-score's own line of model, layer and versions, for comparisons between papers.
        reason: why there is no value, else None.
        max_tokens: the encoder's length, special tokens included.
        values: each item's F1 in the order of the items; empty if not computed.
    """

    value: float | None
    n_truncated: int
    model: str
    layer: int | None
    hash: str | None
    reason: str | None
    max_tokens: int | None = None
    values: tuple[float, ...] = field(default=(), compare=False, repr=False)

    def describe(self) -> str:
        """One line for the results: the number with its model, layer, rescaling, hash and cuts."""
        if self.value is None:
            return f"BERTScore not computed: {self.reason}"
        return (
            f"BERTScore F1 {self.value:.4f} (mean of the best reference's), model {self.model}, "
            f"layer {self.layer}, not rescaled, hash {self.hash}, "
            f"{self.n_truncated} texts cut to {self.max_tokens} tokens"
        )


def bert_score(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    model: str | None = None,
    lang: str = "it",
) -> BertScore:
    """Mean over items of the F1 against the reference that fits best.

    A candidate without a word scores 0; references without a word are left out, and an item that
    has no other scores 0. An item's score depends on that item alone, so the order and the company
    of items change no bit. On the CPU, as the model under test may still fill the GPU.

    Args:
        candidates: one text per item.
        references: per item one or more texts.
        model: folder of an encoder, or a name in the local Hugging Face cache. None: bert-score's
            default for `lang` (bert-base-multilingual-cased for Italian), from the cache only.
        lang: language code, used only if `model` is None.

    Raises:
        ValueError: there is no item, the lengths differ, or an item has no reference. A model that
            is absent, broken or no encoder raises nothing: the value is None with the reason.
    """
    check_corpus(candidates, references)
    from bert_score import utils as library

    name = model or library.lang2model[lang.lower()]

    def score(folder: Path) -> BertScore:
        encoder = _load(name, folder)
        scores = [
            _best_f1(encoder, _clean([text]), _clean(refs))
            for text, refs in zip(candidates, references, strict=True)
        ]
        return BertScore(
            value=fmean(f1 for f1, _ in scores),
            n_truncated=sum(cut for _, cut in scores),
            model=name,
            layer=encoder.layer,
            hash=library.get_hash(name, encoder.layer, False, False, False, False),
            reason=None,
            max_tokens=encoder.tokenizer.model_max_length,
            values=tuple(f1 for f1, _ in scores),
        )

    found, why = local_models.attempt("encoder", name, score, may_be_path=model is not None)
    return found or BertScore(None, 0, name, None, None, why)


# Nothing depends on how often it is called: an encoder is loaded once instead of per metric.
@lru_cache(maxsize=2)
def of_pairs(known: tuple[Pair, ...], model: str | None, lang: str) -> BertScore:
    """`bert_score` of what `text_metrics.pairs` returned, at least one; the last ones are kept."""
    candidates, references = zip(*known, strict=True)
    return bert_score(candidates, [[one] for one in references], model=model, lang=lang)


@dataclass(frozen=True)
class _Encoder:
    model: Any
    tokenizer: Any  # its model_max_length is the true limit
    layer: int

    def hidden(self, texts: list[str]) -> tuple[Any, Any, Any]:
        """Hidden states (text, token, layer, size), mask and weights (text, token)."""
        from bert_score.utils import get_bert_embedding

        weights: defaultdict[int | None, float] = defaultdict(lambda: 1.0)
        weights |= {self.tokenizer.sep_token_id: 0.0, self.tokenizer.cls_token_id: 0.0}
        found: tuple[Any, Any, Any] = get_bert_embedding(
            texts, self.model, self.tokenizer, weights, device="cpu", all_layers=True
        )
        return found


def _clean(texts: Sequence[str]) -> list[str]:
    """Each text that has a word, once, in NFC and in an order that does not depend on theirs."""
    return sorted({unicodedata.normalize("NFC", text).strip() for text in texts if tokenize(text)})


def _best_f1(encoder: _Encoder, candidate: list[str], references: list[str]) -> tuple[float, int]:
    """Best F1 of one item and how many of its texts were cut; `candidate` has one text or none.

    One batch per item: a text's neighbours in a batch change its last digits, so they must be its
    own item's. Pairs are matched without padding, which counts as similarity 0 in bert-score and
    would win over a negative one.
    """
    texts, tokenizer = candidate + references, encoder.tokenizer
    lengths = [len(tokenizer.encode(text, truncation=False, verbose=False)) for text in texts]
    cut = sum(length > tokenizer.model_max_length for length in lengths)
    if not candidate or not references:
        return 0.0, cut
    import torch
    from bert_score.utils import greedy_cos_idf

    hidden, mask, weights = encoder.hidden(texts)
    if not torch.isfinite(hidden[:, :, encoder.layer][mask.bool()]).all():
        raise ValueError("the encoder's output is not finite")  # bert-score would score it 0

    def tokens_of(row: int) -> tuple[Any, Any, Any]:
        own = (slice(row, row + 1), slice(int(mask[row].sum())))
        # Copies: the matching normalises its arguments in place.
        return hidden[own][:, :, encoder.layer].clone(), mask[own], weights[own].clone()

    pairs = (tokens_of(row) + tokens_of(0) for row in range(1, len(texts)))
    best = max(float(greedy_cos_idf(*pair)[2]) for pair in pairs)
    return min(best, 1.0), cut  # a text against itself can exceed 1 by a rounding error


def _load(name: str, folder: Path) -> _Encoder:
    """The encoder, tried on two short texts; raises what transformers raises, as `load` does."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=False, local_files_only=True)
    model = local_models.load(AutoModel, folder, optional=["pooler"])
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if (reserved := getattr(table, "padding_idx", None)) is not None:
        positions -= reserved + 1  # RoBERTa and its kin count from the padding index on
    tokenizer.model_max_length = local_models.least(positions, tokenizer.model_max_length)
    hidden, _, _ = _Encoder(model, tokenizer, 0).hidden(["prova", "una prova più lunga"])
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
