"""Tiny checkpoints with random weights, built here: real model classes without a download.

They load like any released checkpoint (`pretrained=FOLDER`) and answer nonsense: they test the way
from a video file to a number, not the number. About 1 MB each, built in a second or two.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.utils.released_files import put_folder

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# Standard deviation of the weights. With the usual 0.02 a model this small gives the same reply to
# every request.
WIDE = 0.2

# Enough text for a byte-level BPE of a few hundred merges, which can encode any text.
_CORPUS = (
    "Guarda il video e scegli l'affermazione giusta. Rispondi solo con la lettera A o B.",
    "Che cosa fa l'uomo prima di uscire dalla stanza? Perché la donna sorride?",
    "Nel video si vede una persona che cammina in una strada affollata.",
    "Watch the video and choose the right statement. Answer with the letter A or B only.",
    "What does the man do before he leaves the room? Why does the woman smile?",
    "You are a helpful assistant.",
)
QWEN_SPECIALS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"),
    *("<|vision_pad|>", "<|image_pad|>", "<|video_pad|>"),
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in part %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class Saved(Protocol):
    """A model, tokenizer or processor of transformers."""

    def save_pretrained(self, folder: str) -> object:
        """Write the files of this part of a checkpoint into a folder."""


def build_checkpoint(kind: str, folder: str | Path, seed: int = 0) -> Path:
    """Build the tiny checkpoint `kind` of KINDS in `folder` and return the folder.

    An existing checkpoint is kept. An interrupted build leaves no folder. The same kind and
    seed give the same weights with the same versions of torch and transformers.

    Raises:
        TasksError: the folder holds something else.
    """
    import torch

    folder = Path(folder).expanduser().resolve()
    if (folder / "config.json").is_file():
        return folder
    if folder.is_dir() and any(folder.iterdir()):
        raise TasksError(
            f"{folder} is not empty and holds no tiny checkpoint of "
            "lmms-eval-tasks, so nothing is written: name another folder"
        )

    def save(new: Path) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for part in KINDS[kind]():
                part.save_pretrained(str(new))

    folder.parent.mkdir(parents=True, exist_ok=True)
    put_folder(folder, save)
    return folder


def tokenizer_of(specials: tuple[str, ...], **kwargs: object) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer: 256 bytes, some merges and `specials`; no unknown token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe.train_from_iterator(_CORPUS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=bpe, **kwargs)


def _qwen2_5_vl() -> list[Saved]:
    """Qwen2.5-VL with two layers, a vision tower of two blocks, and its processor.

    A head has 64 dimensions: vLLM's engine for CPUs refuses less than 32.
    """
    from transformers import (
        Qwen2_5_VLConfig,
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLProcessor,
        Qwen2VLImageProcessor,
        Qwen2VLVideoProcessor,
    )

    tokenizer = tokenizer_of(
        QWEN_SPECIALS,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(QWEN_SPECIALS[1:]),
        model_max_length=32768,
    )
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in QWEN_SPECIALS}
    hidden, heads = 128, 2
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": hidden,
            "intermediate_size": 2 * hidden,
            "num_hidden_layers": 2,
            "num_attention_heads": heads,
            "num_key_value_heads": 1,
            "max_position_embeddings": 32768,
            # time, height, width: together half of a head's dimensions
            "rope_scaling": {"type": "mrope", "rope_type": "default", "mrope_section": [8, 12, 12]},
            "bos_token_id": None,
            "eos_token_id": ids["<|im_end|>"],
            "initializer_range": WIDE,
            "pad_token_id": ids["<|endoftext|>"],
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 2,
            "out_hidden_size": hidden,
            "fullatt_block_indexes": [1],
            "initializer_range": WIDE,
        },
        image_token_id=ids["<|image_pad|>"],
        video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"],
        vision_end_token_id=ids["<|vision_end|>"],
        tie_word_embeddings=False,
    )
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    )
    return [Qwen2_5_VLForConditionalGeneration(config), processor]


def _language(kind: str, begin: str, end: str) -> list[Saved]:
    """A language model of two layers and its tokenizer, without a padding token."""
    from tokenizers import processors
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = tokenizer_of(
        tuple(filter(None, (begin, end))), bos_token=begin or end, eos_token=end
    )
    if begin:
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=[(begin, tokenizer.bos_token_id)]
        )
    config = AutoConfig.for_model(
        kind,
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        initializer_range=WIDE,
    )
    return [AutoModelForCausalLM.from_config(config), tokenizer]


# kind -> the parts of a checkpoint, each with save_pretrained
KINDS: dict[str, Callable[[], list[Saved]]] = {
    "qwen2_5_vl": _qwen2_5_vl,
    "gpt2": functools.partial(_language, "gpt2", "", "<|endoftext|>"),
    "llama": functools.partial(_language, "llama", "<s>", "</s>"),
}
