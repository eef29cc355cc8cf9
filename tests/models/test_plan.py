"""What is set, said and refused for a model's class before it is loaded."""

from __future__ import annotations

from typing import Any

import pytest

from lmms_eval_tasks.context import RunModel
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.models import model_capabilities, plan
from lmms_eval_tasks.models.plan import MediaNeeds
from tests.checks import table

VIDEO = MediaNeeds("maia_vsv", videos=True, frames=frozenset({32}))
LONG = MediaNeeds("maia_vsv", videos=True, frames=frozenset({64}))
SHORT = MediaNeeds("maia_vsv", videos=True, frames=frozenset({32, 16}))
PICTURE = MediaNeeds("maia_vsv_1frame", pictures=1)
PICTURES = MediaNeeds("haven_v2t", pictures=40)
SEGMENT = MediaNeeds("maverix_v", videos=True)
TEXT = MediaNeeds("maia_unimodal")


@table(
    "name, interface, arguments, needs, set_, told",
    [
        ("openai", "chat", {}, [VIDEO], {"max_frames_num": 32}, "set for maia_vsv; to change"),
        ("async_openai", "chat", {}, [VIDEO], {"nframes": 32}, "set for maia_vsv"),
        ("openai", "chat", {"max_frames_num": 8}, [VIDEO], {}, "and the videos of maia_vsv have"),
        ("openai", "chat", {"max_frames_num": "32"}, [VIDEO], {}, ""),
        ("openai", "simple", {}, [SHORT], {"max_frames_num": 32}, ""),  # gives what there is
        ("openai", "chat", {}, [SEGMENT, PICTURE, TEXT], {}, ""),  # the model's own affair
        ("qwen2_5_vl", "chat", {}, [VIDEO, PICTURE, PICTURES], {}, ""),
        ("qwen3_omni", "chat", {}, [VIDEO], {}, "no argument changes that; the videos of maia_vsv"),
        (
            "qwen3_5",
            "chat",
            {},
            [VIDEO, PICTURE],
            {"fps": 100},
            "fps=100 set for maia_vsv; to change",
        ),
        ("qwen3_5", "chat", {"fps": 1}, [VIDEO], {}, ""),  # the user's own
        ("qwen3_5", "chat", {}, [VIDEO, SEGMENT], {}, "run maia_vsv separately"),
        ("qwen2_5_vl", "simple", {}, [VIDEO], {}, "not all 32 frames of short videos"),
        ("llava_vid", "simple", {}, [VIDEO], {"max_frames_num": 32, "force_sample": True}, ""),
        ("gemini", "chat", {}, [VIDEO], {}, ""),  # the whole file is sent
        (
            "qwen2_5_omni",
            "chat",
            {},
            [VIDEO],
            {},
            "does not work as installed: every reply is empty",
        ),
        ("whisper", "simple", {}, [VIDEO], {}, "takes no videos or pictures"),
        ("whisper", "simple", {}, [TEXT], {}, ""),
        (
            "glm4v",
            "simple",
            {},
            [VIDEO, PICTURE],
            {},
            "maia_vsv pass 32 pictures of each video",
        ),
        ("tasks_coin", "chat", {}, [VIDEO], {}, ""),
        ("tasks_vllm", "chat", {}, [VIDEO], {}, ""),
        ("tasks_vllm", "chat", {}, [LONG], {"max_num_frames": 64}, "=64 set for maia_vsv"),
        ("someone_elses", "chat", {}, [VIDEO, PICTURES], {}, ""),
    ],
)
def test_what_is_set_and_said(
    name: str, interface: Any, arguments: Any, needs: Any, set_: Any, told: str
) -> None:
    made = plan.of(RunModel(name, interface, arguments), needs)
    assert made.arguments == set_
    assert bool(made.lines) == bool(told or set_)
    assert told in "\n".join(made.lines)
    assert made.interface == interface


