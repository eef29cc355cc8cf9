"""docs/python.md: its code runs, and what it returns holds what was saved."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lmms_eval_tasks
from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from tests.checks import refused
from tests.conftest import Launch, host

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.fixture(scope="module")
def saved(launch: Launch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both of MAIA's tasks with a scripted model, judged by recordings that fit a part."""
    folder = tmp_path_factory.mktemp("notebook")
    tasks = ("--tasks", "maia_vsv,maia_oevqa", "--limit", "24")
    to = ("--log_samples", "--output_path", "out")
    done = launch(host("--model", "tasks_scripted", *tasks, *to), folder / "run", cwd=folder)
    assert done.code == 0, done.stderr[-3000:]
    return folder


@pytest.mark.host
def test_the_page_runs(
    saved: Path,
    on_sample: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its blocks in their order, in a folder with a saved run in `out`."""
    monkeypatch.chdir(saved)
    monkeypatch.setenv(settings.DATA, "sample")
    monkeypatch.setenv(settings.JUDGE, "none")
    assert len(BLOCKS) == 3
    for block in BLOCKS:
        exec(compile(block, str(PAGE), "exec"), {})
    said = capsys.readouterr().out
    assert "not a benchmark result" in said
    assert re.search(r"^[AB] \w+ 1$", said, re.M)


@pytest.mark.host
def test_frames_hold_what_was_saved(saved: Path) -> None:
    run = lmms_eval_tasks.read_run(saved / "out")
    assert list(run.runs["model"]) == ["tasks_scripted"]
    assert dict(run.items.groupby("task").size()) == {"maia_vsv": 24, "maia_oevqa": 24}
    numbers = run.numbers.set_index(["task", "metric"])
    pairs = run.items[run.items["task"] == "maia_vsv"]
    assert numbers.loc[("maia_vsv", "pair_acc"), "value"] == pairs["right"].fillna(0).mean()
    assert "packaged sample" in numbers.loc[("maia_vsv", "pair_acc"), "conditions"]
    judged = run.verdicts[run.verdicts["task"] == "maia_oevqa"]
    assert set(judged["id"]) <= set(run.items["id"])
    assert set(judged["verdict"]) == {"agrees"}
    ok = judged["status"] == "ok"
    assert judged["score"].notna().equals(ok)  # a failure is no score
    refused(TasksError, "named twice", lmms_eval_tasks.read_run, saved / "out", saved / "out")


def test_what_is_wrong_is_one_line(tmp_path: Path, on_sample: None) -> None:
    refused(TasksError, "no task 'maia_x'", lmms_eval_tasks.load_docs, "maia_x")
    refused(TasksError, str(tmp_path), lmms_eval_tasks.read_run, tmp_path)
    doc = lmms_eval_tasks.load_docs("maia_oevqa")[0]
    item = lmms_eval_tasks.score_reply("maia_oevqa", doc, "Un gatto.")
    assert (item["status"], item["right"], item["reply"]) == ("unjudged", None, "Un gatto.")
    wrong = {"judge": "replay:/nowhere"}
    refused(TasksError, "/nowhere", lmms_eval_tasks.score_reply, "maia_oevqa", doc, "x", **wrong)
    for other in (lmms_eval_tasks.load_docs("maia_vsv")[0], {}, 5, doc["id"]):
        unfit = r"the doc is not one of maia_oevqa: take one of load_docs\('maia_oevqa'\)"
        refused(TasksError, unfit, lmms_eval_tasks.score_reply, "maia_oevqa", other, "x")
    for reply in (None, 5, b"x"):
        refused(TasksError, "a text, not", lmms_eval_tasks.score_reply, "maia_oevqa", doc, reply)
    refused(TasksError, "not 5", lmms_eval_tasks.load_docs, 5)
    for paths in ((), ([tmp_path],), (None,)):
        refused(TasksError, "name one or several folders", lmms_eval_tasks.read_run, *paths)
