"""A benchmark's rows on disk, as the host's `load_from_disk` wants them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmms_eval_tasks import settings


def folder(benchmark: str, rows: Sequence[dict[str, Any]]) -> Path:
    """Folder with `rows` as the split `test` of a `DatasetDict`, addressed by their content.

    The host loads it with `load_from_disk`: no builder, no lock, no hub, the same for the user's
    files and for the sample. Written to a temporary name and renamed: safe with several processes.
    """
    digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]
    target = settings.cache_dir() / "datasets" / f"{benchmark}-{digest}"
    if target.is_dir():
        return target
    from datasets import Dataset, DatasetDict

    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent)
    try:
        DatasetDict({"test": Dataset.from_list(list(rows))}).save_to_disk(temporary)
        os.rename(temporary, target)  # noqa: PTH104  # fails if another process was first
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return target
