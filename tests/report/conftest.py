"""A run of MAIA, told as if of the release, and its record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmms_eval_tasks import registry
from lmms_eval_tasks.report import sides
from lmms_eval_tasks.report.exchange import records
from tests.report import made
from tests.report.sent import TASKS, Record, facts, saved_run


@pytest.fixture(scope="session")
def told_run(sample_root: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LMMS_EVAL_TASKS_DATA", str(sample_root))
        patch.setenv("LMMS_EVAL_TASKS_CACHE", str(cache))
        return saved_run(out / "run", "org/m", made.recorded(sample_root, out / "replay.jsonl"))


@pytest.fixture(scope="session")
def whole(told_run: Path) -> Record:
    """The record of the run with as many items as the release has, and intervals."""
    (side,) = sides.read([told_run])
    record = records.of_run(registry.load("maia"), side)
    record["source_metadata"]["source_organization_name"] = "Some | lab"
    for one in record["evaluation_results"]:
        items = {name: TASKS[name] for name in json.loads(facts(one)["items"])}
        facts(one).update(items=json.dumps(items), status=json.dumps({"ok": sum(items.values())}))
        rest = one["metric_config"]["additional_details"]  # the sample has few videos
        own = [c for c in json.loads(rest["conditions"]) if c["kind"] != "few videos"]
        rest["conditions"] = json.dumps(own)
        score = one["score_details"]["score"]
        ends = {"lower": score - 0.1, "upper": score + 0.1, "confidence_level": 0.95}
        one["score_details"]["uncertainty"]["confidence_interval"] = ends
    return record
