"""GPUs for the engines of a run of several processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from lmms_eval_tasks.errors import TasksError

# What torchrun and accelerate tell a process: an engine that finds it would wait for other ranks.
_LAUNCHER = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_")


@contextmanager
def own(count: int) -> Iterator[None]:
    """Within it an engine that starts finds this process's GPUs alone, and no other process.

    An engine is a process of its own, which takes the environment over when it starts. Alone,
    nothing changes.

    Args:
        count: GPUs of each process: each has the next ones.

    Raises:
        TasksError: CUDA_VISIBLE_DEVICES has too few.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    first = count * int(os.environ.get("LOCAL_RANK", "0"))
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    there = told.split(",") if told else [str(number) for number in range(first + count)]
    if len(own := there[first : first + count]) < count:
        raise TasksError(
            f"{count} GPUs for each process are asked, and CUDA_VISIBLE_DEVICES={told}"
        )
    before = {k: v for k, v in os.environ.items() if k.startswith(_LAUNCHER)}
    for name in before:
        del os.environ[name]
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(own)
    try:
        yield
    finally:
        os.environ.update(before)
        if told is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = told
