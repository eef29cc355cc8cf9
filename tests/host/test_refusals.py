"""What stops before the model loads: one message, a failing exit code, and what to do next."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.checks import table
from tests.conftest import BIN, Launch, host

pytestmark = pytest.mark.host

# A model that cannot be built: if it is reached, the check came too late.
UNBUILDABLE = ["--model", "tasks_oracle", "--model_args", "key=/no/such/key"]
SCRIPTED = ["--model", "tasks_scripted", "--log_samples", "--output_path"]
# Each run's task and variables, and what it ends with, in one process.
API = """
import json, os, sys
from lmms_eval.evaluator import simple_evaluate
from lmms_eval_tasks.errors import TasksError
for task, variables in json.loads(sys.argv[1]):
    os.environ.update(variables)
    try:
        simple_evaluate(model='tasks_oracle', model_args='key=/no/such/key', tasks=[task])
    except TasksError as error:
        print(json.dumps(f'{type(error).__name__}: {error}'))
    for name in variables:
        del os.environ[name]
"""


def prompts(folder: Path, vsv: str) -> str:
    (folder / "maia").mkdir(parents=True)
    text = f"vsv: '{vsv}'\noevqa: '{{question}}'\n"
    (folder / "maia" / "it.yml").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.fixture
def without_video(sample_root: Path, tmp_path: Path) -> str:
    shutil.copytree(sample_root / "maia", tmp_path / "data" / "maia")
    (tmp_path / "data" / "maia" / "videos" / "2.mp4").unlink()
    return str(tmp_path / "data")


def test_what_is_said(launch: Launch, without_video: str, tmp_path: Path) -> None:
    given = {
        "maia_vsv": {"DATA": "/none"},
        "maia": {"DATA": "sample", "JUDGE": ""},
        "maia_vsv_1frame": {"DATA": "sample", "PROMPTS": prompts(tmp_path / "unfit", "A: {A}")},
        "maia_vsv_black": {"DATA": without_video},
    }
    told = [
        ["DataError: no MAIA data at /none/maia", "lmms-eval-tasks data prepare maia --from"],
        ["JudgeError: ", "OPENAI_API_KEY", "MODEL@BASE_URL", "--judge none"],
        ["PromptError: ", "it.yml", "{B}"],
        ["DataError: ", "video2: missing"],
    ]
    runs = [(t, {f"LMMS_EVAL_TASKS_{n}": v for n, v in own.items()}) for t, own in given.items()]
    done = launch([sys.executable, "-c", API, json.dumps(runs)], tmp_path)
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]
    for message, parts in zip(said, told, strict=True):
        assert [part for part in parts if part not in message] == []


@table(
    "command, more, told",
    [
        ("lmms-eval", (), "no MAIA data at /none/maia"),  # the host's own, without our options
        ("lmms_eval", ("--report",), "--report requires saved samples: add --log_samples"),
        (
            "lmms_eval",
            ("--tasks", "maia_vvs"),
            "has the name maia_vvs; did you mean maia_vsv? (all tasks: lmms-",
        ),
    ],
)
def test_a_command_line_ends_with_one_line(
    command: str, more: tuple[str, ...], told: str, launch: Launch, tmp_path: Path
) -> None:
    arguments = [str(BIN / command), *UNBUILDABLE, "--tasks", "maia_vsv", *more]
    run = launch(arguments, tmp_path, env={"LMMS_EVAL_TASKS_DATA": "/none"})
    assert run.code == 2, run.stderr[-2000:]
    assert "Traceback" not in run.stderr
    (line,) = [line for line in run.stderr.splitlines() if line.startswith("lmms-eval-tasks: ")]
    assert told in line


def test_what_the_user_allows_and_names(launch: Launch, without_video: str, tmp_path: Path) -> None:
    """A video left out, a prompt file of the user's, and no judge: the task needs none."""
    given = ["--data", without_video, "--allow-missing-videos", "--report"]
    given += ["--prompts", prompts(tmp_path / "own", "Quale? A. {A} B. {B}")]
    command = host(*SCRIPTED, str(tmp_path / "out"), "--tasks", "maia_vsv_1frame", *given)
    run = launch(command, tmp_path / "out", env={"LMMS_EVAL_TASKS_JUDGE": ""})
    assert run.code == 0, run.stderr[-2000:]
    assert "1 videos skipped (video2), such as video2: missing" in run.stdout
    assert re.search("^MAIA: VALID, .* videos, 1 videos skipped$", run.stdout, re.M)
    (page,) = (tmp_path / "out").rglob("*_report.html")
    assert f"written: {page}" in run.stdout
    assert "1 videos skipped (video2), such as video2: missing" in page.read_text(encoding="utf-8")
    section = run.results["lmms_eval_tasks"]["maia"]
    assert list(section["left_out"]["maia_vsv_1frame"]) == ["video2"]
    assert section["questions_left_out"] == 24
    assert run.samples("maia_vsv_1frame")[0]["input"].startswith("Quale? A. ")
    source = section["prompts"]["it"]["source"]
    assert source == str(tmp_path / "own" / "maia" / "it.yml")
