"""Every way of starting the host finds the tasks, each in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conftest import BIN, REPOSITORY, Launch, host, torchrun

pytestmark = pytest.mark.host

# One pair through the scripted model is enough to show that a task was found and ran.
ONE = ["--model", "tasks_scripted", "--tasks", "maia_vsv", "--limit", "1"]


@pytest.mark.parametrize(
    "command",
    [
        [str(BIN / "lmms-eval"), *ONE],
        host(*ONE),
        host("eval", *ONE),
        [sys.executable, "-m", "lmms_eval", *ONE],
        torchrun(1, *ONE),
    ],
    ids=["lmms-eval", "lmms_eval", "lmms_eval eval", "python -m", "torchrun"],
)
def test_runs_without_a_flag(command: list[str], launch: Launch, tmp_path: Path) -> None:
    run = launch(command, tmp_path)
    assert run.code == 0, run.stderr[-2000:]
    assert "|maia_vsv" in run.stdout
    assert "pair_acc" in run.stdout


def test_tasks_list(launch: Launch, tmp_path: Path) -> None:
    run = launch(host("tasks", "list"), tmp_path)
    listed = set(run.stdout.split())
    assert run.code == 0
    assert {"maia", "maia_vsv", "maia_oevqa", "maia_unimodal", "maia_black_en"} <= listed
    assert "mme" in listed  # the host's own tasks are still there


def test_include_path_without_the_hook(launch: Launch, tmp_path: Path) -> None:
    """The documented fallback, with the entry point switched off as a broken neighbour would."""
    path = launch([str(BIN / "lmms-eval-tasks"), "path"], tmp_path)
    site = tmp_path / "site"
    site.mkdir()
    site.joinpath("sitecustomize.py").write_text(
        "import importlib.metadata as m\n"
        "_all = m.entry_points\n"
        "def entry_points(**k):\n"
        "    return [] if k.get('group') == 'lmms_eval.models' else _all(**k)\n"
        "m.entry_points = entry_points\n"
    )
    command = [str(BIN / "lmms-eval"), "--include_path", path.stdout.strip(), "--model", "dummy"]
    run = launch(
        [*command, "--tasks", "maia_vsv", "--limit", "1"], tmp_path, env={"PYTHONPATH": str(site)}
    )
    assert "|maia_vsv" in run.stdout, run.stdout[-2000:] + run.stderr[-2000:]


def test_simple_evaluate(launch: Launch, tmp_path: Path) -> None:
    script = (
        "from lmms_eval.evaluator import simple_evaluate\n"
        "r = simple_evaluate(model='tasks_scripted', tasks=['maia_vsv'], limit=1)\n"
        "print(sorted(r['results']), sorted(r['lmms_eval_tasks']))\n"
    )
    run = launch([sys.executable, "-c", script], tmp_path)
    written = "['maia_vsv'] ['data_root', 'invalid', 'maia', 'version']"
    assert written in run.stdout, run.stderr[-2000:]


def test_a_folder_named_like_the_task_does_not_hijack_it(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "maia_vsv").mkdir()
    run = launch(host(*ONE), tmp_path)
    assert run.code == 0, run.stderr[-2000:]
    assert "|maia_vsv" in run.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model", "tasks_scripted", "--tasks", "no_such_task"],
        ["--model", "no_such_model", "--tasks", "maia_vsv"],
        ["--model", "tasks_scripted"],
    ],
    ids=["task", "model", "no task"],
)
def test_a_failed_run_exits_non_zero(arguments: list[str], launch: Launch, tmp_path: Path) -> None:
    assert launch(host(*arguments), tmp_path).code != 0


def test_an_unknown_host_version_still_works(launch: Launch, tmp_path: Path) -> None:
    """One line says what to pass; our script passes it itself."""
    site = tmp_path / "site"
    site.mkdir()
    site.joinpath("sitecustomize.py").write_text(
        "import importlib.metadata as m\n"
        "_version = m.version\n"
        "m.version = lambda name: '9.9' if name in ('lmms_eval', 'lmms-eval') else _version(name)\n"
    )
    env = {"PYTHONPATH": str(site)}
    theirs = launch([str(BIN / "lmms-eval"), "tasks", "list"], tmp_path, env=env)
    assert theirs.code == 0
    run = launch(host(*ONE), tmp_path, env=env)
    assert run.code == 0, run.stderr[-2000:]
    assert "lmms-eval 9.9 is not known" in run.stderr
    assert '--include_path "$(lmms-eval-tasks path)"' in run.stderr
    assert "|maia_vsv" in run.stdout


class TestLightness:
    """The hook must not slow the host down."""

    def test_imports_nothing_heavy(self, launch: Launch, tmp_path: Path) -> None:
        script = (
            "import sys, lmms_eval_tasks.host.plugin as p\n"
            "p.install()\n"
            "heavy = {'torch', 'decord', 'av', 'numpy', 'transformers', 'openai', 'datasets'}\n"
            "print(sorted(heavy & set(sys.modules)))\n"
        )
        done = launch([sys.executable, "-c", script], tmp_path)
        assert done.stdout.strip() == "[]", done.stderr

    def test_no_module_imports_torch_or_decord(self, launch: Launch, tmp_path: Path) -> None:
        """But the model classes and the program that runs in the decoder's process."""
        own = ("models.scripted", "models.recorded", "models.lm_pairs", "models.host_model")
        names = [
            ".".join(["lmms_eval_tasks", *file.relative_to(root).with_suffix("").parts])
            for root in (REPOSITORY / "lmms_eval_tasks", REPOSITORY)
            for file in sorted(root.rglob("*.py"))
            if root != REPOSITORY or file.parent.name in ("utils", "judges", "leaderboards")
            if "tests" not in file.parts and "build" not in file.parts and ".venv" not in file.parts
        ]
        modules = sorted({n.removesuffix(".__init__") for n in names if not n.endswith(own)})
        assert len(modules) > 50
        script = (
            "import sys, importlib\n"
            "for name in sys.argv[1:]: importlib.import_module(name)\n"
            "print(sorted({'torch', 'decord', 'openai', 'av'} & set(sys.modules)))\n"
        )
        done = launch([sys.executable, "-c", script, *modules], tmp_path)
        assert done.stdout.strip() == "[]", done.stderr

    def test_works_in_the_checkout(self, launch: Launch, tmp_path: Path) -> None:
        """There Python finds our folder before the installed package."""
        script = "import lmms_eval_tasks.utils.stats as s; print(s.__file__)"
        done = launch([sys.executable, "-c", script], tmp_path, cwd=REPOSITORY)
        assert done.stdout.strip() == str(REPOSITORY / "utils" / "stats.py"), done.stderr
