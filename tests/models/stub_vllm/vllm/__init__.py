"""vLLM 0.33 as far as `tasks_vllm` calls it: its names and its checks, and no model.

Arguments are those of `vllm/sampling_params.py`, of `enqueue` in `vllm/entrypoints/llm.py` and of
`EngineArgs` (engine_arguments.txt), a prompt's keys those of `vllm/inputs/llm.py`. A video item is
taken as `vllm/multimodal/parse.py` and `models/qwen2_5_vl.py` take it. What an engine was given is
kept in `LLM.made`. It answers the last prompt first, may be called by one thread at a time, and
waits for ever once its process was killed.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

_ENGINE = (Path(__file__).parents[1] / "engine_arguments.txt").read_text().split()
_PROMPT = {
    *("prompt", "multi_modal_data", "media_io_kwargs", "mm_processor_kwargs"),
    *("multi_modal_uuids", "cache_salt"),
}
MARKS = {"image": "<image>", "video": "<video>", "audio": "<audio>"}  # in the test's chat template


class VLLMValidationError(Exception):
    """A request that is refused."""


class SamplingParams:
    """How tokens are drawn."""

    def __init__(
        self,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        seed: int | None = None,
        stop: list[str] | None = None,
        max_tokens: int | None = 16,
    ) -> None:
        self.given = {name: value for name, value in locals().items() if name != "self"}
        self.repetition_penalty = repetition_penalty
        right = 0 <= temperature <= 2 and 0 < top_p <= 1 and top_k >= -1 and all(stop or ())
        if not right or (max_tokens is not None and max_tokens < 1):
            raise VLLMValidationError(f"sampling parameters: {self.given}")


class LLM:
    """An engine that answers every prompt with A, and refuses what vLLM refuses."""

    made: ClassVar[list[LLM]] = []
    has_process: ClassVar[bool] = False  # of its own, as the real one, which computes there

    def __init__(self, **given: Any) -> None:
        if unknown := [name for name in given if name not in _ENGINE]:
            raise TypeError(f"EngineArgs.__init__() got an unexpected keyword argument {unknown}")
        self.given = given
        self.waiting: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.llm_engine = self.engine_core = self  # of which `step` and `shutdown` are used
        self.ended = False
        self._lock = threading.Lock()
        self._process = multiprocessing.get_context("fork").Process(
            target=time.sleep, args=(600,), daemon=True
        )
        if self.has_process:
            self._process.start()
        LLM.made.append(self)

    def get_default_sampling_params(self) -> SamplingParams:
        """Those of the checkpoint's generation_config.json."""
        return SamplingParams(**self.given.get("override_generation_config", {}))

    def enqueue(
        self,
        prompts: dict[str, Any],
        sampling_params: SamplingParams | None = None,
        lora_request: Any = None,
        priority: Any = None,
        use_tqdm: Any = True,
        tokenization_kwargs: dict[str, Any] | None = None,
        mm_processor_kwargs: dict[str, Any] | None = None,
    ) -> list[str]:
        """Add a prompt, unless it is refused."""
        assert isinstance(sampling_params, SamplingParams)
        with self._alone():
            self._check(prompts)
            told = {"tokenization": tokenization_kwargs, "params": sampling_params.given}
            self.asked.append({**prompts, **told})
            number = str(len(self.asked))
            self.waiting[number] = self.asked[-1]
            return [f"{number}-0a1b2c3d"]

    def step(self) -> list[Any]:
        """Outputs of requests: the first goes on, the last is done."""
        with self._alone():
            if self.has_process and not self._process.is_alive():
                threading.Event().wait()
            first = SimpleNamespace(request_id=next(iter(self.waiting)), finished=False)
            number, asked = self.waiting.popitem()
            done = self.answer(asked)
            done.request_id, done.finished = number, True
            return [first, done] if self.waiting else [done]

    def shutdown(self) -> None:
        """End the engine."""
        self.ended = True
        if self.has_process:
            self._process.kill()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        assert self._lock.acquire(blocking=False), "vLLM's LLM is not safe in threads"
        try:
            yield
        finally:
            self._lock.release()

    def answer(self, asked: dict[str, Any]) -> Any:
        """A RequestOutput."""
        done = SimpleNamespace(index=0, text="A", token_ids=[7, 8], finish_reason="stop")
        return SimpleNamespace(prompt_token_ids=asked["prompt"].split(), outputs=[done])

    def _check(self, prompt: dict[str, Any]) -> None:
        if unknown := set(prompt) - _PROMPT:
            raise TypeError(f"no part of a TextPrompt: {unknown}")
        items = prompt.get("multi_modal_data", {})
        names = prompt.get("multi_modal_uuids", {})
        assert {kind: len(known) for kind, known in names.items()} == {
            kind: len(given) for kind, given in items.items()
        }
        if unknown := set(items) - set(MARKS):
            raise ValueError(f"Unsupported modality: {unknown}")
        for kind, mark in MARKS.items():
            if prompt["prompt"].count(mark) != len(items.get(kind, [])):
                raise ValueError(f"{len(items.get(kind, []))} items of {kind}, other placeholders")
        most = self.given.get("max_model_len", 10**9)
        if len(prompt["prompt"]) > most:
            raise VLLMValidationError(f"longer than the maximum model length of {most}.")
        for video in items.get("video", []):
            _check_video(*video)
        for samples, rate in items.get("audio", []):
            assert samples.ndim == 1
            assert samples.dtype == np.float32
            assert rate > 0


def _check_video(pixels: Any, metadata: dict[str, Any]) -> None:
    """As vLLM makes transformers' class of it; frames that are not to be sampled again."""
    from transformers.video_utils import VideoMetadata

    plain = {name: value for name, value in metadata.items() if name != "do_sample_frames"}
    known = VideoMetadata(**plain)
    assert metadata["do_sample_frames"] is False
    assert pixels.ndim == 4
    assert pixels.shape[3] == 3
    assert pixels.dtype == np.uint8
    assert len(known.frames_indices or ()) == len(pixels)
