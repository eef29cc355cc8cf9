"""What stops before the model loads: one message, a failing exit code, and what to do next."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import BIN, Launch, host

pytestmark = pytest.mark.host

# A model that cannot be built: if it is reached, the check came too late.
UNBUILDABLE = ["--model", "tasks_oracle", "--model_args", "key=/no/such/key"]
SCRIPTED = ["--model", "tasks_scripted", "--limit", "1"]


def only_line(stderr: str) -> str:
    assert "Traceback" not in stderr
    lines = [line for line in stderr.splitlines() if line.startswith("lmms-eval-tasks: ")]
    assert len(lines) == 1, stderr
    return lines[0]


def prompts(folder: Path, vsv: str) -> list[str]:
    (folder / "maia").mkdir(parents=True)
    text = f"vsv: '{vsv}'\noevqa: '{{question}}'\n"
    (folder / "maia" / "it.yml").write_text(text, encoding="utf-8")
    return ["--prompts", str(folder)]


def test_what_is_said(launch: Launch, sample_root: Path, tmp_path: Path) -> None:
    none = {"LMMS_EVAL_TASKS_DATA": str(tmp_path / "none")}
    unfit = prompts(tmp_path / "unfit", "A: {A}")
    cases = [
        (["maia_vsv"], none, ["no MAIA data at", "lmms-eval-tasks data prepare maia --from"]),
        (
            ["maia"],
            {"LMMS_EVAL_TASKS_JUDGE": ""},
            ["OPENAI_API_KEY", "MODEL@BASE_URL", "=offline", "=none"],
        ),
        (["maia_vsv", *unfit], {}, ["it.yml", "{B}"]),
    ]
    for (task, *more), env, told in cases:
        run = launch(host(*UNBUILDABLE, "--tasks", task, *more), tmp_path, env=env)
        assert run.code == 2, run.stderr[-2000:]
        said = only_line(run.stderr)
        assert [part for part in told if part not in said] == []
    # The host's own command, and the API, where it is an exception.
    run = launch([str(BIN / "lmms-eval"), *UNBUILDABLE, "--tasks", "maia_vsv"], tmp_path, env=none)
    assert (run.code, "no MAIA data at" in only_line(run.stderr)) == (2, True)
    script = (
        "from lmms_eval.evaluator import simple_evaluate\n"
        "from lmms_eval_tasks.errors import DataError\n"
        "try:\n"
        "    simple_evaluate(model='tasks_oracle', model_args='key=/no', tasks=['maia_vsv'])\n"
        "except DataError as error:\n"
        "    print('DataError', error)\n"
    )
    run = launch([sys.executable, "-c", script], tmp_path, env={"LMMS_EVAL_TASKS_DATA": "/none"})
    assert "DataError no MAIA data at /none/maia" in run.stdout, run.stderr[-2000:]


def test_only_judged_tasks_need_a_judge(launch: Launch, tmp_path: Path) -> None:
    run = launch(
        host(*SCRIPTED, "--tasks", "maia_vsv_1frame"), tmp_path, env={"LMMS_EVAL_TASKS_JUDGE": ""}
    )
    assert run.code == 0, run.stderr[-2000:]


def test_missing_video(launch: Launch, sample_root: Path, tmp_path: Path) -> None:
    shutil.copytree(sample_root / "maia", tmp_path / "data" / "maia")
    (tmp_path / "data" / "maia" / "videos" / "2.mp4").unlink()
    env = {"LMMS_EVAL_TASKS_DATA": str(tmp_path / "data")}
    run = launch(host(*UNBUILDABLE, "--tasks", "maia_vsv"), tmp_path, env=env)
    assert run.code == 2
    assert "video2: missing" in run.stderr
    out = tmp_path / "out"
    arguments = ["--model", "tasks_scripted", "--tasks", "maia_1frame", "--allow-missing-videos"]
    allowed = launch(host(*arguments, "--output_path", str(out)), out, env=env)
    assert allowed.code == 0, allowed.stderr[-2000:]
    assert "24 questions of 1 videos left out: video2" in allowed.stdout
    section = allowed.results["lmms_eval_tasks"]["maia"]
    assert list(section["left_out"]) == ["video2"]
    assert section["questions_left_out"] == 24


def test_a_users_prompt_file_is_used_and_named(launch: Launch, tmp_path: Path) -> None:
    own = prompts(tmp_path / "own", "Quale? A. {A} B. {B}")
    arguments = ["--tasks", "maia_vsv_1frame", "--log_samples", "--output_path", str(tmp_path)]
    run = launch(host(*SCRIPTED, *arguments, *own), tmp_path)
    assert run.code == 0, run.stderr[-2000:]
    assert run.samples("maia_vsv_1frame")[0]["input"].startswith("Quale? A. ")
    source = run.results["lmms_eval_tasks"]["maia"]["prompts"]["it"]["source"]
    assert source == str(tmp_path / "own" / "maia" / "it.yml")


def test_judge_none_generates_now_and_judges_later(launch: Launch, tmp_path: Path) -> None:
    arguments = ["--model", "tasks_scripted", "--tasks", "maia_1frame", "--judge", "none"]
    arguments += ["--log_samples", "--output_path", str(tmp_path)]
    run = launch(host(*arguments), tmp_path)
    assert run.code == 0, run.stderr[-2000:]
    found = run.numbers["maia_oevqa_1frame"]
    assert found["judge_acc"] is None
    assert found["rouge_l"] > 0
    output = tmp_path / "numbers.json"
    tool = [str(BIN / "lmms-eval-tasks"), "rescore", str(tmp_path), "--output", str(output)]
    later = launch([*tool, "--judge", "offline"], tmp_path)
    assert later.code == 0, later.stderr
    joined = json.loads(output.read_text(encoding="utf-8"))["maia"]["numbers"]["maia_1frame"]
    assert joined["agg_acc_n_joined"] == 48
    assert 0 < joined["agg_acc"] < 1
