"""Which model is running, and what that says of its sound."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import running
from lmms_eval_tasks.commands.cli import app
from lmms_eval_tasks.running import Model
from lmms_eval_tasks.running import class_table as sound
from tests.checks import table


def test_the_model_is_known_inside_and_forgotten_after_errors() -> None:
    assert running.current() is None
    for picture in (True, False):  # without our hook nothing is known
        status, said = running.heard(picture)
        assert (status, "not known" in str(said)) == ("unknown", True)
    outer, inner = Model("a", "chat"), Model("b", "simple", {"x": 1})
    with running.model(outer):
        running.go_by(running.Plan("simple", {"n": 1}, videos_as_pictures=True))
        assert running.current() == Model("a", "simple", {"n": 1})
        with contextlib.suppress(ZeroDivisionError), running.model(inner):
            assert running.current() is inner
            assert running.planned() == running.Plan()
            raise ZeroDivisionError
        assert running.planned().videos_as_pictures
    assert running.current() is None
    assert running.planned() == running.Plan()


# --- sound ----------------------------------------------------------------------------------------


@table(
    "name, interface, way, arguments, status",
    [
        ("qwen2_5_omni", "chat", "a", {}, "delivered"),
        ("qwen2_5_omni", "simple", "a", {}, "delivered"),  # as samples
        ("qwen2_5_omni", "simple", "av", {"max_num_frames": 8}, "raises"),
        ("qwen2_5_omni", "simple", "av", {"use_custom_video_loader": True}, "not delivered"),
        ("gemini_api", "chat", "av", {}, "delivered"),  # an alias
        ("gemini", "simple", "a", {"interleave": "True"}, "not delivered"),
        ("gemini", "simple", "a", {"interleave": False}, "delivered"),
        ("gemini", "simple", "a", {"interleave": "0"}, "delivered"),
        ("gemini", "simple", "a", {"interleave": None}, "delivered"),
        ("gemini", "simple", "a", {"interleave": "yes"}, "not delivered"),
        ("minicpm_o", "chat", "a", {"init_audio": "false"}, "not delivered"),
        ("openai", "chat", "av", {}, "delivered"),  # endpoints.py sees to it
        ("openai", "simple", "av", {}, "not delivered"),
        ("omnivinci", "chat", "av", {}, "unknown"),
        ("omnivinci", "chat", "av", {"load_audio_in_video": False}, "delivered"),
        ("batch_gpt4", "simple", "av", {}, "raises"),
        ("batch_gpt4", "simple", "av", {"modality": "video"}, "not delivered"),
        ("tasks_oracle", "chat", "av", {}, "not delivered"),
        ("qwen2_audio", "chat", "a", {}, "unknown"),  # has no chat class
        ("someone_elses", "chat", "a", {}, "unknown"),
    ],
)
def test_whether_it_arrives(
    name: str, interface: Any, way: str, arguments: Any, status: str
) -> None:
    with running.model(Model(name, interface, arguments)):
        found, said = running.heard(way == "av")
        assert found == status == running.hears()[way]
    assert (said is None) == (status == "delivered")
    assert said is None or name in said


@table(
    "name, interface, form",
    [
        *((name, "simple", "samples") for name in ("qwen2_5_omni", "gpt4o_audio", "qwen3_omni")),
        *((name, "simple", "path") for name in ("openai", "gemini_api", "tasks_coin")),
        ("aero_realtime_vllm", "chat", "track"),
        *((name, "chat", "path") for name in ("openai", "someone_elses")),
    ],
)
def test_in_which_form_a_class_takes_it(name: str, interface: Any, form: str) -> None:
    assert running.sound_form() == "path"
    with running.model(Model(name, interface)):
        assert running.sound_form() == form


def test_of_another_host_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "host_version", lambda: "0.9.0")
    status, said = sound.heard(Model("qwen2_5_omni", "chat"), with_picture=False)
    assert status == "unknown"
    assert "was made for lmms-eval 0.7.3, and this is 0.9.0." in str(said)


def test_what_is_told_of_a_model() -> None:
    def told(*words: str) -> str:
        found = CliRunner().invoke(app, ["models", *words])
        return found.output if found.exception is None else str(found.exception)

    assert "\n  32 frames: max_frames_num=32" in told("openai_compatible")  # an alias
    assert "\nglm4v, lmms-eval 0.7.3" in told("gemma3", "glm4v")
    assert "    none: Sound only." in told("whisper")
    assert told("qwen_2_5_vl").endswith("has no such model; did you mean qwen2_5_vl?")
