"""HAVEN through the host: simple and chat, one and two processes, the same numbers.

And once without HDF5, where some tasks have no item.

The scripted model is right on about 70 % of the items and unreadable on 5 %, by item id. A local
endpoint rates summaries by a hash of what it is asked, and a tiny CLIP with random weights gives
CLIPScores.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.haven import benchmark, joined, scores, utils
from lmms_eval_tasks.haven.labels import PAPER_COUNTS, TASKS
from lmms_eval_tasks.runs import rescore
from tests.conftest import HostRun, Launch, host, torchrun
from tests.local_endpoint import LocalEndpoint, last_user_text
from tests.utils import tiny_clip

pytestmark = pytest.mark.host

RUNS = ("simple 1", "simple 2", "chat 1", "chat 2")
GROUPS = {"haven", "haven_text"}


def rated(request: dict[str, Any]) -> str:
    """1 to 5, by the text alone: five samples of one text are five times the same."""
    drawn = int(hashlib.sha256(last_user_text(request).encode()).hexdigest(), 16) % 5
    return json.dumps({"score": 1 + drawn})


@pytest.fixture(scope="module")
def judge() -> Iterator[LocalEndpoint]:
    with LocalEndpoint(rated, model="local-judge") as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_clip.build(tmp_path_factory.mktemp("clip"))


@pytest.fixture(scope="module")
def runs(
    judge: LocalEndpoint, clip: Path, launch: Launch, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, HostRun]:
    done = {}
    for name in RUNS:
        interface, processes = name.split()
        out = tmp_path_factory.mktemp(name.replace(" ", "-"))
        arguments = ["--model", "tasks_scripted", "--tasks", "haven,haven_text"]
        arguments += ["--log_samples", "--output_path", str(out)]
        if interface == "simple":
            arguments.append("--force_simple")
        command = host(*arguments) if processes == "1" else torchrun(int(processes), *arguments)
        env = {
            "LMMS_EVAL_TASKS_JUDGE": f"checker@{judge.url}",
            "LMMS_EVAL_TASKS_CLIPSCORE": str(clip),
        }
        done[name] = launch(command, out, env=env)
        assert done[name].code == 0, done[name].stderr[-3000:]
    return done


def numbers(run: HostRun) -> dict[str, dict[str, Any]]:
    return rescore.numbers(run.results)


def test_every_task_ran(runs: dict[str, HostRun]) -> None:
    assert set(numbers(runs["chat 1"])) == {*GROUPS, *TASKS}


@pytest.mark.parametrize("name", RUNS[1:])
def test_same_numbers_in_every_run(name: str, runs: dict[str, HostRun]) -> None:
    assert numbers(runs[name]) == numbers(runs["simple 1"])


def test_main_numbers_lie_strictly_inside(runs: dict[str, HostRun]) -> None:
    """So that a number that is stuck at an end would show."""
    found = numbers(runs["chat 1"])
    inside = []
    for name, task in TASKS.items():
        for metric in scores.MEASURED[task.kind]:
            best = found[name].get(f"{metric}_best", 1.0)
            assert -1 <= found[name][metric] <= best <= 1, (name, metric)
            inside.append(0 < found[name][metric] < best)
            for source in PAPER_COUNTS:
                assert f"{metric}_{source}" in found[name]
        if task.kind in ("v2t", "v2vt"):
            assert 1 < found[name]["geval_samples_valid"] < 5
            assert found[name]["geval_logprobs_valid"] is None
    assert sum(inside) > 0.8 * len(inside)  # of 8 items all may be right, or more of them reversed


def test_groups_are_joined_by_video(runs: dict[str, HostRun]) -> None:
    found = numbers(runs["chat 1"])
    for group in GROUPS:
        row = found[group]
        assert {f"{joined.PREFIX}{name}" for name in joined.NEEDS} <= set(row)
        assert 0 < row["joined_clip_joint"] < 2.5
        assert row["joined_clip_gain"] == pytest.approx(
            row["joined_clip_joint"] - row["joined_clip_separate"]
        )
        assert row["joined_clip_gain"] != 0
        for name in ("saliency", "grounding"):
            assert 0 < row[f"joined_{name}_chance"] < 1
            assert row[f"joined_{name}_videos"] > 4
    # A task alone shows no number in the join's place.
    assert not [name for name in found["haven_v2t"] if name.startswith(joined.PREFIX)]


def test_no_truth_reaches_the_model(runs: dict[str, HostRun]) -> None:
    for file in rescore.find([runs["chat 1"].out]):
        run = rescore.read(file)
        for sample in run.samples:
            item = sample[scores.FIRST]
            if item["kind"] != "grounding":  # which shows the summary's sentences
                assert not [text for text in item["summary"] if text in sample["input"]]
            if not item["with_document"] and not run.task.endswith("temporal_text"):
                assert not [text for text in item["document"] if text in sample["input"]]


def test_rescore_gives_the_same_numbers(
    runs: dict[str, HostRun], clip: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_DATA", "sample")
    saved = [rescore.read(file) for file in rescore.find([runs["chat 1"].out])]
    found = numbers(runs["chat 1"])
    again = benchmark.rescore_saved(saved, None).numbers
    assert set(again) == {*GROUPS, *TASKS}
    for task, values in again.items():
        for name, value in values.items():
            if "clip" not in name:  # needs the model and the videos
                assert found[task][name] == value, (task, name)


def test_tables_and_provenance(runs: dict[str, HostRun]) -> None:
    printed = " ".join(runs["chat 1"].stdout.split())
    for text in ("Table 3", "Table 4", "packaged sample", "text proxy", "worth", "by source"):
        assert text in printed
    section = runs["chat 1"].results["lmms_eval_tasks"]["haven"]
    assert section["judge"]["model"] == "checker"
    assert section["options"]["frames_per_shot"] == 4
    assert "rouge" in section["implementations"]
    assert "NOT COMPARABLE" in section["implementations"]["clipscore"]
    assert set(section["details"]) == set(TASKS)


# --- without HDF5 --------------------------------------------------------------------------------

NOT_RUN = {"haven_saliency", "haven_saliency_doc"}


@pytest.fixture(scope="module")
def without_hdf5(
    launch: Launch, sample_root: Path, tmp_path_factory: pytest.TempPathFactory
) -> HostRun:
    """The tasks with pictures on the sample's JSON and videos alone: nobody knows importances."""
    root, out = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("without-hdf5")
    shutil.copytree(sample_root / "haven", root / "haven", ignore=shutil.ignore_patterns("h5"))
    command = host(
        *("--model", "tasks_scripted", "--tasks", "haven", "--limit", "2"),
        *("--log_samples", "--output_path", str(out)),
    )
    env = {"LMMS_EVAL_TASKS_DATA": str(root), "LMMS_EVAL_TASKS_JUDGE": "none"}
    return launch(command, out, env=env)


