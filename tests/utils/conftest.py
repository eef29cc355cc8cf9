"""A small source video and a cache folder for the tests of media."""

import media_files as files
import pytest


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """90 frames, 3.6 s, B-frames, key frames every 12, with sound."""
    return files.write_video(tmp_path_factory.mktemp("source") / "some video.mp4", audio=True)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")
