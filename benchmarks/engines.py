"""The speed of one checkpoint on each engine: seconds of a reply to MAIA's pairs, and their ratios.

    out/test-engine/venv/bin/python benchmarks/engines.py      # made by `make test-engine`

A Qwen2.5-VL of 24 small layers with random weights answers `maia_vsv` of the packaged sample, 96
pairs on each of its clips. It runs through lmms-eval's own class, through `tasks_vllm` with and
without kept prefixes, and through `vllm serve`. The server gets the clip's file, the clip's frames
as PNG encoded once, or frames encoded for each question, as lmms-eval does. Each way is a complete
command, whose results give the model's time (`answered`), without the start. On a CPU, the model is
slow and pictures are cheap: ratios on a GPU are different.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from lmms_eval_tasks import settings

TEXT = {
    "hidden_size": 512,
    "intermediate_size": 1024,
    "num_hidden_layers": 24,
    "layer_types": ["full_attention"] * 24,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
}
VISION = {"depth": 8, "hidden_size": 128, "num_heads": 2, "out_hidden_size": 512}
PIXELS = "min_pixels=50176,max_pixels=100352"
VLLM = "max_model_len=16384,enforce_eager=True,dtype=float32"
BIN = Path(sys.executable).parent
# Encodes the frames of a clip anew for each question, because no file has a key.
ANEW = """
import runpy, sys
from lmms_eval_tasks.host.requests import endpoints
endpoints._key = lambda *_: ""
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Way(NamedTuple):
    """One way of running the checkpoint, with its number of pairs."""

    name: str
    model: str
    arguments: str
    limit: int
    anew: bool = False


def ways(folder: Path, limit: int) -> list[Way]:
    """Return the ways; the others are compared with the first. ADDRESS stands for the server's."""
    own = f"pretrained={folder},{PIXELS}"
    asked = f"model={folder},base_url=ADDRESS/v1,api_key=no,timeout=600,num_concurrent=16"
    return [
        Way(
            "qwen2_5_vl of lmms-eval", "qwen2_5_vl", f"{own},device=cpu,device_map=cpu", limit // 8
        ),
        Way("tasks_vllm", "tasks_vllm", f"{own},{VLLM}", limit),
        Way(
            "tasks_vllm, no kept prefixes",
            "tasks_vllm",
            f"{own},{VLLM},enable_prefix_caching=False",
            limit // 8,
        ),
        Way("server, by file", "openai", f"{asked},pass_video_url=True", limit // 2),
        Way("server, by frames", "openai", asked, limit // 8),
        Way("server, frames encoded anew", "openai", asked, limit // 8, anew=True),
    ]


def checkpoint(folder: Path) -> Path:
    """Build a checkpoint of 24 layers with random weights; return its folder."""
    from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration

    from lmms_eval_tasks.models import tiny

    small = tiny.build_checkpoint("qwen2_5_vl", folder / "tiny")
    config = AutoConfig.from_pretrained(small)
    for part, sizes in ((config.text_config, TEXT), (config.vision_config, VISION)):
        for name, value in sizes.items():
            setattr(part, name, value)
    made = folder / "layers24"
    shutil.copytree(small, made, ignore=shutil.ignore_patterns("*.safetensors"))
    Qwen2_5_VLForConditionalGeneration(config).save_pretrained(made)
    return made


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Run a server of the checkpoint, in the way of docs/models.md, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    how = {"videos_kwargs": {"do_sample_frames": False}}
    bounds = {name: int(value) for name, value in (one.split("=") for one in PIXELS.split(","))}
    command = [str(BIN / "vllm"), "serve", str(folder), "--port", address.rpartition(":")[2]]
    command += ["--allowed-local-media-path", "/", "--trust-request-mm-kwargs"]
    command += ["--media-io-kwargs", json.dumps({"video": {"video_backend": "opencv"}})]
    command += ["--mm-processor-kwargs", json.dumps({**how, **bounds})]
    command += ["--max-model-len", "16384", "--enforce-eager", "--dtype", "float32"]
    with (folder.parent / "server.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            while True:
                if process.poll() is not None:
                    sys.exit(
                        f"vllm serve ended: {(folder.parent / 'server.log').read_text()[-2000:]}"
                    )
                try:
                    with urllib.request.urlopen(f"{address}/health", timeout=5):
                        break
                except (urllib.error.URLError, OSError):
                    time.sleep(1)
            yield address
        finally:
            process.terminate()
            process.wait(60)


def seconds(way: Way, out: Path) -> float:
    """Return the seconds of a reply, from the results of a complete command."""
    shutil.rmtree(out, ignore_errors=True)
    before = ["-c", ANEW] if way.anew else []
    command = [sys.executable, *before, str(BIN / "lmms_eval"), "--model", way.model]
    command += ["--model_args", way.arguments, "--tasks", "maia_vsv", "--limit", str(way.limit)]
    command += ["--gen_kwargs", "max_new_tokens=4", "--output_path", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{way.name}: {done.stderr[-3000:]}")
    (file,) = out.rglob("*_results.json")
    answered = json.loads(file.read_text(encoding="utf-8"))["lmms_eval_tasks"]["answered"]
    return float(answered["seconds"] / answered["replies"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=int, default=192, help="pairs of the fastest ways")
    parser.add_argument("--only", default="", help="a part of the names of ways, beside the first")
    told = parser.parse_args(arguments)
    own = {settings.DATA: "sample", settings.JUDGE: "none", settings.FRESH: "1"}
    plain = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        os.environ.update({**own, **plain, settings.CACHE: str(root / "cache")})
        folder = checkpoint(root)
        found: dict[str, list[float]] = {}

        for _ in range(told.rounds):
            for number, way in enumerate(ways(folder, told.limit)):
                if number and told.only not in way.name:
                    continue
                # Each way has its own server, since a server keeps its computations, and two would
                # share processors.
                of_server = served(folder) if way.model == "openai" else nullcontext("")
                with of_server as address:
                    own = way._replace(arguments=way.arguments.replace("ADDRESS", address))
                    found.setdefault(way.name, []).append(seconds(own, root / "out"))
                print(f"{way.name}: {found[way.name][-1]:.3f} s", flush=True)
    first = statistics.median(next(iter(found.values())))
    print(f"{'':32} seconds a reply (each round)   times as fast")
    for name, spent in found.items():
        each = ", ".join(f"{one:.3f}" for one in spent)
        print(f"{name:32} {each:30} {first / statistics.median(spent):8.1f}")


if __name__ == "__main__":
    main()
