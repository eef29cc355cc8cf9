"""A clip with fewer frames than asked for is sent with the frames that it has."""

import av
import numpy as np
import pytest

pytest.importorskip("qwen_vl_utils")

from lmms_eval import protocol  # noqa: E402
from lmms_eval.protocol import ChatMessages  # noqa: E402


def _clip(folder, frames):
    path = str(folder / f"{frames}.mp4")
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for level in range(frames):
            picture = np.full((64, 64, 3), 4 * level, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def _messages(path, **times):
    return ChatMessages(messages=[{"role": "user", "content": [{"type": "video", "url": path, **times}]}])


@pytest.mark.parametrize("method", ["to_openai_messages", "to_qwen3_vl_openai_messages"])
@pytest.mark.parametrize("frames, times, asked, sent", [(31, {}, 64, 30), (12, {}, 10, 10), (40, {"start_time": 1.0, "end_time": 2.0}, 64, 10)])
def test_endpoints_get_the_frames_at_hand(tmp_path, method, frames, times, asked, sent):
    pytest.importorskip("decord")
    (message,) = getattr(_messages(_clip(tmp_path, frames), **times), method)({"nframes": asked})
    assert sum(part["type"] == "image_url" for part in message["content"]) == sent


@pytest.mark.parametrize("has_decord", [True, False])
@pytest.mark.parametrize("frames, times, sent", [(31, {}, 30), (40, {"start_time": 1.0, "end_time": 2.0}, 10)])
def test_native_classes_are_asked_for_the_frames_at_hand(monkeypatch, tmp_path, frames, times, sent, has_decord):
    if has_decord:
        pytest.importorskip("decord")
    monkeypatch.setattr(protocol, "_has_decord", has_decord)
    (message,) = _messages(_clip(tmp_path, frames), **times).to_hf_messages({"nframes": 64})
    assert message["content"][0]["nframes"] == sent


def test_what_cannot_be_read_is_left_to_the_reader():
    (message,) = _messages("nowhere.mp4").to_hf_messages({"nframes": 64})
    assert message["content"][0]["nframes"] == 64
