"""What stops before the model loads: one message, a failing exit code, and what to do next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import BIN, Launch, host

pytestmark = pytest.mark.host

# A model that cannot be built: if it is reached, the check came too late.
UNBUILDABLE = ["--model", "tasks_oracle", "--model_args", "key=/no/such/key"]


def only_line(stderr: str) -> str:
    assert "Traceback" not in stderr
    lines = [line for line in stderr.splitlines() if line.startswith("lmms-eval-tasks: ")]
    assert len(lines) == 1, stderr
    return lines[0]


@pytest.mark.parametrize("script", ["lmms_eval", "lmms-eval"])
def test_no_data(script: str, launch: Launch, tmp_path: Path) -> None:
    command = [str(BIN / script), *UNBUILDABLE, "--tasks", "maia_vsv"]
    run = launch(command, tmp_path, env={"LMMS_EVAL_TASKS_DATA": str(tmp_path / "none")})
    assert run.code == 2
    said = only_line(run.stderr)
    assert "no MAIA data at" in said
    assert "lmms-eval-tasks data prepare maia --from" in said


def test_no_data_through_the_api(launch: Launch, tmp_path: Path) -> None:
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


def test_no_key_names_the_choices_and_only_judged_tasks_need_one(
    launch: Launch, tmp_path: Path
) -> None:
    env = {"LMMS_EVAL_TASKS_JUDGE": ""}
    run = launch(host(*UNBUILDABLE, "--tasks", "maia"), tmp_path, env=env)
    assert run.code == 2
    said = only_line(run.stderr)
    for choice in ("OPENAI_API_KEY", "MODEL@BASE_URL", "=offline", "=none"):
        assert choice in said
    arguments = ["--model", "tasks_scripted", "--tasks", "maia_vsv_1frame", "--limit", "1"]
    assert launch(host(*arguments), tmp_path, env=env).code == 0


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


def test_a_prompt_file_that_does_not_fit(launch: Launch, tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "maia"
    folder.mkdir(parents=True)
    (folder / "it.yml").write_text("vsv: 'A: {A}'\noevqa: '{question}'\n")
    command = host(*UNBUILDABLE, "--tasks", "maia_vsv", "--prompts", str(tmp_path / "prompts"))
    run = launch(command, tmp_path)
    assert run.code == 2
    said = only_line(run.stderr)
    assert "it.yml" in said
    assert "{B}" in said


def test_a_users_prompt_file_is_used_and_named(launch: Launch, tmp_path: Path) -> None:
    folder = tmp_path / "prompts" / "maia"
    folder.mkdir(parents=True)
    (folder / "it.yml").write_text("vsv: 'Quale? A. {A} B. {B}'\noevqa: '{question}'\n")
    out = tmp_path / "out"
    arguments = ["--model", "tasks_scripted", "--tasks", "maia_vsv_1frame", "--limit", "1"]
    arguments += ["--log_samples", "--output_path", str(out)]
    run = launch(host(*arguments, "--prompts", str(tmp_path / "prompts")), out)
    assert run.code == 0, run.stderr[-2000:]
    assert run.samples("maia_vsv_1frame")[0]["input"].startswith("Quale? A. ")
    assert run.results["lmms_eval_tasks"]["maia"]["prompts"]["it"]["source"] == str(
        folder / "it.yml"
    )


def test_judge_none_generates_now_and_judges_later(launch: Launch, tmp_path: Path) -> None:
    arguments = ["--model", "tasks_scripted", "--tasks", "maia_1frame", "--judge", "none"]
    arguments += ["--log_samples", "--output_path", str(tmp_path)]
    run = launch(host(*arguments), tmp_path)
    assert run.code == 0, run.stderr[-2000:]
    found = run.results["results"]["maia_oevqa_1frame"]
    assert found["judge_acc,none"] is None
    assert found["rouge_l,none"] > 0
    tool = [str(BIN / "lmms-eval-tasks"), "rescore", str(tmp_path)]
    later = launch([*tool, "--judge", "offline", "--output", str(tmp_path / "n.json")], tmp_path)
    assert later.code == 0, later.stderr
    assert "48 questions joined" in later.stdout
    assert '"agg_acc": 0.' in (tmp_path / "n.json").read_text()
