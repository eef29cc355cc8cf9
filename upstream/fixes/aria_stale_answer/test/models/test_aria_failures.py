"""A request that fails in `aria` has one answer, an empty one."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from PIL import Image

pytest.importorskip("decord")

from lmms_eval.models.simple.aria import Aria  # noqa: E402


@pytest.fixture
def lm():
    lm = Aria.__new__(Aria)
    lm._rank, lm._device, lm.batch_size_per_gpu, lm.max_frames_num = 0, "cpu", 1, 4
    lm._tokenizer = SimpleNamespace(encode=lambda *args, **kwargs: [1])
    lm.accelerator = SimpleNamespace(is_main_process=False, unwrap_model=lambda model: model)
    lm.cache_hook = MagicMock()
    lm.task_dict = {"a": {"test": [{}] * 3}}
    lm._image_processor = MagicMock(side_effect=lambda text, **kwargs: {"pixel_values": torch.zeros(1), "input_ids": torch.tensor([[int(text)]])})
    lm._image_processor.apply_chat_template = lambda messages, **kwargs: messages[0]["content"][-1]["text"]
    lm._image_processor.decode = lambda output, **kwargs: f"answer {int(output[0])}"
    lm._model = MagicMock(dtype=torch.float32)
    lm._model.generate = lambda input_ids, **kwargs: torch.cat([input_ids, input_ids], dim=1)
    return lm


def _requests(visual):
    return [SimpleNamespace(args=(str(number), {}, lambda doc: [visual], number, "a", "test")) for number in range(3)]


def test_a_failed_generation_does_not_repeat_the_previous_answer(lm):
    def generate(input_ids, **kwargs):
        if int(input_ids[0]) == 1:
            raise RuntimeError("out of memory")
        return torch.cat([input_ids, input_ids], dim=1)

    lm._model.generate = generate
    assert lm.generate_until(_requests(Image.new("RGB", (4, 4)))) == ["answer 0", "", "answer 2"]


def test_an_unreadable_video_has_one_answer(lm):
    lm.load_video = MagicMock(side_effect=[[], RuntimeError("no such clip"), []])
    assert lm.generate_until(_requests("clip.mp4")) == ["answer 0", "", "answer 2"]
