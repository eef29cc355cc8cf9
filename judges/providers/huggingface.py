"""A Hugging Face text or vision model in this process, for a GPU machine without an endpoint.

Sequences are generated one at a time: in a batch, padding changes the numbers, so that a verdict
would depend on its neighbours. Of the checkpoint's generation_config.json only the end tokens are
used: sampling follows the request alone, without repetition penalty or top_k. Errors of a
checkpoint are in transformers' words.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import os
import random
import re
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import JudgeConfig
from lmms_eval_tasks.judges.providers.exchange import (
    LENGTH,
    STOP,
    JudgeReply,
    ProviderError,
    Request,
    Token,
)
from lmms_eval_tasks.judges.verdict import MAX_TOKENS
from lmms_eval_tasks.utils.json_files import Json, JsonObject

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

    # A text model's, or a vision model's.
    Front: TypeAlias = PreTrainedTokenizerBase | ProcessorMixin

_AUTO = {True: "AutoModelForImageTextToText", False: "AutoModelForCausalLM"}  # by `sees`
# Endings of a checkpoint's files that can change a reply.
_SUFFIXES = {".json", ".safetensors", ".bin", ".model", ".jinja", ".txt", ".py"}
_MARKERS = {"<think>", "</think>"}  # stay in the text: the reader removes the text between them


class HuggingFaceProvider:
    """A checkpoint, a folder or a name on the Hub, on one device; thread-safe.

    It is loaded at the first `complete`. Every property raises JudgeError, in one line, if the
    checkpoint cannot be used.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        folder = Path(config.model).expanduser()
        self._folder = folder.resolve() if folder.is_dir() else None
        self._lock = threading.Lock()
        self._weights: PreTrainedModel | None = None
        self._failure = ""  # the reason why loading failed

    @cached_property
    def identity(self) -> Mapping[str, str]:
        """Checkpoint, dtype, device type, package versions; loads no weights."""
        import torch
        import transformers

        return {
            "provider": "huggingface",
            # Only the folder's name: it may be mounted elsewhere.
            "model": self._folder.name if self._folder else self._config.model,
            "revision": self._revision,
            "dtype": self._config.dtype,
            "device": torch.device(self._device).type,
            "transformers": str(transformers.__version__),
            "torch": str(torch.__version__),
        }

    def complete(self, request: Request, samples: Sequence[int]) -> list[JudgeReply]:
        """Return the reply for the first of `samples`; greedy if the temperature is 0 or None.

        Sample i of a request is drawn after seeding with (seed or 0, i): on the same machine it is
        the same in any order of requests. A schema is not enforced. Log-probabilities are the
        model's, before temperature and top_p.

        Raises:
            ProviderError: the checkpoint, or the request to it, cannot be used; without retry.
        """
        with self._lock:
            if self._weights is None and not self._failure:
                try:
                    self._weights = self._loaded()
                # Remembered, so that loading is not tried again for every verdict.
                except JudgeError as error:
                    self._failure = str(error)
            if self._failure:
                raise ProviderError(self._failure)
            try:
                inputs = encode(self.front, request, sees=self.sees)
                reply = generate(self._weights, self.front, inputs, request, samples[0])
                name = f"{self.identity['model']}@{self._revision[:19]}"
                return [replace(reply, model=name)]
            # A template or a kernel that refuses: a failure, not a crash.
            except Exception as error:
                raise ProviderError(f"{self._config.model}: {_line(error)}") from error

    @property
    def _device(self) -> str:
        import torch

        best = "cuda" if torch.cuda.is_available() else "cpu"
        return best if self._config.device == "auto" else self._config.device

    @cached_property
    def _revision(self) -> str:
        """The commit on the Hub from which all parts come, or a folder's fingerprint."""
        if self._folder:
            return fingerprint(self._folder)
        from huggingface_hub import hf_hub_download

        name, revision = self._config.model, self._config.revision
        try:
            return Path(hf_hub_download(name, "config.json", revision=revision)).parent.name
        except Exception as error:  # no network, no such name, no access, no valid name
            why = f"no such folder, and not available from the Hugging Face hub: {_line(error)}"
            raise JudgeError(f"the judge {name}: {why}") from error

    @cached_property
    def sees(self) -> bool:
        """True if the model takes images: by the type of its config, not by its name."""
        from transformers import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

        config = self._part("AutoConfig")
        own_code = getattr(config, "auto_map", None) or {}
        return type(config) in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING or _AUTO[True] in own_code

    @cached_property
    def front(self) -> Front:
        """The tokenizer, or a vision model's processor; it has a chat template."""
        front = self._part("AutoProcessor" if self.sees else "AutoTokenizer")
        parts = (front, getattr(front, "tokenizer", None))
        if not any(getattr(part, "chat_template", None) for part in parts):
            name = self._config.model
            raise JudgeError(f"the judge {name}: no chat template: name an instruction-tuned model")
        return front

    def _loaded(self) -> PreTrainedModel:
        """Return the model for evaluation, with only the end tokens of its generation config."""
        import transformers

        tokenizer = getattr(self.front, "tokenizer", self.front)
        # A map with one device also places quantised weights, which cannot be moved afterwards.
        device_map = {"": self._device}
        model = self._part(_AUTO[self.sees], device_map=device_map, dtype=self._config.dtype)
        model.eval()
        saved = model.generation_config.eos_token_id
        # Some checkpoints only have the end of a document there, not the end of a turn.
        ends = {*(saved if isinstance(saved, list) else [saved]), tokenizer.eos_token_id} - {None}
        pad = tokenizer.pad_token_id
        model.generation_config = transformers.GenerationConfig(
            bos_token_id=model.generation_config.bos_token_id,
            eos_token_id=sorted(ends) or None,
            pad_token_id=min(ends, default=None) if pad is None else pad,
        )
        return model

    def _part(self, auto: str, **options: object) -> Any:
        import transformers

        options["trust_remote_code"] = self._config.trust_remote_code
        if not self._folder:
            options["revision"] = self._revision
        name = self._folder or self._config.model
        try:
            return getattr(transformers, auto).from_pretrained(name, **options)
        # OSError, ValueError, no memory, an error in a checkpoint's code.
        except Exception as error:
            raise JudgeError(f"the judge {self._config.model}: {auto}: {_line(error)}") from error


