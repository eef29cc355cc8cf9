"""Text behind a video starts at the video's largest position plus one."""

import importlib

import pytest
import torch


# Two text tokens, a video of three groups of frames with 2 x 2 tokens each, two text tokens.
WHOLE = [0, 0] + [2] * 12 + [0, 0]
# The same two frames, separated, each behind two text tokens.
APART = ([0, 0] + [2] * 4) * 2 + [0, 0]

CASES = [
    ("qwen2_vl", "Qwen2VLModel", WHOLE, [3, 4, 4], [5, 6]),
    # Two seconds a group, two positions a second: times 2, 6, 10.
    ("qwen2_5_vl", "Qwen2_5_VLModel", WHOLE, [3, 4, 4], [11, 12]),
    # Two of the grid's groups are merged into one.
    ("ernie4_5_vl_moe", "Ernie4_5_VLMoeModel", WHOLE, [6, 4, 4], [5, 6]),
    ("paddleocr_vl", "PaddleOCRVLModel", WHOLE, [3, 4, 4], [5, 6]),
    ("qwen3_vl", "Qwen3VLModel", APART, [2, 4, 4], [8, 9]),
    ("glm4v", "Glm4vModel", APART, [2, 4, 4], [8, 9]),
]


@pytest.mark.parametrize("family, name, kinds, grid, behind", CASES)
def test_text_behind_a_video(family, name, kinds, grid, behind):
    module = importlib.import_module(f"transformers.models.{family}.modeling_{family}")
    model_class = getattr(module, name)
    model = model_class.__new__(model_class)
    torch.nn.Module.__init__(model)
    model.config = model_class.config_class()
    if family == "qwen2_5_vl":
        model.config.vision_config.tokens_per_second = 2
    kinds = torch.tensor([kinds])
    positions, deltas = model.get_rope_index(
        torch.zeros_like(kinds),
        mm_token_type_ids=kinds,
        video_grid_thw=torch.tensor([grid]),
        second_per_grid_ts=torch.tensor([2.0]),
        attention_mask=torch.ones_like(kinds),
    )
    assert positions[:, 0, -2:].tolist() == [behind] * 3
    assert positions[:, 0, :-2].max().item() == behind[0] - 1
    assert deltas.tolist() == [[behind[-1] + 1 - kinds.shape[1]]]
