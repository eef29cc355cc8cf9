"""A Hugging Face text or vision model in this process, for a GPU box without an endpoint.

One sequence is generated at a time: in a batch the padding changes the numbers, so that a verdict
would depend on its neighbours. Of the checkpoint's generation_config.json only the end tokens are
used: how a reply is drawn is the request's business alone, without repetition penalty or top_k.
Needs torch, accelerate and transformers, 4.50 or newer.
"""

from __future__ import annotations

import hashlib
import inspect
import io
import json
import os
import random
import re
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges.verdict import (
    MAX_TOKENS,
    JudgeConfig,
    ProviderError,
    Reply,
    Request,
    Token,
)


class HuggingFaceProvider:
    """One checkpoint, loaded once at the first `complete`; thread-safe.

    Args:
        config: its model is a folder, or a name on the Hub (with `revision`); `device` is auto
            (cuda, else mps, else cpu) or a torch device, and the model must fit on it; `dtype` is
            auto (the checkpoint's own) or a torch dtype such as bfloat16; `trust_remote_code` runs
            Python code that comes with the checkpoint.
    """

    def __init__(self, config: JudgeConfig) -> None:
        self.model, self._device, self._dtype = config.model, config.device, config.dtype
        self.checkpoint = Checkpoint(config.model, config.revision, config.trust_remote_code)
        self._lock = threading.Lock()
        self._identity: dict[str, Any] | None = None
        self._weights: Any = None
        self._failure = ""  # why loading failed: it is not tried again for every verdict

    @property
    def identity(self) -> Mapping[str, Any]:
        """Checkpoint (commit, or a folder's fingerprint), dtype, device type, package versions.

        Loads no weights. A folder is named without its parents: it may be mounted elsewhere.

        Raises:
            JudgeError: there is no such checkpoint.
        """
        if self._identity is None:  # once known it waits for no generation
            import torch
            import transformers

            with self._lock:
                self._identity = {
                    "provider": "huggingface",
                    "model": self.checkpoint.label,
                    "revision": self.checkpoint.version,
                    "dtype": self._dtype,
                    "device": torch.device(self._device_name()).type,
                    "transformers": str(transformers.__version__),
                    "torch": str(torch.__version__),
                }
        return self._identity

    def complete(self, request: Request, samples: Sequence[int]) -> list[Reply]:
        """The reply of the first of `samples`; greedy if the temperature is 0 or None.

        Sample i of a request is drawn after seeding with (seed or 0, i): on the same machine it is
        the same whenever and in whichever order it is asked for. A schema
        is not enforced (form `text`). Special tokens are left out of the text, reasoning markers
        stay. Log-probabilities are those of the model's own distribution, before temperature and
        top_p.

        Raises:
            ProviderError: the checkpoint cannot be used, the request does not fit it, or out of
                memory. No retry.
        """
        try:
            identity = self.identity
            with self._lock:
                self._load()
                return [self._reply(request, samples[0], identity)]
        except JudgeError as error:
            raise ProviderError(str(error)) from error

    def _device_name(self) -> str:
        import torch

        if self._device != "auto":
            return self._device
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    def _load(self) -> None:
        """Load the weights, once; what failed once fails again with the same words."""
        if self._failure:
            raise ProviderError(self._failure)
        if self._weights is not None:
            return
        try:
            self._weights = self.checkpoint.load(self._device_name(), self._dtype)
        except JudgeError as error:
            self._failure = str(error)
            raise
        except Exception as error:  # a missing shard, no memory, a package that is not there
            self._failure = f"{self.model}: cannot be loaded: {line(error)}"
            raise ProviderError(self._failure) from error

    def _reply(self, request: Request, sample: int, identity: Mapping[str, Any]) -> Reply:
        import torch

        front = self.checkpoint.front
        try:
            inputs = encode(front, request, sees=self.checkpoint.sees)
            reply = generate(self._weights, front, inputs, request, sample)
        except ProviderError as error:
            raise ProviderError(f"{self.model}: {error}") from error
        except torch.OutOfMemoryError as error:
            raise ProviderError(
                f"{self.model}: out of memory on {identity['device']}: a shorter prompt, fewer or "
                "smaller images, or a smaller judge"
            ) from error
        except Exception as error:  # a template or a kernel that refuses: counted, not a crash
            raise ProviderError(f"{self.model}: {line(error)}") from error
        return replace(reply, model=f"{identity['model']}@{identity['revision'][:19]}")


# --- a checkpoint, in a folder or on the Hub ------------------------------------------------------

# Files of a checkpoint that can change a reply; of the large ones both ends are read, no more.
_SUFFIXES = {".json", ".safetensors", ".bin", ".model", ".jinja", ".txt", ".py"}
_WHOLE, _END = 64 << 20, 1 << 20  # bytes


