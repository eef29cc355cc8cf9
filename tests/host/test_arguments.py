"""Arguments of `lmms_eval` that are wrong are found before torch is imported, in one line."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from lmms_eval_tasks import settings
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.host import arguments, evaluation, script
from tests.checks import table

OURS = ["--model", "tasks_scripted", "--tasks", "maia_vsv"]
MODEL = "no --model: for example --model "
NO_TASK = "no task or group of lmms-eval-tasks has the name "

# What ends each command, and whether torch was imported for it.
SCRIPT = """
import contextlib, io, json, sys
from lmms_eval_tasks.host import console_script
for arguments in json.loads(sys.argv[1]):
    sys.argv[1:] = arguments
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            console_script.main()
        except SystemExit as end:
            print(json.dumps([end.code, said.getvalue(), "torch" in sys.modules]))
"""


@table(
    "given, told",
    [
        (["--tasks", "maia_vsv,maverix_av"], MODEL),
        (["--model", "tasks_scripted"], arguments.NO_TASKS),
        (["--model", "tasks_scripted", "--tasks="], arguments.NO_TASKS),
        ([*OURS, "--limt", "3"], "there is no option --limt; did you mean --limit?"),
        ([*OURS, "--dta=sample"], "there is no option --dta; did you mean --data?"),
        ([*OURS, "--nothing-like-it"], "there is no option --nothing-like-it (lmms_eval --help"),
        (["--model", "qwen2_5vl", *OURS[2:]], "no model 'qwen2_5vl'; did you mean qwen2_5_vl?"),
        (["--model", "task_oracle", *OURS[2:]], "'task_oracle'; did you mean tasks_oracle?"),
        ([*OURS[:3], "maia_vvs"], f"{NO_TASK}maia_vvs; did you mean maia_vsv?"),
        ([*OURS[:3], "mia_vsv"], f"{NO_TASK}mia_vsv; did you mean maia_vsv?"),
        ([*OURS[:3], "mme, maverx_av"], f"{NO_TASK}maverx_av; did you mean maverix_av?"),
    ],
)
def test_wrong_arguments(given: Sequence[str], told: str) -> None:
    with pytest.raises(TasksError) as error:
        arguments.check_arguments(given)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


@table(
    "given",
    [
        [*OURS, "--limit", "3", "--verbosity=DEBUG", "-n", "2", "--log_samples"],
        ["--model", "tasks_oracle", "--task", "maia_*"],  # lmms-eval takes abbreviations
        ["--config", "runs.yaml"],  # which may say the rest
        ["--help"],
        ["--tasks", "mme"],  # of lmms-eval's own, whose model is its matter
        ["--model", "none", "--tasks", "list"],
        ["--model", "none", "--tasks", "mme2"],
        ["--hel"],
        ["--power-analysis", "--effect-size", "0.05"],
        ["--tui"],
        [*OURS[:3], "haven_own_*", "--include_path", "own"],  # tasks of the user's
        ["--l", "3"],  # fits --limit and --log_samples: lmms-eval says it
    ],
)
def test_right_arguments_and_those_of_others(given: Sequence[str]) -> None:
    arguments.check_arguments(given)


def test_a_name_near_ours_that_a_user_has(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("task: maia_vsv2\n", encoding="utf-8")
    given = [*OURS[:3], "maia_vsv2"]
    with pytest.raises(TasksError, match="maia_vsv2"):
        arguments.check_arguments(given)
    arguments.check_arguments([*given, "--include_path", str(tmp_path)])


@table(
    "given, ours",
    [
        (["--tasks", "maia_vsv"], True),
        (["--task=mme, maia_vsv"], True),  # lmms-eval takes abbreviations
        (["--tasks", "*aia_vsv"], True),
        (["--tasks", "mme", "--judge", "none"], True),
        (["--tasks", "mme"], False),
        (["--tasks", "mme*", "--model", "maia_vsv"], False),
        (["--config", "ours.yaml"], True),
        (["--config", "others.yaml"], False),
        (["--config", "none.yaml"], False),
        ([], False),
    ],
)
def test_commands_that_name_ours(
    given: Sequence[str], ours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.yaml").write_text("[{tasks: mme}, {tasks: [maia_vsv]}]", encoding="utf-8")
    Path("others.yaml").write_text("model: dummy\ntasks: mme\n", encoding="utf-8")
    assert arguments.names_ours(given) is ours


@table(
    "given, named",
    [
        (["--timezone", "Asia/Singapore"], True),  # lmms-eval's default, but the user's word
        (["--timez=UTC"], True),
        (["--config", "zone.yaml"], True),
        (["--config", "none.yaml"], False),
        (OURS, False),
    ],
)
def test_commands_that_name_a_time_zone(
    given: Sequence[str], named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("zone.yaml").write_text("[{tasks: mme}, {timezone: UTC}]", encoding="utf-8")
    Path("none.yaml").write_text("tasks: mme\n", encoding="utf-8")
    assert arguments.names_timezone(given) is named


@table(
    "variable, zone",
    [
        ("Europe/Rome", "Europe/Rome"),
        (":America/New_York", "America/New_York"),
        ("/usr/share/zoneinfo/Asia/Kolkata", "Asia/Kolkata"),
        ("XXX-3", "Etc/GMT-3"),  # a name of POSIX, three hours east
        ("XXX+11", "Etc/GMT+11"),
        ("XXX-5:45", "Asia/Kathmandu"),
        ("UTC+26", "UTC"),  # no zone is a day away
    ],
)
def test_the_time_zone_of_this_machine(
    variable: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", variable)
    time.tzset()
    try:
        assert arguments.local_timezone() == zone
    finally:
        monkeypatch.undo()
        time.tzset()


@table(
    "given, tasks, zone",
    [
        ([], "maia_vsv", "Europe/Rome"),
        ([], "mme,maia_vsv", "Europe/Rome"),
        ([], "mme", "Asia/Singapore"),  # a run of others is lmms-eval's matter
        (["--timezone", "Asia/Singapore"], "maia_vsv", "Asia/Singapore"),
    ],
)
def test_files_are_named_by_local_time(
    given: Sequence[str], tasks: str, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("lmms_eval.__main__")
    zones = []
    vars(module)["cli_evaluate_single"] = lambda args: (None, zones.append(args.timezone))
    monkeypatch.setattr(arguments, "local_timezone", lambda: "Europe/Rome")
    monkeypatch.setattr(sys, "argv", ["lmms_eval", "--tasks", tasks, *given])
    script.watch(script.new_outcome(), module)
    module.cli_evaluate_single(Namespace(tasks=tasks, timezone="Asia/Singapore"))
    assert zones == [zone]


@table(
    "options, judge, has_samples",
    [
        ({"output_path": "out"}, "", False),
        ({"output_path": "out", "log_samples": True}, "none", True),
        ({}, "none", False),  # nothing would be there to judge later
        ({}, "", True),  # the printed numbers are what was asked for
        (None, "none", True),  # from Python, which returns the samples
    ],
)
def test_a_run_whose_samples_are_not_saved_says_so(
    options: dict[str, object] | None,
    judge: str,
    has_samples: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LMMS_EVAL_TASKS_JUDGE", judge)
    given = {} if options is None else {"cli_args": Namespace(**options)}
    assert evaluation._has_samples(given) is has_samples


def test_another_lmms_eval_is_not_held_to_the_options_of_this_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(arguments, "_options_of_lmms_eval", lambda: ([], ""))
    arguments.check_arguments(["--limt", "3"])


def test_torch_is_not_imported_to_find_it() -> None:
    commands = [
        ["--tasks", "maia"],
        [*OURS, "--limt"],
        [*OURS, "--max-failed", "3"],
        [*OURS[:3], "m"],
    ]
    commands[-1][-1] = "maia_vvs"
    command = [sys.executable, "-c", SCRIPT, json.dumps(commands)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ends = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(code, imported) for code, _, imported in ends] == [(2, False)] * len(commands)
    for (_, said, _), part in zip(
        ends, ["--model", "--limt", "--max-failed", "maia_vvs"], strict=True
    ):
        assert part in said
        assert said.count("\n") == 1


def test_a_command_leaves_nothing_for_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a program calls lmms-eval's `cli_evaluate` twice."""
    module = ModuleType("lmms_eval.__main__")
    vars(module)["cli_evaluate_single"] = evaluate = lambda args: (None, args)
    seen = []

    def evaluate_all() -> None:
        seen.append((settings.text(settings.FRAMES), sys.argv[1:]))

    monkeypatch.setattr(sys, "argv", ["lmms_eval", *OURS, "--frames", "2"])
    script.take_over(module, evaluate_all)
    assert seen == [("2", OURS)]
    assert settings.text(settings.FRAMES) == ""
    assert sys.argv[1:] == [*OURS, "--frames", "2"]
    assert vars(module)["cli_evaluate_single"] is evaluate
    assert "print" not in vars(module)
