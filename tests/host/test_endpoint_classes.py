"""What the host's classes for endpoints send of our tasks: decoded where it arrives.

Those whose client is installed with us run here; the others with

    MODEL_CLASSES=all python -m pytest -s tests/host/test_endpoint_classes.py

and anthropic<1, dashscope, google-genai and litellm on the path. What is expected of each stands in
tests/cases/endpoint_classes.json.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.host import names
from lmms_eval_tasks.runs import before
from tests.haven import strip
from tests.host.endpoint_classes import TABLE, required, run, serving
from tests.maverix import reading
from tests.vendor_apis import Part, order_of, text_of

pytestmark = pytest.mark.usefixtures("on_sample")


def first(task: str) -> dict[str, Any]:
    return before.docs(benchmarks.of(task), task)[0]


@functools.lru_cache(maxsize=4)
def decoded(video: str | bytes) -> list[Any]:
    with av.open(io.BytesIO(video) if isinstance(video, bytes) else video) as file:
        return [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]


def small(pixels: Any) -> Any:

    return np.asarray(
        Image.fromarray(np.asarray(pixels)).resize((64, 40), Image.Resampling.BOX), int
    )


def places(pictures: Sequence[Any], doc: dict[str, Any]) -> Iterator[set[int]]:
    """Of each picture, which of the frames that were handed over it can be.

    By the codes of the samples; MAIA's frames have none, and some are as good as the same.
    """
    given = names.doc_to_visual(doc)
    if doc["task"].startswith("haven"):
        marks = [strip.read(picture) for picture in given]
        yield from ({marks.index(strip.read(picture))} for picture in pictures)
    elif doc["task"].startswith("maverix"):
        seen = reading.seen(given[0])
        yield from ({seen.index(reading.read_frame(np.asarray(one)))} for one in pictures)
    else:
        frames = decoded(given[0]) if isinstance(given[0], str) else given
        known = np.stack([small(frame) for frame in frames])
        for picture in pictures:
            far = np.abs(known - small(picture)).mean(axis=(1, 2, 3))
            yield {int(place) for place in np.flatnonzero(far < far.min() + 0.1)}


def check(parts: Sequence[Part], doc: dict[str, Any], simple: bool) -> str:
    """The media of a request against what was handed over; how many frames, and how many distinct.

    Raises:
        AssertionError: a picture is not the one that stands at its place, a file is another.
    """
    (message,) = names.doc_to_messages(doc)
    files = {item["type"]: item.get("url") for item in message["content"]}
    given = names.doc_to_visual(doc)
    if simple and "video" in files:
        files["video"] = given[0]
    pictures = [part.value for part in parts if part.kind == "image"]
    for part in parts:
        if part.kind in ("video", "audio"):
            assert part.value == Path(files[part.kind]).read_bytes(), part.kind
        if part.kind == "video":
            pictures = decoded(part.value)
    total = len(decoded(given[0])) if isinstance(given[0], str) else len(given)
    found = []
    for place, can in zip(
        np.linspace(0, total - 1, len(pictures)), places(pictures, doc), strict=True
    ):
        # Some readers round a place, others cut it off.
        right = can & {math.floor(place), round(place)}
        assert right, (place, can)
        found.append(min(right))
    assert found == sorted(set(found))
    size = np.asarray(pictures[0]).shape[1::-1]
    return f"{len(pictures)} of {total}, {len(set(found))} distinct, {size}"


@pytest.mark.parametrize("name", TABLE)
def test_what_arrives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every frame at its place and no other, the whole of a file, and text and media in order."""
    one = TABLE[name]
    required(one["package"])
    with serving(lambda parts: "A", monkeypatch) as server:
        results = run(name, server, list(one["arrives"]), limit=1)
    left = list(server.asked)
    for task, expected in one["arrives"].items():
        doc = first(task)
        own = [parts for parts in left if names.doc_to_text(doc) in text_of(parts)]
        if task.startswith("maia"):  # one text for the video and for its first frame
            alone = [parts for parts in own if "1 image" in order_of(parts).split(", ")]
            own = alone if task == "maia_vsv_1frame" else [p for p in own if p not in alone]
        assert [order_of(parts) for parts in own] == [expected], task
        told = check(own[0], doc, one.get("simple", False))
        print(f"{name:14} | {task:15} | {expected:29} | {told}")
        (sample,) = results["samples"][task]
        counted = sample["failed"]["arrived"]  # by the run itself
        kinds = [part.kind for part in own[0]]
        assert (counted["frames"] or 0) + counted["pictures"] == kinds.count("image")
        assert (counted["frames"] is None) == ("video" in kinds)
        assert (counted["seconds"] > 0) == ("audio" in kinds)
        left = [parts for parts in left if parts not in own]
    assert not left


def test_how_many_frames_a_server_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that reads videos itself takes so many of them; vLLM takes -1 for all."""
    with serving(lambda parts: "A", monkeypatch) as server:
        run("openai videos", server, ["maia_vsv"], 1, ",max_frames_num=-1")
    (request,) = server.requests
    assert request.json["media_io_kwargs"] == {"video": {"num_frames": -1}}
