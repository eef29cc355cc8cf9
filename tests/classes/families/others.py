"""Gemma, Llama, GLM and others."""

from __future__ import annotations

from typing import Any

from tests.classes.families.parts import (
    BLOCKS,
    LAYERS,
    PATCH,
    SIDE,
    SQUARE,
    TOWER,
    ids,
    template,
    text,
    tokens,
)


def gemma3() -> list[Any]:
    import transformers as t

    named = {
        "image_token": "<image_soft_token>",
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
    }
    tokenizer = tokens(("<pad>", "<eos>", *named.values()), **named)
    config = t.Gemma3Config(
        text_config=text(tokenizer, head_dim=16, sliding_window=4096),
        vision_config={"model_type": "siglip_vision_model", **TOWER},
        mm_tokens_per_image=4,
        **{f"{name}_index": tokenizer.convert_tokens_to_ids(one) for name, one in named.items()},
    )
    processor = t.Gemma3Processor(
        image_processor=t.Gemma3ImageProcessor(size=SQUARE),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=template("<start_of_image>"),
    )
    return [t.Gemma3ForConditionalGeneration(config), processor]


def gemma4() -> list[Any]:
    import transformers as t

    named = {
        "image_token": "<|image|>",
        "boi_token": "<|image>",
        "eoi_token": "<image|>",
        "video_token": "<|video|>",
        "audio_token": "<|audio|>",
        "boa_token": "<|audio>",
        "eoa_token": "<audio|>",
    }
    tokenizer = tokens(("<pad>", "<eos>", *named.values()), **named)
    placed = ("image_token", "boi_token", "eoi_token", "video_token", "audio_token")
    config = t.Gemma4Config(
        text_config=text(
            tokenizer,
            head_dim=16,
            global_head_dim=16,
            sliding_window=4096,
            vocab_size_per_layer_input=len(tokenizer),
            hidden_size_per_layer_input=8,
            num_kv_shared_layers=0,
            layer_types=["sliding_attention", "full_attention"],
        ),
        vision_config={
            "hidden_size": 32,
            **LAYERS,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "patch_size": 16,
        },
        audio_config=None,
        **{f"{one}_id": tokenizer.convert_tokens_to_ids(named[one]) for one in placed},
    )
    processor = t.Gemma4Processor(
        image_processor=t.Gemma4ImageProcessor(),
        video_processor=t.Gemma4VideoProcessor(),
        feature_extractor=t.Gemma4AudioFeatureExtractor(),
        tokenizer=tokenizer,
        chat_template=template("<|image|>", "<|video|>"),
    )
    return [t.Gemma4ForConditionalGeneration(config), processor]


def glm4v() -> list[Any]:
    import transformers as t

    tags = {
        "image_token_id": "<|image|>",
        "video_token_id": "<|video|>",
        "image_start_token_id": "<|begin_of_image|>",
        "image_end_token_id": "<|end_of_image|>",
        "video_start_token_id": "<|begin_of_video|>",
        "video_end_token_id": "<|end_of_video|>",
    }
    tokenizer = tokens(("<|endoftext|>", "<|user|>", *tags.values()))
    rope = {"rope_theta": 10000.0, "mrope_section": [2, 1, 1], "partial_rotary_factor": 0.5}
    config = t.Glm4vConfig(
        text_config=text(tokenizer, rope_parameters={"rope_type": "default", **rope}),
        vision_config={**BLOCKS, "out_hidden_size": 64, "image_size": SIDE, "patch_size": PATCH},
        **ids(tokenizer, **tags),
    )
    shown = (f"<|begin_of_{kind}|><|{kind}|><|end_of_{kind}|>" for kind in ("image", "video"))
    processor = t.Glm4vProcessor(
        image_processor=t.Glm4vImageProcessor(),
        video_processor=t.Glm4vVideoProcessor(),
        tokenizer=tokenizer,
        chat_template=template(*shown),
    )
    return [t.Glm4vForConditionalGeneration(config), processor]


def mllama() -> list[Any]:
    import transformers as t

    tokenizer = tokens(("<pad>", "<|eot_id|>", "<|begin_of_text|>", "<|image|>"))
    tokenizer.bos_token = "<|begin_of_text|>"
    own = text(tokenizer, num_hidden_layers=3, cross_attention_layers=[1])
    own |= {"vocab_size": len(tokenizer) - 1, "rope_scaling": {"rope_type": "default"}}
    own |= ids(tokenizer, bos_token_id="<|begin_of_text|>")
    config = t.MllamaConfig(
        text_config=own,
        vision_config={
            **TOWER,
            "attention_heads": 2,
            "num_global_layers": 1,
            "max_num_tiles": 1,
            "supported_aspect_ratios": [[1, 1]],
            "intermediate_layers_indices": [0],
            "vision_output_dim": 64,
        },
        image_token_index=tokenizer.convert_tokens_to_ids("<|image|>"),
    )
    processor = t.MllamaProcessor(
        image_processor=t.MllamaImageProcessor(size=SQUARE, max_image_tiles=1),
        tokenizer=tokenizer,
        chat_template=template("<|image|>"),
    )
    return [t.MllamaForConditionalGeneration(config), processor]


