"""Our model classes through the host in one process and in two: the same replies to the sample."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.runs import before
from lmms_eval_tasks.sample import demo, players, tiny
from tests.checks import table
from tests.conftest import HostRun, Launch, launch_all

pytestmark = pytest.mark.host

N = 7  # odd: one of two ranks gets a padding request
FIRST = 189  # of 192 pairs of each of two videos
COUNTS = {"one": 1, "two": 2} | ({"three": 3} if os.environ.get("PROCESSES") == "3" else {})
LABELS = {
    "oracle": "maia_vsv",
    "oracle simple": "maia_vsv",
    "coin": "maia_vsv",
    "scripted": "maia_vsv",
    "witness": "maverix_av",
    "witness simple": "maverix_av",
    "lm_pairs": "maia_unimodal",
}
# Without the host's script, whose first act is to set up its processes.
ALONE = """
import json, pathlib, sys
from lmms_eval.evaluator import simple_evaluate
models = json.loads(sys.argv[1])
for name, given in models.items():
    given |= {"batch_size": 1, "log_samples": True, "distributed_executor_backend": "torchrun"}
    given["tasks"] = [given["tasks"]]
    results = simple_evaluate(**given)
    if results is not None:
        (samples,) = results["samples"].values()
        replies = {one["failed"]["id"]: one["failed"]["reply"] for one in samples}
        pathlib.Path(f"{name}.json").write_text(json.dumps(replies))
"""
Replies = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of all runs."""
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def runs(
    launch: Launch, sample_root: Path, cache: Path, folder: Path
) -> dict[str, dict[str, HostRun]]:
    """By the number of processes, by model."""
    language = ",".join(str(tiny.build(kind, folder / kind)) for kind in ("gpt2", "llama"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(settings.CACHE, str(cache))
        patch.setenv(settings.DATA, settings.SAMPLE)
        patch.setattr(before, "_checked", {})
        key = f"key={demo.write_key(folder / 'key.json', ['maia_vsv'])}"
    given = {
        "oracle": ("tasks_oracle", key),
        "oracle simple": ("tasks_oracle", key),
        "coin": ("tasks_coin", f"{key},seed=1"),
        "scripted": ("tasks_scripted", ""),
        "witness": ("tasks_witness", ""),
        "witness simple": ("tasks_witness", ""),
        "lm_pairs": ("lm_pairs", f"pretrained={language},dtype=float32"),
    }
    models: dict[str, dict[str, Any]] = {
        label: {"model": model, "model_args": arguments, "tasks": LABELS[label], "limit": N}
        for label, (model, arguments) in given.items()
    }
    for label in ("oracle simple", "witness simple"):
        models[label]["force_simple"] = True
    models["scripted"]["offset"] = FIRST
    (folder / "models.json").write_text(json.dumps(models), encoding="utf-8")
    found = {}
    for name, processes in COUNTS.items():
        (folder / name).mkdir()
        found[name] = launch_all(launch, folder / name, models, processes=processes)
    return found


@pytest.fixture(scope="module")
def replies(
    launch: Launch, runs: dict[str, dict[str, HostRun]], folder: Path
) -> dict[str, Replies]:
    """By how the host was started, by model, by id."""
    found: dict[str, Replies] = {
        name: {
            label: {item["id"]: item["reply"] for item in some[label].items(LABELS[label])}
            for label in LABELS
        }
        for name, some in runs.items()
    }
    models = json.loads((folder / "models.json").read_text("utf-8"))
    (folder / "alone.py").write_text(ALONE, encoding="utf-8")
    some = json.dumps({name: models[name] for name in ("oracle", "lm_pairs")})
    done = launch([sys.executable, str(folder / "alone.py"), some], folder, processes=2)
    assert done.code == 0, done.stderr[-3000:]
    found["alone"] = {
        name: json.loads((folder / f"{name}.json").read_text("utf-8")) for name in json.loads(some)
    }
    return found


@table("label", LABELS)
def test_two_processes_reply_as_one(label: str, replies: dict[str, Replies]) -> None:
    one = replies["one"][label]
    assert len(one) == N
    assert len(set(one.values())) > 1  # what it is given does reach the model
    assert players.UNKNOWN not in one.values()
    assert [name for name in COUNTS if replies[name][label] != one] == []
    assert replies["alone"].get(label, one) == one
    if label == "lm_pairs":
        for reply in one.values():
            assert len(json.loads(reply)["lm_pairs"]["scores"]) == 2


def test_a_video_belongs_to_one_process_and_the_numbers_to_none(
    runs: dict[str, dict[str, HostRun]],
) -> None:
    for name, processes in COUNTS.items():
        run = runs[name]["scripted"]
        assert run.numbers == runs["one"]["scripted"].numbers
        seen = {
            (sample["failed"]["video"], (sample["doc_id"] - FIRST) % processes)
            for sample in run.samples(LABELS["scripted"])
        }
        assert len({video for video, _ in seen}) == 2
        assert len(seen) <= 2 + processes - 1
