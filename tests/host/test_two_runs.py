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


@pytest.fixture(scope="module")
def folder(launch: Launch, sample_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the group, and one of each task, each in a folder of its own."""
    root = tmp_path_factory.mktemp("two-runs")
    model = {"model": "tasks_scripted", "limit": 48}
    runs = {task: {**model, "tasks": task} for task in (GROUP, *TASKS)}
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
        ([lines[0], lines[1][:50]], ["line 2: not JSON", "take its line out"]),
        ([lines[0], "\udcff"], ["line 2: not JSON"]),  # no UTF-8
        (['{"doc_id": 0}'], ["line 1: no `failed` item of this suite"]),
    ):
        said = refused(*kept)
        assert said.code == 2
        assert [part for part in told if part not in " ".join(said.stderr.split())] == []
    # Whole lines, but not all of them: a kill while they are saved leaves such a file.
    for kept, code in ((lines[:30], 3), (lines[1:], 0)):
        said = refused(*kept)
        assert said.code == code
        assert f"has {len(kept)} of the run's 48 samples: run the task again" in said.stdout
