"""A clip with an odd number of frames is read with the largest even number of them."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import av
import numpy as np
import pytest

pytest.importorskip("decord")
pytest.importorskip("qwen_vl_utils")

from lmms_eval.models.simple import qwen3_vl  # noqa: E402


def _clip(folder, frames):
    path = str(folder / f"{frames}.mp4")
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 64
        for level in range(frames):
            picture = np.full((64, 64, 3), 4 * level, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())
    return path


def test_simple_qwen3_vl_reads_an_odd_clip(tmp_path):
    model = MagicMock(spec=qwen3_vl.Qwen3_VL, task_dict={"a": {"test": [{}]}}, max_num_frames=32, interleave_visuals=False, reasoning_prompt=None, batch_size=1, min_pixels=784, max_pixels=12544, system_prompt="")
    model.processor = MagicMock()
    model._build_video_kwargs.return_value = {"nframes": 32}
    request = SimpleNamespace(args=("What is seen?", {"until": []}, lambda doc: [_clip(tmp_path, 31)], 0, "a", "test"))
    qwen3_vl.Qwen3_VL._preprocess_chunk(model, [request.args])
    (video,) = model.processor.call_args.kwargs["videos"]
    assert len(video) == 30
