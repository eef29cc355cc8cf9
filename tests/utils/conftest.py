"""A small source video and a cache folder for the tests of media."""

from __future__ import annotations

import media_files as files
import pytest
import segment_files as coded
from hypothesis import HealthCheck, settings

from lmms_eval_tasks import settings as app_settings

# A machine that is busy is no failure of a property.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """What is found out about videos goes to no user's cache, and waits for no other process."""
    monkeypatch.setenv(app_settings.CACHE, str(tmp_path_factory.getbasetemp() / "own cache"))


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """90 frames, 3.6 s, B-frames, key frames every 12, with sound."""
    return files.write_video(tmp_path_factory.mktemp("source") / "some video.mp4", audio=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A clip with a colour and a tone for every second: 8 s, B-frames, one key frame, stereo."""
    return coded.write(tmp_path_factory.mktemp("coded") / "coded.mp4")
