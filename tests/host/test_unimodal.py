"""The unimodal baseline through the host: two language models, scores kept, one choice a pair."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmms_eval_tasks.maia import benchmark
from lmms_eval_tasks.runs import rescore
from lmms_eval_tasks.sample import tiny
from tests.conftest import Launch, host

pytestmark = pytest.mark.host


def test_lm_pairs_on_maia(launch: Launch, tmp_path: Path) -> None:
    one = tiny.build("llama", tmp_path / "one")
    two = tiny.build("gpt2", tmp_path / "two")
    arguments = ["--model", "lm_pairs", "--model_args", f"pretrained={one},{two},device=cpu"]
    out = tmp_path / "out"
    arguments += ["--tasks", "maia_unimodal", "--log_samples", "--output_path", str(out)]
    run = launch(host(*arguments), out)
    assert run.code == 0, run.stderr[-3000:]
    items = [sample["pair_acc"] for sample in run.samples("maia_unimodal")]
    assert len(items) == 384
    for item in items:
        assert set(item["lm_scores"]) == {str(one), str(two)}
        best = max(
            (score, i) for pair in item["lm_scores"].values() for i, score in enumerate(pair)
        )
        assert item["letter"] == "AB"[best[1]]
        assert item["right"] == int(item["letter"] == item["answer"])
    found = rescore.plain_names(run.results["results"]["maia_unimodal"])
    assert 0 < found["pair_acc"] < 1
    assert found["pair_acc_failed"] == 0
    (saved,) = [rescore.read(file) for file in rescore.find([out])]
    assert benchmark.rescore_saved([saved], judge=None).numbers["maia_unimodal"] == found
