"""The hook's repair of the host; what it hooks is shown by tests/host/."""

from __future__ import annotations

from lmms_eval.models.model_utils.media_encoder import _build_cache_key
from lmms_eval.protocol import ChatMessages
from PIL import Image

from lmms_eval_tasks.plugin import right_frames


def test_a_picture_never_gets_another_s_bytes() -> None:
    """The host's cache knows a picture by its id, which a dropped picture leaves to a new one."""
    picture = Image.new("RGB", (2, 2), "red")
    key = _build_cache_key(picture, image_format="PNG", convert_rgb=False, quality=None)
    messages, earlier = ChatMessages(messages=[]), {key: "an earlier picture"}
    assert messages.encode_image(picture, earlier) == "an earlier picture"  # else: not needed
    with right_frames():
        assert messages.encode_image(picture, earlier) == messages.encode_image(picture)
    assert messages.encode_image(picture, earlier) == "an earlier picture"
