"""Tiny random checkpoints of the families that the host's model classes load: a MB or less each.

A vision tower here takes pictures of 56 x 56 pixels, whole, where its family fixes a size: enough
for the colours and the bar that say which second a frame is of (sample/second_code.py). Towers that
take any size keep their processor's defaults.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.sample.tiny import CHAT_TEMPLATE, QWEN_SPECIALS, WIDE, tokenizer_of

SIDE, PATCH = 56, 14
SQUARE = {"height": SIDE, "width": SIDE}
WHOLE: dict[str, Any] = {"size": SQUARE, "do_center_crop": False}
TILES = [[SIDE, SIDE], [SIDE, 2 * SIDE]]
# Of every tower: two layers of 32.
LAYERS = {"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TOWER: dict[str, Any] = {"hidden_size": 32, **LAYERS, "image_size": SIDE, "patch_size": PATCH}
BLOCKS = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "num_heads": 2}
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE\n{% elif part['type'] == 'video' %}VIDEO\n"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


def build(family: str, folder: Path) -> Path:
    """The family's checkpoint in `folder/NAME`, the same weights each time."""
    import torch

    place = folder / NAMES.get(family, family)
    if not place.is_dir():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            for part in FAMILIES[family]():
                part.save_pretrained(str(place))
    return place


def template(image: str, video: str = "") -> str:
    return TEMPLATE.replace("IMAGE", image).replace("VIDEO", video)


def tokens(specials: tuple[str, ...], **named: str) -> Any:
    """A tokenizer whose first special tokens are padding and end; others by name, as in released
    ones, where a processor asks for them so."""
    from transformers import AutoTokenizer

    tokenizer = tokenizer_of(
        specials,
        pad_token=specials[0],
        eos_token=specials[1],
        additional_special_tokens=list(specials[2:]),
        model_max_length=131072,
    )
    if not named:
        return tokenizer
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return AutoTokenizer.from_pretrained(folder, extra_special_tokens=named)


def qwen_tokens(*more: str, **named: str) -> Any:
    first = ("<|endoftext|>", "<|im_end|>")
    others = tuple(token for token in QWEN_SPECIALS if token not in first)
    return tokens((*first, *others, *more), **named)


def text(tokenizer: Any, **more: Any) -> dict[str, Any]:
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
        "initializer_range": WIDE,
        **more,
    }


def ids(tokenizer: Any, **named: str) -> dict[str, int]:
    return {name: tokenizer.convert_tokens_to_ids(token) for name, token in named.items()}


def qwen_ids(tokenizer: Any) -> dict[str, int]:
    parts = ("image_pad", "video_pad", "vision_start", "vision_end")
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    tags = {name: f"<|{part}|>" for name, part in zip(names, parts, strict=True)}
    return ids(tokenizer, **tags)


# --- Qwen ---------------------------------------------------------------------------------------

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


# --- LLaVA and its kin --------------------------------------------------------------------------


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


# --- Gemma, Llama, GLM, Idefics -----------------------------------------------------------------


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
    shown = ("<|begin_of_{0}|><|{0}|><|end_of_{0}|>".format(kind) for kind in ("image", "video"))
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
    own = text(tokenizer, num_hidden_layers=3, cross_attention_layers=[1])
    own |= {"vocab_size": len(tokenizer) - 1, "bos_token_id": 0, "rope_scaling": {"rope_type": "default"}}
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


FAMILIES: Mapping[str, Callable[[], list[Any]]] = {
    made.__name__: made
    for made in (
        qwen2_vl,
        qwen2_5_vl,
        qwen3_vl,
        qwen3_5,
        llava_onevision,
        llava_next_video,
        llava_1_5,
        video_llava,
        internvl,
        video_llama3,
        gemma3,
        gemma4,
        glm4v,
        mllama,
        llama4,
        idefics2,
    )
}
# The host's class takes a dense model only for one of this name.
NAMES = {"glm4v": "glm4v-Flash"}
