"""A small source video, a coded one, and a cache folder for the tests of media."""

import textwrap

import media_files as files
import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.utils.media import worker


@pytest.fixture(autouse=True)
def shared_cache(tmp_path_factory, monkeypatch):
    """What is made goes to no user's cache, and waits for no other process."""
    monkeypatch.setenv(settings.CACHE, str(tmp_path_factory.getbasetemp() / "own cache"))


@pytest.fixture
def cache(shared_cache, tmp_path, monkeypatch):
    """The folder of clips and segments of an empty cache."""
    monkeypatch.setenv(settings.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "media"


@pytest.fixture
def jobs(monkeypatch):
    """The jobs that the worker is given."""
    given, work = [], worker.call
    monkeypatch.setattr(worker, "call", lambda *job, **how: given.append(job) or work(*job, **how))
    return given


@pytest.fixture
def fake_worker(tmp_path, monkeypatch):
    """Puts other code in the place of worker.py in new children."""

    def put(code):
        (tmp_path / "fake_worker.py").write_text(textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.setattr(worker, "WORKER", "fake_worker")
        worker.end_waiting()

    yield put
    worker.end_waiting()


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """90 frames, 3.6 s, B-frames, key frames every 12, with sound."""
    return files.write_video(tmp_path_factory.mktemp("source") / "some video.mp4", audio=True)


@pytest.fixture(scope="session")
def source(tmp_path_factory):
    """A coded clip: 8 s, B-frames, one key frame, stereo."""
    return files.write_coded(tmp_path_factory.mktemp("coded") / "coded.mp4")
