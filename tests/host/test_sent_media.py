"""What lmms-eval's chat classes send of a video: read and encoded once, and what they meant."""

from __future__ import annotations

import asyncio
import base64
import io
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openai
import pytest
from lmms_eval import protocol
from lmms_eval.protocol import ChatMessages
from openai import _base_client
from PIL import Image

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host.requests import endpoints
from lmms_eval_tasks.models.files import Files
from tests.checks import refused, table
from tests.local_endpoint import Fault, LocalEndpoint
from tests.media.media_files import write_video

FORMS = ("to_openai_messages", "to_qwen3_vl_openai_messages")


def asked(clip: Path, question: str = "Who?") -> ChatMessages:
    content = [{"type": "video", "url": str(clip)}, {"type": "text", "text": question}]
    return ChatMessages(messages=[{"role": "user", "content": content}])


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The videos that the host has read."""
    found: list[str] = []
    fetch = protocol.fetch_video

    def counted(video: dict[str, Any], **how: Any) -> Any:
        found.append(video["video"])
        return fetch(video, **how)

    monkeypatch.setattr(protocol, "fetch_video", counted)
    return found


def pixels(part: dict[str, Any]) -> Any:
    coded = part["image_url"]["url"].partition(",")[2]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(coded))))


@table("form", FORMS)
def test_a_video_is_encoded_once_for_all_its_questions(
    form: str, tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = write_video(tmp_path / "v.mp4", 16)
    how = {"nframes": 4}
    (plain,) = getattr(asked(clip), form)(how)
    frames = protocol.fetch_video({"type": "video", "video": str(clip), **how})
    with endpoints.right_media():
        (first,) = getattr(asked(clip), form)(how)
        (second,) = getattr(asked(clip, "Where?"), form)(how)
        assert len(reads) == 3  # twice without ours, and once
        # Not the pictures of `plain`: the host may send one of them twice.
        ours = [one for one in first["content"] if one["type"] == "image_url"]
        assert len(ours) == 4
        for frame, one in zip(frames, ours, strict=True):
            assert (pixels(one) == frame.permute(1, 2, 0).numpy().astype(np.uint8)).all()
        texts = [one for one in plain["content"] if one["type"] == "text"]
        assert [one for one in first["content"] if one["type"] == "text"] == texts
        assert second["content"][:-1] == first["content"][:-1]
        assert second["content"][-1]["text"] == "Where?"
        # Another number of frames, another format, another file of this name.
        getattr(asked(clip), form)({"nframes": 2})
        monkeypatch.setenv("LMMS_IMAGE_ENCODE_FORMAT", "JPEG")
        (small,) = getattr(asked(clip), form)(how)
        assert "image/jpeg" in str(small)[:300]
        write_video(clip, 24)
        getattr(asked(clip), form)(how)
    assert len(reads) == 6


@table(
    "option, variable, sent, said",
    [
        ("", "", ("PNG", ""), ""),
        ("png", "JPEG", ("PNG", ""), ""),  # the option stands above the host's variable
        ("jpeg", "", ("JPEG", "85"), "frames are sent as JPEG of quality 85; for exact pixels: "),
        ("jpeg:30", "", ("JPEG", "30"), "frames are sent as JPEG of quality 30"),
        ("", "webp", ("WEBP", "85"), "frames are sent as WEBP of quality 85"),
    ],
)
def test_how_frames_are_sent_is_a_condition(
    option: str, variable: str, sent: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.MODEL_PICTURES, option)
    monkeypatch.setenv("LMMS_IMAGE_ENCODE_FORMAT", variable)
    with endpoints.right_media():
        assert endpoints.picture_format() == sent
        told = [one.text for one in endpoints.conditions(SimpleNamespace(client=None))]
        assert [one[: len(said)] for one in told] == [said] * bool(said)
        assert endpoints.conditions(SimpleNamespace()) == []  # of a class that asks no endpoint


@table("text", ["webp", "jpeg:0", "jpeg:x", "png:3"])
def test_no_format_of_pictures(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.MODEL_PICTURES, text)
    refused(
        TasksError, "expected png, jpeg or jpeg:QUALITY", settings.value, settings.MODEL_PICTURES
    )


def test_questions_at_a_time_wait_for_the_one_that_encodes(
    tmp_path: Path, reads: list[str]
) -> None:
    clip = write_video(tmp_path / "v.mp4", 16)
    with endpoints.right_media():
        threads = [
            threading.Thread(target=asked(clip, str(n)).to_openai_messages, args=({"nframes": 4},))
            for n in range(8)
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(reads) == 1


def test_the_first_request_leaves_before_the_sixteenth_is_encoded(
    tmp_path: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    clips = [write_video(tmp_path / f"{n}.mp4", 16) for n in range(16)]
    begun: list[int] = []  # the clips whose reading has begun when a request can leave

    def leave(clip: Path) -> None:
        asked(clip).to_openai_messages({"nframes": 4})
        begun.append(len(reads))

    with endpoints.right_media(), ThreadPoolExecutor(16) as pool:
        list(pool.map(leave, clips))
    assert len(reads) == 16
    assert begun[0] < 8


def test_what_was_used_last_is_kept_up_to_a_size() -> None:
    kept = Files(25, endpoints._length)
    made: list[str] = []

    def get(key: str) -> None:
        def make(_: str) -> Any:
            made.append(key)
            return [{"type": "image_url", "image_url": {"url": "x" * 10}}, {"type": "text"}]

        kept.get(key, make)

    for key in "ababcabc":
        get(key)
    assert "".join(made) == "abcabc"

    def failing(_: str) -> Any:
        raise OSError("cannot be read")

    for _ in range(2):  # and nobody waits for what failed
        with pytest.raises(OSError, match="cannot be read"):
            kept.get("d", failing)


@table(
    "client, question, n_whole",
    [
        (openai.OpenAI, 'Who?\n"è" \\ \u2028 \U0001f600', 0),
        (openai.AsyncOpenAI, "Who?", 0),
        (openai.OpenAI, f"Is this {endpoints._MARK}?", 2),  # then openai makes the whole body
        (openai.OpenAI, f'"{endpoints._MARK}"', 2),
    ],
)
def test_a_body_is_joined_from_the_encoded_frames(
    client: Any, question: str, n_whole: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes are those of openai alone, at a retry too; no JSON is made of a frame again."""
    written: list[int] = []
    dumps = _base_client.openapi_dumps

    def counted(value: object) -> bytes:
        written.append(len(body := dumps(value)))
        return body

    monkeypatch.setattr(_base_client, "openapi_dumps", counted)
    clip = write_video(tmp_path / "v.mp4", 16)
    fails = Fault(status=500, headers={"retry-after-ms": "1"})
    with endpoints.right_media():
        messages = asked(clip, question).to_openai_messages({"nframes": 4})

    def reply(_: object) -> str | Fault:
        return fails if len(endpoint.chats) % 2 else "A"

    def ask() -> None:
        async def answered(made: Any) -> Any:
            return await made if asyncio.iscoroutine(made) else made

        with_retry = client(base_url=endpoint.url, api_key="no", max_retries=1)
        made = with_retry.chat.completions.create(
            model="m", messages=messages, temperature=1e-05, seed=None
        )
        assert asyncio.run(answered(made)).choices[0].message.content == "A"

    with LocalEndpoint(reply) as endpoint:
        ask()
        whole = written.copy()
        with endpoints.quick_bodies():
            ask()
        assert _base_client.openapi_dumps is counted
        bodies = [chat.body for chat in endpoint.chats]
        lengths = {chat.headers["content-length"] for chat in endpoint.chats}
    assert len(bodies) == 4
    assert len(set(bodies)) == 1
    assert lengths == {str(len(bodies[0]))}
    assert whole == [len(bodies[0])] * 2
    assert min(whole) > 10_000
    quick = written[2:]
    assert [size for size in quick if size > 1000] == whole[:n_whole]
    assert len(quick) == 2 + n_whole


