"""Tiny CLIP models with random weights, built here: they test the rules, never the quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = [
    *("a", "and", "boat", "by", "cat", "dog", "green", "in", "man", "on", "paints", "plays", "red"),
    *("river", "runs", "sleeps", "the", "woman"),
]
POSITIONS = 16  # tokens of a text, the two special ones included
SIZE = 16  # pixels of a picture's side


def build(folder: Path, *, seed: int = 0, positions: int = POSITIONS) -> Path:
    """Write a CLIP model with its tokenizer and image processor to `folder` and return it.

    As in OpenAI's models the end token has the highest id, pads, and is what a text is read off.
    """
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    tokenizer = _tokenizer(positions)
    small = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = CLIPConfig(
        text_config={
            **small,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": positions,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
        },
        vision_config={**small, "image_size": SIZE, "patch_size": 8},
        projection_dim=8,
    )
    torch.manual_seed(seed)
    model = CLIPModel(config)
    # By default all texts look alike: here words, places and pictures differ.
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    # And texts and pictures share a direction, else half of the cosines are below 0 and all alike.
    shared = torch.nn.init.orthogonal_(model.text_projection.weight).detach()
    model.visual_projection.load_state_dict({"weight": shared})
    for norm in (model.text_model.final_layer_norm, model.vision_model.post_layernorm):
        norm.bias.data = 5 * shared[0]
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    CLIPImageProcessor(
        size={"shortest_edge": SIZE}, crop_size={"height": SIZE, "width": SIZE}
    ).save_pretrained(folder)
    return folder


def picture(colour: tuple[int, int, int], corner: tuple[int, int, int] = (0, 0, 0)) -> Any:
    """A picture of one colour with another in a corner."""
    from PIL import Image

    image = Image.new("RGB", (24, 20), colour)
    image.paste(corner, (0, 0, 9, 9))
    return image


def _tokenizer(positions: int) -> Any:
    """Whole words and, for all others, their characters; in lower case."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    characters = sorted({*"abcdefghijklmnopqrstuvwxyzàèéìòù.,'", *"".join(WORDS)})
    pieces = [*characters, *(f"##{c}" for c in characters)]
    pieces += [word for word in WORDS if len(word) > 1]
    pieces += ["<|unk|>", "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="<|unk|>"))
    # No normalisation of accents, so that a test sees whether the caller did it.
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>",
        special_tokens=[(name, vocabulary[name]) for name in pieces[-2:]],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<|startoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        unk_token="<|unk|>",
        model_max_length=positions,
    )
