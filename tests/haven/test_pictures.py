"""The pictures of a doc: by sampled frame number, one decoding for all tasks of a video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import MediaError
from lmms_eval_tasks.haven import inputs, pictures
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.utils import worker_call
from tests.haven.docs import doc

SIZE = (64, 48)
N_FRAMES = 60
PICKS = [0, 4, 9, 17, 18, 23, 30, 37, 44, 50, 58, 59]


def grey(number: int) -> int:
    return 20 + 3 * number


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 frames; frame n is grey 20 + 3 n."""
    path = tmp_path_factory.mktemp("videos") / "video.mp4"
    shown = (np.full((SIZE[1], SIZE[0], 3), grey(n), np.uint8) for n in range(N_FRAMES))
    render.write_mp4(path, shown, 25, None, 0)
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the child process was asked to do."""
    asked: list[dict[str, Any]] = []
    work = worker_call.call

    def noted(job: dict[str, Any], *args: Any, **kwargs: Any) -> dict[str, Any]:
        asked.append(job)
        return work(job, *args, **kwargs)

    monkeypatch.setattr(worker_call, "call", noted)
    return asked


def frames_shown(images: list[Any]) -> list[int]:
    """The number of the video's frame that each picture shows."""
    return [round((float(np.asarray(image).mean()) - 20) / 3) for image in images]


def on(video: Path, task: str, **changes: Any) -> dict[str, Any]:
    return doc(task, video_path=str(video), picks=PICKS, **changes)


def test_numbers_are_those_of_the_sampled_frames(video: Path, cache: Path) -> None:
    asked = [12, 1, 5, 5, 4]
    images = pictures.pictures(on(video, "haven_v2t"), asked)
    assert frames_shown(images) == [PICKS[number - 1] for number in asked]
    assert {image.size for image in images} == {SIZE}


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if not task.text])
def test_a_request_shows_its_frames(task: str, video: Path, cache: Path) -> None:
    given = on(video, task)
    wanted = [PICKS[part - 1] for part in inputs.parts(given) if isinstance(part, int)]
    assert frames_shown(inputs.visuals(given)) == wanted
    sent = [item["url"] for item in inputs.content(given) if item["type"] == "image"]
    assert frames_shown(sent) == wanted
    assert len(wanted) == (12 if "v2" in task else 8)


def test_all_tasks_of_a_video_share_one_decoding(
    video: Path, cache: Path, jobs: list[dict[str, Any]]
) -> None:
    for task in TASKS:
        inputs.messages(on(video, task))
        inputs.visuals(on(video, task))
    assert [job["frames"]["indices"] for job in jobs] == [tuple(PICKS)]


def test_what_is_made_before_the_run_is_found_in_it(
    video: Path, cache: Path, jobs: list[dict[str, Any]]
) -> None:
    assert pictures.make(str(video), PICKS, 512).n_decoded > 0
    assert pictures.make(str(video), PICKS, 512).n_decoded == 0
    inputs.messages(on(video, "haven_saliency"))
    assert len(jobs) == 1


def test_a_proxy_opens_no_video(cache: Path) -> None:
    for task in TASKS:
        if task.endswith("_text"):
            gone = doc(task, video_path="/gone.mp4")
            assert inputs.visuals(gone) == []
            assert [item["type"] for item in inputs.content(gone)] == ["text"]


def test_the_size_is_an_option(video: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.HAVEN, "size=32")
    assert inputs.visuals(on(video, "haven_v2v"))[0].size == (32, 24)


@pytest.mark.parametrize("path", ["", "gone.mp4"])
def test_what_is_lost_during_the_run_is_one_line(path: str, cache: Path, tmp_path: Path) -> None:
    gone = str(tmp_path / path) if path else ""
    with pytest.raises(MediaError, match=r"^tvsum/video_7: its frames cannot be read") as error:
        inputs.messages(doc("haven_temporal", video_path=gone))
    assert "\n" not in str(error.value)
    assert "--allow-bad-items" in str(error.value)


def test_a_pick_beyond_the_end_is_named(video: Path, cache: Path) -> None:
    with pytest.raises(MediaError, match=r"video\.mp4: has no frame 60: it has 60 frames"):
        pictures.make(str(video), [0, 59, 60], 512)
