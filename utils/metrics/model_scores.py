"""BERTScore and BARTScore with models that are on this machine (docs/metrics.md, "Text").

BERTScore (Zhang et al., 2020): the layer table, the embedding, the matching and the hash are
bert-score's. The encoder is loaded here, because bert-score uses the network, takes any path with
"t5" in it for a T5 model, and fails on blank texts, on tokenizers without a length limit and on
models whose layer it does not know. Scores are not rescaled and have no idf weights. MAIA's paper
(Table 4: 0.79 to 0.84) names neither its encoder nor its layer.

BARTScore (Yuan et al., 2021) is the mean log-likelihood of the candidate's tokens, given the
reference, which the encoder reads (the authors' "precision"). The special tokens that the tokenizer
adds count as tokens, as in the authors' code. Any model that transformers' AutoModelForSeq2SeqLM
loads will do; the authors' is facebook/bart-large-cnn. MovieRecapsQA's paper (Table 4: 0.03 to
0.05) names neither its model nor its direction. Its column can only be exp(mean log-likelihood) in
0..1.

Texts are in NFC without blanks around them. Both metrics run on the CPU, as the tested model may
still fill the GPU.
"""

from __future__ import annotations

import math
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lmms_eval_tasks.utils.metrics import local_models
from lmms_eval_tasks.utils.metrics.local_models import ModelScores
from lmms_eval_tasks.utils.metrics.text_metrics import NO_REFERENCE, tokenize

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

M = TypeVar("M")
ENCODER, SEQ2SEQ = "encoder", "sequence-to-sequence model"
Texts = tuple[str, ...]
TextPair = tuple[str, str]  # source, target
KnownScores = dict[TextPair, tuple[float | None, int]]
# Tokens of target and source, the texts, and how many of them were cut.
_Tokens = tuple[list[int], list[int], TextPair, int]
_BATCH = 16  # most pairs of one forward pass; one at a time took 6 times as long (2 threads)
# Most target tokens of one batch, including padding: with a vocabulary of 50,000, their logits take
# 400 MB in single precision, and the model's own loss takes as much again.
_MAX_BATCH_TOKENS = 2048


def _computed(
    metric: str,
    references: Sequence[object],
    kind: str,
    model: str,
    *,
    load: Callable[[str, Path], M],
    score: Callable[[M], ModelScores],
) -> ModelScores:
    """Return the scores, or none with the reason: no references, or the model cannot be used."""
    made, why = None, NO_REFERENCE
    if any(references):
        made, why = local_models.scored(kind, model, load, score)
    none = (None,) * len(references)
    return made or ModelScores(none, f"{metric} not computed: {why}", computed=False)


def _clean(text: str | None) -> str:
    """Return the text in NFC; "" if it has no word, and so nothing to score."""
    return unicodedata.normalize("NFC", text).strip() if text and tokenize(text) else ""


# --- BERTScore ----------------------------------------------------------------------------------

# bert-score's default for each language; importing the library takes seconds, because of torch.
DEFAULTS = {"it": "bert-base-multilingual-cased", "en": "roberta-large"}


def bert_score(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    model: str | None = None,
    lang: str = "it",
) -> ModelScores:
    """Return F1 of each item against its best-matching reference, at most 1; it may be below 0.

    A candidate without a word scores 0. References without a word are left out, and an item without
    any other scores 0. An item without references has no value. An item's score depends on that
    item alone, so the order and the other items change no bit. Each score is computed once for the
    process.

    Args:
        candidates: one text for each item.
        references: any number of texts for each item.
        model: folder of an encoder, or a name in the local Hugging Face cache. None: bert-score's
            default for `lang` (bert-base-multilingual-cased for Italian), from the cache only.
        lang: `it` or `en`, used only if `model` is None.

    Raises:
        ValueError: the lengths differ. A model that is missing, broken or no encoder raises
            nothing: there are no values, and the note has the reason.
    """
    name = model or DEFAULTS[lang]
    items = list(zip(candidates, references, strict=True))

    def score(encoder: _TextEncoder) -> ModelScores:
        from bert_score import utils as library

        values = tuple(encoder.best_f1(text, refs) if refs else None for text, refs in items)
        digest = library.get_hash(name, encoder.layer, False, False, False, False)
        note = (
            f"BERTScore F1 of the best reference, not rescaled, model {name}, layer "
            f"{encoder.layer}, hash {digest}; {encoder.cut()}"
        )
        return ModelScores(values, note)

    return _computed("BERTScore", references, ENCODER, name, load=_load_encoder, score=score)


