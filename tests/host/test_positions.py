"""Positions of the text behind a video: written down by each family's own rule, and put right.

The numbers follow from what the authors' functions say, by hand: text counts on by one; a video's
axes are time, height and width from where it starts; what comes behind starts at its largest + 1.
"""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import model_class, plugin, positions
from lmms_eval_tasks.host.positions import Start
from lmms_eval_tasks.host.requests import request_runner
from lmms_eval_tasks.models import tiny
from lmms_eval_tasks.utils.conditions import Kind
from tests.checks import table
from tests.engine import checkpoints

IMAGE, VIDEO, BEGIN, TEXT = 11, 12, 13, 14  # tokens; below, kinds: t text, i image, v video
KINDS = {"t": (0, TEXT), "b": (0, BEGIN), "i": (1, IMAGE), "v": (2, VIDEO)}


def bare(module: str, name: str, **vision: Any) -> Any:
    """A model of transformers without weights; skips where this version has none."""
    try:
        found = importlib.import_module(f"transformers.models.{module}")
    except ImportError:
        pytest.skip(f"transformers has no {module}")
    built = getattr(found, name)
    model = built.__new__(built)
    torch.nn.Module.__init__(model)
    config = built.config_class()
    config.image_token_id, config.video_token_id = IMAGE, VIDEO
    config.vision_start_token_id = BEGIN
    for key, value in vision.items():
        setattr(config.vision_config, key, value)
    model.config = config
    model.spatial_merge_size = config.vision_config.spatial_merge_size
    return model


def prompt(model: Any, *rows: str, videos: list[list[int]], **more: Any) -> dict[str, Any]:
    """Arguments of `get_rope_index`: rows such as "tbvvvvt", `_` is padding; grids in 2 x 2."""
    kinds = torch.tensor([[KINDS.get(one, (0, TEXT))[0] for one in row] for row in rows])
    given = {
        "input_ids": torch.tensor([[KINDS.get(one, (0, TEXT))[1] for one in row] for row in rows]),
        "attention_mask": torch.tensor([[int(one != "_") for one in row] for row in rows]),
        "video_grid_thw": torch.tensor(videos),
        "mm_token_type_ids": kinds,
        **more,
    }
    takes = inspect.signature(model.get_rope_index).parameters
    return {name: value for name, value in given.items() if name in takes}


def is_of_5(model: Any) -> bool:
    """Whether its function is told the kinds of tokens; transformers 4 finds them by itself."""
    return "mm_token_type_ids" in inspect.signature(model.get_rope_index).parameters


QWEN25 = ("qwen2_5_vl.modeling_qwen2_5_vl", "Qwen2_5_VLModel")
# Three groups of frames of 2 x 2 tokens between two tokens of text each.
WHOLE = "tb" + "v" * 12 + "tt"
BY_FRAME = "tbvvvv" * 2 + "tt"  # two frames, each behind a text
HEIGHTS, WIDTHS = [2, 2, 3, 3] * 3, [2, 3, 2, 3] * 3
COUNTED = [[0, 1, *[2] * 4, *[3] * 4, *[4] * 4, 5, 6], [0, 1, *HEIGHTS, 5, 6]]
COUNTED.append([0, 1, *WIDTHS, 5, 6])
# Seconds of a group times positions of a second: 2 * 2 of Qwen2.5-VL, 2 * 25 of the Omni models.
TIMED = [[0, 1, *[2] * 4, *[6] * 4, *[10] * 4, 11, 12], [0, 1, *HEIGHTS, 11, 12]]
TIMED.append([0, 1, *WIDTHS, 11, 12])
OMNI = [[0, 1, *[2] * 4, *[52] * 4, *[102] * 4, 103, 104], [0, 1, *HEIGHTS, 103, 104]]
OMNI.append([0, 1, *WIDTHS, 103, 104])
APART = [
    [0, 1, 2, 2, 2, 2, 4, 5, 6, 6, 6, 6, 8, 9],
    [0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7, 7, 8, 9],
    [0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 6, 7, 8, 9],
]


