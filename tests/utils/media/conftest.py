"""A small source video, a coded one, and a cache folder for the tests of media."""

import media_files as files
import pytest

from lmms_eval_tasks import settings


@pytest.fixture(autouse=True)
def shared_cache(tmp_path_factory, monkeypatch):
    """What is made goes to no user's cache, and waits for no other process."""
    monkeypatch.setenv(settings.CACHE, str(tmp_path_factory.getbasetemp() / "own cache"))


@pytest.fixture
def cache(shared_cache, tmp_path, monkeypatch):
    """The folder of clips and segments of an empty cache."""
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "media"


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """90 frames, 3.6 s, B-frames, key frames every 12, with sound."""
    return files.write_video(tmp_path_factory.mktemp("source") / "some video.mp4", audio=True)


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A coded clip: 8 s, B-frames, one key frame, stereo."""
    return files.write_coded(tmp_path_factory.mktemp("coded") / "coded.mp4")
