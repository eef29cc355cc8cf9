"""The recipes by vLLM (leaderboards/recipes/vllm.yaml) beside the recipes of the host's classes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import registry
from lmms_eval_tasks.host import model_class
from lmms_eval_tasks.media.clip_specs import uniform_indices
from lmms_eval_tasks.models import model_capabilities, recipes, tiny
from lmms_eval_tasks.models.recipes import RowRecipe
from tests.checks import table
from tests.media.media_files import write_video
from tests.models.test_classes_host import parameters, registered
from tests.page_commands import MORE

STUB = Path(__file__).parent.parent / "models" / "stub_vllm"
OWN = [one for name in registry.NAMES for one in recipes.of(name)]
FORMS = [
    (own, form)
    for own in OWN
    if isinstance(form := recipes.on_vllm(own), RowRecipe) and form is not own
]
# In place of a recipe's by the form: the only options that two runs may differ in.
REPLACED = {"model", "model_args", "batch_size", "output_path"}


def test_each_recipe_of_weights_has_a_form_or_a_reason() -> None:
    stored = {
        (benchmark, name) for benchmark, forms in recipes._stored("vllm").items() for name in forms
    }
    weights = {
        (one.path.parent.name, one.path.stem)
        for one in OWN
        if recipes.facts(one.checkpoint).billions and one.model.name != recipes.VLLM
    }
    assert stored == weights
    assert len(FORMS) == 7
    native = next(one for one in OWN if one.model.name == recipes.VLLM)
    assert recipes.on_vllm(native) is native
    served = next(one for one in OWN if one.checkpoint == "gpt-4o")
    assert recipes.on_vllm(served) == "the model is on a server"


@table("own, form", FORMS)
def test_the_host_reads_both_alike(
    own: RowRecipe, form: RowRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks, decoding, judge and all else are the recipe's file's."""
    from lmms_eval import __main__ as host

    runs: list[dict[str, Any]] = []
    monkeypatch.setattr(host, "Accelerator", lambda **_: MagicMock())
    monkeypatch.setattr(host, "cli_evaluate_single", lambda args: (runs.append(vars(args)), None))
    for name in own.settings:
        monkeypatch.setenv(name, "")
    for options in ((), form.options):
        monkeypatch.setattr(sys, "argv", ["lmms_eval", "--config", str(own.path), *options])
        host.cli_evaluate()
    plain, by_vllm = runs
    assert {name for name in plain if plain[name] != by_vllm[name]} == REPLACED
    named = model_class.run_model(by_vllm)
    assert named is not None
    assert (named.name, named.interface) == ("tasks_vllm", "chat")
    assert {name: str(value) for name, value in named.arguments.items()} == form.model.arguments
    assert int(by_vllm["batch_size"]) == form.batch > 1


@table("own, form", FORMS)
def test_frames_pixels_and_gpus_are_the_recipe_s(own: RowRecipe, form: RowRecipe) -> None:
    """The class's defaults count as said: those of the processor are others."""
    media = model_capabilities.media_of(own.model.name, own.model.interface)
    assert media is not None
    given = form.model.arguments
    assert given["pretrained"] == own.checkpoint
    if "max_num_frames" in given or media.frames_argument in own.model.arguments:
        assert given["max_num_frames"] == own.model.arguments[str(media.frames_argument)]
    defaults = {name: str(value) for name, value in media.pixel_arguments.items()}
    bounds = {**defaults, **own.model.arguments}
    if own.model.name == "qwen3_vl":  # bounds videos alone, and HAVEN has pictures
        bounds |= {"min_pixels": str(4 * 32 * 32), "max_pixels": str(16384 * 32 * 32)}
        assert own.path.parent.name == "haven"
    for name in ("min_pixels", "max_pixels"):
        assert given[name] == bounds[name]
    assert int(given["tensor_parallel_size"]) == recipes.facts(own.checkpoint).gpus
    path = registered()["tasks_vllm"].chat_class_path
    assert set(given) <= parameters(path).keys() | MORE["tasks_vllm"]


@table("own, form", FORMS)
def test_the_longest_request_fits(own: RowRecipe, form: RowRecipe) -> None:
    """Of videos: all frames at max_pixels in groups of two, and the longest text of the tables."""
    given = {name: value for name, value in form.model.arguments.items() if value.isdecimal()}
    length = int(given["max_model_len"])
    works = [recipes.work(task) for task in registry.selected(own.tasks)]
    frames = int(given.get("max_num_frames", 0))
    pixels = int(given["max_pixels"])
    video = frames // 2 * pixels // 28**2 if any(one.video for one in works) else 0
    assert video + 2 * max(one.text for one in works) < length
    assert all(one.video or one.pictures < 400 for one in works)


# --- what the class and vLLM make of one video and one picture ------------------------------------


class Stopped(Exception):  # noqa: N818 - no error
    """What the processor was asked is known."""


class Spy:
    """In place of a class's processor: keeps what the processor makes, and stops the class."""

    def __init__(self, processor: Any) -> None:
        self._processor, self.made = processor, dict[str, Any]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._processor, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.made = self._processor(*args, **kwargs)
        raise Stopped


