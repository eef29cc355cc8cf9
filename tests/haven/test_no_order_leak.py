"""Nothing in a temporal request tells the order but what the pictures and sentences show.

Everything in the docs here that could is a rare token, which is searched for in the whole request:
messages and text, and what each picture object carries along.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host.names import doc_to_messages, doc_to_visual
from tests.haven.docs import doc, text
from tests.utils import media_files as files

TEMPORAL = ["haven_temporal", "haven_temporal_doc", "haven_temporal_text"]
ID, VIDEO, FILE, FOLDER = "zqid7719", "zqvideo8821", "zqfile9937", "zqfolder6613"
SECRETS = (ID, VIDEO, FILE, FOLDER, "zqdigest5527", "zqsource4451")
N_FRAMES, FIRST = 400, 100
PLACEHOLDERS = ("<image>", "<image {n}>", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("leak") / FOLDER
    made.mkdir()
    return made


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def video(folder: Path) -> str:
    return str(files.write_video(folder / f"{FILE}.mp4", N_FRAMES, (64, 48)))


def marked(task: str, video: str) -> dict[str, Any]:
    """A doc whose every number of the video has three digits and occurs nowhere else.

    Sampled frame n is frame 100 + n of the video; the shots shown are 151, 142, 163, 133 of 200.
    """
    n_picks = N_FRAMES - FIRST - 1
    units = [151, 142, 163, 133]
    return {
        **doc(task, frames=n_picks, shots=200, units=units),
        "id": ID,
        "source": SECRETS[5],
        "video": VIDEO,
        "video_path": video,
        "data": SECRETS[4],
        "picks": [FIRST + 1 + place for place in range(n_picks)],
    }


def secrets_of(given: dict[str, Any]) -> set[str]:
    """Numbers and names that tell a place in the video, as they would stand in a request."""
    frames = [number for group in given["unit_frames"] for number in group]
    picks = [given["picks"][number - 1] for number in frames]
    numbers = {*given["units"], *frames, *picks}
    seconds = {
        f"{pick / rate:.{digits}f}" for pick in picks for rate in (25, 30) for digits in (1, 2)
    }
    return {*map(str, numbers), *seconds, *SECRETS}


def found_in(text: str, secrets: set[str]) -> list[str]:
    """Numbers are found as whole numbers, names anywhere."""
    return [
        secret
        for secret in secrets
        if re.search(
            rf"(?<![\d.]){re.escape(secret)}(?![\d.]*\d)" if secret[0].isdigit() else secret, text
        )
    ]


def texts_of(given: dict[str, Any]) -> Iterator[str]:
    for item in doc_to_messages(given)[0]["content"]:
        if item["type"] == "text":
            yield item["text"]
    for placeholder in PLACEHOLDERS:
        yield text(given, placeholder)


def images_of(given: dict[str, Any]) -> list[Any]:
    sent = [item["url"] for item in doc_to_messages(given)[0]["content"] if item["type"] == "image"]
    return [*sent, *doc_to_visual(given)]


@pytest.mark.parametrize("task", TEMPORAL)
def test_no_number_or_name_of_the_video_is_in_the_texts(task: str, video: str, cache: None) -> None:
    given = marked(task, video)
    secrets = secrets_of(given)
    assert len(secrets) >= (10 if task.endswith("_text") else 30)
    for told in texts_of(given):
        assert found_in(told, secrets) == []
        # Nor any other number than places in the request, how many there are, and image places.
        assert {int(number) for number in re.findall(r"\d+", told)} <= set(range(1, 9))


@pytest.mark.parametrize("task", TEMPORAL[:2])
def test_no_picture_carries_a_note(task: str, video: str, cache: None) -> None:
    given = marked(task, video)
    secrets = secrets_of(given)
    images = images_of(given)
    assert len(images) == 2 * sum(map(len, given["unit_frames"])) > 0
    for image in images:
        assert not hasattr(image, "filename")
        assert image.info == {}
        # All that the object holds, but for the pixels, whose printed form is an address.
        told = {name: value for name, value in vars(image).items() if name not in ("im", "_im")}
        assert found_in(repr(told), secrets) == []
        assert len(image.getexif()) == 0
