"""A run of MAIA, told as if of the release."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report import made
from tests.report.sent import saved_run


@pytest.fixture(scope="session")
def told_run(sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        return saved_run(out / "run", "org/m", made.recorded(sample_root, out / "replay.jsonl"))
