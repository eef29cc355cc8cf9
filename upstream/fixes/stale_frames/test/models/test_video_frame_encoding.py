"""Each frame of a video reaches the endpoint as itself."""

import base64
from io import BytesIO

import pytest
import torch
from PIL import Image

from lmms_eval import protocol
from lmms_eval.models.model_utils import media_encoder
from lmms_eval.protocol import ChatMessages

FRAMES = torch.arange(64, dtype=torch.float32).reshape(64, 1, 1, 1).expand(64, 3, 4, 4)


def _fetch_video(item, return_video_metadata=False, return_video_sample_fps=False):
    if return_video_metadata:
        return (FRAMES, {"fps": 1.0, "frames_indices": list(range(64))}), 1.0
    return FRAMES


def _level(part):
    data = part["image_url"]["url"].partition("base64,")[2]
    return Image.open(BytesIO(base64.b64decode(data))).getpixel((0, 0))[0]


@pytest.mark.parametrize("method", ["to_openai_messages", "to_qwen3_vl_openai_messages"])
def test_every_frame_is_sent_once_and_in_order(monkeypatch, method):
    monkeypatch.setattr(protocol, "fetch_video", _fetch_video)
    # Each frame takes the place in memory of the one before, which sometimes happens.
    monkeypatch.setattr(media_encoder, "id", lambda image: 0, raising=False)
    monkeypatch.setenv("LMMS_IMAGE_ENCODE_FORMAT", "PNG")
    chat = ChatMessages(messages=[{"role": "user", "content": [{"type": "video", "url": "clip.mp4"}]}])
    (message,) = getattr(chat, method)({"nframes": 64})
    assert [_level(part) for part in message["content"] if part["type"] == "image_url"] == list(range(64))