@table(
    "module, name, row, grid, vision, made",
    [
        ("qwen2_vl.modeling_qwen2_vl", "Qwen2VLModel", WHOLE, [3, 4, 4], {}, COUNTED),
        (*QWEN25, WHOLE, [3, 4, 4], {"tokens_per_second": 2}, TIMED),
        (
            *("ernie4_5_vl_moe.modeling_ernie4_5_vl_moe", "Ernie4_5_VLMoeModel"),
            *(WHOLE, [6, 4, 4], {}, COUNTED),
        ),
        ("paddleocr_vl.modeling_paddleocr_vl", "PaddleOCRVLModel", WHOLE, [3, 4, 4], {}, COUNTED),
        ("qwen3_vl.modeling_qwen3_vl", "Qwen3VLModel", BY_FRAME, [2, 4, 4], {}, APART),
        ("qwen3_5.modeling_qwen3_5", "Qwen3_5Model", BY_FRAME, [2, 4, 4], {}, APART),
        ("glm4v.modeling_glm4v", "Glm4vModel", BY_FRAME, [2, 4, 4], {}, APART),
        ("glm4v_moe.modeling_glm4v_moe", "Glm4vMoeModel", BY_FRAME, [2, 4, 4], {}, APART),
        (
            *("qwen2_5_omni.modeling_qwen2_5_omni", "Qwen2_5OmniThinkerForConditionalGeneration"),
            *(WHOLE, [3, 4, 4], {}, OMNI),
        ),
        (
            "qwen3_omni_moe.modeling_qwen3_omni_moe",
            "Qwen3OmniMoeThinkerForConditionalGeneration",
            *(WHOLE, [3, 4, 4], {}, OMNI),
        ),
    ],
)
def test_positions_of_one_video(
    module: str, name: str, row: str, grid: list[int], vision: dict[str, Any], made: Any
) -> None:
    model = bare(module, name, **vision)
    if "glm4v" in module and not is_of_5(model):
        pytest.skip("transformers 4 finds a frame by other tokens")
    seconds = torch.tensor([2.0])
    more = {"second_per_grid_ts": seconds, "second_per_grids": seconds}
    given = prompt(model, row, videos=[grid], **more)
    family = module.partition(".")[0]
    installed, delta = model.get_rope_index(**given)
    if family in positions.FAMILIES and is_of_5(model):
        found, delta = positions.behind_videos(model.get_rope_index)(**given)
        assert torch.equal(found[:, 0, :-2], installed[:, 0, :-2])  # up to the text behind it
    else:
        found = installed
        if is_of_5(model):  # which the rule changes in no bit
            again, same = positions.behind_videos(model.get_rope_index)(**given)
            assert torch.equal(again, found)
            assert torch.equal(same, delta)
    assert found[:, 0].tolist() == made
    assert delta.tolist() == [[made[0][-1] + 1 - len(row)]]
    start = positions.start(model)
    assert start is not None
    assert (start.family, start.has_times) == (family, True)
    assert start.is_off <= (family in positions.FAMILIES)


def test_several_videos_images_and_padding() -> None:
    """What comes later is moved with it; an image moves nothing; padding stays as it is."""
    model = bare(*QWEN25, tokens_per_second=2)
    if not is_of_5(model):
        pytest.skip("transformers 4 counts padding otherwise")
    rows = ("bvvvvvvvvtbiiiitbvvvvt", "__________" + "bvvvvvvvvttt")
    more = {
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
        "second_per_grid_ts": torch.tensor([3.0, 1.0, 1.0]),
    }
    given = prompt(model, *rows, videos=[[2, 4, 4], [1, 4, 4], [2, 4, 4]], **more)
    kept = {name: value.clone() for name, value in given.items()}
    found, deltas = positions.behind_videos(model.get_rope_index)(**given)
    times = [0, *[1] * 4, *[7] * 4, 8, 9, *[10] * 4, 12, 13, *[14] * 4, 16]
    assert found[0].tolist() == [times, [0] * 10 + [0, *[1] * 4, *[3] * 4, 4, 5, 6]]
    heights = [0, *[1, 1, 2, 2] * 2, 8, 9, 10, 10, 11, 11, 12, 13, 14, 14, 15, 15, 16]
    assert found[1, 0].tolist() == heights
    assert deltas.tolist() == [[17 - 22], [7 - 12]]
    assert all(torch.equal(given[name], kept[name]) for name in kept)