@pytest.fixture(scope="module")
def checkpoint(shared: Path) -> Path:
    return tiny.build_checkpoint("qwen2_5_vl", shared / "tiny-families" / "qwen2_5_vl")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The stub of vLLM, where `import vllm` finds it."""
    monkeypatch.syspath_prepend(str(STUB))
    yield
    for name in [one for one in sys.modules if one.partition(".")[0] == "vllm"]:
        monkeypatch.delitem(sys.modules, name)


SIZES = [(480, 360), (854, 480), (320, 240)]


@table("size", SIZES)
def test_a_video_has_one_size_by_both(
    size: tuple[int, int],
    checkpoint: Path,
    tmp_path: Path,
    engine: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, form = _pair("maia", "qwen2_5_vl_7b_instruct")
    part = {"type": "video", "url": str(write_video(tmp_path / "v.mp4", 32, size=size))}
    by_class = _by_class(checkpoint, own, part)
    by_vllm = _by_vllm(checkpoint, form, part, monkeypatch)
    assert by_vllm["video_grid_thw"].tolist() == by_class["video_grid_thw"].tolist()
    assert by_vllm["input_ids"].shape == by_class["input_ids"].shape
    # Without the class's own fewest pixels, which the form says, they would not be.
    arguments = {name: value for name, value in form.model.arguments.items() if "min_" not in name}
    bare = form._replace(model=form.model.__class__("tasks_vllm", "chat", arguments))
    less = _by_vllm(checkpoint, bare, part, monkeypatch)["video_grid_thw"]
    assert (less.tolist() == by_class["video_grid_thw"].tolist()) == (size == (854, 480))


@table("size", SIZES)
def test_a_picture_has_one_size_by_both_but_for_some(
    size: tuple[int, int], checkpoint: Path, engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form says so (`differs`)."""
    own, form = _pair("maia", "qwen2_5_vl_7b_instruct")
    assert "pictures (not videos) are resized once" in form.differs
    part = {"type": "image", "url": Image.new("RGB", size)}
    grids = [
        made["image_grid_thw"].tolist()
        for made in (
            _by_class(checkpoint, own, part),
            _by_vllm(checkpoint, form, part, monkeypatch),
        )
    ]
    assert (grids[0] == grids[1]) == (size != (320, 240))


def _pair(benchmark: str, name: str) -> tuple[RowRecipe, RowRecipe]:
    (pair,) = (
        pair for pair in FORMS if (pair[0].path.parent.name, pair[0].path.stem) == (benchmark, name)
    )
    return pair


def _requests(lm: Any, part: dict[str, Any]) -> list[Any]:
    lm.task_dict = {"t": {"test": [{"id": 0}]}}
    content = [part, {"type": "text", "text": "Who?"}]
    turns = [{"role": "user", "content": content}]
    return [SimpleNamespace(args=("", lambda _: turns, {"max_new_tokens": 1}, 0, "t", "test"))]


def _given(recipe: RowRecipe) -> dict[str, Any]:
    given = recipe.model.arguments.items()
    return {name: int(value) if value.isdecimal() else value for name, value in given}


def _by_class(checkpoint: Path, recipe: RowRecipe, part: dict[str, Any]) -> Any:
    """What the recipe's class gives its model."""
    from lmms_eval.models.chat.qwen2_5_vl import Qwen2_5_VL

    here = {"pretrained": str(checkpoint), "device": "cpu", "device_map": "cpu"}
    lm = Qwen2_5_VL(**_given(recipe) | here)
    lm.processor = Spy(lm.processor)
    with pytest.raises(Stopped):
        lm.generate_until(_requests(lm, part))
    return lm.processor.made


def _by_vllm(
    checkpoint: Path, form: RowRecipe, part: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """What the checkpoint's processor makes of what `tasks_vllm` gives vLLM."""
    import vllm
    from transformers import AutoProcessor

    from lmms_eval_tasks.models.vllm import VLLM

    marks = {kind: f"<|{kind}_pad|>" for kind in ("image", "video")}
    monkeypatch.setattr(vllm, "MARKS", marks)
    given = _given(form) | {"pretrained": str(checkpoint)}
    lm = VLLM(**given)
    (reply,) = lm.generate_until(_requests(lm, part))
    assert hasattr(reply, "text"), reply  # else what went wrong
    (asked,) = vllm.LLM.made[-1].asked
    media = asked["multi_modal_data"]
    pixels: dict[str, Any] = {"images": media.get("image")}
    if videos := media.get("video"):
        known = [{k: v for k, v in told.items() if k != "do_sample_frames"} for _, told in videos]
        pixels = {"videos": [one for one, _ in videos], "video_metadata": known}
        pixels["do_sample_frames"] = False
    bounds = {name: given[name] for name in ("min_pixels", "max_pixels") if name in given}
    processor = AutoProcessor.from_pretrained(checkpoint)
    return processor(text=[asked["prompt"]], return_tensors="pt", **pixels, **bounds)


def test_frames_of_a_longer_video() -> None:
    """`differs`: of 64 frames some are the ones just before those that the class takes."""
    own, form = _pair("maverix", "qwen_2_5_vl")
    assert "some of the 64 are the ones just before" in form.differs
    for total in (64, 65, 900, 8999):
        ours = np.array(uniform_indices(total, 64))
        theirs = np.linspace(0, total - 1, 64).round()  # qwen_vl_utils, by torch
        assert set(theirs - ours) <= ({0} if total == 64 else {0, 1})
    assert own.model.arguments["max_num_frames"] == "64"
