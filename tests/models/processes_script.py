"""Run by test_processes.py, alone or as one of two ranks: several models on one small task.

    python processes_script.py FOLDER NAME [LABEL ...]

FOLDER holds `tasks/`, `key.json`, the checkpoints and the videos; what the models replied is
written to FOLDER/NAME.json. With labels only those models run, through simple_evaluate alone;
without, all of them, after the host's command line has set up its processes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

QWEN = (
    "pretrained={0}/qwen2_5_vl,device=cpu,device_map=cpu,min_pixels=784,max_pixels=12544,"
    "max_num_frames=4"
)
RUNS = [
    ("oracle", "tasks_oracle", "key={0}/key.json", False),
    ("oracle simple", "tasks_oracle", "key={0}/key.json", True),
    ("coin", "tasks_coin", "key={0}/key.json,seed=1", False),
    ("scripted", "tasks_scripted", "", False),
    ("lm_pairs", "lm_pairs", "pretrained={0}/gpt2,{0}/llama,dtype=float32", False),
    ("qwen chat", "qwen2_5_vl", QWEN, False),
    ("qwen simple", "qwen2_5_vl", QWEN, True),
]


def main(folder: Path, name: str, labels: list[str]) -> None:
    from accelerate import Accelerator
    from lmms_eval.evaluator import simple_evaluate
    from lmms_eval.tasks import TaskManager

    manager = TaskManager("ERROR", include_path=str(folder / "tasks"))
    if not labels:
        Accelerator()  # the first thing that lmms_eval.__main__ does
    replies = {}
    for label, model, arguments, force_simple in RUNS:
        if labels and label not in labels:
            continue
        started = time.perf_counter()
        results = simple_evaluate(
            model=model,
            model_args=arguments.format(folder),
            tasks=["tiny_pairs"],
            task_manager=manager,
            batch_size=1,
            force_simple=force_simple,
            log_samples=True,
            distributed_executor_backend=backend(),
        )
        if results is not None:
            items = [sample["acc"] for sample in results["samples"]["tiny_pairs"]]
            replies[label] = {
                "acc": results["results"]["tiny_pairs"]["acc,none"],
                "items": sorted(items, key=lambda item: item["id"]),
                "seconds": time.perf_counter() - started,
            }
    if replies:
        (folder / f"{name}.json").write_text(json.dumps(replies), encoding="utf-8")


def backend() -> str:
    """As the host's own command line chooses it."""
    import torch

    return "torchrun" if torch.distributed.is_initialized() else "accelerate"


def leave() -> None:
    """End at once. Unloading the decoders of Qwen's reader was once seen to abort a rank (exit -6,
    "terminate called without an active exception") after all work was done and written."""
    import torch

    if torch.distributed.is_initialized():
        torch.distributed.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
    leave()
