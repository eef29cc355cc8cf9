"""Every way of starting the host finds the tasks."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from lmms_eval_tasks import registry, settings
from tests.conftest import BIN, REPOSITORY, Launch, host
from tests.golden.command import tasks_command

pytestmark = pytest.mark.host

# One pair through the scripted model is enough to show that a task was found and ran.
ONE = ["--model", "tasks_scripted", "--tasks", "maia_vsv", "--limit", "1"]
LMMS_EVAL = str(BIN / "lmms-eval")


def without(*groups: str) -> str:
    """What a process runs first so that nobody finds entry points of these groups.

    Of `lmms_eval.models` as after a broken neighbour: the host loads them all in one `try`.
    """
    return f"""
import importlib.metadata as m
every = m.EntryPoints.select
def select(self, **given):
    return [] if given.get("group") in {groups!r} else every(self, **given)
m.EntryPoints.select = select
"""


def after(code: str, command: list[str]) -> list[str]:
    """A console script in a process where `code` runs first."""
    script = f"{code}\nimport runpy, sys\nsys.argv[:] = sys.argv[1:]\n"
    script += "runpy.run_path(sys.argv[0], run_name='__main__')"
    return [sys.executable, "-c", script, *command]


def test_the_hosts_own_command(launch: Launch, tmp_path: Path) -> None:
    """In a fresh process: all other tests start warm. `python -m`: test_judged_runs.py."""
    run = launch([LMMS_EVAL, *ONE], tmp_path, fresh=True)
    assert run.code == 0, run.stderr[-2000:]
    assert "|maia_vsv" in run.stdout
    assert "pair_acc" in run.stdout


def test_a_folder_of_a_tasks_name(launch: Launch, tmp_path: Path) -> None:
    """The host would read it as a folder of YAMLs."""
    (tmp_path / "maia_vsv").mkdir()
    run = launch(host("eval", *ONE), tmp_path, env={settings.TABLES: ""})
    assert run.code == 0, run.stderr[-2000:]
    assert "model: tasks_scripted" in run.stdout
    # Where all tasks are ours the host's table stands in the file alone, with the papers'.
    assert "|maia_vsv" not in run.stdout
    written = Path(run.stdout.split("written: ")[-1].split("\n")[0]).read_text(encoding="utf-8")
    assert "|maia_vsv" in written
    assert "model: tasks_scripted" in written


def test_list_and_version(cache: Path) -> None:
    """Neither needs the host."""
    listed = tasks_command("list", cache=cache).stdout
    for benchmark in map(registry.load_benchmark, registry.NAMES):
        assert f"{benchmark.title} ({len(benchmark.tasks)} tasks)" in listed
        names = {*benchmark.tasks, *registry.groups(benchmark.name)}
        assert names <= set(listed.replace(",", " ").split())
    assert tasks_command("--version", cache=cache).stdout.split()[-1] == version("lmms_eval")


def test_without_the_hook(launch: Launch, cache: Path, tmp_path: Path) -> None:
    """The documented fallback; our script does not depend on the entry point."""
    path = tasks_command("path", cache=cache).stdout.strip()
    theirs = [LMMS_EVAL, "--include_path", path, *ONE]
    theirs[theirs.index("tasks_scripted")] = "dummy"  # ours comes by the entry point
    off = without("lmms_eval.models", "lmms_eval.tasks")  # the second in upstream/entry_point
    for command in (theirs, host("tasks", "list")):
        run = launch(after(off, command), tmp_path)
        assert "maia_vsv" in run.stdout, run.stderr[-2000:]
    # The last one listed all; the host's own tasks are still there.
    assert {"maia", "maia_oevqa", "maia_black_en", "mme"} <= set(run.stdout.split())
    run = launch(after(off, [LMMS_EVAL, "--model", "dummy", *ONE[2:]]), tmp_path)
    assert "Tasks were not found: maia_vsv" in run.stdout  # so the entry point was really off


def test_a_failed_run_exits_non_zero(launch: Launch, tmp_path: Path) -> None:
    arguments = ["--model", "tasks_scripted", "--tasks", "no_such_task"]
    assert launch(host(*arguments), tmp_path).code != 0


# Modules that import torch or a decoder: model classes, and what runs in the decoder's process.
HEAVY = (*("models.fake_models", "models.lm_pairs", "models.host_model", "models.vllm"),)
IMPORTS = f"""
import importlib, pkgutil, sys
import lmms_eval_tasks.host.plugin
lmms_eval_tasks.host.plugin.install()
print(sorted({{"torch", "decord", "av", "numpy", "transformers", "datasets"}} & set(sys.modules)))
found = [m.name for m in pkgutil.walk_packages(lmms_eval_tasks.__path__, "lmms_eval_tasks.")]
for name in found:
    if not name.endswith({HEAVY}):
        importlib.import_module(name)
print(len(found) > 100, sorted({{"torch", "decord", "openai", "av"}} & set(sys.modules)))
"""


def test_what_is_imported(launch: Launch, tmp_path: Path) -> None:
    """The hook must not slow the host down, nor any module of ours a command."""
    done = launch([sys.executable, "-c", IMPORTS], tmp_path, fresh=True)
    assert done.stdout.split("\n") == ["[]", "True []", ""], done.stderr


def test_works_in_the_checkout(launch: Launch, tmp_path: Path) -> None:
    """There Python finds our folder before the installed package."""
    script = "import lmms_eval_tasks.utils.metrics.stats as s; print(s.__file__)"
    done = launch([sys.executable, "-c", script], tmp_path, cwd=REPOSITORY, fresh=True)
    assert done.stdout.strip() == str(REPOSITORY / "utils" / "metrics" / "stats.py"), done.stderr