def llama4() -> list[Any]:
    import transformers as t

    tags = ("<|image_start|>", "<|image_end|>", "<|image|>", "<|patch|>")
    lines = ("<|tile_x_separator|>", "<|tile_y_separator|>")
    tokenizer = tokens(("<pad>", "<|eot|>", "<|begin_of_text|>", *tags, *lines))
    experts = {"num_local_experts": 2, "moe_layers": [], "intermediate_size_mlp": 128}
    vision = {"vision_output_dim": 64, "projector_input_dim": 64, "projector_output_dim": 64}
    config = t.Llama4Config(
        text_config=text(tokenizer, head_dim=16, rope_scaling=None, **experts),
        vision_config={**TOWER, "intermediate_size": 128, **vision},
        image_token_index=tokenizer.convert_tokens_to_ids("<|patch|>"),
    )
    processor = t.Llama4Processor(
        image_processor=t.Llama4ImageProcessor(size=SQUARE, max_patches=1),
        tokenizer=tokenizer,
        patch_size=PATCH,
        chat_template=template("<|image|>"),
    )
    return [t.Llama4ForConditionalGeneration(config), processor]


def idefics2() -> list[Any]:
    import transformers as t

    tags = ("<fake_token_around_image>", "<image>", "<end_of_utterance>")
    tokenizer = tokens(("<pad>", "</s>", "<s>", *tags))
    perceiver = {"resampler_n_latents": 4, "resampler_depth": 1, "resampler_n_heads": 2}
    config = t.Idefics2Config(
        text_config=text(tokenizer, model_type="mistral"),
        vision_config=TOWER,
        perceiver_config={
            "hidden_size": 64,
            "num_key_value_heads": 1,
            "resampler_head_dim": 16,
            **perceiver,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    processor = t.Idefics2Processor(
        image_processor=t.Idefics2ImageProcessor(
            size={"shortest_edge": 28, "longest_edge": SIDE}, do_image_splitting=False
        ),
        tokenizer=tokenizer,
        image_seq_len=4,
        chat_template=template("<image>"),
    )
    return [t.Idefics2ForConditionalGeneration(config), processor]


def lfm2_vl() -> list[Any]:
    import transformers as t

    named = {
        "image_token": "<image>",
        "image_start_token": "<|image_start|>",
        "image_end_token": "<|image_end|>",
        "image_thumbnail": "<|img_thumbnail|>",
    }
    tokenizer = tokens(("<pad>", "<eos>", *named.values()), **named)
    config = t.Lfm2VlConfig(
        text_config=text(tokenizer, model_type="lfm2", layer_types=["conv", "full_attention"]),
        vision_config={
            "model_type": "siglip2_vision_model",
            "hidden_size": 32,
            **LAYERS,
            "patch_size": 16,
            "num_patches": 256,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    processor = t.Lfm2VlProcessor(
        image_processor=t.Lfm2VlImageProcessor(do_image_splitting=False),
        tokenizer=tokenizer,
        chat_template=template("<image>"),
    )
    return [t.Lfm2VlForConditionalGeneration(config), processor]


def mistral3() -> list[Any]:
    import transformers as t

    tags = ("[IMG]", "[IMG_BREAK]", "[IMG_END]")
    tokenizer = tokens(("<pad>", "</s>", "<s>", *tags))
    config = t.Mistral3Config(
        text_config=text(tokenizer, model_type="mistral", head_dim=16),
        vision_config={"model_type": "pixtral", **TOWER, "head_dim": 16},
        image_token_index=tokenizer.convert_tokens_to_ids("[IMG]"),
        spatial_merge_size=2,
    )
    processor = t.PixtralProcessor(
        image_processor=t.PixtralImageProcessor(size={"longest_edge": SIDE}, patch_size=PATCH),
        tokenizer=tokenizer,
        patch_size=PATCH,
        spatial_merge_size=2,
        chat_template=template("[IMG]"),
    )
    return [t.Mistral3ForConditionalGeneration(config), processor]


def aria() -> list[Any]:
    import transformers as t

    named = {"image_token": "<|img|>"}
    tokenizer = tokens(("<pad>", "<eos>", "<|img|>"), **named)
    sides = {490: 8, 980: 8}  # that its processor takes: of a frame, of a picture
    config = t.AriaConfig(
        text_config=text(
            tokenizer, moe_num_experts=2, moe_topk=1, moe_num_shared_experts=1, head_dim=16
        ),
        vision_config={**TOWER, "model_type": "idefics3_vision", "image_size": max(sides)},
        projector_patch_to_query_dict={(one // PATCH) ** 2: n for one, n in sides.items()},
        image_token_index=tokenizer.convert_tokens_to_ids("<|img|>"),
    )
    processor = t.AriaProcessor(
        image_processor=t.AriaImageProcessor(),
        tokenizer=tokenizer,
        size_conversion=sides,
        chat_template=template("<|img|>"),
    )
    return [t.AriaForConditionalGeneration(config), processor]
