"""Tiny encoders with random weights, built here: they test the rules, never the quality."""

from __future__ import annotations

import re
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
    headed: bool = False,
) -> Path:
    """Write an encoder with its tokenizer to `folder` and return the folder.

    Args:
        architecture: "bert", "xlm-roberta" (positions counted from the padding index on), "bart"
            (an encoder with a decoder) or "t5" (that, and no limit of positions).
        positions: tokens that the encoder can tell the positions of.
        max_length: the tokenizer's model_max_length; None leaves it out.
        headed: with its head, if it has a decoder; BART's bias on the logits is not zero.
    """
    import torch
    import transformers

    tokenizer = _tokenizer(max_length)
    torch.manual_seed(0)
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    common = {"vocab_size": len(tokenizer), "max_position_embeddings": positions, **ids}
    if architecture == "t5":
        sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": layers, "num_heads": 2}
        given: Any = {**sizes, "vocab_size": len(tokenizer), "decoder_start_token_id": 1, **ids}
    elif architecture == "bart":
        both = {"attention_heads": 2, "ffn_dim": 32}
        sides = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in both.items()}
        layered = {"encoder_layers": layers, "decoder_layers": 1}
        given = {"d_model": 16, **sides, **layered, "decoder_start_token_id": 2, **common}
    else:
        sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
        given = {**sizes, "num_hidden_layers": layers, **common}
    config = transformers.AutoConfig.for_model(architecture, **given)
    model = transformers.AutoModel.from_config(config)
    # By default all texts look alike: here words differ, and each layer changes them a little.
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            is_word = name in ("shared.weight", "embeddings.word_embeddings.weight")
            torch.nn.init.normal_(parameter, std=1.0 if is_word else 0.15)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if headed:
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder)
        if architecture == "bart":
            torch.manual_seed(7)
            model.final_logits_bias.copy_(torch.randn_like(model.final_logits_bias))
        model.save_pretrained(folder)
    return folder


def _tokenizer(max_length: int | None) -> Any:
    words = sorted(set(re.findall(r"\w+", " ".join(TEXTS).lower())))
    characters = sorted({*"abcdefghijklmnopqrstuvwxyz.,:'", *"".join(words)})
    pieces = [*SPECIAL, *characters, *(f"##{c}" for c in characters)]
    pieces += [word for word in words if len(word) > 1]
    begin, pad, end, unknown, mask = SPECIAL
    own = {"cls_token": begin, "sep_token": end, "pad_token": pad, "mask_token": mask}
    return wordpiece(pieces, begin, end, unk_token=unknown, **own, model_max_length=max_length)


def wordpiece(pieces: list[str], begin: str, end: str, unk_token: str, **special: Any) -> Any:
    """A tokenizer in lower case with these pieces; `special` is left out where it is None.

    Not trained: training breaks ties differently each time, and two builds must be equal.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unk_token))
    # No normalisation of accents, so that a test sees whether the caller did it.
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}", special_tokens=[(one, vocabulary[one]) for one in (begin, end)]
    )
    given = {name: value for name, value in special.items() if value is not None}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token=unk_token, **given)
