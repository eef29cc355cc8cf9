"""Which model is running, and what that says about its frames and its sound."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import running
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.running import Model, class_pages
from lmms_eval_tasks.running import class_table as sound
from tests.checks import table


def test_the_model_is_known_inside_and_forgotten_after_errors() -> None:
    assert running.current() is None
    for picture in (True, False):  # without our hook nothing is known
        assert running.sound(picture) == "unknown"
        assert "not known" in (running.sound_warning(picture) or "")
    outer, inner = Model("a", "chat"), Model("b", "simple", {"x": 1})
    with running.model(outer):
        with running.model(inner):
            assert running.current() is inner
        with pytest.raises(ZeroDivisionError), running.model(inner):
            raise ZeroDivisionError
        assert running.current() is outer
    assert running.current() is None


# --- the table of sound; test_sound_host.py holds it against the installed host -----------------


AV = "video_and_audio"


@table(
    "name, interface, way, arguments, status",
    [
        ("qwen2_5_omni", "chat", "audio", None, "delivered"),
        ("qwen2_5_omni", "simple", "audio", {}, "delivered"),  # as samples
        ("qwen2_5_omni", "simple", AV, {"max_num_frames": 8}, "raises"),
        ("qwen2_5_omni", "simple", AV, {"use_custom_video_loader": True}, "not delivered"),
        ("gemini_api", "chat", AV, None, "delivered"),  # an alias
        ("gemini", "simple", "audio", {"interleave": "True"}, "not delivered"),
        ("gemini", "simple", "audio", {"interleave": False}, "delivered"),
        ("gemini", "simple", "audio", {"interleave": "0"}, "delivered"),
        ("gemini", "simple", "audio", {"interleave": None}, "delivered"),
        ("gemini", "simple", "audio", {"interleave": "yes"}, "not delivered"),
        ("minicpm_o", "chat", "audio", {"init_audio": "false"}, "not delivered"),
        ("openai", "chat", AV, None, "delivered"),  # endpoints.py sees to it
        ("openai", "simple", AV, None, "not delivered"),
        ("omnivinci", "chat", AV, None, "unknown"),
        ("omnivinci", "chat", AV, {"load_audio_in_video": False}, "delivered"),
        ("batch_gpt4", "simple", AV, None, "raises"),
        ("batch_gpt4", "simple", AV, {"modality": "video"}, "not delivered"),
        ("tasks_oracle", "chat", AV, None, "not delivered"),
        ("qwen2_audio", "chat", "audio", None, "unknown"),  # has no chat class
        ("someone_elses", "chat", "audio", None, "unknown"),
    ],
)
def test_delivery(name: str, interface: Any, way: Any, arguments: Any, status: str) -> None:
    found = sound.delivery(name, interface, way, arguments)
    assert found.status == status
    said = sound.warning(name, interface, way, arguments)
    assert (said is None) == (status == "delivered")
    assert said is None or (name in said and found.why in said)
    with running.model(Model(name, interface, arguments or {})):
        picture = way == AV
        assert running.sound(picture) == status == running.hears()["av" if picture else "a"]
        assert running.sound_warning(picture) == said


def test_of_another_host_holds_what_its_classes_still_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry rests on lines of its class's file, whatever version the host says it is."""
    monkeypatch.setattr(running, "host_version", lambda: "0.9.0")
    simple, chat = (f"lmms_eval/models/{kind}/qwen2_5_omni.py" for kind in ("simple", "chat"))
    read, gone = sound.source, {simple}
    monkeypatch.setattr(sound, "source", lambda file: "" if file in gone else f"#\n{read(file)}")
    for interface, file in (("simple", simple), ("chat", chat)):
        found = sound.delivery("qwen2_5_omni", interface, "audio")
        assert found.status == ("unknown" if file in gone else "delivered")
        assert (f"{file} of this one (0.9.0) is another" in found.why) == (file in gone)
    told = class_pages.facts("qwen2_5_omni")
    assert told[:2] == [
        "qwen2_5_omni, lmms-eval 0.7.3",
        "installed is 0.9.0: what is marked as gone may be otherwise there",
    ]
    marked = [line for line in told if "gone from the installed file" in line]
    assert marked
    assert all(simple in line for line in marked)
    assert sound.media_of("openai", "chat") is not None
    gone.add("lmms_eval/models/chat/openai.py")
    assert sound.media_of("openai", "chat") is None


def test_samples_for_classes_that_take_no_path() -> None:
    wanting = {name for name in sound.table().models if sound.wants_samples(name)}
    assert {"qwen2_5_omni", "qwen3_omni", "gpt4o_audio", "phi4_multimodal"} <= wanting
    assert not wanting & {"openai", "gemini", "litellm", "qwen2_5_vl", "glm4v", "tasks_coin"}
    assert not running.wants_samples()
    for name in ("qwen2_5_omni", "gemini_api", "someone_elses"):
        with running.model(Model(name, "simple")):
            assert running.wants_samples() == (name in wanting)


def test_what_is_told_of_a_model() -> None:
    def told(*words: str) -> str:
        found = CliRunner().invoke(app, ["models", *words])
        return found.output if found.exception is None else str(found.exception)

    assert told("qwen2_5_vl").startswith("qwen2_5_vl, lmms-eval 0.7.3\nloads models that these")
    assert "\n  32 frames of a clip: max_frames_num=32" in told("openai_compatible")  # an alias
    assert "\n\nglm4v, lmms-eval" in told("gemma3", "glm4v")
    assert told("qwen_2_5_vl").endswith("has no such model; did you mean qwen2_5_vl?")
    wanted = ("\nqwen2_5_vl chat: max_", "\nTake none of our media: ", "whisper")
    assert all(name in told() for name in wanted)
