"""A run on what users really have: ratings of which parts are missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.cvrr_es.settings import CVRR_NAME, CVRR_RATINGS, CVRR_REFERENCE
from tests.checks import limits_of
from tests.conftest import HostRun, Launch, cvrr_study, host
from tests.golden.command import tasks_command
from tests.golden.run import Golden

pytestmark = pytest.mark.host


def run(launch: Launch, out: Path, env: dict[str, str], *arguments: str) -> HostRun:
    command = host("--model", "tasks_scripted", "--log_samples", "--output_path", str(out))
    done = launch([*command, *arguments], out, env=env)
    assert done.code == 0, done.stderr[-3000:]
    return done


def rescored(done: HostRun, cache: Path, env: dict[str, str] | None = None) -> Any:
    output = done.out / "rescored.json"
    said = tasks_command("rescore", done.out, "--output", output, cache=cache, env=env)
    assert said.code == 0, said.stderr
    return json.loads(output.read_text(encoding="utf-8"))


def test_cvrr_reference_ratings_that_come_later(
    launch: Launch, sample_root: Path, cache: Path, golden_once: Golden, tmp_path: Path
) -> None:
    """Until then kappa is None, with the reason. The first ratings are those of a saved run."""
    both = ["cvrr_judge", "cvrr_judge_collective"]
    env = cvrr_study(sample_root)
    reference = {CVRR_REFERENCE: env.pop(CVRR_REFERENCE)}
    env |= {
        CVRR_RATINGS: str(golden_once.runs["chat"].out),
        CVRR_NAME: "another",
    }
    done = run(launch, tmp_path, env, "--tasks", ",".join(both), "--limit", "20")
    found, section = done.numbers, done.results["lmms_eval_tasks"]["cvrr_es"]
    for task in both:
        assert found[task]["kappa"] is None
        assert 1 < found[task]["rating_valid"] < 5
        reason = section["details"][task]["kappa"]["mean"]["reason"]
        assert reason == "no reference yet"
    assert any("no reference ratings (--cvrr-reference)" in line for line in limits_of(section))
    items = done.items(both[1])
    # Its first ratings, and none of its other rounds.
    assert {other["judge"] for item in items for other in item["others"]} == {"Invented Hasty"}
    again = rescored(done, cache, reference)["cvrr_es"]["numbers"]
    for task in both:
        assert again[task]["kappa"] not in (None, 0)  # about 0: without it the model gave 3
        assert again[task]["rating_valid"] == found[task]["rating_valid"]
