"""The published GPT-3.5 judgements through `cvrr_es` by the host's command line.

Answers are played by item, judgements are replayed by item, and every accuracy is the published
one to two decimals. Here one model and two dimensions; all five models and both two-step runs, with
16,800 answers:

    CVRR_PUBLISHED=all python -m pytest -s tests/host/test_cvrr_published.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmms_eval_tasks.cvrr_es.labels import DIMENSIONS
from tests.conftest import HostRun, Launch, host
from tests.cvrr_es import published
from tests.cvrr_es.release_files import MODELS

pytestmark = pytest.mark.host

# The one answer whose published label is neither correct nor incorrect is in the first of these.
SLICE = ("continuity_and_object_instance_count", "time_order_understanding")
ODD = "continuity_and_object_instance_count/167"
ALL = os.environ.get("CVRR_PUBLISHED") == "all"


def run(launch: Launch, folder: Path, given: published.Published, tasks: str) -> HostRun:
    arguments = ["--model", "tasks_recorded", "--model_args", f"replies={given.replies}"]
    arguments += ["--tasks", tasks, "--log_samples", "--output_path", str(folder / "out")]
    arguments += ["--data", str(given.root), "--judge", f"replay:{given.judgements}"]
    done = launch(host(*arguments), folder / "out")
    assert done.code == 0, done.stderr[-3000:]
    return done


def test_a_slice(launch: Launch, tmp_path: Path) -> None:
    given = published.write("Video-ChatGPT", tmp_path, SLICE)
    assert given.items == 177 + 152
    tasks = [f"cvrr_es_{one}" for one in SLICE]
    done = run(launch, tmp_path, given, ",".join(tasks))
    found = done.numbers
    expected = published.figures()["Video-ChatGPT"]
    for name, task in zip(SLICE, tasks, strict=True):
        assert f"{100 * found[task]['acc_skip_empty']:.2f}" == expected[name]
        assert found[task]["acc_skip_empty"] == found[task]["acc_valid"]
        assert (found[task]["empty"], found[task]["acc_failed"]) == (0, int(name == SLICE[0]))
    # Counted as wrong it would be another figure.
    assert f"{100 * found[tasks[0]]['acc']:.2f}" == "28.25"
    (odd,) = (item for item in done.items(tasks[0]) if item["status"] != "ok")
    assert (odd["id"], odd["status"], odd["right"]) == (ODD, "judge_parse_failure", None)


@pytest.mark.skipif(not ALL, reason="all 16,800 answers: CVRR_PUBLISHED=all")
@pytest.mark.parametrize(
    ("kind", "model"),
    [*(("", model) for model in MODELS), ("two_step", "LLaMA-VID"), ("two_step", "TimeChat")],
)
def test_all(kind: str, model: str, launch: Launch, tmp_path: Path) -> None:
    given = published.write(model, tmp_path, kind=kind)
    assert given.items == 2400
    found = run(launch, tmp_path, given, "cvrr_es").numbers
    ours = {name: f"{100 * found[f'cvrr_es_{name}']['acc_skip_empty']:.2f}" for name in DIMENSIONS}
    ours["average"] = f"{100 * found['cvrr_es']['mean_acc_skip_empty']:.2f}"
    assert ours == published.figures(kind)[model]
