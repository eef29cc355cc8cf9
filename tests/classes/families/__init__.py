"""Tiny random checkpoints of the families that the host's model classes load: a MB or less each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmms_eval_tasks.sample.tiny import KINDS
from tests.classes.families.omni import EXPERTS, Voices, omni
from tests.classes.families.parts import made
from tests.classes.families.recipes import BLOCKS, DEEP, MROPE, MROPE_3, RECIPES

# The host's class takes a dense model only for one of this name.
_NAMES = {"glm4v": "glm4v-Flash"}


def parts(family: str) -> list[Any]:
    """What a checkpoint is saved from: the model, its processor and what else it needs."""
    if family == "qwen2_5_omni":
        spoken = {"rope_scaling": {"type": "mrope", **MROPE}}
        vision = {**BLOCKS, "out_hidden_size": 64, "fullatt_block_indexes": [1]}
        return [*omni("Qwen2_5Omni", 14, spoken, vision), Voices()]
    if family == "qwen3_omni":
        return omni("Qwen3OmniMoe", 16, {**MROPE_3, **EXPERTS}, DEEP, downsample_hidden_size=16)
    return made(RECIPES[family]) if family in RECIPES else list(KINDS[family]())


def build(family: str, folder: Path) -> Path:
    """The family's checkpoint in `folder/NAME`, the same weights each time."""
    import torch

    place = folder / _NAMES.get(family, family)
    if not place.is_dir():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for part in parts(family):
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