class Checkpoint:
    """Every property raises JudgeError, in one line, where the checkpoint cannot be used."""

    def __init__(self, name: str, revision: str | None, trust_remote_code: bool) -> None:
        self.name, self._revision, self._remote = name, revision, trust_remote_code

    @cached_property
    def folder(self) -> Path | None:
        """The local folder; None for a name on the Hub."""
        folder = Path(self.name).expanduser()
        if (folder / "config.json").is_file():
            return folder.resolve()
        if folder.is_dir():
            raise self._unusable("this folder has no config.json")
        if self.name.startswith((".", "/", "~")) or self.name.count("/") > 1:
            raise self._unusable("there is no such folder")
        return None

    @property
    def label(self) -> str:
        """The name on the Hub, or a folder's name without its parents."""
        return self.name if self.folder is None else self.folder.name

    @cached_property
    def snapshot(self) -> Path:
        """The folder, or the one that the Hub's cache keeps for a commit; fetches the config."""
        if self.folder is not None:
            return self.folder
        from huggingface_hub import constants, hf_hub_download

        try:
            config = hf_hub_download(self.name, "config.json", revision=self._revision)
        except Exception as error:  # no network, no such name, no access, no good name
            if constants.HF_HUB_OFFLINE and isinstance(error, OSError):
                raise self._unusable(
                    "not in the Hugging Face cache, and HF_HUB_OFFLINE is set: fetch it first "
                    f"(hf download {self.name}), or name a folder"
                ) from error
            raise self._unusable(line(error)) from error
        return Path(config).parent

    @cached_property
    def version(self) -> str:
        """The commit on the Hub, or a folder's fingerprint."""
        return self.snapshot.name if self.folder is None else fingerprint(self.folder)

    @cached_property
    def config(self) -> Any:
        """The model's config."""
        from transformers import AutoConfig

        name, options = self._source()
        try:
            return AutoConfig.from_pretrained(name, **options)
        except Exception as error:  # OSError, ValueError, and what a checkpoint's code raises
            raise self._unusable(f"no config: {line(error)}") from error

    @cached_property
    def sees(self) -> bool:
        """Whether the model takes images: by the type of its config, not by its name."""
        from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

        config = self.config
        own_code = getattr(config, "auto_map", None) or {}
        for sees, mapping, auto in (
            (True, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING, "AutoModelForImageTextToText"),
            (False, MODEL_FOR_CAUSAL_LM_MAPPING, "AutoModelForCausalLM"),
        ):
            if type(config) in mapping or auto in own_code:
                return sees
        raise self._unusable(f"a {config.model_type} model writes no replies")

    @cached_property
    def front(self) -> Any:
        """The tokenizer, or the processor of a model that sees; it has a chat template."""
        from transformers import AutoProcessor, AutoTokenizer

        cls, kind = (AutoProcessor, "processor") if self.sees else (AutoTokenizer, "tokenizer")
        name, options = self._source()
        try:
            front = cls.from_pretrained(name, **options)
        except Exception as error:  # as for the config
            raise self._unusable(f"no {kind}: {line(error)}") from error
        parts = (front, getattr(front, "tokenizer", None))
        if not any(getattr(part, "chat_template", None) for part in parts):
            raise self._unusable("no chat template: name an instruction-tuned model")
        return front

    def check(self) -> None:
        """Find before a run what can be found without reading the weights.

        Raises:
            JudgeError: the folder or, under HF_HUB_OFFLINE=1, the copy in the Hub's cache is not
                there or lacks weights; the checkpoint has no chat template or no language model.
        """
        from huggingface_hub import constants

        _ = self.front
        local = self.folder is not None or constants.HF_HUB_OFFLINE
        if local and (missing := _missing_weights(self.snapshot)):
            raise self._unusable(f"{self.snapshot} lacks {missing}")

    def load(self, device: str, dtype: str) -> Any:
        """The model on a device, in evaluation mode; of its generation config only the ends stay.

        Raises:
            JudgeError: as the properties.
            Exception: whatever transformers raises for weights that cannot be loaded.
        """
        import transformers

        name, options = self._source()
        version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
        options["dtype" if version >= (4, 56) else "torch_dtype"] = dtype
        auto = "AutoModelForImageTextToText" if self.sees else "AutoModelForCausalLM"
        # A map of one device places quantised weights too, which cannot be moved afterwards.
        model = getattr(transformers, auto).from_pretrained(
            name, device_map={"": device}, **options
        )
        model.eval()
        tokenizer = getattr(self.front, "tokenizer", self.front)
        saved = model.generation_config.eos_token_id
        # Some checkpoints name only the end of a document there, not the end of a turn.
        ends = {*(saved if isinstance(saved, list) else [saved]), tokenizer.eos_token_id} - {None}
        pad = tokenizer.pad_token_id
        model.generation_config = transformers.GenerationConfig(
            bos_token_id=model.generation_config.bos_token_id,
            eos_token_id=sorted(ends) or None,
            pad_token_id=min(ends, default=None) if pad is None else pad,
        )
        return model

    def _source(self) -> tuple[str, dict[str, Any]]:
        """First argument and keywords of every `from_pretrained`; all parts are of one commit."""
        pinned = {"revision": self.version} if self.folder is None else {}
        return str(self.folder or self.name), {"trust_remote_code": self._remote, **pinned}

    def _unusable(self, reason: str) -> JudgeError:
        return JudgeError(f"the judge {self.name}: {reason}")


