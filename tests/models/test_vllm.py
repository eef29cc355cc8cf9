"""`tasks_vllm` against the signatures of vLLM 0.33 (stub_vllm): no engine, no GPU."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.errors import MediaError, TasksError
from lmms_eval_tasks.host import plugin, task_functions
from lmms_eval_tasks.host.requests import request_runner
from lmms_eval_tasks.host.requests.pace import Pace
from lmms_eval_tasks.models import files, tiny
from lmms_eval_tasks.models.vllm import READERS, VLLM, own_gpus, sampling
from lmms_eval_tasks.report import arrivals
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils.replies import refusals
from tests.checks import refused, table
from tests.maverix import reading
from tests.media.media_files import write_video

STUB = Path(__file__).parent / "stub_vllm"
N_FRAMES = 40
QUESTIONS = 6


TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {% for part in message['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% else %}<{{ part['type'] }}>{% endif %}"
    "{% endfor %} {% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}no thoughts{% endif %}"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tokenizer whose chat template writes typed parts."""
    folder, end = str(tmp_path_factory.mktemp("checkpoint")), "<|end|>"
    tokenizer = tiny.tokenizer_of((end,), eos_token=end, pad_token=end)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("videos")
    return [str(write_video(folder / f"{n}.mp4", n_frames=N_FRAMES)) for n in range(4)]


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stub's LLM, where `import vllm` finds it."""
    monkeypatch.syspath_prepend(str(STUB))
    import vllm

    assert str(STUB) in str(vllm.__file__)
    yield vllm.LLM
    for name in [one for one in sys.modules if one.partition(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)


def model(checkpoint: str, **arguments: Any) -> Any:
    return VLLM(pretrained=checkpoint, **arguments)


def ask(lm: Any, docs: list[dict[str, Any]], **given: Any) -> list[Any]:
    """Replies to docs, each of which has the parts of its message."""
    lm.task_dict = {"t": {"test": docs}}
    turns, given = (
        lambda doc: [{"role": "user", "content": doc["parts"]}],
        {"max_new_tokens": 8, **given},
    )
    requests = [("", turns, given, number, "t", "test") for number in range(len(docs))]
    return list(lm.generate_until([SimpleNamespace(args=one) for one in requests]))


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def question(video: str, number: int) -> dict[str, Any]:
    shown = {"type": "video", "url": video}
    return {"video_path": video, "parts": [shown, text(f"q{number}")]}


# --- order ----------------------------------------------------------------------------------------


def test_questions_of_a_video_follow_each_other_and_replies_do_not_move(
    checkpoint: str, videos: list[str], engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain_answer = engine.answer

    def answer(self: Any, asked: dict[str, Any]) -> Any:  # every answer is the prompt's
        found = plain_answer(self, asked)
        found.outputs[0].text = asked["prompt"]
        return found

    monkeypatch.setattr(engine, "answer", answer)
    docs = [question(videos[n % 3], n) for n in range(3 * QUESTIONS)]
    read: Counter[str] = Counter()
    plain = files.read_frames
    monkeypatch.setattr(
        files, "read_frames", lambda path, n: (read.update([path]), plain(path, n))[1]
    )
    replies = ask(model(checkpoint, batch_size=2), docs)
    assert [reply.text for reply in replies] == [
        f"user: <video>q{n} assistant:" for n in range(3 * QUESTIONS)
    ]
    asked = [one["prompt"] for one in engine.made[-1].asked]
    assert sorted(asked) == sorted(reply.text for reply in replies)
    of_video = [int(re.findall(r"q(\d+)", one)[0]) % 3 for one in asked]
    # 2 at the best; of two in flight one may come before the other.
    assert sum(one != after for one, after in itertools.pairwise(of_video)) <= 6
    assert read == dict.fromkeys(videos[:3], 1)
    counts = replies[0].token_counts
    assert (counts.input_tokens, counts.output_tokens) == (3, 2)
    assert ask(model(checkpoint), []) == []


def test_media_are_read_while_the_engine_works_and_wait_for_it(
    checkpoint: str, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait of 30 s that ends early, unless nothing is read meanwhile."""
    read, come, seen = [], threading.Condition(), []

    def frames(path: str, most: int) -> Any:
        with come:
            read.append(path)
            come.notify_all()
        known = {"total_num_frames": 1, "fps": 1.0, "frames_indices": [0]}
        return np.zeros((1, 2, 2, 3), np.uint8), {**known, "do_sample_frames": False}

    monkeypatch.setattr(files, "read_frames", frames)
    plain = engine.step

    def step(self: Any) -> Any:
        done = len(self.asked)
        with come:
            most = min(done + READERS, 3 * READERS)
            assert come.wait_for(lambda: len(read) >= most, timeout=30)
        seen.append(len(read) - done)
        return plain(self)

    monkeypatch.setattr(engine, "step", step)
    docs = [question(f"{n}.mp4", n) for n in range(3 * READERS)]
    monkeypatch.setattr(VLLM, "_named", lambda _, kind, given: given)  # of files that are not there
    replies = ask(model(checkpoint), docs)
    assert [reply.text for reply in replies] == ["A"] * len(docs)
    assert max(seen) == READERS  # no more, while vLLM has room for all


def test_a_file_is_known_by_its_name_and_what_it_was(
    checkpoint: str, videos: list[str], engine: Any, tmp_path: Path
) -> None:
    """vLLM keeps what it made of a file by this name; a picture that is no file it hashes."""
    copy = tmp_path / "v.mp4"
    copy.write_bytes(Path(videos[0]).read_bytes())
    picture = {"type": "image", "url": Image.new("RGB", (8, 4))}

    def name(lm: Any, path: Any) -> Any:
        ask(lm, [{"parts": [picture, {"type": "video", "url": str(path)}]}])
        known = lm._engine._llm.asked[-1]["multi_modal_uuids"]
        assert known["image"] == [None]
        return known["video"][0]

    lm = model(checkpoint)
    first = name(lm, copy)
    assert first == name(lm, copy) != name(lm, videos[0])
    assert name(model(checkpoint, max_num_frames=8), copy) != first
    write_video(copy, n_frames=5)
    assert name(lm, copy) != first
    ((pixels, _),) = lm._engine._llm.asked[-1]["multi_modal_data"]["video"]
    assert len(pixels) == 5  # not what the file once held


def test_text_that_looks_like_a_token_stays_text(
    checkpoint: str, videos: list[str], engine: Any
) -> None:
    said = "He wrote <|end|>, <video> and <video_2> <image>."
    shown = [{"type": "video", "url": videos[0]}, text(said)]
    (reply,) = ask(model(checkpoint), [{"parts": shown}])
    assert reply.text == "A"
    (asked,) = engine.made[-1].asked
    assert asked["prompt"] == (
        "user: <video>He wrote < |end|>, < video> and <video_2> < image>. assistant:"
    )


def test_one_is_asked_from_many_threads_and_answered_out_of_order(
    checkpoint: str, engine: Any
) -> None:
    """As lmms-eval's requests are asked of it by us: each by itself, as many as it says."""
    lm = model(checkpoint, batch_size=8)
    assert Pace(lm, {}).in_flight == lm.requests_in_flight == 8
    docs = [{"parts": [text(f"x{number}")]} for number in range(200)]
    ask(lm, docs[:1])
    requests = [
        ("", lambda d: [{"role": "user", "content": d["parts"]}], {}, n, "t", "test")
        for n in range(200)
    ]
    lm.task_dict = {"t": {"test": docs}}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda r: lm.generate_until([SimpleNamespace(args=r)]), requests))
    assert [one.text for (one,) in found] == ["A"] * 200
    assert not any(one.name == "engine" for one in threading.enumerate())


# --- what an engine is given ----------------------------------------------------------------------


@table("most, wanted", [(0, 40), (32, 32), (40, 40), (4, 4), (99, 40)])
def test_frames(most: int, wanted: int, videos: list[str]) -> None:
    with av.open(videos[0]) as file:
        every = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
    pixels, known = files.read_frames(videos[0], most)
    places = np.linspace(0, N_FRAMES - 1, wanted).astype(int).tolist()
    assert np.array_equal(pixels, np.stack([every[place] for place in places]))
    assert known["frames_indices"] == places
    assert (known["total_num_frames"], known["do_sample_frames"]) == (N_FRAMES, False)
    assert known["fps"] == pytest.approx(25)


def test_parts_stay_where_they_stand(checkpoint: str, engine: Any, tmp_path: Path) -> None:
    first, second = (Image.new("RGB", (8, 4), colour) for colour in ("red", "blue"))
    second.save(tmp_path / "blue.png")
    parts = [text("one "), {"type": "image", "url": first}, text(" two "), text("and ")]
    parts += [{"type": "image", "url": str(tmp_path / "blue.png")}, text(" end")]
    ask(model(checkpoint), [{"parts": parts}])
    (asked,) = engine.made[-1].asked
    assert asked["prompt"] == "user: one <image> two and <image> end assistant:"
    shown = [one.getpixel((0, 0)) for one in asked["multi_modal_data"]["image"]]
    assert shown == [(255, 0, 0), (0, 0, 255)]
    assert asked["tokenization"] == {"add_special_tokens": False}
    assert "mm_processor_kwargs" not in asked


def test_models_that_look_at_no_times_are_told_the_rate(
    checkpoint: str, videos: list[str], engine: Any
) -> None:
    """Qwen's omni processors take `fps` alone, and one for all videos."""
    lm = model(checkpoint, max_num_frames=4)

    class Omni(type(lm.processor)):  # type: ignore[misc]
        pass

    lm.processor.__class__ = Omni
    ask(lm, [question(videos[0], 0)])
    assert engine.made[-1].asked[0]["mm_processor_kwargs"] == {"fps": pytest.approx(2.5)}


@table(
    "given, expected",
    [
        ({"do_sample": False, "temperature": 0.7, "top_p": 0.5}, {"temperature": 0.0}),
        ({"temperature": 0.0, "top_p": 0.0, "seed": 1}, {"temperature": 0.0}),
        ({}, {"temperature": 0.0}),
        ({"temperature": 0.7}, {"temperature": 0.7}),
        ({"do_sample": True}, {"temperature": 1.0}),
        (
            {"do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 5, "seed": 3},
            {"temperature": 0.6, "top_p": 0.9, "top_k": 5, "seed": 3},
        ),
        ({"until": "###"}, {"temperature": 0.0, "stop": ["###"]}),
        ({"until": ["", "\n\n"], "num_beams": 1}, {"temperature": 0.0, "stop": ["\n\n"]}),
        ({"repetition_penalty": 1.2}, {"temperature": 0.0, "repetition_penalty": 1.2}),
        ({"repetition_penalty": 1.0}, {"temperature": 0.0}),
        (
            {"temperature": 0.5, "seed": 3.0, "top_k": "5"},
            {"temperature": 0.5, "seed": 3, "top_k": 5},
        ),
        ({"temperature": "0", "max_new_tokens": 128.0, "seed": "x"}, {"temperature": 0.0}),
    ],
)
def test_sampling(given: dict[str, Any], expected: dict[str, Any]) -> None:
    from vllm import SamplingParams

    found = sampling({"max_new_tokens": 128, **given})
    assert found == {"max_tokens": 128, "stop": [], **expected}
    SamplingParams(**found)


@table(
    "said",
    [
        {"seed": "x"},
        {"seed": [1]},
        {"top_k": "all"},
        {"top_p": ""},
        {"temperature": "hot"},
        {"num_beams": 4},
    ],
)
def test_no_number_fails_alone(said: dict[str, Any], checkpoint: str, engine: Any) -> None:
    """vLLM takes such a seed, and its engine then answers nobody and does not end."""
    lm, docs = model(checkpoint), [{"parts": [text("x")]}]
    assert refusals.is_model_error(ask(lm, docs, **{"temperature": 0.5, **said})[0])
    assert ask(lm, docs)[0].text == "A"


@table(
    "checkpoint_says, request_says, penalty",
    [(1.05, {}, 1.05), (1.05, {"repetition_penalty": 1.0}, 1.0), (1.0, {}, 1.0)],
)
def test_a_repetition_penalty_of_the_checkpoint_counts_as_in_transformers(
    checkpoint_says: float, request_says: Any, penalty: float, checkpoint: str, engine: Any
) -> None:
    lm = model(
        checkpoint, override_generation_config={"repetition_penalty": checkpoint_says, "top_k": 1}
    )
    ask(lm, [{"parts": [text("x")]}], **request_says)
    (asked,) = engine.made[-1].asked
    assert (asked["params"]["repetition_penalty"], asked["params"]["top_k"]) == (penalty, 0)


def test_arguments(checkpoint: str, engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = {"gpu_memory_utilization": 0.9, "max_model_len": 32768, "dtype": "bfloat16"}
    limits = '{"image": 40, "video": 1}'
    lm = model(checkpoint, limit_mm_per_prompt=limits, tensor_parallel_size=2, **arguments)
    given = engine.made[-1].given
    assert {name: given[name] for name in arguments} == arguments
    assert given["limit_mm_per_prompt"] == {"image": 40, "video": 1}
    assert (given["model"], given["tensor_parallel_size"]) == (checkpoint, 2)
    assert given["enable_prefix_caching"] is True
    assert given["max_num_batched_tokens"] == 32768  # a video of so many tokens is not refused
    model(checkpoint, max_model_len="32768", max_num_batched_tokens=16384)
    assert engine.made[-1].given["max_num_batched_tokens"] == 16384
    model(checkpoint, max_model_len=8192)
    assert "max_num_batched_tokens" not in engine.made[-1].given
    assert lm.batch_size == model(checkpoint, batch_size="1").batch_size == 256
    assert model(checkpoint, batch_size=3, enable_prefix_caching=False).batch_size == 3
    assert engine.made[-1].given["enable_prefix_caching"] is False
    refused(
        TasksError,
        "does not start.*nframes.*All --model_args but max_num_frames",
        model,
        checkpoint,
        nframes=32,
    )
    refused(TasksError, "pretrained=NAME", model, "")
    refused(TasksError, "batch_size=auto", model, checkpoint, batch_size="auto")
    assert model(checkpoint, batch_size=100_000).requests_in_flight == 1024
    model(checkpoint, max_model_len="16k")
    assert "max_num_batched_tokens" not in engine.made[-1].given
    monkeypatch.delattr(engine, "enqueue")
    refused(TasksError, "newer vLLM", model, checkpoint)
    monkeypatch.setitem(sys.modules, "vllm", None)
    refused(TasksError, "requires vLLM", model, checkpoint)


@table(
    "given, expected",
    [
        ({}, None),
        (
            {"min_pixels": 200704, "max_pixels": "401408"},
            {"min_pixels": 200704, "max_pixels": 401408},
        ),
        (
            {"max_pixels": 401408, "mm_processor_kwargs": '{"fps": 2, "max_pixels": 1}'},
            {"fps": 2, "max_pixels": 401408},
        ),
        ({"mm_processor_kwargs": '{"fps": 2}'}, {"fps": 2}),
        ({"mm_processor_kwargs": {"fps": 2}}, {"fps": 2}),  # of a model that somebody builds
    ],
)
def test_pixels_go_to_the_processor(
    given: dict[str, Any], expected: Any, checkpoint: str, engine: Any
) -> None:
    model(checkpoint, **given)
    assert engine.made[-1].given.get("mm_processor_kwargs") == expected


@table(
    "arguments, said",
    [
        ({"max_pixels": "602k"}, "max_pixels=602k: expected a whole number"),
        ({"tensor_parallel_size": "auto"}, "tensor_parallel_size=auto: expected"),
        ({"max_num_frames": "all"}, "max_num_frames=all: expected"),
        ({"limit_mm_per_prompt": "{image:40}"}, "limit_mm_per_prompt={image:40}: not JSON"),
        ({"pretrained": "Org/NoSuch-7B"}, "Org/NoSuch-7B: no processor or tokenizer"),
        ({"pretrained": "no template"}, "has no chat template"),
        ({"max_num_frames": 8.5}, "max_num_frames=8.5: expected a whole number"),
        ({"max_num_frames": float("inf")}, "max_num_frames=inf: expected a whole number"),
        ({"tensor_parallel_size": None}, "tensor_parallel_size=None: expected a whole number"),
        ({"enable_thinking": "no"}, "enable_thinking=no: expected True or False"),
        ({"trust_remote_code": "no"}, "trust_remote_code=no: expected True or False"),
        ({"mm_processor_kwargs": [1], "min_pixels": 9}, "mm_processor_kwargs=[1]: expected a map"),
    ],
)
def test_what_cannot_work_is_said_before_the_engine_starts(
    arguments: dict[str, Any], said: str, checkpoint: str, engine: Any, tmp_path: Path
) -> None:
    if arguments.get("pretrained") == "no template":
        tiny.tokenizer_of(("<|end|>",), eos_token="<|end|>").save_pretrained(tmp_path)
        arguments = {"pretrained": str(tmp_path)}
    before = len(engine.made)
    refused(TasksError, re.escape(said), VLLM, **{"pretrained": checkpoint, **arguments})
    assert len(engine.made) == before


def test_thinking_is_told_to_the_template_and_to_who_asks_it(checkpoint: str, engine: Any) -> None:
    lm = model(checkpoint, enable_thinking=0, trust_remote_code="false")  # 0: no `is false`
    assert engine.made[-1].given["trust_remote_code"] is False
    ask(lm, [{"parts": [text("x")]}])
    assert engine.made[-1].asked[0]["prompt"].endswith("no thoughts")
    turn = [{"role": "user", "content": [text("x")]}]
    assert lm.processor.apply_chat_template(turn, tokenize=False).endswith("no thoughts")


# --- failures -------------------------------------------------------------------------------------


def test_a_request_fails_alone(
    checkpoint: str, videos: list[str], engine: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    plain, plain_check = engine.answer, engine._check

    def answer(self: Any, asked: dict[str, Any]) -> Any:
        found = plain(self, asked)
        if "break" in asked["prompt"]:
            found.outputs[0].finish_reason = "error"
        return found

    def check(self: Any, prompt: dict[str, Any]) -> None:
        if "refuse" in prompt["prompt"]:  # what a processor was given must not hide why it failed
            raise ValueError("data=" + "x" * 10_000) from KeyError("the cause")
        if "deaf" in prompt["prompt"]:  # vLLM 0.32's words
            raise RuntimeError("Resampling is not supported when `target_sr` is not provided")
        plain_check(self, prompt)

    monkeypatch.setattr(engine, "answer", answer)
    monkeypatch.setattr(engine, "_check", check)
    whole = Path(videos[0]).read_bytes()
    (tmp_path / "cut.wav").write_bytes(whole[:100])
    (tmp_path / "cut.mp4").write_bytes(whole[: len(whole) // 2])
    bad = {
        "absent.mp4": [{"type": "video", "url": str(tmp_path / "absent.mp4")}],
        "cut.mp4: not a readable video": [{"type": "video", "url": str(tmp_path / "cut.mp4")}],
        "wav file": [{"type": "audio", "url": str(tmp_path / "cut.wav")}],
        "FileNotFoundError": [{"type": "image", "url": "absent.png"}],
        "model length of 60": [text("x" * 99)],
        "other placeholders": [text("<vi"), text("deo>")],
        "ended it: error": [text("break")],
        "KeyError: 'the cause'": [text("refuse")],
        "takes no sound": [text("deaf")],
        "validation error": [{"type": "smell", "url": "x"}],
    }
    docs = []
    for parts in bad.values():
        docs += [question(videos[0], 1), {"video": "none", "parts": parts}]
    replies = ask(model(checkpoint, batch_size=5, max_model_len=60), docs)
    assert [reply.text for reply in replies[::2]] == ["A"] * len(bad)
    for why, reply in zip(bad, replies[1::2], strict=True):
        assert refusals.is_model_error(reply)
        assert why in reply
        assert len(reply) < 400


@table("where", ["while it answers", "before it is asked", "by its own word"])
def test_an_engine_that_is_killed_ends_the_run_in_one_line(
    where: str, checkpoint: str, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM's client waits for ever for an engine that was killed."""
    monkeypatch.setattr(engine, "has_process", True)
    lm = model(checkpoint)
    (process,) = multiprocessing.active_children()
    docs = [{"parts": [text("x")]}]
    assert ask(lm, docs)[0].text == "A"
    plain = engine.step

    def killed(*_: Any, **__: Any) -> Any:
        process.kill()
        process.join()
        if where == "before it is asked":
            raise RuntimeError("refused by a dead engine")
        return plain(lm._engine._llm)

    def told(*_: Any, **__: Any) -> None:
        raise type("EngineDeadError", (Exception,), {})("the core is dead")

    does = told if where == "by its own word" else killed
    monkeypatch.setattr(engine, "enqueue" if where == "before it is asked" else "step", does)
    try:
        refused(TasksError, r"vLLM's engine has stopped.*--batch_size", ask, lm, docs)
    finally:
        process.kill()


def test_each_of_the_last_files_is_read_once_whether_it_can_be_or_not() -> None:
    tried = []

    def read(path: str) -> Any:
        tried.append(path)
        raise MediaError(path)

    kept = files.Files(2)
    for path in ("a", "a", "b", "a", "c", "b"):
        refused(MediaError, path, kept.get, path, read)
    assert tried == ["a", "b", "c", "b"]


# --- several processes ----------------------------------------------------------------------------


@table(
    "processes, visible, local, count, expected",
    [
        (1, None, 0, 2, None),
        (1, "3,4", 0, 1, "3,4"),
        (2, None, 0, 1, "0"),
        (4, None, 3, 1, "3"),
        (2, None, 1, 2, "2,3"),
        (2, "4,5,6,7", 1, 2, "6,7"),
        (2, "GPU-a,GPU-b", 1, 1, "GPU-b"),
        (2, "0", 1, 1, "too few"),
    ],
)
def test_each_process_has_its_own_gpus_and_its_engine_knows_of_no_other(
    processes: int,
    visible: str | None,
    local: int,
    count: int,
    expected: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"WORLD_SIZE": processes, "RANK": local, "LOCAL_RANK": local, "MASTER_PORT": 5}
    for name, value in {**told, "TORCHELASTIC_USE_AGENT_STORE": True}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    before = dict(os.environ)
    if expected == "too few":
        refused(TasksError, "1 GPUs are required for each process", own_gpus(count).__enter__)
        return
    with own_gpus(count):
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == expected
        left = {*told, "TORCHELASTIC_USE_AGENT_STORE"} & set(os.environ)
        assert bool(left) == (processes == 1)
    assert dict(os.environ) == before


# --- the same pixels as with a class of the host ---


def test_equal_pixels_make_equal_prompts(
    shared: Path, engine: Any, on_sample: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine asks the checkpoint's processor with its `mm_processor_kwargs`, as vLLM does."""
    monkeypatch.setenv(settings.FRESH, "1")
    monkeypatch.setenv(settings.JUDGE, "none")
    plugin.install()
    from lmms_eval.evaluator import simple_evaluate
    from transformers import AutoProcessor

    folder = tiny.build_checkpoint("qwen2_5_vl", shared / "tiny-vlm")
    processor = AutoProcessor.from_pretrained(folder)

    def answer(self: Any, asked: dict[str, Any]) -> Any:
        bounds = self.given.get("mm_processor_kwargs") or {}
        names = {"min_pixels": "shortest_edge", "max_pixels": "longest_edge"}
        size = dict(processor.video_processor.size) | {names[k]: v for k, v in bounds.items()}
        ((pixels, _),) = asked["multi_modal_data"]["video"]
        shown = {"size": size, "do_sample_frames": False}
        prompt = processor(text=[asked["prompt"]], videos=[pixels], videos_kwargs=shown)
        done = SimpleNamespace(text="A", token_ids=[7], finish_reason="stop")
        return SimpleNamespace(prompt_token_ids=list(prompt["input_ids"][0]), outputs=[done])

    monkeypatch.setattr(engine, "answer", answer)
    monkeypatch.setattr(engine, "_check", lambda *_: None)  # of other placeholders

    def run(name: str, more: str) -> tuple[str, Any]:
        arguments = f"pretrained={folder},max_num_frames=4{more}"
        told = {"model": name, "model_args": arguments, "gen_kwargs": "max_new_tokens=2"}
        results = simple_evaluate(**told, tasks=["maia_vsv"], limit=2, verbosity="ERROR")
        line = results["lmms_eval_tasks"]["maia"]["arrived"].partition("maia_vsv: ")[2]
        return line, [sample["failed"] for sample in results["samples"]["maia_vsv"]]

    small, host = ",min_pixels=12544,max_pixels=25088", ",device=cpu,device_map=cpu"
    line, first = run("qwen2_5_vl", small + host)
    assert line.startswith("4 of 32 frames of 196 x 112 pixels (56 visual tokens), ")
    line, second = run("tasks_vllm", small)
    assert line.startswith("4 of 32 frames (56 visual tokens), ")
    assert arrivals.differing_prompts("maia_vsv", first, second) == ""
    line, third = run("tasks_vllm", "")  # the processor's own default
    assert line.startswith("4 of 32 frames (270 visual tokens), ")
    found = arrivals.differing_prompts("maia_vsv", second, third)
    assert "the models saw pictures of different sizes" in found


# --- through the host, on the sample --------------------------------------------------------------

LIMITS = {"maia_vsv": 3, "maia_vsv_1frame": 3, "maverix_av": 2, "haven_v2t": 2}


@pytest.mark.parametrize("task", LIMITS)
def test_every_request_is_asked_as_its_task_says(
    task: str, checkpoint: str, engine: Any, on_sample: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.FRESH, "1")
    monkeypatch.setenv(settings.JUDGE, "none")
    plugin.install()
    from lmms_eval.evaluator import simple_evaluate

    arguments = f"pretrained={checkpoint},max_model_len=99999"
    named: list[str] = []
    identity = request_runner._identity
    monkeypatch.setattr(
        request_runner, "_identity", lambda *a: (named.append(identity(*a)), identity(*a))[1]
    )
    given = {"model": "tasks_vllm", "model_args": arguments, "batch_size": 2, "verbosity": "ERROR"}
    results = simple_evaluate(**given, tasks=[task], limit=LIMITS[task])
    assert engine.made[-1].ended  # or a second run would find the GPU full
    assert checkpoint in named[0]
    assert "99999" not in named[0]  # another length for want of memory keeps the replies
    docs = prepare.usable_docs(registry.of(task), task)[: LIMITS[task]]
    limit = results["configs"][task]["generation_kwargs"]["max_new_tokens"]
    prompts = {one["prompt"]: one for one in engine.made[-1].asked}
    assert len(prompts) == len(docs)
    for doc, sample in zip(docs, results["samples"][task], strict=True):
        (message,) = task_functions.doc_to_messages(doc)
        shown = message["content"]
        written = "".join(part.get("text") or f"<{part['type']}>" for part in shown)
        asked = prompts[f"user: {written} assistant:"]
        items = asked.get("multi_modal_data", {})
        params = asked["params"]
        assert (params["max_tokens"], params["temperature"], params["stop"]) == (limit, 0.0, [])
        urls = {kind: [p["url"] for p in shown if p["type"] == kind] for kind in items}
        for picture, url in zip(items.get("image", ()), urls.get("image", ()), strict=True):
            assert np.array_equal(np.asarray(picture), np.asarray(url))
        for (pixels, told), url in zip(items.get("video", ()), urls.get("video", ()), strict=True):
            with av.open(url) as file:
                rate = float(file.streams.video[0].average_rate)
                clip = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
            places = told["frames_indices"]  # all of a clip, or as many of a segment
            assert (len(places), places[0], places[-1]) == (32, 0, len(clip) - 1)
            assert np.array_equal(pixels, np.stack([clip[place] for place in places]))
            assert told["fps"] == pytest.approx(rate, rel=0.01)
        for samples, rate in items.get("audio", ()):
            reading.check_sound(samples, rate, *reading.source(doc))
        seen = sample["failed"]["arrived"]
        frames = sum(len(pixels) for pixels, _ in items.get("video", ()))
        pictures = len(items.get("image", ()))
        assert (seen["at"], seen["frames"], seen["distinct"]) == ("engine", frames, frames)
        assert (seen["pictures"], seen["seconds"] > 0) == (pictures, "audio" in items)
        assert pictures or frames
        assert sample["failed"]["reply"] == "A"
        assert sample["token_counts"][0]["output_tokens"] == 2
