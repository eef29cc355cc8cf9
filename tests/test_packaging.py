"""sdist and wheel: whole, equal, and of use in an environment that has only what they bring."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from lmms_eval_tasks import __version__, registry
from tests.conftest import REPOSITORY
from tests.upstream import host_copy

pytestmark = pytest.mark.host

BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"
PLACES = {
    "lmms_eval_tasks": "lmms_eval_tasks",
    **{name: f"lmms_eval_tasks/{name}" for name in ("utils", "judges", "leaderboards")},
}


class Built(NamedTuple):
    """What was built, and of what."""

    tracked: list[str]  # files of the repository
    wheel: Path  # of the tree
    again: Path  # of the unpacked sdist


def _build(kind: str, tree: Path, out: Path) -> Path:
    out.mkdir(exist_ok=True)
    command = [sys.executable, "-c", BUILD, kind, str(out)]
    subprocess.run(command, cwd=tree, check=True, capture_output=True)
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Of the files that git has, in a folder where nothing was built before."""
    folder = tmp_path_factory.mktemp("packaging")
    git = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(git, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    tracked = [name for name in done.stdout.splitlines() if (REPOSITORY / name).is_file()]
    tree = folder / "tree"
    for name in tracked:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, tree / name)
    sdist = _build("build_sdist", tree, folder / "sdist")
    shutil.unpack_archive(sdist, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    wheel = _build("build_wheel", tree, folder / "wheel")
    return Built(tracked, wheel, _build("build_wheel", unpacked, folder / "again"))


def content(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_wheel_has_every_file_of_the_packages(built: Built) -> None:
    """Every YAML, prompt, README, page and figure; and nothing that git does not have."""
    wanted = {}
    for name in built.tracked:
        top, _, rest = name.partition("/")
        if top in PLACES:
            wanted[f"{PLACES[top]}/{rest}"] = (REPOSITORY / name).read_bytes()
    found = {name: text for name, text in content(built.wheel).items() if ".dist-info/" not in name}
    assert sorted(set(wanted) ^ set(found)) == []
    assert found == wanted


def test_the_sdist_builds_the_same_wheel(built: Built) -> None:
    assert content(built.again) == content(built.wheel)


def test_the_wheel_works_where_it_is_installed(built: Built, tmp_path: Path) -> None:
    """From another folder, beside a copy of the host and no repository."""
    made = host_copy.copy(tmp_path / "clean")
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "--python", str(made.python), "install"]
    else:
        command = ["uv", "pip", "install", "--python", str(made.python)]
    given = ["--quiet", "--no-deps", "--no-index", str(built.again)]
    subprocess.run([*command, *given], check=True, capture_output=True, text=True)
    own = made.run("-c", "import lmms_eval_tasks; print(lmms_eval_tasks.__path__[0])")
    assert Path(own.stdout.strip()) == made.packages / "lmms_eval_tasks", own.stderr

    def said(script: str, *words: str) -> str:
        done = made.run(str(made.python.with_name(script)), *words)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert said("lmms-eval-tasks", "--version").startswith(f"lmms-eval-tasks {__version__}, lmms-")
    ours, of_the_host = said("lmms-eval-tasks", "list"), said("lmms_eval", "--tasks", "list")
    for name in registry.NAMES:
        for task in (*registry.load_benchmark(name).tasks, *registry.groups(name)):
            assert task in of_the_host
        assert name in ours
