"""vLLM 0.33 as far as `tasks_vllm` calls it: its signatures and its checks, and no model.

Names, order, kinds and defaults of arguments are those of `vllm/entrypoints/llm.py`,
`vllm/sampling_params.py` and `vllm/inputs/llm.py`; engine_arguments.txt has the fields of
`EngineArgs`. A video item is taken as `vllm/multimodal/parse.py` and `models/qwen2_5_vl.py` take
it. What an engine was given is kept in `LLM.made`, and written to the folder STUB_VLLM if there is
one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

__version__ = "0.33.0"

_ENGINE = (Path(__file__).parents[1] / "engine_arguments.txt").read_text().split()
_PROMPT = {
    *("prompt", "multi_modal_data", "media_io_kwargs", "mm_processor_kwargs"),
    *("multi_modal_uuids", "cache_salt"),
}
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT")
MARKS = {"image": "<image>", "video": "<video>", "audio": "<audio>"}  # in the test's chat template


class VLLMValidationError(Exception):
    """A request that is refused."""


class SamplingParams:
    """How tokens are drawn."""

    def __init__(
        self,
        n: int = 1,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repetition_penalty: float = 1.0,
        temperature: float = 1.0,
        watermarking: bool | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        seed: int | None = None,
        stop: str | list[str] | None = None,
        stop_token_ids: list[int] | None = None,
        ignore_eos: bool = False,
        max_tokens: int | None = 16,
        min_tokens: int = 0,
    ) -> None:
        self.given = {name: value for name, value in locals().items() if name != "self"}
        for wrong in (
            not 0 <= temperature <= 2,
            not 0 < top_p <= 1,
            top_k < -1 or not isinstance(top_k, int),
            max_tokens is not None and max_tokens < 1,
            any(not one for one in [stop] if isinstance(stop, str)),
            any(not one for one in stop or ()),
        ):
            if wrong:
                raise VLLMValidationError(f"sampling parameters: {self.given}")


class LLM:
    """An engine that answers every prompt with A, and refuses what vLLM refuses."""

    made: ClassVar[list[LLM]] = []

    def __init__(
        self,
        model: str,
        *,
        runner: Any = "auto",
        convert: Any = "auto",
        tokenizer: str | None = None,
        tokenizer_mode: Any = "auto",
        skip_tokenizer_init: bool = False,
        trust_remote_code: bool = False,
        allowed_local_media_path: str = "",
        allowed_media_domains: list[str] | None = None,
        tensor_parallel_size: int = 1,
        dtype: Any = "auto",
        quantization: Any = None,
        revision: str | None = None,
        tokenizer_revision: str | None = None,
        chat_template: Any = None,
        seed: int = 0,
        gpu_memory_utilization: float = 0.92,
        enforce_eager: bool = False,
        hf_overrides: Any = None,
        mm_processor_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if unknown := [name for name in kwargs if name not in _ENGINE]:
            raise TypeError(f"EngineArgs.__init__() got an unexpected keyword argument {unknown}")
        named = {k: v for k, v in locals().items() if k not in ("self", "kwargs", "unknown")}
        environment = {k: os.environ.get(k) for k in _ENVIRONMENT}
        self.given = {**named, **kwargs, "environment": environment}
        self.most = kwargs.get("max_model_len", 10**9)
        self.waiting: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        LLM.made.append(self)
        self._write(f"engine-{os.environ.get('RANK', '0')}.json", self.given)

    def enqueue(
        self,
        prompts: Any,
        sampling_params: SamplingParams | list[SamplingParams] | None = None,
        lora_request: Any = None,
        priority: Any = None,
        use_tqdm: Any = True,
        tokenization_kwargs: dict[str, Any] | None = None,
        mm_processor_kwargs: dict[str, Any] | None = None,
    ) -> list[str]:
        """Add prompts; none is, if one is refused."""
        added = [prompts] if isinstance(prompts, dict) else list(prompts)
        assert isinstance(sampling_params, SamplingParams)
        for prompt in added:
            self._check(prompt)
        for prompt in added:
            told = {"tokenization": tokenization_kwargs, "params": sampling_params.given}
            self.waiting.append({**prompt, **told})
        return [f"{len(self.asked) + number}-0a1b2c3d" for number in range(len(added))]

    def wait_for_completion(self, output_type: Any = None, *, use_tqdm: Any = True) -> list[Any]:
        """What all that were added say, in their order."""
        first = len(self.asked)
        self.asked += self.waiting
        self.waiting = []
        for number, one in enumerate(self.asked[first:], first):
            self._keep(number, one)
        return [self.answer(one) for one in self.asked[first:]]

    def answer(self, asked: dict[str, Any]) -> Any:
        """A RequestOutput."""
        done = SimpleNamespace(index=0, text="A", token_ids=[7, 8], finish_reason="stop")
        return SimpleNamespace(prompt_token_ids=asked["prompt"].split(), outputs=[done])

    def _check(self, prompt: dict[str, Any]) -> None:
        if unknown := set(prompt) - _PROMPT:
            raise TypeError(f"no part of a TextPrompt: {unknown}")
        items = prompt.get("multi_modal_data", {})
        if unknown := set(items) - set(MARKS):
            raise ValueError(f"Unsupported modality: {unknown}")
        for kind, mark in MARKS.items():
            if prompt["prompt"].count(mark) != len(items.get(kind, [])):
                raise ValueError(f"{len(items.get(kind, []))} items of {kind}, other placeholders")
        if len(prompt["prompt"]) > self.most:
            raise VLLMValidationError(
                f"The prompt is longer than the maximum model length of {self.most}."
            )
        for video in items.get("video", []):
            _check_video(*video)
        for samples, rate in items.get("audio", []):
            assert samples.ndim == 1
            assert samples.dtype == np.float32
            assert rate > 0

    def _keep(self, number: int, asked: dict[str, Any]) -> None:
        items = asked.get("multi_modal_data", {})
        arrays = {f"video{n}": one for n, (one, _) in enumerate(items.get("video", []))}
        arrays |= {f"image{n}": np.asarray(one) for n, one in enumerate(items.get("image", []))}
        arrays |= {f"audio{n}": one for n, (one, _) in enumerate(items.get("audio", []))}
        told = {k: v for k, v in asked.items() if k != "multi_modal_data"}
        told["metadata"] = [one for _, one in items.get("video", [])]
        told["rates"] = [rate for _, rate in items.get("audio", [])]
        self._write(f"{len(LLM.made)}-{number}.json", told)
        if folder := os.environ.get("STUB_VLLM"):
            np.savez(Path(folder, f"{len(LLM.made)}-{number}.npz"), **arrays)

    def _write(self, name: str, told: Any) -> None:
        if folder := os.environ.get("STUB_VLLM"):
            Path(folder, name).write_text(json.dumps(told))


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