def fingerprint(folder: Path) -> str:
    """Return a local checkpoint's identity: `sha256:` and 64 digits, of names, sizes and contents.

    Only the first and the last MiB of files over 64 MiB count, so that it takes seconds: a change
    between them that keeps the size goes unnoticed.
    """
    digest, end = hashlib.sha256(), 1 << 20
    for file in sorted(folder.iterdir()):
        if file.suffix not in _SUFFIXES or not file.is_file():
            continue
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(end if size > 64 * end else -1))
            if size > 64 * end:
                stream.seek(-end, os.SEEK_END)
                digest.update(stream.read())
    return f"sha256:{digest.hexdigest()}"


def _line(error: Exception) -> str:
    """Return an exception in one line, cut to a readable length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


# --- one reply ------------------------------------------------------------------------------------


def encode(front: Front, request: Request, *, sees: bool) -> dict[str, Tensor]:
    """Return the model's inputs for a request, by the checkpoint's chat template.

    Special tokens inside a message's text are split by a space: so text cannot end a turn or stand
    for an image. If the template refuses or drops a system message, its text begins the next
    message.

    Raises:
        ValueError: the request has images, and the model takes none (`sees`).
    """
    from jinja2 import TemplateError
    from PIL import Image

    tokenizer = getattr(front, "tokenizer", front)
    specials = [re.escape(text) for text in _specials(tokenizer).values() if len(text) > 1]
    special = re.compile("|".join(specials) or "(?!)")
    options: dict[str, Any] = {"add_generation_prompt": True}
    if request.sampling.reasoning_effort is not None:
        # For templates with this option.
        options["reasoning_effort"] = request.sampling.reasoning_effort
    if not getattr(front, "chat_template", None):
        options["chat_template"] = tokenizer.chat_template

    def part(content: JsonObject) -> dict[str, Any]:
        if content["type"] == "text":
            text = special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", content["text"])
            return {"type": "text", "text": text}
        if not sees:
            raise ValueError("a text model takes no images")
        data = content["image_url"]["url"].partition(",")[2]
        return {"type": "image", "image": Image.open(io.BytesIO(b64decode(data))).convert("RGB")}

    def shaped(message: Mapping[str, Json], before: str = "") -> dict[str, Any]:
        """Return a message for templates: a list of parts if there may be images, else a string."""
        content = message["content"]
        given = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if before:
            given = [{"type": "text", "text": before}, *given]
        parts = [part(one) for one in given]
        return {**message, "content": parts if sees else "\n".join(one["text"] for one in parts)}

    messages = [shaped(message) for message in request.messages]
    if messages[0]["role"] == "system":
        system, first, *rest = request.messages
        try:
            prompt = front.apply_chat_template(messages, tokenize=False, **options)
        except TemplateError:
            prompt = ""
        if system["content"].strip() not in prompt:
            messages = [shaped(first, f"{system['content']}\n"), *map(shaped, rest)]
    encoded = front.apply_chat_template(
        messages, tokenize=True, return_dict=True, return_tensors="pt", **options
    )
    return dict(encoded)


def generate(
    model: PreTrainedModel,
    front: Front,
    inputs: Mapping[str, Tensor],
    request: Request,
    sample: int,
) -> JudgeReply:
    """Draw one sample; the context's end cuts a reply as its token limit does.

    The process's random state, from which other threads draw, is restored.

    Raises:
        ValueError: the prompt fills the model's context.
    """
    import torch

    tokenizer, sampling = getattr(front, "tokenizer", front), request.sampling
    length, limit = inputs["input_ids"].shape[1], sampling.max_tokens or MAX_TOKENS
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    room = limit if context is None else context - length
    if room < 1:
        raise ValueError(f"a prompt of {length} tokens, but a context of only {context}")
    # Some tokenizers return token types for models without them.
    unknown = {"token_type_ids"} - inspect.signature(model.forward).parameters.keys()
    moved = {
        name: value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        for name, value in inputs.items()
        if name not in unknown
    }
    options: dict[str, Any] = {"do_sample": bool(sampling.temperature)}
    if sampling.temperature:
        options |= {"temperature": sampling.temperature, "top_p": sampling.top_p or 1.0, "top_k": 0}
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.inference_mode():
        torch.manual_seed(random.Random(f"{sampling.seed or 0}/{sample}").getrandbits(63))
        generated = model.generate(
            **moved,
            **options,
            max_new_tokens=min(limit, room),
            return_dict_in_generate=True,
            output_logits=bool(request.top_logprobs),  # `output_scores` are after temperature
        )
    ids = generated.sequences[0, length:].tolist()
    ends = model.generation_config.eos_token_id or []
    hidden = {id_ for id_, text in _specials(tokenizer).items() if text not in _MARKERS}.union(ends)
    visible = [place for place, id_ in enumerate(ids) if id_ not in hidden]
    visible_ids = [ids[place] for place in visible]
    tokens = None
    if request.top_logprobs:
        rows = [torch.log_softmax(generated.logits[place][0].float(), -1) for place in visible]
        tokens = tuple(_tokens(tokenizer, visible_ids, rows, request.top_logprobs))
    return JudgeReply(
        text=_decode(tokenizer, visible_ids),
        finish=STOP if ids[-1] in ends else LENGTH,
        prompt_tokens=length,
        completion_tokens=len(ids),
        tokens=tokens,
    )


def _tokens(
    tokenizer: PreTrainedTokenizerBase, ids: Sequence[int], rows: Sequence[Tensor], number: int
) -> Iterator[Token]:
    """Yield the reply's tokens, whose texts concatenate to its text, with `number` alternatives.

    The alternatives are the most probable ones of each row (vocabulary,) of log-probabilities. A
    character of several tokens is the last one's text; the others' is empty.
    """
    done = 0  # characters of the text so far
    for place, (id_, row) in enumerate(zip(ids, rows, strict=True)):
        # Decide about spaces; a character has at most four bytes.
        before = ids[max(0, place - 4) : place]
        known = len(_decode(tokenizer, before).rstrip("\ufffd"))
        values, others = (found.tolist() for found in row.topk(min(number, len(row))))
        texts = {other: _decode(tokenizer, [*before, other])[known:] for other in others}
        whole = _decode(tokenizer, ids[: place + 1])
        is_part = whole.endswith("\ufffd") and place + 1 < len(ids)
        texts[id_] = "" if is_part else whole[done:]
        done += len(texts[id_])
        listed = tuple((texts[other], value) for other, value in zip(others, values, strict=True))
        yield Token(texts[id_], row[id_].item(), listed)


def _decode(tokenizer: PreTrainedTokenizerBase, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def _specials(tokenizer: PreTrainedTokenizerBase) -> dict[int, str]:
    """Return special tokens by id, without words that were merely added to the vocabulary."""
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    added = tokenizer.added_tokens_decoder.items()
    return dict(named) | {id_: token.content for id_, token in added if token.special}
