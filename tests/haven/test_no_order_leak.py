"""Nothing in a temporal request tells the order but what the pictures and sentences show.

Everything in the docs here that could is a rare token, which is searched for in the whole request:
messages and text, and what each picture object carries along.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.host.task_functions import doc_to_visual
from tests.haven.docs import chat, doc, text
from tests.media import media_files as files

ID, VIDEO, FILE, FOLDER = "zqid7719", "zqvideo8821", "zqfile9937", "zqfolder6613"
DIGEST, SOURCE = "zqdigest5527", "zqsource4451"
N_FRAMES, FIRST = 400, 100


def found_in(told: str, secrets: set[str]) -> list[str]:
    """Numbers are found as whole numbers, names anywhere."""
    forms = {one: rf"(?<![\d.]){re.escape(one)}(?![\d.]*\d)" for one in secrets if one[0].isdigit()}
    return [one for one in secrets if re.search(forms.get(one, one), told)]


def test_no_number_or_name_of_the_video_and_no_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every number of the video has three digits and occurs nowhere else.

    Sampled frame n is frame 100 + n of the video; the shots shown are 151, 142, 163, 133 of 200.
    """
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    (tmp_path / FOLDER).mkdir()
    video = str(files.write_video(tmp_path / FOLDER / f"{FILE}.mp4", N_FRAMES, (64, 48)))
    n_picks = N_FRAMES - FIRST - 1
    names = {"id": ID, "source": SOURCE, "video": VIDEO, "video_path": video, "data": DIGEST}
    names["picks"] = [FIRST + 1 + place for place in range(n_picks)]
    for task in ("haven_temporal", "haven_temporal_doc", "haven_temporal_text"):
        given = {**doc(task, frames=n_picks, shots=200, units=[151, 142, 163, 133]), **names}
        frames = [number for group in given["unit_frames"] for number in group]
        picks = [given["picks"][number - 1] for number in frames]
        rates = [(rate, digits) for rate in (25, 30) for digits in (1, 2)]
        seconds = {f"{pick / rate:.{digits}f}" for pick in picks for rate, digits in rates}
        numbers = {str(number) for number in (*given["units"], *frames, *picks)}
        secrets = {*numbers, *seconds, ID, VIDEO, FILE, FOLDER, DIGEST, SOURCE}
        assert len(secrets) >= (10 if task.endswith("_text") else 30)
        parts = chat(given)
        texts = [part for part in parts if isinstance(part, str)]
        for told in (*texts, *(text(given, mark) for mark in ("<image>", "<image {n}>", ""))):
            assert found_in(told, secrets) == []
            # Nor any other number than places in the request, how many, and image places.
            assert {int(number) for number in re.findall(r"\d+", told)} <= set(range(1, 9))
        images = [part for part in parts if not isinstance(part, str)] + doc_to_visual(given)
        assert len(images) == 2 * given["n_images"]
        assert bool(images) != task.endswith("_text")
        for image in images:
            assert not hasattr(image, "filename")
            assert (image.info, len(image.getexif())) == ({}, 0)
            # All that the object holds, but for what is printed as an address: its pixels, and
            # its metadata, which are none.
            held = {k: value for k, value in vars(image).items() if k not in ("im", "_im", "_exif")}
            assert found_in(repr(held), secrets) == []
