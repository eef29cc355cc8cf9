"""What the table of sound answers; test_sound_host.py holds it against the installed host."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from lmms_eval_tasks import running
from lmms_eval_tasks.running import sound_table as sound


@pytest.mark.parametrize(
    "wrong",
    [
        {"status": "perhaps"},
        {"why": ""},
        {"file": "lmms_eval/models/x.json"},
        {"file": "/etc/passwd"},
        {"line": 0},
        {"code": "x"},
        {"when": [{"status": "unknown", "why": "?", "file": "lmms_eval/x.py", "line": 1}]},
        {"note": "another field"},
    ],
)
def test_schema(wrong: dict[str, Any]) -> None:
    good = {"status": "unknown", "why": "?", "file": "lmms_eval/x.py", "line": 1, "code": "def x("}
    assert sound.Cell.model_validate(good)
    with pytest.raises(ValidationError):
        sound.Cell.model_validate(good | wrong)


@pytest.mark.parametrize(
    ("model", "interface", "way", "arguments", "status"),
    [
        ("qwen2_5_omni", "chat", "audio", None, "delivered"),
        ("qwen2_5_omni", "chat", "video_and_audio", None, "delivered"),
        ("qwen2_5_omni", "simple", "audio", {}, "delivered"),  # as samples
        ("qwen2_5_omni", "simple", "video_and_audio", {"max_num_frames": 8}, "delivered"),
        (
            "qwen2_5_omni",
            "simple",
            "video_and_audio",
            {"use_custom_video_loader": True},
            "not delivered",
        ),
        ("gemini_api", "chat", "video_and_audio", None, "delivered"),  # an alias
        ("gemini", "simple", "audio", {"interleave": "True"}, "not delivered"),
        ("gemini", "simple", "audio", {"interleave": False}, "delivered"),
        ("gemini", "simple", "audio", {"interleave": "0"}, "delivered"),
        ("gemini", "simple", "audio", {"interleave": None}, "delivered"),
        ("gemini", "simple", "audio", {"interleave": "yes"}, "not delivered"),
        ("minicpm_o", "chat", "audio", {"init_audio": "false"}, "not delivered"),
        ("minicpm_o", "simple", "video_and_audio", None, "not delivered"),
        ("openai", "chat", "video_and_audio", None, "not delivered"),
        ("openai_compatible", "simple", "audio", None, "delivered"),
        ("openai", "chat", "video_and_audio", {"pass_video_url": True}, "unknown"),
        ("uni_moe_2_omni", "simple", "video_and_audio", None, "not delivered"),
        ("uni_moe_2_omni", "simple", "video_and_audio", {"use_audio_in_video": 1}, "unknown"),
        ("omnivinci", "chat", "video_and_audio", None, "unknown"),
        ("omnivinci", "chat", "video_and_audio", {"load_audio_in_video": False}, "delivered"),
        ("neo_ov", "chat", "audio", None, "raises"),
        ("internvl3", "simple", "video_and_audio", {"modality": "video"}, "not delivered"),
        ("tasks_oracle", "chat", "video_and_audio", None, "not delivered"),
        ("whisper_tt", "simple", "audio", None, "raises"),
        ("qwen2_audio", "chat", "audio", None, "unknown"),  # has no chat class
        ("someone_elses", "chat", "audio", None, "unknown"),
    ],
)
def test_delivery(model: str, interface: Any, way: Any, arguments: Any, status: str) -> None:
    found = sound.delivery(model, interface, way, arguments)
    assert found.status == status
    said = sound.warning(model, interface, way, arguments)
    assert (said is None) == (status == "delivered")
    assert said is None or (model in said and found.why in said)


@pytest.mark.parametrize(
    ("model", "interface", "expected"),
    [
        ("openai", "chat", "The sound did not reach openai (chat): The wav's path is sent"),
        ("neo_ov", "chat", "neo_ov (chat) cannot take the sound: Audio and video items"),
        ("mine", "simple", "Whether the sound reached mine (simple) is not known: The table"),
    ],
)
def test_warning(model: str, interface: Any, expected: str) -> None:
    said = sound.warning(model, interface, "audio")
    assert said is not None
    assert said.startswith(expected)


@pytest.mark.parametrize("version", ["0.7.4", "0.7.2", None])
def test_another_host_makes_everything_unknown(
    version: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "host_version", lambda: version)
    for model, interface in (("qwen2_5_omni", "chat"), ("qwen2_5_vl", "simple")):
        found = sound.delivery(model, interface, "audio")  # type: ignore[arg-type]
        assert found.status == "unknown"
        assert f"this is {version}" in found.why


def test_samples_where_a_path_is_not_heard() -> None:
    wanting = {name for name in sound.table().models if sound.wants_samples(name)}
    assert {"qwen2_5_omni", "qwen3_omni", "gpt4o_audio", "phi4_multimodal"} <= wanting
    assert not wanting & {"openai", "gemini", "litellm", "qwen2_5_vl", "glm4v", "tasks_coin"}
    assert not sound.wants_samples("gemini_api")
    assert not sound.wants_samples("someone_elses")
