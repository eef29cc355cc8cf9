"""The pictures of a doc: by sampled frame number, one decoding for all tasks of a video."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.haven import inputs
from lmms_eval_tasks.haven.options import TASKS
from lmms_eval_tasks.host.task_functions import doc_to_visual
from lmms_eval_tasks.sample import render
from lmms_eval_tasks.utils.media import worker
from tests.haven.docs import chat, doc

SIZE = (64, 48)
N_FRAMES = 60
PICKS = [0, 4, 9, 17, 18, 23, 30, 37, 44, 50, 58, 59]


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 frames; frame n is grey 20 + 3 n."""
    path = tmp_path_factory.mktemp("videos") / "video.mp4"
    shown = (np.full((SIZE[1], SIZE[0], 3), 20 + 3 * n, np.uint8) for n in range(N_FRAMES))
    render.Clip(lambda: shown, 25).write(path)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the child process was asked to do."""
    asked: list[dict[str, Any]] = []
    work = worker.call

    def noted(*job: Any, **arguments: Any) -> dict[str, Any]:
        asked.append(arguments)
        return work(*job, **arguments)

    monkeypatch.setattr(worker, "call", noted)
    return asked


def frames_shown(images: list[Any]) -> list[int]:
    """The number of the video's frame that each picture shows."""
    return [round((float(np.asarray(image).mean()) - 20) / 3) for image in images]


def on(video: Path, task: str, **changes: Any) -> dict[str, Any]:
    return doc(task, video_path=str(video), picks=PICKS, **changes)


def test_every_request_shows_its_frames_from_one_decoding(
    video: Path, jobs: list[dict[str, Any]]
) -> None:
    inputs.sampled_frames(str(video), PICKS)  # as before the run
    for task in TASKS:
        given = on(video, task)
        sent = [part for part in chat(given) if not isinstance(part, str)]
        numbers = [n for group in given["unit_frames"] for n in group] or list(range(1, 13))
        wanted = [] if TASKS[task].text else [PICKS[n - 1] for n in numbers]
        assert frames_shown(sent) == frames_shown(doc_to_visual(given)) == wanted
        assert len(wanted) == given["n_images"]
    assert [job["indices"] for job in jobs] == [tuple(PICKS)]
    assert frames_shown(inputs.pictures(str(video), PICKS, [12, 5, 5])) == [59, 18, 18]
