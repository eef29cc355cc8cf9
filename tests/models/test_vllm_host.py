"""`tasks_vllm` through the host on the sample: what an engine would be given (stub_vllm)."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from lmms_eval_tasks import benchmarks
from lmms_eval_tasks.host import names
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.sample.second_code import TICKS
from lmms_eval_tasks.utils.media.recipes import uniform_indices
from tests.conftest import HostRun, Launch
from tests.maverix import reading
from tests.models import vllm_checkpoint

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("on_sample")]

STUB = Path(__file__).parent / "stub_vllm"
LIMITS = {"maia_vsv": 3, "maia_vsv_1frame": 3, "maverix_av": 2, "haven_v2t": 2}


class Given(NamedTuple):
    """One request to the engine: what it was told, and its media by name."""

    told: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Ran(NamedTuple):
    """One task's run."""

    run: HostRun
    given: list[Given]


@pytest.fixture(scope="module")
def runs(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    folder = tmp_path_factory.mktemp("vllm")
    checkpoint = vllm_checkpoint.build(folder / "checkpoint")
    kept = folder / "given"
    kept.mkdir()
    config = [
        {
            "model": "tasks_vllm",
            "model_args": f"pretrained={checkpoint},max_model_len=99999",
            "batch_size": 2,
            "tasks": task,
            "limit": limit,
            "log_samples": True,
            "output_path": str(folder / task),
        }
        for task, limit in LIMITS.items()
    ]
    file = folder / "config.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    command = [sys.executable, str(STUB / "host.py"), "--config", str(file)]
    done = launch(command, folder, env={"STUB_VLLM": str(kept)})
    assert done.code == 0, done.stderr[-5000:]
    return {
        task: Ran(
            dataclasses.replace(done, out=folder / task),
            [
                Given(json.loads(one.read_text("utf-8")), dict(np.load(one.with_suffix(".npz"))))
                for one in sorted(kept.glob(f"{number}-*.json"))
            ],
        )
        for number, task in enumerate(LIMITS, 1)
    }


def docs(task: str) -> list[Any]:
    return list(before.docs(benchmarks.of(task), task)[: LIMITS[task]])


def shown(doc: Any) -> list[dict[str, Any]]:
    (message,) = names.doc_to_messages(doc)
    found = message["content"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("task", LIMITS)
def test_every_request_is_asked_as_its_task_says(task: str, runs: dict[str, Ran]) -> None:
    run, given = runs[task]
    assert len(given) == LIMITS[task]
    assert [item["reply"] for item in run.items(task)] == ["A"] * LIMITS[task]
    for sample, one in zip(run.samples(task), given, strict=True):
        assert sample["token_counts"][0]["output_tokens"] == 2
        seen, arrays = sample["failed"]["arrived"], one.arrays
        assert seen["at"] == "engine"
        assert seen["frames"] == seen["distinct"] == len(arrays.get("video0", ()))
        assert seen["pictures"] == sum(name.startswith("image") for name in arrays)
        assert seen["seconds"] == pytest.approx(len(arrays.get("audio0", ())) / 16_000)
    for doc, one in zip(docs(task), given, strict=True):
        written = "".join(part.get("text") or f"<{part['type']}>" for part in shown(doc))
        assert one.told["prompt"] == f"user: {written} assistant:"
        params = one.told["params"]
        limit = run.results["configs"][task]["generation_kwargs"]["max_new_tokens"]
        assert (params["max_tokens"], params["temperature"], params["stop"]) == (limit, 0.0, [])
        assert one.told["tokenization"] == {"add_special_tokens": False}


def test_a_clip_arrives_whole(runs: dict[str, Ran]) -> None:
    """All 32 frames of MAIA's clip, to the pixel, at the clip's own rate."""
    import av

    for doc, one in zip(docs("maia_vsv"), runs["maia_vsv"].given, strict=True):
        with av.open(shown(doc)[0]["url"]) as file:
            rate = float(file.streams.video[0].average_rate)
            clip = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
        assert list(one.arrays) == ["video0"]
        assert len(clip) == 32
        assert np.array_equal(one.arrays["video0"], np.stack(clip))
        (told,) = one.told["metadata"]
        assert told["frames_indices"] == list(range(32))
        assert told["fps"] == pytest.approx(rate, rel=0.01)


def test_pictures_arrive_in_their_order(runs: dict[str, Ran]) -> None:
    for task in ("maia_vsv_1frame", "haven_v2t"):
        for doc, one in zip(docs(task), runs[task].given, strict=True):
            pictures = [part["url"] for part in shown(doc) if part["type"] == "image"]
            assert list(one.arrays) == [f"image{number}" for number in range(len(pictures))]
            for picture, array in zip(pictures, one.arrays.values(), strict=True):
                assert np.array_equal(np.asarray(picture), array)
    assert len(runs["haven_v2t"].given[0].arrays) > 2


def test_a_segment_arrives_as_uniform_frames_with_its_sound(runs: dict[str, Ran]) -> None:
    """By the code of the sample: 32 frames of the window, or all of a shorter one."""
    for doc, one in zip(docs("maverix_av"), runs["maverix_av"].given, strict=True):
        video, start, end = reading.source(doc)
        first = math.ceil(start * TICKS - 1e-6)
        count = math.ceil(end * TICKS - 1e-6) - first
        places = uniform_indices(count, 32)
        found = [reading.read_frame(frame) for frame in one.arrays["video0"]]
        assert found == [(video, (first + place) / TICKS) for place in places]
        assert one.told["metadata"][0]["frames_indices"] == places
        assert one.told["metadata"][0]["total_num_frames"] == count
        assert one.told["rates"] == [16_000]
        reading.check_sound(one.arrays["audio0"], 16_000, video, start, end)
