"""A copy of the installed host with contributions laid over it, and nothing of ours beside it.

A contribution is a folder beneath `upstream/` with a `PULL_REQUEST.md`. Its `change.patch` is what
it changes in files of the host; every other file stands at its path in the host's repository.
`docs.patch` is for that repository alone: what is installed has no `docs/`.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests import warm
from tests.conftest import OFFLINE, REPOSITORY
from tests.judged import Script
from tests.local_endpoint import LocalEndpoint

UPSTREAM = REPOSITORY / "upstream"
DESCRIPTION, CHANGE, DOCS = "PULL_REQUEST.md", "change.patch", "docs.patch"
OURS = ("lmms_eval_tasks", "__editable__.lmms_eval_tasks")

# A forked process first forgets the installed host, and imports from the copy's folder
# alone, where nothing of ours is; then, as Python does, `-m` or a file with its arguments.
HERE = """
import importlib, runpy, sys

for name in [*sys.modules]:
    if name.partition(".")[0] in ("lmms_eval", "lmms_eval_tasks"):
        del sys.modules[name]
own = ("site-packages", "__editable__")
sys.path[:] = [{packages!r}, *(one for one in sys.path if not any(part in one for part in own))]
importlib.invalidate_caches()
sys.argv[:] = {arguments!r}
if sys.argv[0] == "-m":
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


class HostCopy(NamedTuple):
    """A folder with an environment in which the host is a copy and this package is not."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where the copy stands as `lmms_eval`."""
        (found,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        return found

    @property
    def env(self) -> dict[str, str]:
        """The environment of its processes: offline, and nothing of this one's."""
        return {"PATH": f"{self.python.parent}:/usr/bin:/bin", "HOME": str(self.folder), **OFFLINE}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run its Python in its folder."""
        options = {"cwd": self.folder, "capture_output": True, "text": True, "timeout": 600}
        command = [str(self.python), *arguments]
        return subprocess.run(command, env=self.env, check=False, **options)

    def forked(
        self, server: warm.Server, *arguments: str, env: Mapping[str, str] | None = None
    ) -> warm.Done:
        """The same in a process that has other packages imported, as they are linked here."""
        code = HERE.format(packages=str(self.packages), arguments=list(arguments))
        command = [sys.executable, "-c", code]
        (done,) = server.run(command, [self.env | {**(env or {})}], self.folder, 600)
        return done

    def place(self, contribution: Path, file: Path) -> None:
        """Copy a contribution's file to its place in the host's repository."""
        place = file.relative_to(contribution)
        root = self.packages if place.parts[0] == "lmms_eval" else self.folder
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, root / place)

    def lay(self, contribution: Path) -> None:
        """Add a contribution's files, and make its change; `CalledProcessError` if it misfits."""
        for file in files_of(contribution):
            self.place(contribution, file)
        if (contribution / CHANGE).is_file():
            git = ["git", "apply", "--whitespace=error", str(contribution / CHANGE)]
            subprocess.run(git, cwd=self.packages, check=True, capture_output=True, text=True)


def contributions() -> Sequence[Path]:
    """Every contribution's folder, in order of name, but those to transformers."""
    found = (file.parent for file in UPSTREAM.rglob(DESCRIPTION))
    return sorted(one for one in found if one.parent.name != "transformers")


def files_of(contribution: Path) -> Iterator[Path]:
    """The files that it adds to the host's repository."""
    own = {contribution / name for name in (DESCRIPTION, CHANGE, DOCS)}
    for file in sorted(contribution.rglob("*")):
        if file.is_file() and file not in own and "__pycache__" not in file.parts:
            yield file


def needed(contribution: Path) -> Sequence[Path]:
    """The contributions that one builds on: its description names a file that they add."""
    text = (contribution / DESCRIPTION).read_text("utf-8")
    names = re.findall(r"On top of the pull request that adds `(\S+)`", text)
    places = [Path("lmms_eval", "tasks", name) for name in names]
    return [one for one in contributions() for place in places if (one / place).is_file()]


def copy(folder: Path, laid: Iterable[Path] = (), source: Path | None = None) -> HostCopy:
    """Copy the installed host, or the one in a folder, and lay these contributions over it."""
    made = HostCopy(folder)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    spec = importlib.util.find_spec("lmms_eval")
    assert spec is not None
    assert spec.submodule_search_locations
    host = Path(spec.submodule_search_locations[0])
    shutil.copytree(source / host.name if source else host, made.packages / host.name)
    for package in host.parent.iterdir():
        if package.name != host.name and not package.name.startswith(OURS):
            (made.packages / package.name).symlink_to(package)
    for contribution in laid:
        made.lay(contribution)
    return made


def module(file: Path) -> Any:
    """A module of a contribution, from its file."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def scored(
    benchmark: str,
    jobs: Sequence[dict[str, Any]],
    judge: Script,
    folder: Path,
    server: warm.Server,
) -> tuple[Any, list[list[str]]]:
    """What a contribution's tasks make of `jobs` (host_scored.py), and what a judge was asked."""
    host = copy(folder / "host", [*needed(UPSTREAM / benchmark), UPSTREAM / benchmark])
    (folder / "jobs.json").write_text(json.dumps(jobs))
    driver = str(Path(__file__).parent / "host_scored.py")
    with LocalEndpoint(judge) as endpoint:
        env = {"OPENAI_API_URL": endpoint.url, "OPENAI_API_KEY": "none", "HF_HOME": str(folder)}
        files = (str(folder / f"{name}.json") for name in ("jobs", "made"))
        done = host.forked(server, driver, benchmark, *files, env=env)
        assert done.code == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return json.loads((folder / "made.json").read_text()), messages(endpoint)


def messages(endpoint: LocalEndpoint) -> list[list[str]]:
    """What an endpoint was asked, sorted: ours asks several things side by side."""
    return sorted([one["content"] for one in chat.json["messages"]] for chat in endpoint.chats)