def fingerprint(folder: Path) -> str:
    """What identifies a local checkpoint: `sha256:` and 64 digits.

    Covers names and sizes of the files that can change a reply, and their content; of files over
    64 MiB the first and the last MiB alone, so that it takes seconds at most. Weights changed only
    in between, at the same size, are not noticed.
    """
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix not in _SUFFIXES or not file.is_file():
            continue
        size = file.stat().st_size
        digest.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(_END if size > _WHOLE else -1))
            if size > _WHOLE:
                stream.seek(-_END, os.SEEK_END)
                digest.update(stream.read())
    return f"sha256:{digest.hexdigest()}"


def line(error: Exception) -> str:
    """An exception in one line, cut to a readable length."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:300]


def _missing_weights(folder: Path) -> str:
    """What a checkpoint's folder lacks, in words; empty if its weights are there."""
    for index in sorted(folder.glob("*.index.json")):
        try:
            shards = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return f"a readable {index.name}"
        absent = sum(not (folder / shard).is_file() for shard in shards)
        return f"{absent} of its {len(shards)} weight files" if absent else ""
    found = [*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")]
    return "" if any(file.is_file() for file in found) else "weights (model.safetensors)"


# --- one reply ------------------------------------------------------------------------------------

_MARKERS = {"<think>", "</think>"}  # stay in the text: the reader drops what is between them


def encode(front: Any, request: Request, *, sees: bool) -> dict[str, Any]:
    """The model's inputs for a request, through the checkpoint's own chat template.

    The tokenizer's special tokens inside a message's text are split by a space after the first
    character, whichever they are: text cannot end a turn or stand for an image. Where the template
    refuses or drops a system message, its text opens the first message after it.

    Raises:
        ProviderError: an image for a model that takes none.
    """
    tokenizer = getattr(front, "tokenizer", front)
    specials = sorted((text for text in _specials(tokenizer).values() if len(text) > 1), key=len)
    special = re.compile("|".join(map(re.escape, reversed(specials))) or "(?!)")
    messages = [
        {
            "role": message["role"],
            "content": [_part(part, special, sees) for part in _parts(message)],
        }
        for message in request.messages
    ]
    options: dict[str, Any] = {"add_generation_prompt": True}
    if request.sampling.reasoning_effort is not None:
        options["reasoning_effort"] = request.sampling.reasoning_effort  # for templates that ask
    if not getattr(front, "chat_template", None):
        options["chat_template"] = tokenizer.chat_template
    refused = messages[0]["role"] == "system" and not _keeps_system(
        front, _shaped(messages, sees), options
    )
    if refused and len(messages) > 1:
        system, first, *rest = messages
        opening = [_text(part["text"] + "\n") for part in system["content"]]
        messages = [first | {"content": [*opening, *first["content"]]}, *rest]
    encoded = front.apply_chat_template(
        _shaped(messages, sees), tokenize=True, return_dict=True, return_tensors="pt", **options
    )
    return dict(encoded)


def generate(
    model: Any, front: Any, inputs: Mapping[str, Any], request: Request, sample: int
) -> Reply:
    """Draw one sample; the context's end cuts a reply like its token limit does.

    The random state of the process, from which other threads draw, is what it was afterwards.

    Raises:
        ProviderError: the prompt leaves no room in the context.
    """
    import torch

    tokenizer, sampling = getattr(front, "tokenizer", front), request.sampling
    length, wanted = inputs["input_ids"].shape[1], sampling.max_tokens or MAX_TOKENS
    context = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    room = wanted if context is None else context - length
    if room < 1:
        raise ProviderError(f"a prompt of {length} tokens, for a context of {context}")
    # Some tokenizers make token types for models that have none.
    unknown = {"token_type_ids"} - inspect.signature(model.forward).parameters.keys()
    moved = {
        name: value.to(model.device, model.dtype if value.is_floating_point() else value.dtype)
        for name, value in inputs.items()
        if name not in unknown
    }
    drawn: dict[str, Any] = {"do_sample": bool(sampling.temperature)}
    if sampling.temperature:
        drawn |= {"temperature": sampling.temperature, "top_p": sampling.top_p or 1.0, "top_k": 0}
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices), torch.inference_mode():
        torch.manual_seed(random.Random(f"{sampling.seed or 0}/{sample}").getrandbits(63))
        made = model.generate(
            **moved,
            **drawn,
            max_new_tokens=min(wanted, room),
            return_dict_in_generate=True,
            output_logits=bool(request.top_logprobs),
        )
    ids = made.sequences[0, length:].tolist()
    ends = model.generation_config.eos_token_id or []
    hidden = {id_ for id_, text in _specials(tokenizer).items() if text not in _MARKERS}.union(ends)
    shown = [place for place, id_ in enumerate(ids) if id_ not in hidden]
    kept = [ids[place] for place in shown]
    tokens = None
    if request.top_logprobs:
        rows = [torch.log_softmax(made.logits[place][0].float(), -1) for place in shown]
        tokens = tuple(_tokens(tokenizer, kept, rows, request.top_logprobs))
    return Reply(
        text=_decode(tokenizer, kept),
        finish="stop" if ids[-1] in ends else "length",
        form="text",
        prompt_tokens=length,
        completion_tokens=len(ids),
        tokens=tokens,
    )