@table(
    "name, interface, arguments, needs, said",
    [
        ("llava_vid", "simple", {}, [VIDEO, PICTURES], "no pictures in a request, but haven_v2t"),
        ("minicpm_v", "simple", {}, [VIDEO], "takes no videos, but maia_vsv have videos: leave"),
        ("videollama3", "simple", {}, [PICTURES], "takes only one picture in a request, but hav"),
    ],
)
def test_what_cannot_be_run(
    name: str, interface: Any, arguments: Any, needs: Any, said: str
) -> None:
    with pytest.raises(TasksError, match=said) as error:
        plan.of(RunModel(name, interface, arguments), needs)
    assert name in str(error.value)


def test_checkpoints_that_a_class_gives_no_videos(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = {"a": "llava_next", "b": "llava_onevision", "c": ""}  # of c nothing can be read
    monkeypatch.setattr(plan, "checkpoint_type", lambda model: kinds[model.arguments["n"]])
    with pytest.raises(TasksError, match="no videos to checkpoints of the type llava_next, but ma"):
        plan.of(RunModel("llava_hf", "chat", {"n": "a"}), [PICTURE, VIDEO])
    for name in "bc":
        plan.of(RunModel("llava_hf", "chat", {"n": name}), [VIDEO])
    plan.of(RunModel("llava_hf", "chat", {"n": "a"}), [PICTURE])


def test_the_simple_class_where_only_it_takes_videos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "checkpoint_type", lambda _: "llava_onevision")
    found = plan.of(RunModel("llava_hf", "chat"), [VIDEO])
    assert (found.interface, found.videos_as_pictures) == ("simple", False)
    assert "--force_simple" in found.lines[0]
    assert "any video ends the run" in found.lines[0]
    # What the chat class lacks, this one lacks as well.
    assert plan.of(RunModel("qwen2_5_omni", "chat"), [VIDEO]).interface == "chat"
    assert plan.of(RunModel("openai", "chat"), [VIDEO]).interface == "chat"


def test_forms_that_a_class_can_take() -> None:
    videos_alone = plan.of(RunModel("llava_vid", "simple"), [VIDEO, PICTURE])
    assert (videos_alone.pictures_as_videos, videos_alone.videos_as_pictures) == (True, False)
    pictures_alone = plan.of(RunModel("glm4v", "simple"), [VIDEO, PICTURE])
    assert (pictures_alone.pictures_as_videos, pictures_alone.videos_as_pictures) == (False, True)
    both = plan.of(RunModel("internvl2", "simple"), [PICTURE, VIDEO, TEXT])
    assert (both.pictures_as_videos, both.videos_as_pictures) == (False, False)
    text = {"maia_unimodal": "image"}  # "video" would end the run without one
    assert both.modality == {"maia_vsv_1frame": "image", "maia_vsv": "video", **text}
    assert not plan.of(RunModel("internvl2", "simple"), [TEXT]).arguments
    assert both.arguments["modality"] == "image"
    # One that the user gives fits some tasks, and would end the run at the others.
    given = plan.of(RunModel("internvl2", "simple", {"modality": "video"}), [VIDEO, PICTURE])
    assert given.modality == {k: v for k, v in both.modality.items() if k not in text}
    assert any("modality is set for each task" in line for line in given.lines)
    assert not plan.of(RunModel("internvl2", "simple", {"modality": "video"}), [VIDEO]).lines


def test_classes_that_mix_replies_are_asked_one_by_one() -> None:
    mixing = ("claude", "qwen_vl_api", "fuyu", "aria")
    assert all(plan.of(RunModel(one, "simple"), [TEXT]).one_by_one for one in mixing)
    assert not plan.of(RunModel("qwen2_5_vl", "chat"), [TEXT]).one_by_one


def test_on_another_host_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_capabilities, "host_version", lambda: "0.9")
    made = plan.of(RunModel("openai", "chat"), [VIDEO])
    assert made.arguments
    assert made.lines[0] == (
        "openai (chat) may treat frames differently: the table of model "
        "classes was made for lmms-eval 0.7.3, but 0.9 is installed"
    )
