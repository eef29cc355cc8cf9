"""The host's `cvrr` with the fix: the published judgements give the published averages."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from tests.conftest import SHARED
from tests.upstream import host_copy

JUDGED = SHARED / "data" / "cvrr_es" / "judge_results"
PUBLISHED = {
    **{"GPT4o": 75.03, "LLaMA-VID": 16.46, "TimeChat": 32.89},
    **{"Video-ChatGPT": 24.96, "Video-LLaVA": 15.92},
}


@pytest.mark.skipif(not JUDGED.is_dir(), reason=f"needs {JUDGED}")
def test_published_averages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the answers that are not empty; another label than the two is in no accuracy."""
    own = Path(__import__("lmms_eval").__path__[0]) / "tasks" / "cvrr"
    folder = tmp_path / "lmms_eval" / "tasks" / "cvrr"
    shutil.copytree(own, folder)
    git = ["git", "apply", str(host_copy.UPSTREAM / "fixes" / "cvrr" / host_copy.CHANGE)]
    subprocess.run(git, cwd=tmp_path, check=True)
    cvrr = host_copy.module(folder / "utils.py")
    for model, published in PUBLISHED.items():
        numbers = []
        for dimension in DIMENSIONS:
            rows = json.loads((JUDGED / model / f"{dimension}.json").read_text("utf-8"))
            records = []
            for verdict, asked in rows:
                monkeypatch.setattr(cvrr, "get_gpt_eval", lambda *_, v=verdict: (repr(v), "gpt"))
                doc = {"Q": asked["q"], "A": asked["a"], "VideoID": "", "DimensionName": dimension}
                records.append(cvrr.cvrr_process_results(doc, [asked["pred"]])["gpt_eval_accuracy"])
            numbers.append(cvrr.cvrr_aggregate_accuracy(records, None))
        assert round(sum(numbers) / len(numbers), 2) == published, model