def _tokens(
    tokenizer: Any, ids: Sequence[int], rows: Sequence[Any], number: int
) -> Iterator[Token]:
    """Texts of tokens in their context, such that they concatenate to the reply's text.

    A character that several tokens make up is the last one's text, the others' is empty.

    Args:
        tokenizer: of the model.
        ids: the reply's.
        rows: log-probabilities (vocabulary,) at each one's place.
        number: of the most probable tokens to list there.
    """
    begin = done = 0  # the tokens from `begin` to `done` are context: they decide about spaces
    for index, (id_, row) in enumerate(zip(ids, rows, strict=True)):
        known = len(_decode(tokenizer, ids[begin:done]))
        pending = ids[begin:index]
        text = _decode(tokenizer, [*pending, id_])[known:]
        # A character has at most four bytes: what is not whole by then will never be.
        whole = not text.endswith("\ufffd") or index - done >= 3 or index == len(ids) - 1
        text = text if whole else ""
        values, others = (found.tolist() for found in row.topk(min(number, len(row))))
        texts = {other: _decode(tokenizer, [*pending, other])[known:] for other in others}
        texts[id_] = text
        listed = tuple((texts[other], value) for other, value in zip(others, values, strict=True))
        yield Token(text, row[id_].item(), listed)
        if whole:
            begin, done = done, index + 1


def _decode(tokenizer: Any, ids: Sequence[int]) -> str:
    return str(tokenizer.decode(ids, clean_up_tokenization_spaces=False))


def _specials(tokenizer: Any) -> dict[int, str]:
    """Special tokens by id; words that a checkpoint merely added to its vocabulary are none."""
    named = zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=True)
    added = tokenizer.added_tokens_decoder.items()
    return dict(named) | {id_: token.content for id_, token in added if token.special}


def _parts(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message["content"]
    return [_text(content)] if isinstance(content, str) else content


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _part(part: Mapping[str, Any], special: re.Pattern[str], sees: bool) -> dict[str, Any]:
    from PIL import Image

    if part["type"] == "text":
        return _text(special.sub(lambda match: f"{match[0][0]} {match[0][1:]}", part["text"]))
    if not sees:
        raise ProviderError("a text model, takes no images")
    data = part["image_url"]["url"].partition(",")[2]
    return {"type": "image", "image": Image.open(io.BytesIO(b64decode(data))).convert("RGB")}


def _shaped(messages: list[dict[str, Any]], sees: bool) -> list[dict[str, Any]]:
    """Messages as templates take them: parts where there may be images, otherwise strings."""
    if sees:
        return messages
    return [
        message | {"content": "\n".join(part["text"] for part in message["content"])}
        for message in messages
    ]


def _keeps_system(front: Any, messages: list[dict[str, Any]], options: dict[str, Any]) -> bool:
    """Whether the rendered prompt shows the whole text of the system message."""
    from jinja2 import TemplateError

    try:
        prompt = front.apply_chat_template(messages, tokenize=False, **options)
    except TemplateError:
        return False
    content = messages[0]["content"]
    texts = [content] if isinstance(content, str) else [part["text"] for part in content]
    return all(text.strip() in prompt for text in texts)
