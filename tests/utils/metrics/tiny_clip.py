"""Tiny CLIP models with random weights, built here: they test the rules, never the quality."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks.utils.metrics.clipscore import Picture, clip_score
from tests.utils.metrics.tiny_bert import wordpiece

WORDS = [
    *("a", "and", "boat", "by", "cat", "dog", "green", "in", "man", "on", "paints", "plays", "red"),
    *("river", "runs", "sleeps", "the", "woman"),
]
POSITIONS = 16  # tokens of a text, the two special ones included
SPECIAL = ("bos", "eos", "pad")
SIZE = 16  # pixels of a picture's side


def build(folder: Path) -> Path:
    """Write a CLIP model with its tokenizer and image processor to `folder` and return it.

    As in OpenAI's models the end token has the highest id, pads, and is what a text is read off.
    """
    import torch
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel

    tokenizer = _tokenizer()
    small = {"hidden_size": 16, "intermediate_size": 32}
    small |= {"num_hidden_layers": 2, "num_attention_heads": 2}
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in SPECIAL}
    config = CLIPConfig(
        text_config={
            **small,
            "vocab_size": len(tokenizer),
            "max_position_embeddings": POSITIONS,
            **special,
        },
        vision_config={**small, "image_size": SIZE, "patch_size": 8},
        projection_dim=8,
    )
    torch.manual_seed(0)
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


def _tokenizer() -> Any:
    characters = sorted({*"abcdefghijklmnopqrstuvwxyzàèéìòù.,'", *"".join(WORDS)})
    pieces = [*characters, *(f"##{c}" for c in characters)]
    pieces += [word for word in WORDS if len(word) > 1]
    unknown, begin, end = "<|unk|>", "<|startoftext|>", "<|endoftext|>"
    own = {"bos_token": begin, "eos_token": end, "pad_token": end, "model_max_length": POSITIONS}
    return wordpiece([*pieces, unknown, begin, end], begin, end, unk_token=unknown, **own)


# --- sentences and pictures that CLIPScore's tests share, and scores of them -------------------

SENTENCES = ["A man paints the boat.", "The red dog sleeps", "a woman runs by the green river"]
IMAGES = {
    "sea": picture((20, 60, 200)),
    "meadow": picture((40, 180, 60), (250, 250, 250)),
    "sunset": picture((230, 90, 20), (20, 20, 90)),
}


def given(names: Sequence[str]) -> list[Picture]:
    """Pictures by name."""
    return [Picture(name, IMAGES[name].copy) for name in names]


def scored(model: str, sentences: Sequence[str], names: Sequence[str]) -> float:
    """The score, which there has to be."""
    score, why = clip_score(sentences, given(names), model)
    assert score is not None, why
    return score
