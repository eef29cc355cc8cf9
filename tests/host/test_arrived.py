"""What reached a model is counted where it is sent, processed or read; and told in words."""

from __future__ import annotations

import base64
import io
import json
import wave
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.host import arrived
from lmms_eval_tasks.host.arrived import Expected
from lmms_eval_tasks.runs import arrivals
from tests.checks import table
from tests.utils.media.media_files import write_video

VIDEO = Expected("a", "What happens? Say it.", 1, 0)
OTHER = Expected("b", "Who comes?", 1, 0)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def wav(seconds: float) -> str:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(b"\0\0" * int(16000 * seconds))
    return base64.b64encode(buffer.getvalue()).decode()


def seen(one: arrived.Seen) -> tuple[Any, ...]:
    return one.frames, one.pictures, one.seconds


@table(
    "content, expected",
    [
        ([PICTURE] * 10, (10, 0, 0.0)),
        ([{"type": "video_url", "video_url": {"url": "file:///x.mp4"}}], (None, 0, 0.0)),
        (
            [PICTURE, {"type": "input_audio", "input_audio": {"data": wav(1.5), "format": "wav"}}],
            (1, 0, 1.5),
        ),
        ([{"type": "audio_url", "audio_url": {"url": "/x.wav"}}], (0, 0, None)),
        (  # Anthropic's
            [{"type": "image", "source": {"type": "base64", "data": "AA"}}] * 3,
            (3, 0, 0.0),
        ),
        ([{"image": "/tmp/x.png"}, {"image": "/tmp/y.png"}], (2, 0, 0.0)),  # DashScope's
        ([{"inlineData": {"mimeType": "image/png", "data": "AA"}}], (1, 0, 0.0)),  # Gemini's
        ([{"file_data": {"mime_type": "video/mp4", "file_uri": "x"}}], (None, 0, 0.0)),
        ([], (0, 0, 0.0)),
    ],
)
def test_bodies_of_requests(content: Any, expected: Any) -> None:
    import httpx

    text = {"type": "text", "text": " What  happens?\n<image>Say it."}
    body = {"messages": [{"role": "user", "content": [*content, text]}]}
    transport = httpx.MockTransport(lambda _: httpx.Response(200))
    with arrived.counted(), arrived.watching([VIDEO, OTHER]) as found:
        httpx.Client(transport=transport).post("http://x/", json=body)
    assert {name: seen(one) for name, one in found.items()} == {"a": expected}
    assert found["a"].at == "sent"


def test_requests_of_the_same_text_and_those_sent_again() -> None:
    same = [Expected(str(number), "Sum up.", 0, 2) for number in range(3)]

    def body(number: int) -> bytes:
        content = [PICTURE] * number + [{"type": "text", "text": f"Sum up.{' ' * number}"}]
        return json.dumps({"messages": [{"content": content}]}).encode()

    with arrived.watching(same) as found:
        for number in (1, 1, 2, 1):
            arrived._watch.sent(body(number))  # type: ignore[union-attr]
        arrived._watch.sent(b"{")  # type: ignore[union-attr]
        arrived._watch.sent(b'{"messages": [{"content": "judge this"}]}')  # type: ignore[union-attr]
    assert {name: one.pictures for name, one in found.items()} == {"0": 1, "1": 2}


def test_what_processors_take() -> None:
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor, WhisperFeatureExtractor
    from transformers.generation.utils import GenerationMixin

    frames = np.zeros((8, 3, 56, 56), dtype=np.uint8)
    picture = Image.new("RGB", (56, 56))
    nothing = SimpleNamespace(generation_config=None)
    with arrived.counted():
        with arrived.watching([VIDEO, OTHER, Expected("c", "", 0, 2)]) as found:
            for name, videos, images in (("a", [frames], []), ("c", [], [picture] * 2)):
                arrived.handed(name)
                if videos:
                    Qwen2VLVideoProcessor()(videos=videos, return_tensors="pt")
                    WhisperFeatureExtractor()(np.zeros(8000, np.float32), sampling_rate=16000)
                if images:
                    Qwen2VLImageProcessor()(images=images, return_tensors="pt")
                with pytest.raises(AttributeError):  # no model at all, but it was asked to
                    GenerationMixin.generate(nothing)
        assert {name: seen(one) for name, one in found.items()} == {
            "a": (8, 0, 0.5),
            "c": (0, 2, 0.0),
        }
        # A batch of two.
        with arrived.watching([VIDEO, OTHER]) as found:
            arrived.handed("a")
            arrived.handed("b")
            arrived.handed("b")  # some classes ask twice
            Qwen2VLVideoProcessor()(videos=[frames, frames[:4]], return_tensors="pt")
        assert {name: seen(one) for name, one in found.items()} == {
            "a": (8, 0, 0.0),
            "b": (4, 0, 0.0),
        }
        # Frames that go as pictures, and what cannot be told apart.
        with arrived.watching([VIDEO, OTHER]) as found:
            arrived.handed("a")
            arrived.handed("b")
            Qwen2VLImageProcessor()(images=[picture] * 6, return_tensors="pt")
        assert [seen(one) for one in found.values()] == [(3, 0, 0.0)] * 2
        with arrived.watching([VIDEO, OTHER]) as found:
            arrived.handed("a")
            arrived.handed("b")
            Qwen2VLImageProcessor()(images=[picture] * 5, return_tensors="pt")
        assert not found
    # Nothing is left behind, and nothing is counted outside.
    Qwen2VLImageProcessor()(images=[picture], return_tensors="pt")
    assert arrived._watch is None