def test_tasks_without_items_stop_no_others(without_hdf5: HostRun) -> None:
    assert without_hdf5.code == 0, without_hdf5.stderr[-3000:]
    found = numbers(without_hdf5)
    assert set(found) == {"haven", *(name for name, task in TASKS.items() if not task.text)}
    for name in set(found) - {"haven"}:
        if name in NOT_RUN:
            assert found[name] == {"failed": 0}
        else:
            assert found[name]["videos"] == 2
            for metric in scores.MEASURED[TASKS[name].kind]:
                assert isinstance(found[name][metric], float), (name, metric)
    assert found["haven"]["joined_grounding_videos"] == 2
    assert found["haven"]["joined_saliency"] is None


def test_what_was_not_run_is_told(without_hdf5: HostRun) -> None:
    section = without_hdf5.results["lmms_eval_tasks"]["haven"]
    printed = " ".join(without_hdf5.stdout.split())
    for name in NOT_RUN:
        (told,) = (line for line in section["warnings"] if line.startswith(f"{name}: "))
        why = told.removeprefix(f"{name}: not run: ")
        assert why.startswith("not one of 8 items can be run, such as ")
        assert why.endswith(".h5: no such file, so no importance")
        assert f"Note: {told}" in printed
        assert section["details"][name] == {"items": 0, "not_run": why}
        (sample,) = without_hdf5.samples(name)
        assert sample["input"] == utils.NOTHING_ASKED
        assert sample[scores.FIRST]["status"] == scores.NOT_RUN
    assert {name for name, videos in section["left_out"].items() if videos} == NOT_RUN


def test_rescored_without_hdf5(without_hdf5: HostRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", "none")
    saved = [rescore.read(file) for file in rescore.find([without_hdf5.out])]
    again = benchmark.rescore_saved(saved, None)
    found = numbers(without_hdf5)
    assert set(again.numbers) == set(found)
    for task, values in again.numbers.items():
        assert {name: found[task][name] for name in values} == values
    assert {note.partition(":")[0] for note in again.notes if ": not run: " in note} == NOT_RUN
