"""Shared by the tests of CVRR-ES: its packaged sample, a small data root, a judge by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lmms_eval_tasks import settings
from tests.checks import look_at_texts
from tests.cvrr_es.scored import PART, TIME, Stated


@pytest.fixture(scope="session")
def sample_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged sample of CVRR-ES, in a data root of its own."""
    from lmms_eval_tasks import sample

    folder = tmp_path_factory.mktemp("cvrr_es_sample") / "cvrr_es"
    folder.mkdir()
    sample.write_sample("cvrr_es", folder)
    return folder


@pytest.fixture
def stated(monkeypatch: pytest.MonkeyPatch) -> Stated:
    """`Stated` as the user's judge."""
    from lmms_eval_tasks.host import task_functions

    judge = Stated()
    monkeypatch.setattr(task_functions, "usable", lambda config: judge)
    return judge


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is judged unless told, and nothing is remembered from another test."""
    monkeypatch.setenv(settings.JUDGE, "none")


@pytest.fixture
def user(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ROOT/cvrr_es: three questions on two videos, the first asked twice, and two on two others.

    Videos are empty files, which are taken for good ones; one with "bad" in it for a bad one.
    """
    from lmms_eval_tasks.media import video_checks
    from tests.cvrr_es.release_files import row, write

    monkeypatch.setenv(settings.DATA, str(tmp_path / "root"))
    monkeypatch.setenv(settings.CACHE, str(cache))
    folder = tmp_path / "root" / "cvrr_es"
    asked = ("What happens?", "What happens?", "Who is there?")
    right = ("A planted dog runs.", "A planted cat sleeps.", "Nobody planted is there.")
    videos = ("1.mp4", "2.mp4", "2.mp4")
    write(folder, PART, [row(*one) for one in zip(asked, right, videos, strict=True)])
    second = (("When?", "At planted noon.", "1.mp4"), ("Why?", "For planted fun.", "3.mp4"))
    write(folder, TIME, [row(*one) for one in second])
    for dimension, names in ((PART, ("1", "2")), (TIME, ("1", "3"))):
        for name in names:
            (folder / dimension / f"{name}.mp4").touch()
    monkeypatch.setattr(video_checks, "look", look_at_texts)
    return folder
