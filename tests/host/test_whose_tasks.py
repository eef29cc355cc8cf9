"""A host that finds tasks of packages itself (upstream/entry_point), and two tasks of one name."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lmms_eval_tasks import registry, settings
from lmms_eval_tasks.host import discovery
from tests.checks import table
from tests.conftest import HostRun, Launch, host
from tests.host.test_discovery import LMMS_EVAL, after, without
from tests.host.test_other_hosts import TASKS, another, write_task

pytestmark = pytest.mark.host

BY_OURSELVES, BY_ENTRY_POINT = False, True  # whether the host has the change
OURS = {
    name
    for benchmark in registry.NAMES
    for name in (*registry.load_benchmark(benchmark).tasks, *registry.groups(benchmark))
}


def lines(run: HostRun) -> list[str]:
    """What we said."""
    return [one for one in run.stderr.splitlines() if one.startswith("lmms-eval-tasks: ")]


@table("first", ["", without("lmms_eval.models")])
def test_the_hosts_own_list(first: str, launch: Launch, tmp_path: Path) -> None:
    """Its subcommands know our tasks, each once, also where another package's plugin is broken."""
    prelude = another(tmp_path, {}, entry_point=True) + first
    run = launch(after(prelude, [LMMS_EVAL, "tasks", "list"]), tmp_path)
    listed = run.stdout.split()
    assert {name: listed.count(name) for name in OURS} == dict.fromkeys(OURS, 1)
    assert "mme" in listed
    assert "Entry point" not in run.stderr
    assert lines(run) == []


def test_a_run_is_the_same(launch: Launch, tmp_path: Path) -> None:
    """Our part of the hook is the same; the task manager is the host's own."""
    asked = ["--model", "tasks_scripted", "--tasks", "maia", "--limit", "16", "--log_samples"]
    runs = {}
    for name, entry_point in {"ourselves": False, "entry point": True}.items():
        out = tmp_path / name
        prelude = another(out, {}, entry_point=entry_point)
        command = [LMMS_EVAL, *asked, "--output_path", str(out / "logs")]
        runs[name] = launch(after(prelude, command), out)
        assert runs[name].code == 0, runs[name].stderr[-3000:]
    ours, theirs = runs.values()
    assert ours.numbers == theirs.numbers
    assert ours.items("maia_vsv") == theirs.items("maia_vsv")
    assert lines(ours) == lines(theirs)


WRAPPED = """
import lmms_eval_tasks.host.plugin as plugin
plugin.install()
from lmms_eval.tasks import TaskManager
print(hasattr(TaskManager.__init__, "__wrapped__"), hasattr(TaskManager, "initialize_tasks"))
"""


@table("entry_point, wrapped", [(BY_OURSELVES, True), (BY_ENTRY_POINT, False)])
def test_the_task_manager_is_left_alone(
    entry_point: bool, wrapped: bool, launch: Launch, tmp_path: Path
) -> None:
    prelude = another(tmp_path, {}, entry_point=entry_point)
    run = launch([sys.executable, "-c", prelude + WRAPPED], tmp_path)
    assert run.stdout.split() == [str(wrapped), "True"], run.stderr[-2000:]


@table(
    "entry_point, named, ours",
    [
        (BY_OURSELVES, (), False),
        (BY_OURSELVES, ("--include_path", discovery.task_folders()[0]), True),
        (BY_ENTRY_POINT, ("--include_path", discovery.task_folders()[0]), True),
    ],
)
def test_a_task_of_the_host_bears_a_name_of_ours(
    entry_point: bool, named: Sequence[str], ours: bool, launch: Launch, tmp_path: Path
) -> None:
    """One line says which of the two runs and how to get the other."""
    built_in = write_task(tmp_path / "built-in", "maia_vsv")
    place = 'os.path.dirname(os.path.abspath(__file__)) + "/"'
    edits = {TASKS: {f"[{place}]": f"[{place}, {str(built_in)!r}]"}}
    asked = ["--model", "dummy", "--tasks", "maia_vsv,maia_oevqa", "--limit", "1", *named]
    prelude = another(tmp_path, edits, entry_point=entry_point)
    run = launch(after(prelude, host(*asked)), tmp_path, env={settings.TABLES: ""})
    assert run.code == 0, run.stderr[-3000:]
    (said,) = (one for one in lines(run) if "maia_vsv: " in one)
    if ours:
        expected = (
            "the tasks of lmms-eval-tasks run, since --include_path names their folder; "
            f"not used: the files in {built_in}"
        )
        assert "exact_match" not in run.stdout
    else:
        expected = (
            f"the files in {built_in} run in place of the tasks of lmms-eval-tasks "
            f"with the same name; to use ours: {discovery.OUR_FOLDER}"
        )
        assert re.search(r"maia_vsv .*exact_match", run.stdout)
    assert said == f"lmms-eval-tasks: maia_vsv: {expected}"
    assert "maia_oevqa" in run.stdout
