"""VSV and OEVQA run apart: `rescore` joins them to the same numbers, or says why it does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks import settings
from tests.conftest import Launch, launch_all, recorded_judge
from tests.golden.command import Said, tasks_command

pytestmark = pytest.mark.host

GROUP, TASKS = "maia_black", ("maia_vsv_black", "maia_oevqa_black")
JOINED = 6  # questions of 48 pairs


@pytest.fixture(scope="module")
def folder(launch: Launch, sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the group, and one of each task, each in a folder of its own."""
    root = tmp_path_factory.mktemp("two-runs")
    model = {"model": "tasks_scripted", "limit": 48}
    runs = {task: {**model, "tasks": task} for task in (GROUP, *TASKS)}
    launch_all(launch, root, runs, env={settings.JUDGE: recorded_judge(sample_root)})
    return root


Rescore = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def rescored(cache: Path, tmp_path: Path) -> Callable[..., tuple[dict[str, Any], str]]:
    """Numbers by task, and what was said with them."""

    def run(root: Path, *names: str) -> tuple[dict[str, Any], str]:
        output = tmp_path / "numbers.json"
        folders = [root / name for name in names]
        said = tasks_command("rescore", *folders, "--output", output, cache=cache)
        assert said.code == 0, said.stderr
        return json.loads(output.read_text(encoding="utf-8"))["maia"]["numbers"], said.stdout

    return run


def test_the_same_numbers_to_the_last_digit(folder: Path, rescored: Rescore) -> None:
    apart, _ = rescored(folder, *TASKS)
    together, _ = rescored(folder, GROUP)
    assert apart == together
    assert 0 < apart[GROUP]["agg_acc"] < 1
    assert apart[GROUP]["agg_acc_n_joined"] == JOINED
    (file,) = (folder / GROUP).rglob("*_results.json")
    shown = json.loads(file.read_text(encoding="utf-8"))["groups"][GROUP]
    assert apart[GROUP]["agg_acc"] == shown["agg_acc,none"]


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_runs_that_differ_are_not_joined(folder: Path, rescored: Rescore, tmp_path: Path) -> None:
    for part in ("model", "data"):
        root = Path(shutil.copytree(folder, tmp_path / part))
        (samples,) = (root / TASKS[0]).rglob("*_samples_*.jsonl")
        (results,) = (root / TASKS[0]).rglob("*_results.json")
        first = json.loads(samples.read_text(encoding="utf-8").splitlines()[0])["failed"]
        if part == "model":
            edit(results, '"model": "tasks_scripted"', '"model": "another"')
        else:
            edit(samples, first["data"], "0123456789ab")
        found, said = rescored(root, *TASKS)
        assert GROUP not in found
        assert f"{GROUP} not computed: the runs differ in {part}" in " ".join(said.split())


def test_damaged_logs_name_the_line(folder: Path, cache: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "runs"))
    (samples,) = (root / TASKS[0]).rglob("*_samples_*.jsonl")
    lines = samples.read_text(encoding="utf-8").splitlines()

    def refused(*kept: str) -> Said:
        samples.write_text("\n".join(kept) + "\n", encoding="utf-8")
        return tasks_command("rescore", root / TASKS[0], cache=cache)

    for kept, told in (
        ([*lines, lines[2]], ["line 49: ", "occurs twice"]),
        ([lines[0], lines[1][:50]], ["line 2: not JSON"]),
        (['{"doc_id": 0}'], ["line 1: no `failed` item of this suite"]),
    ):
        said = refused(*kept)
        assert said.code == 2
        assert [part for part in told if part not in " ".join(said.stderr.split())] == []


def test_results_files_are_not_needed(folder: Path, rescored: Rescore, tmp_path: Path) -> None:
    root = Path(shutil.copytree(folder, tmp_path / "runs"))
    for file in root.rglob("*_results.json"):
        file.unlink()
    assert rescored(root, *TASKS)[0][GROUP]["agg_acc_n_joined"] == JOINED


def test_a_run_that_is_judged_later_is_a_run(
    folder: Path, rescored: Rescore, cache: Path, sample_root: Path, tmp_path: Path
) -> None:
    """Written as the host writes one, and with all that makes its numbers not comparable."""
    judge = recorded_judge(sample_root)
    later = tmp_path / "later"
    said = tasks_command("judge", folder / GROUP, "--judge", judge, "--save", later, cache=cache)
    assert said.code == 0, said.stderr
    numbers, told = rescored(tmp_path, "later")
    assert numbers == rescored(folder, GROUP)[0]
    counts = [line for line in told.splitlines() if "equal the saved ones" in line]
    assert len(counts) == 3
    assert all(line.split()[1] == line.split()[3] for line in counts)
    for condition in ("packaged sample", "--limit", "judged by"):
        assert sum(condition in line for line in told.splitlines()) == 1, told


def test_of_many_models_one_is_held_at_a_time(folder: Path, tmp_path: Path) -> None:
    """Whole runs of a paper's models are larger than memory."""
    import tracemalloc

    from lmms_eval_tasks import benchmarks
    from lmms_eval_tasks.runs import rescore
    from lmms_eval_tasks.utils import saved_runs

    for number in range(6):
        root = Path(shutil.copytree(folder / GROUP, tmp_path / str(number)))
        for file in root.rglob("*_results.json"):
            edit(file, '"model": "tasks_scripted"', f'"model": "m{number}"')
        for file in root.rglob("*_samples_*.jsonl"):
            lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
            rows = [{**one, "failed": {**one["failed"], "more": "x" * 50_000}} for one in lines]
            file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def peak(models: int) -> int:
        places = [tmp_path / str(number) for number in range(models)]
        tracemalloc.start()
        runs = [saved_runs.read(file) for file in saved_runs.find(places)]
        done = rescore.rescore_saved(benchmarks.load("maia"), runs, None)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(done.numbers) == models * 3
        return found

    peak(1)  # imports
    assert peak(6) < 1.5 * peak(1)
