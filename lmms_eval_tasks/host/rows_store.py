"""The data set that the host loads for a benchmark; `docs_TASK` makes its docs (names.py)."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from lmms_eval_tasks import settings


def folder(benchmark: str) -> Path:
    """Folder of a `DatasetDict` whose split `test` has one row, for the host's `load_from_disk`.

    No builder, no lock, no hub. Written to a temporary name and renamed: safe with several
    processes.
    """
    target = settings.cache_dir() / "datasets" / benchmark
    if target.is_dir():
        return target
    from datasets import Dataset, DatasetDict

    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=f".{benchmark}-", dir=target.parent)
    try:
        rows = Dataset.from_list([{"benchmark": benchmark}])
        DatasetDict({"test": rows}).save_to_disk(temporary)
        os.rename(temporary, target)  # noqa: PTH104  # fails if another process was first
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target