@dataclass(frozen=True)
class _TextEncoder:
    """A loaded encoder with its scores so far."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase  # its model_max_length is set to the true limit
    layer: int
    scores: dict[tuple[tuple[str, ...], ...], tuple[float, int]] = field(default_factory=dict)

    def hidden(self, texts: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """Return hidden states (text, token, layer, size), mask and weights (text, token)."""
        from bert_score.utils import get_bert_embedding

        weights: defaultdict[int | None, float] = defaultdict(lambda: 1.0)
        weights |= {self.tokenizer.sep_token_id: 0.0, self.tokenizer.cls_token_id: 0.0}
        embedding: tuple[Tensor, Tensor, Tensor] = get_bert_embedding(
            list(texts), self.model, self.tokenizer, weights, device="cpu", all_layers=True
        )
        return embedding

    def cut(self) -> str:
        """Return a phrase with the number of texts that were cut so far."""
        cut, most = sum(own for _, own in self.scores.values()), self.tokenizer.model_max_length
        return f"{cut} texts of {len(self.scores)} different items cut to {most} tokens"

    def best_f1(self, candidate: str, references: Sequence[str]) -> float:
        """Return the best F1 of one item."""
        given = _cleaned([candidate]), _cleaned(references)
        if given not in self.scores:
            self.scores[given] = self._best_f1(*given)
        return self.scores[given][0]

    def _best_f1(self, candidate: Texts, references: Texts) -> tuple[float, int]:
        """Return the best F1, and the number of texts that were cut.

        Each item is a batch, because a text's neighbours in a batch change its last digits. Pairs
        are matched without padding: bert-score takes padding for similarity 0, which would win over
        a negative one.
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
            raise ValueError("the encoder's output is not finite")  # bert-score would return 0

        def tokens_of(row: int) -> tuple[Tensor, Tensor, Tensor]:
            own = (slice(row, row + 1), slice(int(mask[row].sum())))
            # Copies: the matching normalises its arguments in place.
            return hidden[own][:, :, self.layer].clone(), mask[own], weights[own].clone()

        pairs = (tokens_of(row) + tokens_of(0) for row in range(1, len(texts)))
        best = max(float(greedy_cos_idf(*pair)[2]) for pair in pairs)
        return min(best, 1.0), cut  # a text against itself can exceed 1 by a rounding error


def _cleaned(texts: Sequence[str]) -> Texts:
    """Return the different texts that have a word, in NFC and sorted."""
    return tuple(sorted({_clean(text) for text in texts} - {""}))


def _load_encoder(name: str, folder: Path) -> _TextEncoder:
    """Load the encoder and try it on two short texts; raises the errors of transformers."""
    from bert_score.utils import model2layers
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, use_fast=False, local_files_only=True)
    model = local_models.load_local_model(AutoModel, folder, optional="pooler")
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    positions = getattr(model.config, "max_position_embeddings", None) or 0
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if (reserved := getattr(table, "padding_idx", None)) is not None:
        positions -= reserved + 1  # RoBERTa and related models count from the padding index
    tokenizer.model_max_length = local_models.least(positions, tokenizer.model_max_length)
    hidden, _, _ = _TextEncoder(model, tokenizer, 0).hidden(("prova", "una prova più lunga"))
    bare = name.rpartition("/")[2]  # bert-score has the models' former names, without owners
    names = (name, bare, folder.name, f"{folder.parent.name}/{folder.name}")
    last = hidden.shape[2] - 1  # used if bert-score has tuned no layer
    tuned = (model2layers.get(known, math.inf) for known in names)
    layer = next((one for one in tuned if one <= last), last)
    blocks = getattr(getattr(model, "encoder", None), "layer", None)
    if blocks is not None:  # for BERT and related models: layers above this one are not computed
        model.encoder.layer = blocks[:layer]
    return _TextEncoder(model, tokenizer, layer)


# --- BARTScore ----------------------------------------------------------------------------------


