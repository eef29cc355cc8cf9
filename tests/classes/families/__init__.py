"""Tiny random checkpoints of the families that the host's model classes load: a MB or less each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.classes.families import llava, others, qwen

FAMILIES: Mapping[str, Callable[[], list[Any]]] = {
    made.__name__: made
    for made in (
        qwen.qwen2_vl,
        qwen.qwen2_5_vl,
        qwen.qwen2_5_omni,
        qwen.qwen3_vl,
        qwen.qwen3_5,
        qwen.qwen3_omni,
        llava.llava_1_5,
        llava.llava_next,
        llava.llava_next_video,
        llava.llava_onevision,
        llava.video_llava,
        llava.internvl,
        llava.video_llama3,
        others.aria,
        others.gemma3,
        others.gemma4,
        others.glm4v,
        others.idefics2,
        others.lfm2_vl,
        others.llama4,
        others.mistral3,
        others.mllama,
    )
}
# The host's class takes a dense model only for one of this name.
_NAMES = {"glm4v": "glm4v-Flash"}


def build(family: str, folder: Path) -> Path:
    """The family's checkpoint in `folder/NAME`, the same weights each time."""
    import torch

    place = folder / _NAMES.get(family, family)
    if not place.is_dir():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for part in FAMILIES[family]():
                part.save_pretrained(str(place))
    return place


def own_generate(family: str) -> list[Any]:
    """Model classes of a family that do not leave `generate` to transformers."""
    import transformers

    found = {
        "qwen2_5_omni": "Qwen2_5OmniForConditionalGeneration",
        "qwen3_omni": "Qwen3OmniMoeForConditionalGeneration",
    }
    return [getattr(transformers, found[family])] if family in found else []
