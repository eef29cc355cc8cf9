"""Tiny random checkpoints of families that the host's model classes load: a MB or less each.

A vision tower here takes pictures of 56 x 56 pixels, whole: enough for the colours and the bar that
say which second a frame is of (second_code.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from lmms_eval_tasks.models import tiny

SIDE, PATCH = 56, 14
SQUARE = {"height": SIDE, "width": SIDE}
TILES = {"image_grid_pinpoints": [[SIDE, SIDE], [SIDE, 2 * SIDE]]}
TOWER = {
    "model_type": "siglip_vision_model",
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": SIDE,
    "patch_size": PATCH,
}
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE\n{% elif part['type'] == 'video' %}VIDEO\n"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
GEMMA = {
    "image_token": "<image_soft_token>",
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
}


def build(family: str, folder: Path) -> Path:
    """The family's checkpoint in `folder/NAME`, the same weights each time."""
    import torch

    place = folder / family
    if family in tiny.KINDS:
        return tiny.build_checkpoint(family, place)
    if not place.is_dir():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for part in {"llava_onevision": llava_onevision, "gemma3": gemma3}[family]():
                part.save_pretrained(str(place))
    return place


def llava_onevision() -> list[Any]:
    import transformers as t

    tokenizer = tokens("<|endoftext|>", "<|im_end|>", "<image>", "<video>")
    config = t.LlavaOnevisionConfig(
        text_config={"model_type": "qwen2", **text(tokenizer)},
        vision_config=dict(TOWER),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        video_token_index=tokenizer.convert_tokens_to_ids("<video>"),
        tie_word_embeddings=False,
        vision_feature_select_strategy="full",
        **TILES,
    )
    processor = t.LlavaOnevisionProcessor(
        tokenizer=tokenizer,
        image_processor=t.LlavaOnevisionImageProcessor(size=SQUARE, **TILES),
        video_processor=t.LlavaOnevisionVideoProcessor(size=SQUARE),
        num_image_tokens=(SIDE // PATCH) ** 2,
        vision_feature_select_strategy="full",
        chat_template=TEMPLATE.replace("IMAGE", "<image>").replace("VIDEO", "<video>"),
    )
    return [t.LlavaOnevisionForConditionalGeneration(config), processor]


def gemma3() -> list[Any]:
    import transformers as t

    plain = tokens("<pad>", "<eos>", *GEMMA.values())
    with tempfile.TemporaryDirectory() as folder:  # its processor asks for tokens by their names
        plain.save_pretrained(folder)
        tokenizer = t.AutoTokenizer.from_pretrained(folder, extra_special_tokens=GEMMA)
    config = t.Gemma3Config(
        text_config={**text(tokenizer), "head_dim": 16, "sliding_window": 4096},
        vision_config=dict(TOWER),
        mm_tokens_per_image=4,
        **{f"{one}_index": tokenizer.convert_tokens_to_ids(said) for one, said in GEMMA.items()},
    )
    processor = t.Gemma3Processor(
        tokenizer=tokenizer,
        image_processor=t.Gemma3ImageProcessor(size=SQUARE),
        image_seq_length=4,
        chat_template=TEMPLATE.replace("IMAGE", "<start_of_image>").replace("VIDEO", ""),
    )
    return [t.Gemma3ForConditionalGeneration(config), processor]


def tokens(pad: str, end: str, *more: str) -> Any:
    return tiny.tokenizer_of(
        (pad, end, *more),
        pad_token=pad,
        eos_token=end,
        additional_special_tokens=list(more),
        model_max_length=131072,
    )


def text(tokenizer: Any) -> dict[str, Any]:
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
        "initializer_range": tiny.WIDE,
    }
