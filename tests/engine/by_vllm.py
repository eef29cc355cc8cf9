"""`tasks_vllm` on a real engine: prompts, pixels and greedy replies are those of transformers.

Greedy replies of random weights differ with the least difference of what a model is given. Beside
the replies that are equal, figures say how far below transformers' best token vLLM's lies at most.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
from transformers import GenerationConfig, RepetitionPenaltyLogitsProcessor

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import plugin, positions
from lmms_eval_tasks.models import tiny
from lmms_eval_tasks.utils.replies import refusals
from tests.engine import checkpoints, figures

SMALL = {"min_pixels": 12544, "max_pixels": 25088}
ENGINE = {"max_model_len": 16384, "enforce_eager": True, "dtype": "float32"}
COMPARED = 6  # requests of a task, by transformers
PENALTY = 1.2  # of the checkpoint's generation_config.json; Qwen2.5-VL's is 1.05
# Logits between two tokens that rounding may swap; pixels normalised with other values make it 0.2,
# wrong positions 8.
NEAR = 0.01


class Family(NamedTuple):
    """A kind of tiny checkpoint, its class in transformers, and docs of each task."""

    kind: str
    model: str
    tasks: list[str]
    limit: int


FAMILIES = [
    Family("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", ["maia_vsv", "haven_v2t"], 192),
    Family("qwen3_vl", "Qwen3VLForConditionalGeneration", ["maia_vsv"], 8),
    Family("qwen2_5_omni", "Qwen2_5OmniThinkerForConditionalGeneration", ["maverix_av"], 2),
]


class Request(NamedTuple):
    """What our class gave the engine, what vLLM's processor made of it, and what was said."""

    prompt: dict[str, Any]
    media: dict[str, Any]  # by modality; empty where vLLM kept it of an earlier request
    answer: Any


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """All requests that an engine answers from here on."""
    from vllm import LLM
    from vllm.v1.engine.llm_engine import LLMEngine

    seen: list[Request] = []
    given: dict[str, list[Any]] = {}
    last: list[Any] = []
    plain = {name: getattr(LLMEngine, name) for name in ("add_request", "step")}
    enqueue = LLM.enqueue

    def add_request(self: Any, name: str, prompt: Any, *args: Any, **more: Any) -> Any:
        given[name] = [last[0], prompt]
        return plain["add_request"](self, name, prompt, *args, **more)

    def add(self: Any, prompt: Any, *args: Any, **more: Any) -> Any:
        last[:] = [prompt]
        return enqueue(self, prompt, *args, **more)

    def step(self: Any) -> Any:
        found = plain["step"](self)
        for output in found:
            if output.finished:
                prompt, made = given.pop(output.request_id)
                seen.append(Request(prompt, made.get("mm_kwargs", {}), output))
        return found

    monkeypatch.setattr(LLM, "enqueue", add)
    monkeypatch.setattr(LLMEngine, "add_request", add_request)
    monkeypatch.setattr(LLMEngine, "step", step)
    return seen


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_a_run_is_what_transformers_makes_of_it(
    family: Family,
    requests: list[Request],
    on_sample: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(settings.FRESH, "1")
    monkeypatch.setenv(settings.JUDGE, "none")
    plugin.install()
    from lmms_eval.evaluator import simple_evaluate

    checkpoints.add()
    folder = tiny.build_checkpoint(family.kind, tmp_path / family.kind)
    generation = GenerationConfig.from_pretrained(folder)
    generation.repetition_penalty = PENALTY
    generation.save_pretrained(folder)
    arguments = ",".join(f"{k}={v}" for k, v in {"pretrained": folder, **ENGINE, **SMALL}.items())
    results = simple_evaluate(
        model="tasks_vllm",
        model_args=arguments,
        tasks=family.tasks,
        limit=family.limit,
        gen_kwargs="max_new_tokens=8",
        verbosity="ERROR",
    )
    for task in family.tasks:
        arrived = [one["failed"]["arrived"] for one in results["samples"][task]]
        assert all(one["frames"] or one["pictures"] for one in arrived)
        replies = [one["filtered_resps"][0] for one in results["samples"][task]]
        assert not any(map(refusals.is_model_error, replies))
    assert len(requests) == sum(len(results["samples"][task]) for task in family.tasks)
    answered = results["lmms_eval_tasks"]["answered"]
    asked = sum(len(one.answer.prompt_token_ids) for one in requests)
    cached = sum(one.answer.num_cached_tokens or 0 for one in requests)
    compared = with_media(requests)
    with positions.right(SimpleNamespace(model=(model := loaded(family, folder)))):
        equal, below = against_transformers(model, folder, compared)
    installed, far = against_transformers(model, folder, compared)
    figures.write(
        f"| {family.kind} | {', '.join(family.tasks)} | {len(requests)} | {cached / asked:.1%} | "
        f"{equal} of {len(compared)}, {below:.3f} | {installed} of {len(compared)}, {far:.3f} | "
        f"{answered['seconds'] / answered['replies']:.3f} |"
    )
    assert below < NEAR
    # Where the installed rule is right nothing was put in place.
    assert (far > NEAR) == (family.kind == "qwen2_5_vl")


def with_media(requests: list[Request]) -> list[Request]:
    """Some of each kind: the first whose media vLLM processed, and others that it had."""
    chosen: list[Request] = []
    for kind in {frozenset(one.prompt.get("multi_modal_data", ())) for one in requests}:
        own = [one for one in requests if frozenset(one.prompt["multi_modal_data"]) == kind]
        chosen += own[:: max(1, len(own) // COMPARED)][:COMPARED]
    return chosen


def loaded(family: Family, folder: Path) -> Any:
    """The checkpoint in transformers."""
    import transformers

    return getattr(transformers, family.model).from_pretrained(folder, dtype=torch.float32)


def against_transformers(model: Any, folder: Path, compared: list[Request]) -> tuple[int, float]:
    """Replies that are equal, and how far below the best token (logits) one of vLLM's is at most.

    Prompt tokens, pixels and sound are held to be equal.
    """
    from transformers import AutoProcessor

    processor, equal, below = AutoProcessor.from_pretrained(folder), 0, 0.0
    for one in compared:
        inputs = processed(processor, one.prompt)
        assert inputs["input_ids"][0].tolist() == list(one.answer.prompt_token_ids)
        whole = processed(processor, one.prompt, do_rescale=False, do_normalize=False)
        for name, value in media_of(one).items():
            # Of some families vLLM hands the GPU whole numbers, which its model makes small.
            own = whole if value.dtype == torch.uint8 else inputs
            assert torch.equal(own[name].reshape(value.shape), value), name
        said = list(one.answer.outputs[0].token_ids)
        logits = logits_of(model, inputs, said)
        equal += logits.argmax(-1).tolist() == said
        gaps = logits.max(-1).values - logits[range(len(said)), said]
        below = max(below, float(gaps.max()))
    return equal, below


def logits_of(model: Any, inputs: Any, reply: list[int]) -> torch.Tensor:
    """The penalised logits of each token of a reply that the model is made to write.

    [tokens, vocabulary].
    """
    length = inputs["input_ids"].shape[1]
    made = model.generate(
        **inputs,
        max_new_tokens=len(reply),
        do_sample=False,
        prefix_allowed_tokens_fn=lambda _, ids: [reply[len(ids) - length]],
        output_logits=True,
        return_dict_in_generate=True,
    )
    penalised = RepetitionPenaltyLogitsProcessor(PENALTY)
    tokens = torch.cat([inputs["input_ids"], torch.tensor([reply])], dim=1)
    steps = [penalised(tokens[:, : length + n], one) for n, one in enumerate(made.logits)]
    return torch.cat(steps)


def processed(processor: Any, prompt: dict[str, Any], **pixels: bool) -> Any:
    """What a checkpoint's own processor makes of a prompt and its media."""
    media = prompt["multi_modal_data"]
    sizes = {"shortest_edge": SMALL["min_pixels"], "longest_edge": SMALL["max_pixels"]}
    shown: dict[str, Any] = {}
    if videos := media.get("video"):
        known = [{k: v for k, v in one.items() if k != "do_sample_frames"} for _, one in videos]
        how = {"size": sizes, "do_sample_frames": False, "video_metadata": known, **pixels}
        how |= prompt.get("mm_processor_kwargs", {})
        shown |= {"videos": [pixels for pixels, _ in videos], "videos_kwargs": how}
    if pictures := media.get("image"):
        shown |= {"images": pictures, "images_kwargs": {"size": sizes, **pixels}}
    if sounds := media.get("audio"):
        shown |= {"audio": [samples for samples, _ in sounds]}
    return processor(text=[prompt["prompt"]], **shown, return_tensors="pt")


def media_of(request: Request) -> dict[str, torch.Tensor]:
    """Pixels that vLLM's processor made, by their name in transformers."""
    found: dict[str, list[torch.Tensor]] = {}
    for items in request.media.values():
        for item in items:
            for name, field in (item or {}).items():
                if name.startswith("pixel_values"):
                    found.setdefault(name, []).append(field.data)
    return {name: torch.cat(parts) for name, parts in found.items()}