def test_a_prompt_of_images_is_as_installed() -> None:
    model = bare(*QWEN25)
    if not is_of_5(model):
        pytest.skip("the rule is put in place in transformers 5 alone")
    given = prompt(model, "tbiiiit", videos=[[1, 4, 4]], image_grid_thw=torch.tensor([[1, 4, 4]]))
    given["video_grid_thw"] = None
    one, two = model.get_rope_index(**given), positions.behind_videos(model.get_rope_index)(**given)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


# --- in a run -------------------------------------------------------------------------------------


class Family(torch.nn.Module):
    """A model whose function gives the text behind a video a position of its own choice."""

    def __init__(self, family: str, text: int, step: int = 1) -> None:
        super().__init__()

        def get_rope_index(input_ids: Any, mm_token_type_ids: Any, video_grid_thw: Any) -> Any:
            if len(mm_token_type_ids[0].unique_consecutive()) > 3:
                raise ValueError("a video is one block")
            made = torch.arange(4).repeat(3, 1, 1)
            video = torch.arange(16).repeat_interleave(16).repeat(3, 1, 1) * step + 4
            behind = torch.arange(4).repeat(3, 1, 1) + text
            return torch.cat([made, video, behind], dim=2), torch.tensor([[text + 4 - 264]])

        get_rope_index.__module__ = f"transformers.models.{family}.modeling"
        self.get_rope_index = get_rope_index
        self.config = SimpleNamespace(vision_config=SimpleNamespace(spatial_merge_size=2))


def held(model: Any) -> Any:
    return SimpleNamespace(_model=torch.nn.ModuleList([model]), name="x")


@table(
    "family, text, step, option, kind",
    [
        ("qwen2_vl", 8, 1, "", Kind.MENDED),
        ("qwen2_vl", 19, 1, "right", Kind.MENDED),
        ("qwen2_vl", 8, 1, "installed", Kind.POSITIONS),
        ("qwen2_vl", 20, 1, "", None),
        ("qwen2_vl", 20, 1, "installed", None),
        ("qwen2_vl", 8, 0, "", Kind.POSITIONS),  # no times: nothing to start behind
        ("of_tomorrow", 8, 1, "", Kind.POSITIONS),  # whose own rule is not known
    ],
)
def test_what_is_put_right(
    family: str, text: int, step: int, option: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.MODEL_POSITIONS, option)
    model = Family(family, text, step)
    installed = model.get_rope_index
    with positions.right(held(model)) as found:
        assert [one.kind for one in found] == [kind] * (kind is not None)
        start = positions.start(model)
        assert start is not None
        assert start.text == (20 if kind == Kind.MENDED else text)
        assert (model.get_rope_index is installed) == (kind != Kind.MENDED)
    if kind != Kind.MENDED:
        assert model.get_rope_index is installed
    for one in found:
        assert (": put right, at 20" in one.text) == (kind == Kind.MENDED)


def test_a_function_without_grids_or_of_its_own_layout_is_left_alone() -> None:
    model = Family("qwen2_vl", 8)
    model.get_rope_index = lambda input_ids: (input_ids, 0)
    assert positions.start(model) is None
    model.get_rope_index = lambda input_ids, video_grid_thw: (input_ids[0], video_grid_thw)
    assert positions.start(model) is None
    with positions.right(SimpleNamespace(client="an endpoint")) as found:
        assert found == []


