"""Tiny checkpoints of more families, with random weights, for an engine that computes."""

from __future__ import annotations

from typing import Any

from lmms_eval_tasks.models import tiny

SPECIALS = (
    *tiny.QWEN_SPECIALS,
    *("<|AUDIO|>", "<|audio_bos|>", "<|audio_eos|>", "<|IMAGE|>", "<|VIDEO|>"),
    *("<|vision_bos|>", "<|vision_eos|>"),
)
HEADS, HEAD = 2, 64  # vLLM's engine for CPUs refuses heads of less than 32 dimensions
TEXT = {
    "hidden_size": HEADS * HEAD,
    "intermediate_size": 2 * HEADS * HEAD,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 1,
    "max_position_embeddings": 32768,
    "initializer_range": tiny.WIDE,
    "bos_token_id": None,
    "tie_word_embeddings": False,
}
VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "out_hidden_size": HEADS * HEAD,
    "initializer_range": tiny.WIDE,
}


def _tokenizer(specials: tuple[str, ...], **more: Any) -> tuple[Any, dict[str, int]]:
    tokenizer = tiny.tokenizer_of(
        specials,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(specials[1:]),
        model_max_length=32768,
        **more,
    )
    return tokenizer, {token: tokenizer.convert_tokens_to_ids(token) for token in specials}


def qwen3_vl() -> list[Any]:
    """Qwen3-VL: a video's frames stand apart, each behind its time."""
    from transformers import (
        Qwen2VLImageProcessor,
        Qwen3VLConfig,
        Qwen3VLForConditionalGeneration,
        Qwen3VLProcessor,
        Qwen3VLVideoProcessor,
    )

    tokenizer, ids = _tokenizer(tiny.QWEN_SPECIALS)
    rope = {
        "rope_type": "default",
        "rope_theta": 5000000.0,
        "mrope_section": [8, 12, 12],
        "mrope_interleaved": True,
    }
    config = Qwen3VLConfig(
        text_config={
            **TEXT,
            "vocab_size": len(tokenizer),
            "head_dim": HEAD,
            "rope_parameters": rope,
            "eos_token_id": ids["<|im_end|>"],
            "pad_token_id": ids["<|endoftext|>"],
        },
        vision_config={**VISION, "deepstack_visual_indexes": [0]},
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
    )
    # As in the released checkpoints: the class's defaults are CLIP's values, those of the video
    # processor 0.5, and vLLM normalises videos with the values of the image processor.
    half = [0.5, 0.5, 0.5]
    processor = Qwen3VLProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=16, image_mean=half, image_std=half),
        tokenizer=tokenizer,
        video_processor=Qwen3VLVideoProcessor(),
        chat_template=tiny.CHAT_TEMPLATE,
    )
    return [Qwen3VLForConditionalGeneration(config), processor]


def qwen2_5_omni() -> list[Any]:
    """Qwen2.5-Omni's thinker: videos and sound in, text out; the talker is not there."""
    from transformers import (
        Qwen2_5OmniConfig,
        Qwen2_5OmniForConditionalGeneration,
        Qwen2_5OmniProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
        WhisperFeatureExtractor,
    )

    names = {
        "image_token": "<|IMAGE|>",
        "audio_token": "<|AUDIO|>",
        "video_token": "<|VIDEO|>",
        "vision_bos_token": "<|vision_bos|>",
        "vision_eos_token": "<|vision_eos|>",
        "audio_bos_token": "<|audio_bos|>",
        "audio_eos_token": "<|audio_eos|>",
    }
    tokenizer, ids = _tokenizer(SPECIALS, extra_special_tokens=names)
    rope = {"rope_type": "default", "rope_theta": 1000000.0, "mrope_section": [8, 12, 12]}
    thinker = {
        "text_config": {
            **TEXT,
            "vocab_size": len(tokenizer),
            "rope_parameters": rope,
            "eos_token_id": ids["<|im_end|>"],
            "pad_token_id": ids["<|endoftext|>"],
        },
        "vision_config": {**VISION, "fullatt_block_indexes": [1]},
        "audio_config": {
            "d_model": 32,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 64,
            "output_dim": HEADS * HEAD,
            "initializer_range": tiny.WIDE,
        },
        "audio_token_index": ids["<|AUDIO|>"],
        "image_token_index": ids["<|IMAGE|>"],
        "video_token_index": ids["<|VIDEO|>"],
        "audio_start_token_id": ids["<|audio_bos|>"],
        "audio_end_token_id": ids["<|audio_eos|>"],
        "vision_start_token_id": ids["<|vision_bos|>"],
        "vision_end_token_id": ids["<|vision_eos|>"],
    }
    config = Qwen2_5OmniConfig(thinker_config=thinker, enable_audio_output=False)
    marks = {
        "image": "<|vision_bos|><|IMAGE|><|vision_eos|>",
        "video": "<|vision_bos|><|VIDEO|><|vision_eos|>",
        "audio": "<|audio_bos|><|AUDIO|><|audio_eos|>",
    }
    template = tiny.CHAT_TEMPLATE
    for kind in ("image", "video"):
        plain = f"<|vision_start|><|{kind}_pad|><|vision_end|>"
        template = template.replace(plain, marks[kind])
    template = template.replace(
        "{% elif 'text' in part %}",
        f"{{% elif part['type'] == 'audio' %}}{marks['audio']}{{% elif 'text' in part %}}",
    )
    processor = Qwen2_5OmniProcessor(
        image_processor=Qwen2VLImageProcessor(),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        feature_extractor=WhisperFeatureExtractor(feature_size=128),
        chat_template=template,
    )
    return [Qwen2_5OmniForConditionalGeneration(config), processor]


def add() -> None:
    """Make them kinds that `tiny.build_checkpoint` knows."""
    tiny.KINDS |= {"qwen3_vl": qwen3_vl, "qwen2_5_omni": qwen2_5_omni}
