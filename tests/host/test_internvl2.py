"""A class whose `modality` holds for a whole run, and whose reader repeats a frame: its own code.

It asks for CUDA when it is built, so an object of it is made without that; the model in it is ours.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers.generation.utils import GenerationMixin

from lmms_eval_tasks import settings
from lmms_eval_tasks.host import plugin
from tests.checks import limits_of


class Chat(torch.nn.Module):
    """What the checkpoint's own code gives the class."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace()
        self.asked: list[tuple[str, int, int]] = []  # of each request: modality, pictures, marks
        self.modality = lambda: ""

    def chat(self, _: Any, pixels: Any, text: str, *__: Any, **___: Any) -> tuple[str, None]:
        self.asked.append((self.modality(), len(pixels), text.count("<image>")))
        with contextlib.suppress(AttributeError):  # no language model at all, but it was asked
            GenerationMixin.generate(SimpleNamespace(generation_config=None))
        return "A", None


def test_videos_and_pictures_in_one_run(
    sample_root: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(settings.DATA, str(sample_root))
    monkeypatch.setenv(settings.CACHE, str(cache))
    plugin.install()
    from lmms_eval import evaluator
    from lmms_eval.api.model import lmms
    from lmms_eval.models.simple.internvl2 import InternVL2

    model = Chat()

    def create(cls: Any, arguments: str, *_: Any) -> Any:
        lm = object.__new__(cls)
        lmms.__init__(lm)
        assert "modality=" in arguments
        lm._model, lm._tokenizer, lm._config = model, None, None
        lm.modality, lm.num_frame, lm._device = "nothing", 32, "cpu"
        lm._rank, lm._world_size, lm.batch_size_per_gpu = 0, 1, 1
        model.modality = lambda: lm.modality
        return lm

    monkeypatch.setattr(InternVL2, "create_from_arg_string", classmethod(create))
    monkeypatch.setitem(os.environ, "LMMS_EVAL_TASKS_FRESH", "1")
    results = evaluator.simple_evaluate(
        model="internvl2",
        model_args="pretrained=x,modality=video",
        tasks=["maia_vsv", "maia_vsv_1frame", "maia_vsv_black"],
        limit=2,
        verbosity="ERROR",
    )
    asked = sorted(model.asked)  # the host's order of tasks is its own
    assert [(one, marks) for one, _, marks in asked[:4]] == [("image", 1)] * 4
    assert asked[4:] == [("video", 32, 32)] * 2
    section = results["lmms_eval_tasks"]["maia"]
    assert "maia_vsv: the model saw 31 of 32 frames" in limits_of(section)
    assert "maia_vsv: 31 of 32 frames" in section["arrived"]
