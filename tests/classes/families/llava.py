"""LLaVA and its kin: towers of a fixed size, videos as frames of it."""

from __future__ import annotations

from typing import Any

from tests.classes.families.parts import (
    LAYERS,
    PATCH,
    SIDE,
    SQUARE,
    TILES,
    TOWER,
    WHOLE,
    ids,
    qwen_tokens,
    template,
    text,
)


def llava_tokens() -> Any:
    return qwen_tokens("<image>", "<video>")


def llava_ids(tokenizer: Any) -> dict[str, int]:
    return ids(tokenizer, image_token_index="<image>", video_token_index="<video>")


def llava_onevision() -> list[Any]:
    import transformers as t

    tokenizer = llava_tokens()
    config = t.LlavaOnevisionConfig(
        text_config=t.Qwen2Config(**text(tokenizer)),
        vision_config=t.SiglipVisionConfig(**TOWER),
        vision_feature_select_strategy="full",
        image_grid_pinpoints=TILES,
        tie_word_embeddings=False,
        **llava_ids(tokenizer),
    )
    processor = t.LlavaOnevisionProcessor(
        image_processor=t.LlavaOnevisionImageProcessor(size=SQUARE, image_grid_pinpoints=TILES),
        video_processor=t.LlavaOnevisionVideoProcessor(size=SQUARE),
        tokenizer=tokenizer,
        num_image_tokens=(SIDE // PATCH) ** 2,
        vision_feature_select_strategy="full",
        chat_template=template("<image>", "<video>"),
    )
    return [t.LlavaOnevisionForConditionalGeneration(config), processor]


def llava_next_video() -> list[Any]:
    import transformers as t

    tokenizer = llava_tokens()
    config = t.LlavaNextVideoConfig(
        text_config=t.Qwen2Config(**text(tokenizer)),
        vision_config=t.CLIPVisionConfig(**TOWER),
        image_grid_pinpoints=TILES,
        tie_word_embeddings=False,
        **llava_ids(tokenizer),
    )
    processor = t.LlavaNextVideoProcessor(
        image_processor=t.LlavaNextImageProcessor(**WHOLE, image_grid_pinpoints=TILES),
        video_processor=t.LlavaNextVideoVideoProcessor(**WHOLE),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        chat_template=template("<image>", "<video>"),
    )
    return [t.LlavaNextVideoForConditionalGeneration(config), processor]


def llava_next() -> list[Any]:
    import transformers as t

    tokenizer = llava_tokens()
    config = t.LlavaNextConfig(
        text_config=t.LlamaConfig(**text(tokenizer)),
        vision_config=t.CLIPVisionConfig(**TOWER),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_grid_pinpoints=TILES,
        tie_word_embeddings=False,
    )
    processor = t.LlavaNextProcessor(
        image_processor=t.LlavaNextImageProcessor(**WHOLE, image_grid_pinpoints=TILES),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template("<image>"),
    )
    return [t.LlavaNextForConditionalGeneration(config), processor]


def llava_1_5() -> list[Any]:
    import transformers as t

    tokenizer = llava_tokens()
    config = t.LlavaConfig(
        text_config=t.LlamaConfig(**text(tokenizer)),
        vision_config=t.CLIPVisionConfig(**TOWER),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        tie_word_embeddings=False,
    )
    processor = t.LlavaProcessor(
        image_processor=t.CLIPImageProcessor(**WHOLE),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=template("<image>"),
    )
    return [t.LlavaForConditionalGeneration(config), processor]


def video_llava() -> list[Any]:
    import transformers as t

    tokenizer = llava_tokens()
    config = t.VideoLlavaConfig(
        text_config=t.LlamaConfig(**text(tokenizer)),
        vision_config=t.CLIPVisionConfig(**TOWER),
        tie_word_embeddings=False,
        **llava_ids(tokenizer),
    )
    processor = t.VideoLlavaProcessor(
        image_processor=t.VideoLlavaImageProcessor(**WHOLE),
        video_processor=t.VideoLlavaVideoProcessor(**WHOLE),
        tokenizer=tokenizer,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
    )
    return [t.VideoLlavaForConditionalGeneration(config), processor]


def internvl() -> list[Any]:
    import transformers as t

    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokenizer = qwen_tokens(*named.values(), **named)
    n_tokens = (SIDE // PATCH // 2) ** 2
    config = t.InternVLConfig(
        text_config=text(tokenizer, model_type="qwen2"),
        vision_config=t.InternVLVisionConfig(
            **{**TOWER, "image_size": [SIDE, SIDE], "patch_size": [PATCH, PATCH]}
        ),
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"),
        image_seq_length=n_tokens,
        downsample_ratio=0.5,
    )
    processor = t.InternVLProcessor(
        image_processor=t.GotOcr2ImageProcessor(size=SQUARE, crop_to_patches=True),
        video_processor=t.InternVLVideoProcessor(size=SQUARE),
        tokenizer=tokenizer,
        image_seq_length=n_tokens,
        chat_template=template("<IMG_CONTEXT>", "<video>"),
    )
    return [t.InternVLForConditionalGeneration(config), processor]


def video_llama3() -> list[Any]:
    import transformers as t

    pads = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"}
    tokenizer = qwen_tokens(**pads)
    config = t.VideoLlama3Config(
        text_config=text(tokenizer, model_type="qwen2"),
        vision_config={"hidden_size": 32, **LAYERS, "patch_size": PATCH},
        **{f"{name}_id": tokenizer.convert_tokens_to_ids(token) for name, token in pads.items()},
    )
    processor = t.VideoLlama3Processor(
        image_processor=t.VideoLlama3ImageProcessor(),
        video_processor=t.VideoLlama3VideoProcessor(),
        tokenizer=tokenizer,
        chat_template=template(*pads.values()),
    )
    return [t.VideoLlama3ForConditionalGeneration(config), processor]
