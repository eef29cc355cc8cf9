"""What all families have in common, and how a family's checkpoint is made of its recipe.

A vision tower here takes pictures of 56 x 56 pixels, whole, where its family fixes a size: enough
for the colours and the bar that say which second a frame is of (sample/second_code.py). Towers that
take any size keep their processor's defaults.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from lmms_eval_tasks.sample.tiny import WIDE, tokenizer_of

SIDE, PATCH = 56, 14
# Of every tower: two layers of 32.
LAYERS = {"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
TOWER: dict[str, Any] = {"hidden_size": 32, **LAYERS, "image_size": SIDE, "patch_size": PATCH}
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: "
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}IMAGE\n{% elif part['type'] == 'video' %}VIDEO\n"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}\n"
    "{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


PARTS = {"image": "image_processor", "video": "video_processor", "audio": "feature_extractor"}


class Recipe(NamedTuple):
    """A family; transformers' classes are called `prefix` and what they are.

    Attributes:
        tokens: special ones; the first two are padding and end.
        ids: fields of the config that hold a token's number.
        marks: what the chat template writes for a picture and a video; or a template.
        text, vision, config: of the config and its two parts; functions are given the tokenizer.
        image, video, audio: arguments of the processor's parts, the class under "class" where it is
            another one; None: there is none.
        processor: its further arguments.
        named: tokens that the processor asks for by these names.
    """

    prefix: str
    tokens: tuple[str, ...]
    ids: Mapping[str, str]
    marks: tuple[str, str] | tuple[str]
    text: Mapping[str, Any] = {}
    vision: Mapping[str, Any] = TOWER
    config: Mapping[str, Any] = {}
    image: Mapping[str, Any] | None = {}
    video: Mapping[str, Any] | None = None
    audio: Mapping[str, Any] | None = None
    processor: Mapping[str, Any] = {}
    named: Mapping[str, str] = {}


def made(recipe: Recipe) -> list[Any]:
    """Model and processor."""
    import transformers

    def of(name: str, **given: Any) -> Any:
        return getattr(transformers, given.pop("class", f"{recipe.prefix}{name}"))(**given)

    recipe = copy.deepcopy(recipe)  # configs write into what they are given
    tokenizer = tokens(recipe.tokens, recipe.named)
    numbers = {name: tokenizer.convert_tokens_to_ids(one) for name, one in recipe.ids.items()}
    config = of(
        "Config",
        text_config=text(tokenizer, recipe.text),
        vision_config=dict(recipe.vision),
        **recipe.config,
        **numbers,
    )
    image, *video = recipe.marks
    template = TEMPLATE.replace("IMAGE", image).replace("VIDEO", "".join(video))
    given: dict[str, Any] = {"chat_template": template, **recipe.processor}
    for part, name in PARTS.items():
        if (own := getattr(recipe, part)) is not None:
            given[name] = of(name.title().replace("_", ""), **own)
    processor = of("Processor", tokenizer=tokenizer, **given)
    return [of("ForConditionalGeneration", config=config), processor]


def tokens(specials: tuple[str, ...], named: Mapping[str, str]) -> Any:
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
        return AutoTokenizer.from_pretrained(folder, extra_special_tokens=dict(named))


def text(tokenizer: Any, more: Mapping[str, Any]) -> dict[str, Any]:
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
        **{name: one(tokenizer) if callable(one) else one for name, one in more.items()},
    }
