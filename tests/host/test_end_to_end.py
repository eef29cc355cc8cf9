"""Every task through the host: a simple and a chat model, one and two processes, the same numbers.

One host process per model kind and process count. The scripted model is right on about 70 % of the
items and unreadable on 5 %, by item id, so that every metric lies strictly between 0 and 1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lmms_eval_tasks.maia import benchmark, scores
from lmms_eval_tasks.maia.categories import SLUGS
from lmms_eval_tasks.runs import rescore
from tests.conftest import BIN, HostRun, Launch, host, torchrun

pytestmark = pytest.mark.host

GROUPS = [f"maia{setting}{en}" for setting in ("", "_1frame", "_black") for en in ("", "_en")]
TASKS = [
    f"maia_{kind}{setting}{en}"
    for kind in ("vsv", "oevqa")
    for setting in ("", "_1frame", "_black")
    for en in ("", "_en")
]
MODES = ("simple 1", "simple 2", "chat 1", "chat 2")


@pytest.fixture(scope="module")
def runs(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, HostRun]:
    done = {}
    for mode in MODES:
        kind, processes = mode.split()
        out = tmp_path_factory.mktemp(mode.replace(" ", "-"))
        arguments = ["--model", "tasks_scripted", "--tasks", ",".join([*GROUPS, "maia_unimodal"])]
        arguments += ["--log_samples", "--output_path", str(out)]
        if kind == "simple":
            arguments.append("--force_simple")
        command = host(*arguments) if processes == "1" else torchrun(int(processes), *arguments)
        done[mode] = launch(command, out)
        assert done[mode].code == 0, done[mode].stderr[-3000:]
    return done


def numbers(run: HostRun) -> dict[str, dict[str, Any]]:
    return rescore.numbers(run.results)


def test_every_task_ran(runs: dict[str, HostRun]) -> None:
    assert set(numbers(runs["chat 1"])) == {*GROUPS, *TASKS, "maia_unimodal"}


@pytest.mark.parametrize("mode", MODES[1:])
def test_same_numbers_in_every_mode(mode: str, runs: dict[str, HostRun]) -> None:
    assert numbers(runs[mode]) == numbers(runs["simple 1"])


def test_two_processes_really_ran(runs: dict[str, HostRun]) -> None:
    """Rank 0 of two gathers every other doc, so the saved order is 0, 2, 4, ..., 1, 3, 5."""
    order = [sample["doc_id"] for sample in runs["chat 2"].samples("maia_vsv")]
    assert order != sorted(order)
    assert sorted(order) == list(range(384))


def test_every_share_lies_strictly_between_0_and_1(runs: dict[str, HostRun]) -> None:
    """So that a number that is stuck at an end would show."""
    found = numbers(runs["chat 1"])
    for task, metrics in (("maia_vsv", scores.VSV), ("maia_oevqa", scores.OEVQA)):
        for name in metrics:
            if name.startswith("agg_acc") or any(name.endswith(f"_{slug}") for slug in SLUGS):
                continue
            value = found[task][name]
            if name == "bertscore":
                assert value is None  # no encoder in a test's cache
            elif name.endswith("_failed"):
                assert value > 0
            elif name == "cider":
                assert 0 < value < 10
            else:
                assert 0 < value < 1, name
    assert 0 < found["maia"]["agg_acc"] < 1


def test_a_task_shows_no_aggregate_accuracy(runs: dict[str, HostRun]) -> None:
    found = numbers(runs["chat 1"])
    for task in TASKS:
        assert not [name for name in found[task] if name.startswith("agg_acc")]


def test_cells_add_up(runs: dict[str, HostRun]) -> None:
    maia = numbers(runs["chat 1"])["maia"]
    cells = [maia[f"agg_acc_n_{cell}"] for cell in scores.CELLS]
    assert sum(cells) == maia["agg_acc_n_joined"] == 48
    assert maia["agg_acc"] == cells[0] / 48


def test_rescore_gives_the_same_to_the_last_digit(runs: dict[str, HostRun]) -> None:
    run = runs["chat 2"]
    files = rescore.find([run.out])
    assert len(files) == len(TASKS) + 1
    for setting in ("", "_1frame", "_black_en"):
        saved = [rescore.read(f) for f in files]
        pair = [r for r in saved if r.task in (f"maia_vsv{setting}", f"maia_oevqa{setting}")]
        again = benchmark.rescore_saved(pair, judge=None)
        for task in pair:
            assert rescore.difference(task.saved, again.numbers[task.task]) == []
            assert len(task.saved) > 20
        group = f"maia{setting}"
        assert again.numbers[group] == numbers(run)[group]
        assert f"{group}: 48 questions joined" in " ".join(again.notes)


def test_rescore_of_a_whole_folder(
    runs: dict[str, HostRun], launch: Launch, tmp_path: Path
) -> None:
    """All settings and languages at once, through the command: each group is named and compared."""
    command = [str(BIN / "lmms-eval-tasks"), "rescore", str(runs["simple 1"].out)]
    done = launch([*command, "--output", str(tmp_path / "numbers.json")], tmp_path)
    assert done.code == 0, done.stderr
    for group in GROUPS:
        assert f"{group}: 21 of 21 numbers equal the saved ones" in done.stdout
    again = json.loads((tmp_path / "numbers.json").read_text())["maia"]["numbers"]
    assert again["maia_1frame"] == numbers(runs["simple 1"])["maia_1frame"]


def test_results_tell_where_they_come_from(runs: dict[str, HostRun]) -> None:
    section = runs["chat 2"].results["lmms_eval_tasks"]["maia"]
    assert section["data"]["questions"] == 48
    assert section["judge"]["provider"] == "offline"
    assert any("sample" in warning for warning in section["warnings"])
    assert any("not comparable" in warning for warning in section["warnings"])
    assert set(section["prompts"]) == {"it", "en"}
    assert section["details"]["maia_vsv"]["status"]["unparsed"] > 0


def test_the_paper_layout_is_printed_by_our_script(runs: dict[str, HostRun]) -> None:
    printed = runs["chat 1"].stdout
    for part in ("Avg.", "Out-of-", "Duration", "failed", "the paper's Table 3", "not a benchmark"):
        assert part in printed


def test_items_are_plain(runs: dict[str, HostRun]) -> None:
    """Ids, media and verdict are in the log; nothing was turned into a string on the way."""
    pair = runs["simple 2"].samples("maia_vsv")[0]["pair_acc"]
    assert pair["media"]["n_frames"] == 32
    assert isinstance(pair["right"], int)
    assert pair["data"] == runs["simple 2"].results["lmms_eval_tasks"]["maia"]["data"]["hash"]
    answer = runs["simple 2"].samples("maia_oevqa")[0]["judge_acc"]
    assert len(answer["references"]) == 8
    assert runs["chat 1"].samples("maia_vsv_1frame")[0]["pair_acc"]["media"]["kind"] == "image"
    assert Path(runs["chat 1"].out).is_dir()