def test_a_checkpoint_is_looked_at_without_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.build_checkpoint("qwen2_5_vl", tmp_path / "tiny")
    (folder / "model.safetensors").unlink()
    (start,) = positions.starts_of(folder)
    assert (start.family, start.largest) == ("qwen2_5_vl", 124)
    monkeypatch.setattr(positions, "starts_of", lambda _: [Start("qwen2_5_vl", 64, 8)])
    (found,) = model_class._positions(folder)
    assert found.state == "ok"
    assert "at position 8, inside the video, which ends at 64: put right, at 65" in found.message
    monkeypatch.setenv(settings.MODEL_POSITIONS, "installed")
    (found,) = model_class._positions(folder)
    assert (found.state, found.mend) == ("warning", "leave --model-positions out")
    monkeypatch.setattr(positions, "starts_of", lambda _: [Start("qwen2_5_vl", 64, 65)])
    assert [one.state for one in model_class._positions(folder)] == ["ok"]
    (folder / "config.json").write_text("{", encoding="utf-8")
    monkeypatch.undo()
    assert [one.state for one in model_class._positions(folder)] == ["warning"]
    checkpoints.add()
    omni = tiny.build_checkpoint("qwen2_5_omni", tmp_path / "omni")
    config = json.loads((omni / "config.json").read_text())
    config["architectures"] = ["Qwen2_5OmniModel"]  # as in the released file
    (omni / "config.json").write_text(json.dumps(config))
    (start,) = positions.starts_of(omni)
    assert (start.family, start.is_off) == ("qwen2_5_omni", False)
    language = tiny.build_checkpoint("gpt2", tmp_path / "gpt2")
    assert positions.starts_of(language) == []


def test_replies_of_a_model_as_installed_are_not_gone_on_with() -> None:
    lm = SimpleNamespace()
    names = {request_runner._identity({}, lm, mended) for mended in ([], ["put right, at 65"])}
    assert len(names) == 2


@pytest.mark.host
@table("option, behind", [("right", True), ("installed", False)])
def test_a_run_of_a_checkpoint(
    option: str,
    behind: bool,
    sample_root: Path,
    shared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the language model is given, and what stands with the numbers."""
    settings_ = {settings.DATA: sample_root, settings.MODEL_POSITIONS: option, settings.FRESH: 1}
    for name, value in settings_.items():
        monkeypatch.setenv(name, str(value))
    plugin.install()
    from lmms_eval.evaluator import simple_evaluate
    from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

    folder = tiny.build_checkpoint("qwen2_5_vl", shared / "tiny-vlm")
    if not positions.starts_of(folder)[0].is_off:
        pytest.skip("this transformers is right by itself")
    seen: list[Any] = []
    forward = Qwen2_5_VLModel.forward

    def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
        given, ids = kwargs.get("position_ids"), kwargs.get("input_ids")
        if given is not None and ids is not None and (ids == self.config.video_token_id).any():
            seen.append((given[-3:, 0], ids[0] == self.config.video_token_id))
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(Qwen2_5_VLModel, "forward", noted)
    small = "max_num_frames=8,min_pixels=12544,max_pixels=25088,device=cpu,device_map=cpu"
    arguments = f"pretrained={folder},{small}"
    told = {"model": "qwen2_5_vl", "model_args": arguments, "gen_kwargs": "max_new_tokens=2"}
    results = simple_evaluate(**told, tasks=["maia_vsv"], limit=2, verbosity="ERROR")
    assert len(seen) == 2
    for places, is_video in seen:
        text = places[:, int(is_video.nonzero().max()) + 1]
        assert (int(text.min()) == int(places[:, is_video].max()) + 1) == behind
    conditions = results["lmms_eval_tasks"]["maia"]["conditions"]
    kind = Kind.MENDED if behind else Kind.POSITIONS
    assert [one["kind"] for one in conditions if "behind a video" in one["text"]] == [kind.value]
