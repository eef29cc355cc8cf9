"""Items a second, and the GPU's idle time, with our clips and with the source videos.

    python benchmarks/gpu.py --data ../shared/data                      # random weights of 7B
    python benchmarks/gpu.py --data ../shared/data --tiny --device cpu  # the same path, anywhere

A Qwen2.5-VL with random weights answers maia_vsv through lmms-eval's class `qwen2_5_vl`, in turn
from our clips and from their source videos. Its answers are cut at `--tokens`, because random
weights never stop, while a trained model answers with a letter. The speed of the 7B depends on its
size, not on its weights.

The output has three figures for both: items a second over the class's own calls; the seconds of an
item in which its file is read (decoded, frames picked and resized, the only part that a clip
changes); and the share of the time in which the GPU ran no kernel (100 % minus nvidia-smi's
utilization, ten readings a second). Then follows the ratio of the items a second.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

from lmms_eval_tasks import settings

# Sizes of Qwen2.5-VL-7B-Instruct, including its vocabulary, of which the tokenizer uses little.
TEXT = {
    "vocab_size": 152_064,
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_hidden_layers": 28,
    "layer_types": ["full_attention"] * 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
}
MROPE = [16, 24, 24]
VISION = {
    "depth": 32,
    "hidden_size": 1280,
    "intermediate_size": 3420,
    "num_heads": 16,
    "out_hidden_size": 3584,
    "fullatt_block_indexes": [7, 15, 23, 31],
}


class Measured(NamedTuple):
    """The figures of one run.

    items: number of replies. seconds: time in the class; reading: part of it in reading videos.
    used: sum of the readings of GPU use in percent; samples: number of these readings.
    """

    items: int
    seconds: float
    reading: float
    used: int
    samples: int


def checkpoint(folder: Path, tiny: bool, device: str) -> Path:
    """Build a checkpoint with random weights, and return its folder.

    The large one is made on the device on which it runs.
    """
    from lmms_eval_tasks.models import tiny as recipes
    from lmms_eval_tasks.utils.released_files import put_folder

    small = recipes.build_checkpoint("qwen2_5_vl", folder / "tiny")
    if tiny or (folder / "7b" / "config.json").is_file():
        return small if tiny else folder / "7b"
    import torch
    from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration

    config = AutoConfig.from_pretrained(small)
    for part, sizes in ((config.text_config, TEXT), (config.vision_config, VISION)):
        for name, value in sizes.items():
            setattr(part, name, value)
    config.text_config.rope_parameters["mrope_section"] = MROPE

    def save(new: Path) -> None:
        no_weights = shutil.ignore_patterns("*.safetensors")
        shutil.copytree(small, new, ignore=no_weights, dirs_exist_ok=True)
        torch.set_default_dtype(torch.bfloat16)
        with torch.device(device):
            model = Qwen2_5_VLForConditionalGeneration(config)
        torch.set_default_dtype(torch.float32)
        model.save_pretrained(new)

    put_folder(folder / "7b", save)
    torch.cuda.empty_cache()
    return folder / "7b"


@contextmanager
def watched() -> Iterator[list[int]]:
    """Collect the GPU's use in percent, ten times a second, while the context lasts.

    The list stays empty without nvidia-smi.
    """
    used: list[int] = []
    if not shutil.which("nvidia-smi"):
        yield used
        return
    asked = [
        "--query-gpu=utilization.gpu",
        "--format=csv,noheader,nounits",
        "-lms",
        "100",
        "-i",
        "0",
    ]
    with subprocess.Popen(["nvidia-smi", *asked], stdout=subprocess.PIPE, text=True) as process:

        def read() -> None:
            for line in process.stdout or ():
                used.append(int(line))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        try:
            yield used
        finally:
            process.terminate()
            thread.join()


def run(model: str, limit: int, tokens: int) -> Measured:
    """Run the first `limit` pairs through lmms-eval; return the figures."""
    from lmms_eval import evaluator
    from lmms_eval.models.chat import qwen2_5_vl

    spent = {"generating": 0.0, "reading": 0.0}
    used: list[int] = []

    def timed(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            found = whole(*args, **kwargs)
            spent[name] += time.perf_counter() - start
            return found

        return call

    model_class = qwen2_5_vl.Qwen2_5_VL
    generate = timed("generating", model_class.generate_until)
    read = timed("reading", qwen2_5_vl.process_vision_info)

    def observed(self: Any, requests: list[Any]) -> list[Any]:
        with watched() as samples:
            found: list[Any] = generate(self, requests)
        used.extend(samples)
        return found

    with (
        mock.patch.object(model_class, "generate_until", observed),
        mock.patch.object(qwen2_5_vl, "process_vision_info", read),
    ):
        results = evaluator.simple_evaluate(
            model="qwen2_5_vl",
            model_args=model,
            tasks=["maia_vsv"],
            limit=limit,
            gen_kwargs=f"max_new_tokens={tokens}",
            verbosity="ERROR",
        )
    number = len(results["samples"]["maia_vsv"])
    return Measured(number, *spent.values(), sum(used), len(used))


def main() -> None:
    """Run both in turn and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="data root with maia/")
    parser.add_argument("--folder", type=Path, help="where checkpoints are kept")
    parser.add_argument("--tiny", action="store_true", help="the tiny checkpoint")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--limit", type=int, default=192, help="pairs; 192 are of one video")
    parser.add_argument("--tokens", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    os.environ[settings.DATA] = str(given.data.resolve())
    os.environ[settings.FRESH] = "1"
    folder = given.folder or Path(tempfile.gettempdir()) / "lmms-eval-tasks-gpu"
    from lmms_eval_tasks.host import plugin

    plugin.install()
    made = checkpoint(folder, given.tiny, given.device)
    model = f"pretrained={made},device={given.device},device_map={given.device}"
    from lmms_eval_tasks.maia import tasks

    clip = tasks.media_of
    of_video = lambda doc: SimpleNamespace(**{**vars(clip(doc)), "path": doc["video_path"]})  # noqa: E731
    total: dict[str, list[Measured]] = {"clips": [], "videos": []}
    for _ in range(given.rounds):
        for name, shown in (("clips", clip), ("videos", of_video)):
            tasks.media_of = shown
            total[name].append(run(model, given.limit, given.tokens))
    tasks.media_of = clip
    rates = {}
    for name, runs in total.items():
        items, seconds, reading, used, samples = map(sum, zip(*runs, strict=True))
        rates[name] = items / seconds
        waits = f"{1 - used / samples / 100:.1%} idle" if samples else "GPU not observed"
        print(
            f"{name:7} {items} items, {rates[name]:.3f} a second, {reading / items:.3f} s of each "
            f"in reading its file, {waits}"
        )
    print(f"clips/videos {rates['clips'] / rates['videos']:.2f}")


if __name__ == "__main__":
    sys.exit(main())
