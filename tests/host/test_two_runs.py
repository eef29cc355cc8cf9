"""VSV and OEVQA run apart: `rescore` joins them to the same numbers, or says why it does not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.maia import benchmark
from lmms_eval_tasks.runs import rescore
from tests.conftest import Launch, host

pytestmark = pytest.mark.host

GROUP, TASKS = "maia_black", ("maia_vsv_black", "maia_oevqa_black")


@pytest.fixture(scope="module")
def folder(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the group, and one of each task, each in a folder of its own."""
    root = tmp_path_factory.mktemp("two-runs")
    for task in (GROUP, *TASKS):
        command = ["--model", "tasks_scripted", "--tasks", task, "--log_samples"]
        run = launch(host(*command, "--output_path", str(root / task)), root / task)
        assert run.code == 0, run.stderr[-2000:]
    return root


def read(folder: Path, *names: str) -> list[rescore.Run]:
    return [rescore.read(file) for name in names for file in rescore.find([folder / name])]


def test_the_same_numbers_to_the_last_digit(folder: Path) -> None:
    together = read(folder, GROUP)
    apart = benchmark.rescore_saved(read(folder, *TASKS), judge=None)
    (group,) = {json.dumps(run.saved_groups[GROUP]) for run in together}
    assert apart.numbers[GROUP] == json.loads(group)
    assert 0 < apart.numbers[GROUP]["agg_acc"] < 1
    for run in together:
        assert apart.numbers[run.task] == run.saved
    assert any("48 questions joined" in note for note in apart.notes)


def test_one_task_alone_has_no_aggregate_accuracy(folder: Path) -> None:
    alone = benchmark.rescore_saved(read(folder, TASKS[0]), judge=None)
    assert set(alone.numbers) == {TASKS[0]}
    assert not [name for name in alone.numbers[TASKS[0]] if name.startswith("agg_acc")]


def copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("part", ["model", "data hash", "setting"])
def test_runs_that_differ_are_not_joined(part: str, folder: Path, tmp_path: Path) -> None:
    root = copy(folder, tmp_path / "runs")
    (samples,) = (root / TASKS[0]).rglob("*_samples_*.jsonl")
    (results,) = (root / TASKS[0]).rglob("*_results.json")
    first = json.loads(samples.read_text(encoding="utf-8").splitlines()[0])["pair_acc"]
    if part == "model":
        edit(results, '"model": "tasks_scripted"', '"model": "another"')
    elif part == "data hash":
        edit(samples, first["data"], "0123456789ab")
    else:
        edit(samples, '"setting": "black"', '"setting": "32frames"')
    done = benchmark.rescore_saved(read(root, *TASKS), judge=None)
    assert GROUP not in done.numbers
    assert any(f"agg_acc not computed: the runs differ in {part}" in n for n in done.notes)


def test_damaged_logs_name_the_line(folder: Path, tmp_path: Path) -> None:
    root = copy(folder, tmp_path / "runs")
    (samples,) = (root / TASKS[0]).rglob("*_samples_*.jsonl")
    lines = samples.read_text(encoding="utf-8").splitlines()
    samples.write_text("\n".join([*lines, lines[2]]), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 385: .* occurs twice"):
        benchmark.rescore_saved(read(root, TASKS[0]), judge=None)
    samples.write_text("\n".join([lines[0], lines[1][:50]]), encoding="utf-8")
    with pytest.raises(DataError, match="line 2: not JSON"):
        read(root, TASKS[0])
    samples.write_text('{"doc_id": 0}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 1: no `pair_acc` item of this suite"):
        benchmark.rescore_saved(read(root, TASKS[0]), judge=None)


def test_without_results_files_the_models_cannot_be_compared(folder: Path, tmp_path: Path) -> None:
    root = copy(folder, tmp_path / "runs")
    for file in root.rglob("*_results.json"):
        file.unlink()
    done = benchmark.rescore_saved(read(root, *TASKS), judge=None)
    assert done.numbers[GROUP]["agg_acc_n_joined"] == 48
    assert any("the models could not be compared" in note for note in done.notes)
