"""Tiny encoders with random weights, built here: they test the rules, never the quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEXTS = [
    "Il gatto nero dorme sul letto.",
    "Un uomo dipinge la barca con un pennello, perché è vecchia.",
    "La città è grande e l'uomo corre nel parco verde.",
    "Una donna suona la chitarra in una piazza: non so che cosa prova.",
]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]  # ids 0 to 4, as RoBERTa numbers them


def build(
    folder: Path,
    *,
    architecture: str = "bert",
    layers: int = 3,
    positions: int = 64,
    max_length: int | None = 64,
    extra_words: int = 0,
    seed: int = 0,
) -> Path:
    """Write an encoder with its tokenizer to `folder` and return the folder.

    Args:
        folder: made if it is not there.
        architecture: "bert", "xlm-roberta" (positions counted from the padding index on) or "bart"
            (an encoder with a decoder).
        layers: hidden layers.
        positions: tokens that the encoder can tell the positions of.
        max_length: the tokenizer's model_max_length; None leaves it out.
        extra_words: words that no text has, to reach the size of a real vocabulary.
        seed: of the random weights.
    """
    import torch
    import transformers

    tokenizer = _tokenizer(extra_words, max_length)
    torch.manual_seed(seed)
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    common = {"vocab_size": len(tokenizer), "max_position_embeddings": positions, **ids}
    if architecture == "bart":
        config: Any = transformers.BartConfig(
            d_model=16,
            encoder_layers=layers,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=32,
            decoder_ffn_dim=32,
            decoder_start_token_id=2,
            **common,
        )
    else:
        kind = {"bert": transformers.BertConfig, "xlm-roberta": transformers.XLMRobertaConfig}
        config = kind[architecture](
            hidden_size=16,
            num_hidden_layers=layers,
            num_attention_heads=2,
            intermediate_size=32,
            **common,
        )
    model = transformers.AutoModel.from_config(config)
    # The default initialisation is so small that all texts look alike.
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def into_cache(cache: Path, name: str, **options: Any) -> Path:
    """Build an encoder where the Hugging Face cache keeps the model `name`."""
    repository = cache / f"models--{name.replace('/', '--')}"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    return build(repository / "snapshots" / commit, **options)


def _tokenizer(extra_words: int, max_length: int | None) -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    trained = Tokenizer(models.WordPiece(unk_token="<unk>"))
    # No normalisation of accents, so that a test sees whether the caller did it.
    trained.normalizer = normalizers.Lowercase()
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=200, special_tokens=SPECIAL, show_progress=False, min_frequency=1
    )
    trained.train_from_iterator(TEXTS, trainer)
    if extra_words:
        vocabulary = trained.get_vocab()
        vocabulary |= {f"parola{i}": len(vocabulary) + i for i in range(extra_words)}
        trained.model = models.WordPiece(vocabulary, unk_token="<unk>")
    trained.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    limit = {} if max_length is None else {"model_max_length": max_length}
    return PreTrainedTokenizerFast(
        tokenizer_object=trained,
        cls_token="<s>",
        pad_token="<pad>",
        sep_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        **limit,
    )
