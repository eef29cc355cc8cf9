"""Each family's recipe: what its classes ask for beside what all have in common."""

from __future__ import annotations

from typing import Any

from lmms_eval_tasks.sample.tiny import CHAT_TEMPLATE, QWEN_SPECIALS
from tests.classes.families.parts import LAYERS, PATCH, SIDE, TOWER, Recipe

SQUARE = {"height": SIDE, "width": SIDE}
WHOLE: dict[str, Any] = {"size": SQUARE, "do_center_crop": False}
TILES = {"image_grid_pinpoints": [[SIDE, SIDE], [SIDE, 2 * SIDE]]}
UNTIED = {"tie_word_embeddings": False}
BLOCKS = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2}
SMALL = {"hidden_size": 32, **LAYERS}

# --- Qwen: towers of patches, whose number follows the picture's size -----------------------------

_FIRST = ("<|endoftext|>", "<|im_end|>")
QWEN = (*_FIRST, *(token for token in QWEN_SPECIALS if token not in _FIRST))
QWEN_IDS = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}
PATCHES: dict[str, Any] = {
    "marks": ("", ""),
    "image": {"class": "Qwen2VLImageProcessor"},
    "video": {"class": "Qwen2VLVideoProcessor"},
    "processor": {"chat_template": CHAT_TEMPLATE},
}
PATCHES_3: dict[str, Any] = {
    **PATCHES,
    "image": {"class": "Qwen2VLImageProcessor", "patch_size": 16},
    "video": {"class": "Qwen3VLVideoProcessor"},
    "config": UNTIED,
}
MROPE = {"rope_type": "default", "mrope_section": [2, 3, 3]}
MROPE_3 = {"head_dim": 16, "rope_scaling": {**MROPE, "mrope_interleaved": True}}
SEEN_3 = {**BLOCKS, "out_hidden_size": 64, "num_position_embeddings": 256}
DEEP = {**SEEN_3, "deepstack_visual_indexes": [0]}
LINEAR = {
    "head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "rope_parameters": {
        **{**MROPE, "mrope_section": [2, 1, 1], "mrope_interleaved": True},
        **{"rope_theta": 10000.0, "partial_rotary_factor": 0.5},
    },
}

# --- LLaVA and its kin: towers of a fixed size, videos as frames of it ----------------------------

