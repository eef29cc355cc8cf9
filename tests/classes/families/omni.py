"""Qwen's Omni: the thinker alone, since the host's classes switch the talker off."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from lmms_eval_tasks.sample.tiny import CHAT_TEMPLATE
from tests.classes.families.parts import text, tokens
from tests.classes.families.recipes import QWEN

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
EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 64}


def omni(prefix: str, patch: int, spoken: Any, vision: Any, **audio: Any) -> list[Any]:
    """Model and processor.

    Args:
        prefix: of transformers' classes.
        patch: size of a tower's patches.
        spoken, vision, audio: what the thinker's parts have beside what all have.
    """
    import transformers as t

    tokenizer = tokens((*QWEN, *(one for one in OMNI.values() if one not in QWEN)), OMNI)
    spelled = {"vision_bos": "vision_start", "vision_eos": "vision_end"}
    spelled |= {"audio_bos": "audio_start", "audio_eos": "audio_end"}
    ids = {
        f"{spelled.get(kind, kind)}_token_id": tokenizer.convert_tokens_to_ids(token)
        for name, token in OMNI.items()
        for kind in [name.removesuffix("_token")]
    }
    thinker = getattr(t, f"{prefix}ThinkerConfig")(
        text_config=text(tokenizer, copy.deepcopy(spoken)),
        vision_config=dict(vision),
        audio_config={**EARS, "output_dim": 64, **audio},
        **ids,
    )
    config = getattr(t, f"{prefix}Config")(
        thinker_config=thinker.to_dict(), enable_audio_output=False
    )
    processor = getattr(t, f"{prefix}Processor")(
        image_processor=t.Qwen2VLImageProcessor(patch_size=patch),
        video_processor=t.Qwen2VLVideoProcessor(patch_size=patch),
        feature_extractor=t.WhisperFeatureExtractor(feature_size=128),
        tokenizer=tokenizer,
        chat_template=CHAT_TEMPLATE.replace("{% elif 'text'", f"{HEARS}{{% elif 'text'"),
    )
    return [getattr(t, f"{prefix}ForConditionalGeneration")(config), processor]


class Voices:
    """The file of voices, without which no checkpoint of Qwen2.5-Omni is loaded."""

    def save_pretrained(self, folder: str) -> None:
        import torch

        torch.save({"Chelsie": {}}, Path(folder, "spk_dict.pt"))
