"""How many frames of our tasks the host's model classes give to a checkpoint of their family.

At default arguments, counted in what the vision tower gets, whose pixels say which frames they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.host import discovery, plugin
from tests.checks import table
from tests.classes import checkpoints, coded, tower
from tests.conftest import OFFLINE

TASKS = ("maia_vsv", "maia_vsv_1frame", "maverix_av", "haven_v2t")
# Of each task: frames or pictures that it hands over, how many the tower gets, how many different.
ALL = ([32, 32, 32], [1, 1, 1], [63, 32, 32], [27, 27, 27])
# One with patches of two frames, one with a processor for videos, one that takes pictures alone.
CLASSES = [
    ("qwen2_5_vl", "chat", "qwen2_5_vl"),
    ("llava_hf", "simple", "llava_onevision"),
    ("gemma3", "simple", "gemma3"),
]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    for name, value in {**OFFLINE, "LMMS_EVAL_TASKS_CACHE": str(cache)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")


@pytest.fixture(scope="module")
def coded_root(sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return coded.root(sample_root, tmp_path_factory.mktemp("coded"))


@table("model, interface, family", CLASSES)
def test_frames(
    model: str,
    interface: str,
    family: str,
    coded_root: Path,
    shared: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(coded_root))
    checkpoint = checkpoints.build(family, shared / "tiny-families")
    found = arrived(model, interface, checkpoint, TASKS)
    assert found == dict(zip(TASKS, ALL, strict=True))


def test_frames_of_a_released_video(
    maia_data: Path, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maia").symlink_to(maia_data)
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", str(tmp_path))
    model, interface, family = CLASSES[-1]
    checkpoint = checkpoints.build(family, shared / "tiny-families")
    assert arrived(model, interface, checkpoint, TASKS[:1]) == {TASKS[0]: ALL[0]}


def arrived(
    model: str, interface: str, checkpoint: Path, tasks: tuple[str, ...]
) -> dict[str, list[int]]:
    """What arrived of the first doc of each task."""
    plugin.install()
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    with tower.watched() as requests:
        results = simple_evaluate(
            model=model,
            model_args=f"pretrained={checkpoint},device=cpu,device_map=cpu",
            tasks=list(tasks),
            task_manager=TaskManager(include_path=discovery.task_folders(), include_defaults=False),
            limit=1,
            batch_size=1,
            force_simple=interface == "simple",
            gen_kwargs="max_new_tokens=2",
            bootstrap_iters=0,
        )
    samples = {task: results["samples"][task] for task in tasks}
    found = {sample["failed"]["status"] for own in samples.values() for sample in own}
    assert "model_error" not in found
    assert len(requests) == len(tasks)
    for one in requests:
        check(samples[one.task][0]["failed"]["arrived"], one, checkpoint)
    return {one.task: counted(one, checkpoint) for one in requests}


def check(told: dict[str, Any], request: tower.Request, checkpoint: Path) -> None:
    """The run's own count of tokens and sizes against the tensors and their pictures."""
    from transformers import AutoConfig, AutoProcessor

    config = AutoConfig.from_pretrained(checkpoint)
    tokens = {getattr(config, f"{kind}_token_id", None) for kind in ("image", "video")}
    prompt = request.tensors["input_ids"][request.tensors["attention_mask"] == 1].tolist()
    assert told["prompt_tokens"] == len(prompt)
    assert told["visual_tokens"] == sum(one in tokens for one in prompt) > 0
    processor: Any = AutoProcessor.from_pretrained(checkpoint)
    shown = {one.shape[1::-1] for one in tower.pictures(request.tensors, processor)}
    sizes = {tuple(size) for size in told.get("sizes", ())}
    # Tiles of pictures have no size of their own.
    assert sizes == shown if config.model_type.startswith("qwen") else sizes <= shown


def counted(request: tower.Request, checkpoint: Path) -> list[int]:
    """[asked, arrived, distinct] of a request, whose coded pictures stand at their places."""
    from transformers import AutoProcessor

    handed = [one for visual in request.visuals for one in coded.pictures(visual)]
    processor: Any = AutoProcessor.from_pretrained(checkpoint)
    found = tower.pictures(request.tensors, processor)
    wanted, read = ([coded.number(one) for one in pictures] for pictures in (handed, found))
    if None in wanted:  # a released video
        return [len(handed), len(found), len({picture.tobytes() for picture in found})]
    assert None not in read, read
    assert read == sorted(read, key=wanted.index), (wanted, read)  # and all of them are wanted ones
    assert len(read) < 2 or {read[0], read[-1]} == {wanted[0], wanted[-1]}, (wanted, read)
    return [len(wanted), len(read), len({*read})]