def test_openai_without_that_function_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(_base_client, "openapi_dumps")
    with endpoints.quick_bodies():
        assert not hasattr(_base_client, "openapi_dumps")


def test_only_a_text_that_json_leaves_alone_is_joined() -> None:
    for url in ('a"b', "a\\b", "a\nb", "è", "\x7f\u2028", None, {}):
        part = {"type": "image_url", "image_url": {"url": url}}
        assert endpoints._as_plain(part) is part
    assert endpoints._as_plain({"type": "text", "text": "A"}) == {"type": "text", "text": "A"}


def test_each_thread_has_its_own_event_loop() -> None:
    """What one request encodes holds up no other; all is put back."""
    with LocalEndpoint(lambda request: "A") as endpoint:
        client = openai.AsyncOpenAI(base_url=endpoint.url, api_key="no")
        encoding, another_is_done = threading.Event(), threading.Event()

        class Class:
            def __init__(self) -> None:
                self.client: Any = client

            def generate_until(self, requests: list[str]) -> list[Any]:
                async def one(request: str) -> Any:
                    if request == "long":  # to encode, which nothing of its loop goes on beside
                        encoding.set()
                        assert another_is_done.wait(60)
                    messages: Any = [{"role": "user", "content": request}]
                    made = await self.client.chat.completions.create(model="m", messages=messages)
                    return made.choices[0].message.content

                async def all_of_them() -> list[Any]:
                    return list(await asyncio.gather(*map(one, requests)))

                return asyncio.run(all_of_them())

        lm, run = Class(), asyncio.run
        with endpoints.own_loops(lm), ThreadPoolExecutor() as pool:
            long = pool.submit(lm.generate_until, ["long"])
            assert encoding.wait(60)
            for _ in range(2):  # the second time over the connection of the first
                assert lm.generate_until(["short"]) == ["A"]
            another_is_done.set()
            assert long.result() == ["A"]
        assert (lm.client, asyncio.run) == (client, run)