LLAVA = (*QWEN, "<image>", "<video>")
LLAVA_IDS = {"image_token_index": "<image>", "video_token_index": "<video>"}
IMAGE_INDEX = {"image_token_index": "<image>"}
CLIP = {**TOWER, "model_type": "clip_vision_model"}
AS_LLAVA = {"patch_size": PATCH, "vision_feature_select_strategy": "default"}
INTERN = {
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "context_image_token": "<IMG_CONTEXT>",
    "video_token": "<video>",
}
INTERN_TOKENS = {"image_seq_length": (SIDE // PATCH // 2) ** 2}

# --- others ---------------------------------------------------------------------------------------

GEMMA3 = {
    "image_token": "<image_soft_token>",
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
}
GEMMA4 = {
    "image_token": "<|image|>",
    "boi_token": "<|image>",
    "eoi_token": "<image|>",
    "video_token": "<|video|>",
    "audio_token": "<|audio|>",
    "boa_token": "<|audio>",
    "eoa_token": "<audio|>",
}
GLM = {
    f"{kind}{place}_token_id": f"<|{tag}{kind}|>"
    for place, tag in (("", ""), ("_start", "begin_of_"), ("_end", "end_of_"))
    for kind in ("image", "video")
}
LFM2 = {
    "image_token": "<image>",
    "image_start_token": "<|image_start|>",
    "image_end_token": "<|image_end|>",
    "image_thumbnail": "<|img_thumbnail|>",
}
LLAMA4 = ("<|image_start|>", "<|image_end|>", "<|image|>", "<|patch|>")
LLAMA4_LINES = ("<|tile_x_separator|>", "<|tile_y_separator|>")
ARIA_SIDES = {490: 8, 980: 8}  # that its processor takes: of a frame, of a picture

RECIPES = {
    "qwen2_vl": Recipe(
        "Qwen2VL",
        QWEN,
        QWEN_IDS,
        text={"rope_scaling": {"type": "mrope", **MROPE}},
        vision={"depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "mlp_ratio": 2},
        config=UNTIED,
        **PATCHES,
    ),
    "qwen3_vl": Recipe("Qwen3VL", QWEN, QWEN_IDS, text=MROPE_3, vision=DEEP, **PATCHES_3),
    "qwen3_5": Recipe(
        "Qwen3_5",
        QWEN,
        QWEN_IDS,
        text=LINEAR,
        vision=SEEN_3,
        **{**PATCHES_3, "processor": {"class": "Qwen3VLProcessor", **PATCHES["processor"]}},
    ),
    "llava_1_5": Recipe(
        "Llava",
        LLAVA,
        IMAGE_INDEX,
        ("<image>",),
        text={"model_type": "llama"},
        vision=CLIP,
        config=UNTIED,
        image={"class": "CLIPImageProcessor", **WHOLE},
        processor={**AS_LLAVA, "num_additional_image_tokens": 1},
    ),
    "llava_next": Recipe(
        "LlavaNext",
        LLAVA,
        IMAGE_INDEX,
        ("<image>",),
        text={"model_type": "llama"},
        vision=CLIP,
        config={**UNTIED, **TILES},
        image={**WHOLE, **TILES},
        processor={**AS_LLAVA, "num_additional_image_tokens": 1},
    ),
    "llava_next_video": Recipe(
        "LlavaNextVideo",
        LLAVA,
        LLAVA_IDS,
        ("<image>", "<video>"),
        text={"model_type": "qwen2"},
        vision=CLIP,
        config={**UNTIED, **TILES},
        image={"class": "LlavaNextImageProcessor", **WHOLE, **TILES},
        video=WHOLE,
        processor=AS_LLAVA,
    ),
    "llava_onevision": Recipe(
        "LlavaOnevision",
        LLAVA,
        LLAVA_IDS,
        ("<image>", "<video>"),
        text={"model_type": "qwen2"},
        vision={**TOWER, "model_type": "siglip_vision_model"},
        config={**UNTIED, **TILES, "vision_feature_select_strategy": "full"},
        image={"size": SQUARE, **TILES},
        video={"size": SQUARE},
        processor={
            "num_image_tokens": (SIDE // PATCH) ** 2,
            "vision_feature_select_strategy": "full",
        },
    ),
    "video_llava": Recipe(
        "VideoLlava",
        LLAVA,
        LLAVA_IDS,
        ("",),
        text={"model_type": "llama"},
        vision=CLIP,
        config=UNTIED,
        image=WHOLE,
        video=WHOLE,
        processor={**AS_LLAVA, "chat_template": None},
    ),
    "internvl": Recipe(
        "InternVL",
        (*QWEN, *INTERN.values()),
        {"image_token_id": "<IMG_CONTEXT>"},
        ("<IMG_CONTEXT>", "<video>"),
        text={"model_type": "qwen2"},
        vision={**TOWER, "image_size": [SIDE, SIDE], "patch_size": [PATCH, PATCH]},
        config={**INTERN_TOKENS, "downsample_ratio": 0.5},
        image={"class": "GotOcr2ImageProcessor", "size": SQUARE, "crop_to_patches": True},
        video={"size": SQUARE},
        processor=INTERN_TOKENS,
        named=INTERN,
    ),
    "video_llama3": Recipe(
        "VideoLlama3",
        QWEN,
        {"image_token_id": "<|image_pad|>", "video_token_id": "<|video_pad|>"},
        ("<|image_pad|>", "<|video_pad|>"),
        text={"model_type": "qwen2"},
        vision={**SMALL, "patch_size": PATCH},
        video={},
        named={"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"},
    ),
    "gemma3": Recipe(
        "Gemma3",
        ("<pad>", "<eos>", *GEMMA3.values()),
        {f"{name}_index": token for name, token in GEMMA3.items()},
        ("<start_of_image>",),
        text={"head_dim": 16, "sliding_window": 4096},
        vision={**TOWER, "model_type": "siglip_vision_model"},
        config={"mm_tokens_per_image": 4},
        image={"size": SQUARE},
        processor={"image_seq_length": 4},
        named=GEMMA3,
    ),
    "gemma4": Recipe(
        "Gemma4",
        ("<pad>", "<eos>", *GEMMA4.values()),
        {f"{name}_id": one for name, one in GEMMA4.items() if "oa" not in name},
        ("<|image|>", "<|video|>"),
        text={
            "head_dim": 16,
            "global_head_dim": 16,
            "sliding_window": 4096,
            "vocab_size_per_layer_input": len,
            "hidden_size_per_layer_input": 8,
            "num_kv_shared_layers": 0,
            "layer_types": ["sliding_attention", "full_attention"],
        },
        vision={**SMALL, "num_key_value_heads": 2, "head_dim": 16, "patch_size": 16},
        config={"audio_config": None},
        video={},
        audio={"class": "Gemma4AudioFeatureExtractor"},
        named=GEMMA4,
    ),
    "glm4v": Recipe(
        "Glm4v",
        ("<|endoftext|>", "<|user|>", *GLM.values()),
        GLM,
        (
            "<|begin_of_image|><|image|><|end_of_image|>",
            "<|begin_of_video|><|video|><|end_of_video|>",
        ),
        text={
            "rope_parameters": {
                **{"rope_type": "default", "mrope_section": [2, 1, 1], "rope_theta": 10000.0},
                "partial_rotary_factor": 0.5,
            }
        },
        vision={**BLOCKS, "out_hidden_size": 64, "image_size": SIDE, "patch_size": PATCH},
        video={},
    ),
    "mllama": Recipe(
        "Mllama",
        ("<pad>", "<|eot_id|>", "<|begin_of_text|>", "<|image|>"),
        {"image_token_index": "<|image|>"},
        ("<|image|>",),
        text={
            "num_hidden_layers": 3,
            "cross_attention_layers": [1],
            "vocab_size": lambda tokenizer: len(tokenizer) - 1,
            "rope_scaling": {"rope_type": "default"},
            "bos_token_id": lambda tokenizer: tokenizer.bos_token_id,
        },
        vision={
            **TOWER,
            "attention_heads": 2,
            "num_global_layers": 1,
            "max_num_tiles": 1,
            "supported_aspect_ratios": [[1, 1]],
            "intermediate_layers_indices": [0],
            "vision_output_dim": 64,
        },
        image={"size": SQUARE, "max_image_tiles": 1},
        named={"bos_token": "<|begin_of_text|>"},
    ),
    "llama4": Recipe(
        "Llama4",
        ("<pad>", "<|eot|>", "<|begin_of_text|>", *LLAMA4, *LLAMA4_LINES),
        {"image_token_index": "<|patch|>"},
        ("<|image|>",),
        text={
            **{"head_dim": 16, "rope_scaling": None, "num_local_experts": 2, "moe_layers": []},
            "intermediate_size_mlp": 128,
        },
        vision={
            **{**TOWER, "intermediate_size": 128, "vision_output_dim": 64},
            **{"projector_input_dim": 64, "projector_output_dim": 64},
        },
        image={"size": SQUARE, "max_patches": 1},
        processor={"patch_size": PATCH},
    ),
    "idefics2": Recipe(
        "Idefics2",
        ("<pad>", "</s>", "<s>", "<fake_token_around_image>", "<image>", "<end_of_utterance>"),
        {"image_token_id": "<image>"},
        ("<image>",),
        text={"model_type": "mistral"},
        config={
            "perceiver_config": {
                **{"hidden_size": 64, "num_key_value_heads": 1, "resampler_head_dim": 16},
                **{"resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 2},
            }
        },
        image={
            "size": {"shortest_edge": 28, "longest_edge": SIDE},
            "do_image_splitting": False,
        },
        processor={"image_seq_len": 4},
    ),
    "lfm2_vl": Recipe(
        "Lfm2Vl",
        ("<pad>", "<eos>", *LFM2.values()),
        {"image_token_id": "<image>"},
        ("<image>",),
        text={"model_type": "lfm2", "layer_types": ["conv", "full_attention"]},
        vision={
            **{**SMALL, "model_type": "siglip2_vision_model", "patch_size": 16},
            "num_patches": 256,
        },
        image={"do_image_splitting": False},
        named=LFM2,
    ),
    "mistral3": Recipe(
        "Mistral3",
        ("<pad>", "</s>", "<s>", "[IMG]", "[IMG_BREAK]", "[IMG_END]"),
        {"image_token_index": "[IMG]"},
        ("[IMG]",),
        text={"model_type": "mistral", "head_dim": 16},
        vision={**TOWER, "model_type": "pixtral", "head_dim": 16},
        config={"spatial_merge_size": 2},
        image={
            "class": "PixtralImageProcessor",
            "size": {"longest_edge": SIDE},
            "patch_size": PATCH,
        },
        processor={"class": "PixtralProcessor", "patch_size": PATCH, "spatial_merge_size": 2},
    ),
    "aria": Recipe(
        "Aria",
        ("<pad>", "<eos>", "<|img|>"),
        {"image_token_index": "<|img|>"},
        ("<|img|>",),
        text={"moe_num_experts": 2, "moe_topk": 1, "moe_num_shared_experts": 1, "head_dim": 16},
        vision={**TOWER, "model_type": "idefics3_vision", "image_size": max(ARIA_SIDES)},
        config={
            "projector_patch_to_query_dict": {
                (side // PATCH) ** 2: number for side, number in ARIA_SIDES.items()
            }
        },
        processor={"size_conversion": ARIA_SIDES},
        named={"image_token": "<|img|>"},
    ),
}
