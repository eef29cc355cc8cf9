"""A Hugging Face text or vision model in this process, for a GPU box without an endpoint.

One sequence is generated at a time: in a batch the padding changes the numbers, so that a verdict
would depend on its neighbours. Of the checkpoint's generation_config.json only the end tokens are
used: how a reply is drawn is the request's business alone, without repetition penalty or top_k.
Needs torch, accelerate and transformers, 4.50 or newer.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmms_eval_tasks.errors import JudgeError
from lmms_eval_tasks.judges import generation
from lmms_eval_tasks.judges.checkpoint import Checkpoint, line
from lmms_eval_tasks.judges.exchange import ProviderError, Reply, Request


class HuggingFaceProvider:
    """One checkpoint, loaded once per process at the first `complete`; thread-safe.

    Args:
        model: a folder, or a name on the Hub.
        device: auto (cuda, else mps, else cpu) or a torch device; the model must fit on it.
        dtype: auto (the checkpoint's own) or a torch dtype such as bfloat16.
        revision: branch, tag or commit on the Hub; not for folders.
        trust_remote_code: run Python code that comes with the checkpoint.
    """

    def __init__(
        self,
        model: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        self.model, self._device, self._dtype = model, device, dtype
        self._checkpoint = Checkpoint(model, revision, trust_remote_code)
        # A lock for each process: one that was held during a fork is never released in the child.
        self._locks: dict[int, threading.RLock] = {}
        self._identity: dict[str, Any] | None = None
        self._weights: Any = None
        self._owner: int | None = None  # the process that began to load the weights
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

            with self._lock():
                self._identity = {
                    "provider": "huggingface",
                    "model": self._checkpoint.label,
                    "revision": self._checkpoint.version,
                    "dtype": self._dtype,
                    "device": torch.device(self._device_name()).type,
                    "transformers": str(transformers.__version__),
                    "torch": str(torch.__version__),
                }
        return self._identity

    @property
    def sees(self) -> bool:
        """Whether the model takes images, by its config; loads no weights.

        Raises:
            JudgeError: there is no such checkpoint, or it is no language model.
        """
        with self._lock():
            return self._checkpoint.sees

    def check(self) -> None:
        """Find before a run what can be found without loading weights.

        Raises:
            JudgeError: the folder or, under HF_HUB_OFFLINE=1, the copy in the Hub's cache is not
                there or lacks weights; the checkpoint has no chat template or no language model.
        """
        with self._lock():
            self._checkpoint.check()

    def complete(self, request: Request, samples: Sequence[int]) -> list[Reply]:
        """The reply of the first of `samples`; greedy if the temperature is 0 or None.

        Sample i of a request is drawn from a generator of its own, seeded with (seed or 0, i): on
        the same machine it is the same whenever and in whichever order it is asked for. A schema
        is not enforced (form `text`). Special tokens are left out of the text, reasoning markers
        stay. Log-probabilities are those of the model's own distribution, before temperature and
        top_p.

        Raises:
            ProviderError: the checkpoint cannot be used, the request does not fit it, out of
                memory, or this process was forked from the one that loaded the weights. No retry.
        """
        try:
            with self._lock():
                self._load()
                return [self._reply(request, samples[0])]
        except JudgeError as error:
            raise ProviderError(str(error)) from error

    def _lock(self) -> threading.RLock:
        return self._locks.setdefault(os.getpid(), threading.RLock())  # setdefault is atomic

    def _device_name(self) -> str:
        import torch

        if self._device != "auto":
            return self._device
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    def _load(self) -> None:
        """Load the weights, once; what failed once fails again with the same words."""
        if self._owner not in (None, os.getpid()):
            # CUDA cannot be used in a forked child, and OpenMP's threads on a CPU may hang there.
            raise ProviderError(
                f"{self.model}: loaded by process {self._owner} before a fork: load it in the "
                "process that asks it, or serve it behind an endpoint"
            )
        if self._failure:
            raise ProviderError(self._failure)
        if self._weights is not None:
            return
        self._owner = os.getpid()
        try:
            self._weights = self._checkpoint.load(self._device_name(), self._dtype)
        except JudgeError as error:
            self._failure = str(error)
            raise
        except Exception as error:  # a missing shard, no memory, a package that is not there
            self._failure = f"{self.model}: cannot be loaded: {line(error)}"
            raise ProviderError(self._failure) from error

    def _reply(self, request: Request, sample: int) -> Reply:
        import torch

        front, identity = self._checkpoint.front, self.identity
        try:
            inputs = generation.encode(front, request, sees=self.sees)
            reply = generation.generate(self._weights, front, inputs, request, sample)
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