def bart_score(
    candidates: Sequence[str], references: Sequence[str | None], *, model: str
) -> ModelScores:
    """Return the mean log-likelihood of each candidate's tokens given its reference, <= 0.

    An item has no value if one of its texts has no word. Equal items are scored once, and batches
    are formed by length and text. So the order of items changes no bit, and a list agrees with the
    same list item by item up to the rounding of single precision (about 1e-6).

    Args:
        candidates: one text for each item.
        references: one text for each item; None if there is none.
        model: folder of a sequence-to-sequence model, or a name in the local Hugging Face cache.

    Raises:
        ValueError: the lengths differ. A model that is missing, broken or of another kind raises
            nothing: there are no values, and the note has the reason.
    """
    pairs = list(zip(map(_clean, references), map(_clean, candidates), strict=True))

    def score(scorer: _Scorer) -> ModelScores:
        known = _scored(scorer, tuple(sorted({pair for pair in pairs if all(pair)})))
        return ModelScores(
            tuple(known.get(pair, (None, 0))[0] for pair in pairs),
            "BARTScore, mean token log-likelihood P(candidate | reference) (precision); "
            f"{local_models.made_by(model, scorer.folder)}; "
            f"{sum(cut for _, cut in known.values())} texts of {len(known)} different pairs cut "
            f"(encoder {scorer.max_source}, decoder {scorer.max_target} tokens); "
            "texts without a word have none",
        )

    return _computed("BARTScore", references, SEQ2SEQ, model, load=_load_scorer, score=score)


@dataclass(frozen=True, eq=False)
class _Scorer:
    """A loaded model with its limits, which include special tokens."""

    folder: Path
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_source: int
    max_target: int

    def ids(self, limit: int, **text: str) -> tuple[list[int], bool]:
        """Return a text's tokens with special ones, and True if it had more than `limit` tokens."""
        ids = self.tokenizer(**text, verbose=False)["input_ids"]
        if len(ids) <= limit:
            return ids, False
        # Cut by the tokenizer, which keeps the special tokens at the end.
        return self.tokenizer(**text, truncation=True, max_length=limit)["input_ids"], True

    def log_likelihoods(self, batch: Sequence[_Tokens]) -> list[float]:
        """Return the mean log-likelihood of each target's tokens, without padding."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
            return pad_sequence([torch.tensor(row) for row in rows], True, value)

        # The model shifts labels to the right itself, as in its training; -100 is no token.
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


@lru_cache(maxsize=2)  # a mean and its variance need the same values
def _scored(scorer: _Scorer, pairs: tuple[TextPair, ...]) -> KnownScores:
    """Return the mean log-likelihood of each pair's target, and the number of cut texts.

    A pair has no value if the tokenizer finds nothing in one of its texts.
    """
    pending: list[_Tokens] = []
    for pair in pairs:
        source, cut = scorer.ids(scorer.max_source, text=pair[0])
        target, too = scorer.ids(scorer.max_target, text_target=pair[1])
        pending += [(target, source, pair, cut + too)] if source and target else []
    pending.sort(key=lambda tokens: (len(tokens[0]), len(tokens[1]), tokens[2]))
    scores: KnownScores = {}
    while pending:
        longest = len(pending[:_BATCH][-1][0])  # targets are sorted by length
        size = max(1, min(_BATCH, _MAX_BATCH_TOKENS // longest))
        batch, pending = pending[:size], pending[size:]
        for (*_, pair, cuts), value in zip(batch, scorer.log_likelihoods(batch), strict=True):
            if not math.isfinite(value):
                raise ValueError("the model's output is not finite")
            scores[pair] = value, cuts
    return scores


def _load_scorer(_: str, folder: Path) -> _Scorer:
    """Load the model with its limits; raises the errors of transformers (`local_models.load`)."""
    from transformers import AutoModelForSeq2SeqLM

    tokenizer = local_models.tokenizer_of(folder)
    model = local_models.load_local_model(AutoModelForSeq2SeqLM, folder)

    def most(side: str) -> int:
        """Return the tokens of one side that the model has positions for; T5 has no such limit."""
        # A model put together from two has two configs.
        config = getattr(model.config, side, None) or model.config
        names = (f"max_{side}_position_embeddings", "max_position_embeddings")  # LED; others
        limits = (getattr(config, name, None) for name in names)
        positions = next((limit for limit in limits if limit is not None), None)
        return local_models.least(positions, tokenizer.model_max_length)

    return _Scorer(folder, model, tokenizer, most("encoder"), most("decoder"))
