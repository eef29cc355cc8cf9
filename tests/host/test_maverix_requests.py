"""What the host's class for OpenAI-compatible servers sends of each MAVERIX mode, decoded again."""

from __future__ import annotations

import base64
import io
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lmms_eval_tasks.host import names
from lmms_eval_tasks.maverix.labels import MODES
from lmms_eval_tasks.running import sound_table
from lmms_eval_tasks.sample.second_code import TICKS
from tests.conftest import HostRun, Launch, host
from tests.local_endpoint import LocalEndpoint, Recorded, last_user_text
from tests.maverix import reading
from tests.maverix.reading import docs, source

pytestmark = pytest.mark.host

N_DOCS, N_FRAMES = 2, 6


@pytest.fixture(autouse=True)
def on_sample(sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")


@pytest.fixture(scope="module", params=["chat", "simple"])
def over_the_wire(
    request: pytest.FixtureRequest,
    launch: Launch,
    sample_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, HostRun, list[Recorded]]:
    """The host's class for OpenAI-compatible servers, chat and simple, on two docs of each mode."""
    out = tmp_path_factory.mktemp(request.param)
    with LocalEndpoint(lambda _: "A") as endpoint:
        arguments = f"model=m,base_url={endpoint.url},api_key=unused,max_frames_num={N_FRAMES}"
        command = ["--model", "openai", "--model_args", arguments, "--limit", str(N_DOCS)]
        command += ["--tasks", ",".join(f"maverix_{mode}" for mode in MODES)]
        command += ["--log_samples", "--output_path", str(out)]
        if request.param == "simple":
            command.append("--force_simple")
        run = launch(host(*command), out)
    assert run.code == 0, run.stderr[-3000:]
    return request.param, run, endpoint.chats


def parts(request: Recorded) -> list[dict[str, Any]]:
    content: list[dict[str, Any]] = request.json["messages"][-1]["content"]
    return content


def pictures(request: Recorded) -> list[Any]:
    """The frames of a request, decoded."""
    found = []
    for part in parts(request):
        if part["type"] == "image_url":
            kind, data = part["image_url"]["url"].split(",", 1)
            assert kind == "data:image/png;base64"
            found.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")))
    return found


def sounds(request: Recorded) -> list[dict[str, Any]]:
    return [part for part in parts(request) if part["type"] in ("audio_url", "input_audio")]


def check_frames(
    found: list[tuple[int | None, float | None]], video: int, start: float, end: float
) -> None:
    """As many frames as were asked for, evenly spread over the window, each from its place.

    Raises:
        AssertionError: a frame is missing or comes from elsewhere.
    """
    first, last = math.ceil(start * TICKS - 1e-6), math.ceil(end * TICKS - 1e-6) - 1
    assert len(found) == N_FRAMES
    for frame, place in zip(found, np.linspace(first, last, N_FRAMES), strict=True):
        # Some readers round a place, others cut it off.
        assert frame in [(video, whole / TICKS) for whole in {math.floor(place), round(place)}]


def test_what_a_server_receives(
    over_the_wire: tuple[str, HostRun, list[Recorded]], tmp_path: Path
) -> None:
    interface, _, requests = over_the_wire
    shapes: Counter[tuple[bool, int, bool]] = Counter()
    heard: set[str] = set()
    for request in requests:
        text, frames, sound = last_user_text(request.json), pictures(request), sounds(request)
        shapes[bool(frames), len(sound), text.startswith("Subtitles")] += 1
        mode = "s" if text.startswith("Subtitles") else "av"  # modes with this very text
        (doc,) = (
            d for d in docs("choice", mode, "localized")[:N_DOCS] if names.doc_to_text(d) == text
        )
        video, start, end = source(doc)
        if frames:
            found = [reading.read_frame(frame) for frame in frames]
            check_frames(found, video, start, end)
        for part in sound:
            wav = tmp_path / f"{doc['id']}.wav"
            if interface == "simple":  # the bytes themselves
                wav.write_bytes(base64.b64decode(part["input_audio"]["data"]))
                reading.check_wav(str(wav), video, start, end)
            else:  # a path, which is why the table says "not delivered"; what it leads to is right
                reading.check_wav(part["audio_url"]["url"], video, start, end)
                heard.add(part["audio_url"]["url"])
    # A and V+A hand over the very same files: one signal, whatever stands beside it.
    assert len(heard) == (N_DOCS if interface == "chat" else 0)
    simple_av = 0 if interface == "simple" else 1  # the track of the mp4 is never opened
    assert shapes == Counter(
        {
            (False, 1, False): N_DOCS,  # A
            (False, 0, True): N_DOCS,  # S
            (True, 0, True): N_DOCS,  # V+S
        }
    ) + Counter([(True, 0, False)] * N_DOCS + [(True, simple_av, False)] * N_DOCS)


def test_a_run_says_that_the_sound_did_not_arrive(
    over_the_wire: tuple[str, HostRun, list[Recorded]],
) -> None:
    interface, run, _ = over_the_wire
    alone = "delivered" if interface == "simple" else "not delivered"
    section = run.results["lmms_eval_tasks"]["maverix"]
    assert section["sound"] == {"maverix_a": alone, "maverix_av": "not delivered"}
    for mode, status in {"a": alone, "av": "not delivered", "v": "", "s": "", "vs": ""}.items():
        items = [sample["failed"] for sample in run.samples(f"maverix_{mode}")]
        assert [item["sound"] for item in items] == [status] * N_DOCS
    warning = sound_table.warning("openai", interface, "video_and_audio")  # type: ignore[arg-type]
    assert warning is not None
    assert warning in section["warnings"]
    printed = " ".join(run.stdout.split())
    assert warning in printed
    assert "the sound does not reach" in printed
