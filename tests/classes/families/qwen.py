"""Qwen: towers of patches, whose number follows the picture's size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval_tasks.sample.tiny import CHAT_TEMPLATE, QWEN_SPECIALS
from tests.classes.families.parts import BLOCKS, ids, qwen_ids, qwen_tokens, text

MROPE = {"rope_type": "default", "mrope_section": [2, 3, 3]}


def qwen2_vl() -> list[Any]:
    import transformers as t

    tokenizer = qwen_tokens()
    vision = {"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2}
    config = t.Qwen2VLConfig(
        text_config=text(tokenizer, rope_scaling={"type": "mrope", **MROPE}),
        vision_config=vision,
        tie_word_embeddings=False,
        **qwen_ids(tokenizer),
    )
    return [t.Qwen2VLForConditionalGeneration(config), qwen_processor(t.Qwen2VLProcessor)]


def qwen_processor(kind: Any, **more: Any) -> Any:
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor

    parts = {
        "image_processor": Qwen2VLImageProcessor(),
        "video_processor": Qwen2VLVideoProcessor(),
        "tokenizer": qwen_tokens(),
        "chat_template": CHAT_TEMPLATE,
    }
    return kind(**{**parts, **more})


def qwen2_5_vl() -> list[Any]:
    from lmms_eval_tasks.sample.tiny import KINDS

    return KINDS["qwen2_5_vl"]()


def qwen3_processor() -> Any:
    import transformers as t

    return qwen_processor(
        t.Qwen3VLProcessor,
        image_processor=t.Qwen2VLImageProcessor(patch_size=16),
        video_processor=t.Qwen3VLVideoProcessor(),
    )


def qwen3_vl() -> list[Any]:
    import transformers as t

    tokenizer = qwen_tokens()
    config = t.Qwen3VLConfig(
        text_config=text(tokenizer, head_dim=16, rope_scaling={**MROPE, "mrope_interleaved": True}),
        vision_config={
            **BLOCKS,
            "out_hidden_size": 64,
            "deepstack_visual_indexes": [0],
            "num_position_embeddings": 256,
        },
        tie_word_embeddings=False,
        **qwen_ids(tokenizer),
    )
    return [t.Qwen3VLForConditionalGeneration(config), qwen3_processor()]


def qwen3_5() -> list[Any]:
    import transformers as t

    tokenizer = qwen_tokens()
    linear = {"linear_key_head_dim": 16, "linear_value_head_dim": 16}
    config = t.Qwen3_5Config(
        text_config=text(
            tokenizer,
            head_dim=16,
            layer_types=["linear_attention", "full_attention"],
            linear_num_key_heads=2,
            linear_num_value_heads=2,
            rope_parameters={
                **MROPE,
                "mrope_section": [2, 1, 1],
                "mrope_interleaved": True,
                "rope_theta": 10000.0,
                "partial_rotary_factor": 0.5,
            },
            **linear,
        ),
        vision_config={**BLOCKS, "out_hidden_size": 64, "num_position_embeddings": 256},
        tie_word_embeddings=False,
        **qwen_ids(tokenizer),
    )
    return [t.Qwen3_5ForConditionalGeneration(config), qwen3_processor()]


OMNI = {
    "image_token": "<|image_pad|>",
    "audio_token": "<|AUDIO|>",
    "video_token": "<|video_pad|>",
    "vision_bos_token": "<|vision_start|>",
    "vision_eos_token": "<|vision_end|>",
    "audio_bos_token": "<|audio_bos|>",
    "audio_eos_token": "<|audio_eos|>",
}
HEARS = "{% elif part['type'] == 'audio' %}<|audio_bos|><|AUDIO|><|audio_eos|>"
EARS = {"d_model": 32, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 64}


def omni_parts(kind: Any, **more: Any) -> tuple[Any, dict[str, int], Any]:
    """Tokenizer, the tokens that a thinker's config names, and the processor."""
    from transformers import WhisperFeatureExtractor

    tokenizer = qwen_tokens(*(one for one in OMNI.values() if one not in QWEN_SPECIALS), **OMNI)
    named = ids(
        tokenizer,
        image_token_id=OMNI["image_token"],
        video_token_id=OMNI["video_token"],
        audio_token_id=OMNI["audio_token"],
        vision_start_token_id=OMNI["vision_bos_token"],
        vision_end_token_id=OMNI["vision_eos_token"],
        audio_start_token_id=OMNI["audio_bos_token"],
        audio_end_token_id=OMNI["audio_eos_token"],
    )
    processor = qwen_processor(
        kind,
        tokenizer=tokenizer,
        feature_extractor=WhisperFeatureExtractor(feature_size=128),
        chat_template=CHAT_TEMPLATE.replace("{% elif 'text'", f"{HEARS}{{% elif 'text'"),
        **more,
    )
    return tokenizer, named, processor


def qwen2_5_omni() -> list[Any]:
    """The thinker alone: the host's classes switch the talker off."""
    import transformers as t

    tokenizer, named, processor = omni_parts(t.Qwen2_5OmniProcessor)
    thinker = t.Qwen2_5OmniThinkerConfig(
        text_config=text(tokenizer, rope_scaling={"type": "mrope", **MROPE}),
        vision_config={**BLOCKS, "out_hidden_size": 64, "fullatt_block_indexes": [1]},
        audio_config={**EARS, "output_dim": 64},
        **named,
    )
    config = t.Qwen2_5OmniConfig(thinker_config=thinker.to_dict(), enable_audio_output=False)
    return [t.Qwen2_5OmniForConditionalGeneration(config), processor, Voices()]


def qwen3_omni() -> list[Any]:
    """The thinker alone, with two experts."""
    import transformers as t

    tokenizer, named, processor = omni_parts(
        t.Qwen3OmniMoeProcessor,
        image_processor=t.Qwen2VLImageProcessor(patch_size=16),
        video_processor=t.Qwen2VLVideoProcessor(patch_size=16),
    )
    experts = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 64}
    thinker = t.Qwen3OmniMoeThinkerConfig(
        text_config=text(
            tokenizer, head_dim=16, rope_scaling={**MROPE, "mrope_interleaved": True}, **experts
        ),
        vision_config={
            **BLOCKS,
            "out_hidden_size": 64,
            "deepstack_visual_indexes": [0],
            "num_position_embeddings": 256,
        },
        audio_config={**EARS, "output_dim": 64, "downsample_hidden_size": 16},
        **named,
    )
    config = t.Qwen3OmniMoeConfig(thinker_config=thinker.to_dict(), enable_audio_output=False)
    return [t.Qwen3OmniMoeForConditionalGeneration(config), processor]


class Voices:
    """The file of voices, without which no checkpoint of the family is loaded."""

    def save_pretrained(self, folder: str) -> None:
        import torch

        torch.save({"Chelsie": {}}, Path(folder, "spk_dict.pt"))
