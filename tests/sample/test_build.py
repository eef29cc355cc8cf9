"""Building the packaged sample: once, whole or not at all, and never over a user's files."""

from __future__ import annotations

import ast
import importlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lmms_eval_tasks import sample
from lmms_eval_tasks.errors import DataError
from lmms_eval_tasks.sample import demo


@pytest.fixture(autouse=True)
def one_benchmark(monkeypatch) -> None:
    """One is enough for the rules of building; processes of their own build all."""
    monkeypatch.setattr(sample.registry, "NAMES", ("maia",))


@pytest.fixture
def copy(sample_root, tmp_path) -> Path:
    shutil.copytree(sample_root / "maia", tmp_path / "copy" / "maia")
    return tmp_path / "copy"


@pytest.fixture
def writes(monkeypatch) -> list[Path]:
    """Folders that were built, with a stand-in that writes no video."""
    done: list[Path] = []

    def write(name: str, folder: Path) -> None:
        done.append(folder)
        (folder / "data.json").write_text("[]")
        (folder / sample.VERSION).write_text(sample.version(name))

    monkeypatch.setattr(sample, "write_sample", write)
    return done


def test_a_sample_of_the_present_sources_is_left_alone(copy, writes):
    for text, built in ((None, 0), ("another", 1), ("", 2)):
        if text is not None:
            (copy / "maia" / sample.VERSION).write_text(text)
        for _ in range(2):
            assert sample.build_sample(copy) == copy
            assert len(writes) == built
        assert (copy / "maia" / "replay.jsonl").exists() is (built == 0)
    assert sorted(p.name for p in copy.iterdir()) == [".sample.lock", "maia"]


def test_version_follows_the_sources(tmp_path, monkeypatch):
    names = ("sample/scenes.py", "maia/sample.py", "maia/sample_texts_A_yaml", "maia/judge.py")
    for name in (*names, "sample/render.py", "maia/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(sample, "__file__", str(tmp_path / "sample" / "__init__.py"))
    monkeypatch.setattr(sample.registry, "folder", lambda name: tmp_path / name)
    versions = [sample.version("maia")]
    for name in (*names, "maia/README.md"):
        (tmp_path / name).write_text("changed")
        versions.append(sample.version("maia"))
    assert len(set(versions)) == 5
    assert versions[-1] == versions[-2]  # a text for people decides nothing


def test_a_folder_that_is_not_ours_is_never_replaced(tmp_path, writes):
    (tmp_path / "maia").mkdir()
    (tmp_path / "maia" / "data.json").write_text("the user's own")
    with pytest.raises(DataError, match="not a packaged sample"):
        sample.build_sample(tmp_path)
    assert (tmp_path / "maia" / "data.json").read_text() == "the user's own"
    assert writes == []


def test_a_failed_build_keeps_the_old_one_and_clears_up(copy, monkeypatch):
    def fail(name: str, folder: Path) -> None:
        (folder / "data.json").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sample, "write_sample", fail)
    monkeypatch.setattr(sample, "version", lambda name: "newer")
    (copy / ".maia-killed" / "new").mkdir(parents=True)  # by a build that was killed
    before = (copy / "maia" / "data.json").read_bytes()
    with pytest.raises(DataError, match="No space left"):
        sample.build_sample(copy)
    assert (copy / "maia" / "data.json").read_bytes() == before
    assert sorted(p.name for p in copy.iterdir()) == [".sample.lock", "maia"]


def test_two_processes_at_once(tmp_path):
    names = ("cvrr_es", "maia")  # those that take least
    code = "import pathlib, sys; from lmms_eval_tasks import sample; "
    code += f"sample.registry.NAMES = {names}; sample.build_sample(pathlib.Path(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=600)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    assert sorted(p.name for p in tmp_path.iterdir()) == [".sample.lock", *names]
    assert all(sample.is_current(tmp_path / name) for name in names)


def test_the_demo_can_build_its_checkpoint() -> None:
    """It does so in a process of its own, from a line of code that mypy does not see."""
    (imported,) = [n for n in ast.walk(ast.parse(demo._BUILD)) if isinstance(n, ast.ImportFrom)]
    module = importlib.import_module(str(imported.module))
    assert all(hasattr(module, alias.name) for alias in imported.names)
