"""What the host's readers make of our clips: the frames that were put in, all of them, once.

Each reader is called as the model classes named beside it call it, with 32 frames as their limit.
"""

import media_files as files
import numpy as np
import pytest

from lmms_eval_tasks.media.clip_specs import MediaSpec, make_clip_file, uniform_indices
from tests.checks import table

vision = pytest.importorskip("qwen_vl_utils.vision_process", reason="no qwen-vl-utils")
load_video = pytest.importorskip("lmms_eval.models.model_utils.load_video")

LIMIT = 32
PIXELS = {"min_pixels": 784, "max_pixels": 12_544}  # as the tiny checkpoint of the tests is run


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """30 s at 25 frames a second, as long as MAIA's: Qwen's sampling counts seconds."""
    path = tmp_path_factory.mktemp("source") / "v.mp4"
    return files.write_video(path, 750, options={"preset": "ultrafast", "crf": "30"})


@pytest.fixture
def media(source):
    recipes = {
        "uniform": MediaSpec("uniform", LIMIT),
        "black": MediaSpec("black", LIMIT),
        "still": MediaSpec("first_frame", still=True),
        "image": MediaSpec("first_frame"),
    }
    return {name: make_clip_file(source, recipe) for name, recipe in recipes.items()}


def chat_qwen(path):
    """models/chat/qwen2_5_vl.py: decord counts, then an even number of frames is asked for."""
    import decord

    total = len(decord.VideoReader(path))
    nframes = max(2, min(LIMIT, total) // 2 * 2)
    return vision._read_video_decord({"video": path, "nframes": nframes, **PIXELS})


def test_qwens_reader_gets_the_frames_and_their_rate(source, media):
    clip = media["uniform"]
    video, facts, rate = chat_qwen(clip.path)
    assert facts["video_backend"] == "decord"
    assert list(facts["frames_indices"]) == list(range(32))
    assert facts["fps"] == pytest.approx(32 / 30, abs=1e-4)
    assert rate == pytest.approx(32 / 30, abs=1e-4)
    expected = files.decord_frames(source, uniform_indices(750, 32))
    assert np.array_equal(video.permute(0, 2, 3, 1).numpy(), expected)
    black, _, _ = chat_qwen(media["black"].path)
    assert (tuple(black.shape), black.max()) == ((32, 3, 64, 96), 0)
    still, _, rate = chat_qwen(media["still"].path)
    assert rate == pytest.approx(2.0)
    assert np.array_equal(still.permute(0, 2, 3, 1).numpy(), expected[:1].repeat(4, axis=0))
    assert vision.fetch_image({"image": media["image"].path}).mode == "RGB"


@table(
    "reader",
    [
        lambda path: load_video.read_video(path, num_frm=LIMIT),  # llava_onevision and more
        lambda path: load_video.read_video(path, num_frm=LIMIT, force_include_last_frame=True),
        lambda path: load_video.load_video_decord(path, LIMIT),
    ],
)
def test_the_hosts_loaders_get_the_frames_that_they_would_choose(source, media, reader):
    frames = reader(media["uniform"].path)
    assert np.array_equal(frames, reader(str(source)))
    assert (reader(media["still"].path) == frames[:1]).all()
