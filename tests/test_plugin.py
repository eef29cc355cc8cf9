"""What the hook asks of the host and mends in it; that it hooks is shown by tests/host/."""

from __future__ import annotations

from typing import Any

import pytest
from lmms_eval.models.model_utils.media_encoder import _build_cache_key
from lmms_eval.protocol import ChatMessages
from PIL import Image

from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host.plugin import interface_of, right_frames


def test_a_picture_never_gets_another_s_bytes() -> None:
    """The host's cache knows a picture by its id, which a dropped picture leaves to a new one."""
    picture = Image.new("RGB", (2, 2), "red")
    key = _build_cache_key(picture, image_format="PNG", convert_rgb=False, quality=None)
    messages, earlier = ChatMessages(messages=[]), {key: "an earlier picture"}
    assert messages.encode_image(picture, earlier) == "an earlier picture"  # else: not needed
    with right_frames():
        assert messages.encode_image(picture, earlier) == messages.encode_image(picture)
    assert messages.encode_image(picture, earlier) == "an earlier picture"


@pytest.mark.parametrize(
    ("model", "force_simple", "expected"),
    [
        ("openai", False, "chat"),
        ("openai", True, "simple"),
        ("openai_compatible_chat", True, "simple"),  # the alias of both classes
        ("qwen2_5_vl", False, "chat"),
        ("vllm_generate", True, "chat"),  # has no simple class
        ("qwen2_audio", False, "simple"),  # has no chat class
        ("tasks_oracle", False, "chat"),
        ("tasks_oracle", True, "simple"),
        ("lm_pairs", False, "simple"),
    ],
)
def test_interface_of(model: str, force_simple: bool, expected: str) -> None:
    assert interface_of(model, force_simple) == expected


@pytest.mark.parametrize("model", ["openai", "qwen2_5_vl", "tasks_coin"])
@pytest.mark.parametrize("force_simple", [False, True])
def test_interface_of_is_what_the_host_builds(model: str, force_simple: bool) -> None:
    from lmms_eval.models import get_model

    built: Any = get_model(model, force_simple)
    assert interface_of(model, force_simple) == ("simple" if built.is_simple else "chat")


def test_interface_of_an_unknown_model() -> None:
    with pytest.raises(TasksError, match="lmms-eval has no model 'gpt5'"):
        interface_of("gpt5")
