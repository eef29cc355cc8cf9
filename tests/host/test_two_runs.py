"""VSV and OEVQA run apart: `rescore` joins them to the same numbers, or says why it does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from tests.conftest import Launch, launch_all, recorded_judge
from tests.golden.command import Said, tasks_command

pytestmark = pytest.mark.host

GROUP, TASKS = "maia_black", ("maia_vsv_black", "maia_oevqa_black")
JOINED = 6  # questions of 48 pairs
PARTS = {"part-0": (0, 20), "part-1": (20, 28)}  # offset and limit: all 48 questions


@pytest.fixture(scope="module")
def folder(launch: Launch, sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the group, and one of each task, each in a folder of its own."""
    root = tmp_path_factory.mktemp("two-runs")
    model = {"model": "tasks_scripted", "limit": 48}
    runs = {task: {**model, "tasks": task} for task in (GROUP, *TASKS)}
    runs["predicted"] = {**runs[TASKS[1]], "predict_only": True}
    for name, (offset, limit) in PARTS.items():
        runs[name] = {**runs[TASKS[1]], "offset": offset, "limit": limit}
    launch_all(launch, root, runs, env={settings.JUDGE: recorded_judge(sample_root)})
    return root


def rescored(cache: Path, root: Path, *names: str) -> tuple[dict[str, Any], str]:
    """Numbers by task, and what was said with them."""
    output = root / "numbers.json"
    folders = [root / name for name in names]
    said = tasks_command("rescore", *folders, "--output", output, cache=cache)
    assert said.code == 0, said.stderr
    return json.loads(output.read_text(encoding="utf-8"))["maia"]["numbers"], said.stdout


def test_the_same_numbers_to_the_last_digit(folder: Path, cache: Path) -> None:
    """Also without the host's own files of results."""
    for file in (file for task in TASKS for file in (folder / task).rglob("*_results.json")):
        file.rename(file.with_suffix(".kept"))
    apart, _ = rescored(cache, folder, *TASKS)
    for file in folder.rglob("*.kept"):
        file.rename(file.with_suffix(".json"))
    together, _ = rescored(cache, folder, GROUP)
    assert apart == together
    assert 0 < apart[GROUP]["agg_acc"] < 1
    assert apart[GROUP]["agg_acc_n_joined"] == JOINED
    (file,) = (folder / GROUP).rglob("*_results.json")
    shown = json.loads(file.read_text(encoding="utf-8"))["groups"][GROUP]
    assert apart[GROUP]["agg_acc"] == shown["agg_acc,none"]


def test_replies_alone_are_no_number_and_nothing_to_judge(folder: Path) -> None:
    (file,) = (folder / "predicted").rglob("*_results.json")
    section = json.loads(file.read_text(encoding="utf-8"))["lmms_eval_tasks"]["maia"]
    texts = [one["text"] for one in section["conditions"]]
    assert section["numbers"] == {}
    assert [one for one in texts if "--predict_only" in one]
    assert not [one for one in texts if "judge" in one]


def test_parts_of_a_run_are_that_run(folder: Path, cache: Path, tmp_path: Path) -> None:
    """Of a job array, whose parts differ in size; written as one run, which other commands read."""
    whole, _ = rescored(cache, folder, TASKS[1])
    parts, said = rescored(cache, folder, *PARTS)
    assert parts == whole
    assert "only part of the data was run" not in said
    one, said = rescored(cache, folder, "part-0")
    assert one != whole
    assert "only part of the data was run" in said
    places = [folder / name for name in PARTS]
    joined = tmp_path / "joined"
    done = tasks_command("judge", *places, "--judge", "none", "--save", joined, cache=cache)
    assert done.code == 0, done.stderr
    again, said = rescored(cache, tmp_path, "joined")
    assert again == whole
    assert "numbers equal the saved ones" in said


def test_parts_of_different_runs_are_not_joined(folder: Path, cache: Path, tmp_path: Path) -> None:
    for part, change, told in (
        ("part-0", ('"limit": 20', '"limit": 20'), "line 1: "),
        ("part-0", ('"limit": 20', '"limit": 20'), "occurs twice, first in"),
        ("part-1", ('"gen_kwargs": ""', '"gen_kwargs": "temperature=1"'), "differ in gen_kwargs"),
    ):
        shutil.rmtree(tmp_path / part, ignore_errors=True)
        root = Path(shutil.copytree(folder / part, tmp_path / part / "runs"))
        (results,) = root.rglob("*_results.json")
        text = results.read_text(encoding="utf-8")
        assert change[0] in text
        results.write_text(text.replace(*change), encoding="utf-8")
        said = tasks_command("rescore", folder / "part-0", root, cache=cache)
        assert said.code == 2
        assert told in " ".join(said.stderr.split())


def test_runs_that_differ_are_not_joined(folder: Path, cache: Path, tmp_path: Path) -> None:
    for part in ("model", "data"):
        root = Path(shutil.copytree(folder, tmp_path / part))
        (samples,) = (root / TASKS[0]).rglob("*_samples_*.jsonl")
        (results,) = (root / TASKS[0]).rglob("*_results.json")
        first = json.loads(samples.read_text(encoding="utf-8").splitlines()[0])["failed"]
        file, old, new = {
            "model": (results, '"model": "tasks_scripted"', '"model": "another"'),
            "data": (samples, first["data"], "0123456789ab"),
        }[part]
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        found, said = rescored(cache, root, *TASKS)
        assert GROUP not in found
        assert f"{GROUP} not computed: model, data or setting differ: " in " ".join(said.split())


def test_damaged_logs_name_the_line(folder: Path, cache: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "runs"))
    (samples,) = (root / TASKS[0]).rglob("*_samples_*.jsonl")
    lines = samples.read_text(encoding="utf-8").splitlines()

    def refused(*kept: str) -> Said:
        text = "\n".join(kept) + "\n"
        samples.write_text(text, encoding="utf-8", errors="surrogateescape")
        return tasks_command("rescore", root / TASKS[0], cache=cache)

    for kept, told in (
        ([*lines, lines[2]], ["line 49: ", "occurs twice"]),
        ([lines[0], lines[1][:50]], ["line 2: not JSON", "delete its line"]),
        ([lines[0], "\udcff"], ["line 2: not JSON"]),  # no UTF-8
        (['{"doc_id": 0}'], ["line 1: no `failed` item of lmms-eval-tasks"]),
    ):
        said = refused(*kept)
        assert said.code == 2
        assert [part for part in told if part not in " ".join(said.stderr.split())] == []
    # Whole lines, but not all of them: a kill while they are saved leaves such a file.
    for kept, code in ((lines[:30], 3), (lines[1:], 0)):
        said = refused(*kept)
        assert said.code == code
        assert f"has {len(kept)} of the run's 48 samples: run the task again" in said.stdout