def test_a_request_that_is_prepared_while_another_is_answered() -> None:
    from transformers import Qwen2VLImageProcessor, Qwen2VLVideoProcessor
    from transformers.generation.utils import GenerationMixin

    def shows(number: int) -> None:
        frames = np.zeros((number, 3, 56, 56), dtype=np.uint8)
        Qwen2VLVideoProcessor()(videos=[frames], return_tensors="pt")

    def answers() -> None:
        with pytest.raises(AttributeError):  # no model at all, but it was asked to
            GenerationMixin.generate(SimpleNamespace(generation_config=None))

    pictures = [Expected("c", "", 0, 1), Expected("d", "", 0, 2)]
    with arrived.counted(), arrived.watching([VIDEO, OTHER, *pictures]) as found:
        arrived.handed("a")
        shows(8)
        arrived.handed("b")  # its frames are not there when the first is answered
        answers()
        assert {name: seen(one) for name, one in found.items()} == {"a": (8, 0, 0.0)}
        shows(4)
        answers()
        arrived.handed("c")
        Qwen2VLImageProcessor()(images=[Image.new("RGB", (56, 56))], return_tensors="pt")
        arrived.handed("d")
        answers()
        Qwen2VLImageProcessor()(images=[Image.new("RGB", (56, 56))] * 2, return_tensors="pt")
    assert {name: seen(one) for name, one in found.items()} == {
        "a": (8, 0, 0.0),
        "b": (4, 0, 0.0),
        "c": (0, 1, 0.0),
        "d": (0, 2, 0.0),
    }


def test_what_decord_is_asked_for(tmp_path: Path) -> None:
    from transformers import Qwen2VLVideoProcessor

    decord = pytest.importorskip("decord", reason="has no wheel for this machine")
    path = write_video(tmp_path / "v.mp4", 16)
    with arrived.counted(), arrived.watching([VIDEO]) as found:
        arrived.handed("a")
        reader = decord.VideoReader(str(path))
        reader.get_batch([0, 3, 3, 9])
        assert reader[9] is not None
    assert seen(found["a"]) == (5, 0, 0.0)
    assert (found["a"].at, found["a"].distinct) == ("reader", 3)
    # A class may ask for one frame to see its size, and read the others otherwise.
    with arrived.counted(), arrived.watching([VIDEO], reads=False) as found:
        arrived.handed("a")
        assert reader[0] is not None
        frames = np.zeros((8, 3, 56, 56), dtype=np.uint8)
        Qwen2VLVideoProcessor()(videos=[frames], return_tensors="pt")
    assert (seen(found["a"]), found["a"].distinct) == ((8, 0, 0.0), None)
    # What a processor takes after it may be less, or nothing.
    with arrived.counted(), arrived.watching([VIDEO], reads=False) as found:
        arrived.handed("a")
        reader.get_batch([0, 3])
    assert not found


# --- in words -------------------------------------------------------------------------------------


def item(**told: Any) -> dict[str, Any]:
    made = {"at": "sent", "frames": 0, "distinct": None, "pictures": 0, "seconds": 0.0, "of": None}
    return {"status": "ok", "arrived": {**made, **told}}


@table(
    "items, said, short",
    [
        ([item(frames=32, of=32)] * 2, "t: 32 of 32 frames", ""),
        (
            [item(frames=10, of=32), item(frames=32, of=32)],
            "t: 10 to 32 of 32 frames",
            "t: the model saw 10 of 32 frames (1 of 2 requests)",
        ),
        (
            [item(frames=32, distinct=31, of=32)],
            "t: 31 of 32 frames",
            "t: the model saw 31 of 32 frames",
        ),
        ([item(pictures=32, of=32)], "t: 32 of 32 frames", ""),  # a video that went as pictures
        ([item(pictures=8, of=32)], "t: 8 of 32 frames", "t: the model saw 8 of 32 frames"),
        ([item(frames=None, of=32)], "t: the file itself", ""),
        ([item(pictures=1)], "t: 1 picture", ""),
        ([item(pictures=20), item(pictures=40)], "t: 20 to 40 pictures", ""),
        ([item(frames=32, seconds=12.04)], "t: 32 frames and 12 s of sound", ""),
        ([item(frames=32, seconds=None)], "t: 32 frames and sound", ""),
        ([item()], "t: nothing but text", ""),
        ([item(frames=4), {"status": "ok"}], "t: 4 frames (1 of 2 requests counted)", ""),
        ([{"status": "ok"}], "", ""),
    ],
)
def test_in_words(items: Any, said: str, short: str) -> None:
    found = arrivals.line({"t": items})
    assert found == (f"reached the model, counted in what was sent: {said}" if said else "")
    assert arrivals.short("t", items) == short


def test_tasks_of_which_the_same_is_said() -> None:
    whole, picture = [item(frames=32, of=32, at="processor")], [item(pictures=1)]
    assert arrivals.line({"a": whole, "b": picture, "c": whole, "d": [{"status": "ok"}]}) == (
        "reached the model, counted at the model's processor and in what was sent: "
        "a, c: 32 of 32 frames; b: 1 picture"
    )
