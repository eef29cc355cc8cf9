"""What all families have in common.

A vision tower here takes pictures of 56 x 56 pixels, whole, where its family fixes a size: enough
for the colours and the bar that say which second a frame is of (sample/second_code.py). Towers that
take any size keep their processor's defaults.
"""

from __future__ import annotations

import tempfile
from typing import Any

from lmms_eval_tasks.sample.tiny import QWEN_SPECIALS, WIDE, tokenizer_of

SIDE, PATCH = 56, 14
SQUARE = {"height": SIDE, "width": SIDE}
WHOLE: dict[str, Any] = {"size": SQUARE, "do_center_crop": False}
TILES = [[SIDE, SIDE], [SIDE, 2 * SIDE]]
# Of every tower: two layers of 32.
LAYERS = {"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TOWER: dict[str, Any] = {"hidden_size": 32, **LAYERS, "image_size": SIDE, "patch_size": PATCH}
BLOCKS = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2}
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE\n{% elif part['type'] == 'video' %}VIDEO\n"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def template(image: str, video: str = "") -> str:
    return TEMPLATE.replace("IMAGE", image).replace("VIDEO", video)


def tokens(specials: tuple[str, ...], **named: str) -> Any:
    """A tokenizer whose first special tokens are padding and end; others by name, as in released
    ones, where a processor asks for them so."""
    from transformers import AutoTokenizer

    tokenizer = tokenizer_of(
        specials,
        pad_token=specials[0],
        eos_token=specials[1],
        additional_special_tokens=list(specials[2:]),
        model_max_length=131072,
    )
    if not named:
        return tokenizer
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return AutoTokenizer.from_pretrained(folder, extra_special_tokens=named)


def qwen_tokens(*more: str, **named: str) -> Any:
    first = ("<|endoftext|>", "<|im_end|>")
    others = tuple(token for token in QWEN_SPECIALS if token not in first)
    return tokens((*first, *others, *more), **named)


def text(tokenizer: Any, **more: Any) -> dict[str, Any]:
    """Two layers of 64 that read the tokenizer's tokens."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 131072,
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": WIDE,
        **more,
    }


def ids(tokenizer: Any, **named: str) -> dict[str, int]:
    return {name: tokenizer.convert_tokens_to_ids(token) for name, token in named.items()}


def qwen_ids(tokenizer: Any) -> dict[str, int]:
    parts = ("image_pad", "video_pad", "vision_start", "vision_end")
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    tags = {name: f"<|{part}|>" for name, part in zip(names, parts, strict=True)}
    return ids(tokenizer, **tags)
