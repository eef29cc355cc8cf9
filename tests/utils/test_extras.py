"""A plain install: what works without the extras, and the line where one is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lmms_eval_tasks import registry, sample, settings
from lmms_eval_tasks.commands import cli
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.haven.records import record
from lmms_eval_tasks.runs import prepare
from lmms_eval_tasks.utils import extras
from tests import test_house
from tests.checks import refused, table

MODULES = [name for names in extras.EXTRAS.values() for name in names]
# Imports modules by name where no package of an extra is installed.
IMPORTS = f"""
import importlib, sys
sys.modules.update(dict.fromkeys({MODULES}))
for name in sys.argv[1:]:
    importlib.import_module(name)
"""


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package of an extra is installed."""
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="3.10 names no modules of some packages")
def test_the_table_is_that_of_the_package() -> None:
    """Extra by extra, what pyproject.toml installs gives the modules that are looked for."""
    of_package = {
        distribution.lower().replace("_", "-"): module
        for module, names in metadata.packages_distributions().items()
        for distribution in names
        if module in MODULES
    }
    listed: dict[str, set[str]] = {}
    for line in metadata.requires("lmms-eval-tasks") or ():
        if found := re.match(r"([\w.-]+)\W.*extra == [\"'](\w+)[\"']", line):
            package = found[1].lower()
            listed.setdefault(found[2], set()).add(of_package.get(package, package))
    for extra, names in extras.EXTRAS.items():
        assert listed[extra] == set(names), extra


def test_every_module_can_be_imported_without_the_extras() -> None:
    # Only Inspect loads its adapter.
    apart = ("__main__", "adapters.inspect_ai")
    names = [name for name in test_house.modules() if not name.endswith(apart)]
    assert len(names) > 200
    command = [sys.executable, "-c", IMPORTS, *names]
    done = subprocess.run(command, cwd="/", check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


@table(
    "words, part, extra",
    [
        (["report", "x"], "--format html", "report"),
        *[(["report", "x", "--format", n], f"--format {n}", "report") for n in ("md", "csv")],
        (["report", "x", "--format", "latex"], "--format latex", "report"),
        (["report", "x", "--format", "inspect"], "--format inspect", "inspect"),
        *[
            (["leaderboard", "maia", "--format", n], f"--format {n}", "report")
            for n in ("html", "md", "csv")
        ],
        (["reliability", "x", "--html", "y"], "--html", "report"),
        (["haven", "build", "x", "--out", "y", "--scores", "z"], "haven build", "haven"),
    ],
)
def test_a_command_without_its_extra_is_one_line(
    words: list[str], part: str, extra: str, plain: None, monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.app, words)
    assert isinstance(done.exception, TasksError), done.output
    needed = ", ".join(extras.EXTRAS[extra])
    said = f"{part} requires {needed}: pip install 'lmms-eval-tasks[{extra}]'"
    assert str(done.exception) == said
    assert list(tmp_path.iterdir()) == []


@table("words", [["leaderboard", "maia"], ["leaderboard", "maia", "--format", "json"], ["list"]])
def test_what_needs_no_extra_works_without(words: list[str], plain: None) -> None:
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.exception
    assert "maia" in done.output.lower()


def test_a_run_is_stopped_before_its_model(
    on_sample: None, plain: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its replies were paid for, and numbers missing in the end."""
    prepare.check_tasks(["maia_vsv"])
    refused(
        TasksError, "maia_oevqa_en requires nltk, .*metrics", prepare.check_tasks, ["maia_oevqa_en"]
    )
    monkeypatch.setenv(settings.REPORT, "1")
    refused(TasksError, "--report requires altair, .*report", prepare.check_tasks, ["maia_vsv"])


def test_haven_says_what_its_files_need(
    plain: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    refused(
        TasksError, r"a\.h5, .* requires h5py", record.read_arrays, tmp_path / "a.h5", ["video_1"]
    )
    monkeypatch.setenv(settings.DATA, "sample")
    refused(TasksError, "sample requires h5py", prepare.check_tasks, ["haven_temporal_text"])


def test_the_sample_is_made_without_what_cannot_be(
    plain: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(registry, "NAMES", ("maia", "haven"))
    sample.build_sample(tmp_path)
    assert [one.name for one in tmp_path.iterdir() if one.is_dir()] == ["maia"]
