"""A Hugging Face checkpoint, in a folder or on the Hub: which one, whether usable, its parts.

Everything but `load` leaves the weights alone. Not thread-safe: the provider holds a lock.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from lmms_eval_tasks.errors import JudgeError

# Files of a checkpoint that can change a reply; of the large ones both ends are read, no more.
_SUFFIXES = {".json", ".safetensors", ".bin", ".model", ".jinja", ".txt", ".py"}
_WHOLE, _END = 64 << 20, 1 << 20  # bytes


class Checkpoint:
    """Every property raises JudgeError, in one line, where the checkpoint cannot be used.

    Args:
        name: a folder, or a name on the Hub.
        revision: branch, tag or commit on the Hub; not for folders.
        trust_remote_code: run Python code that comes with the checkpoint.
    """

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
        """Find what can be found without reading the weights, their absence included."""
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
