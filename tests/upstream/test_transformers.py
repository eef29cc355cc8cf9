"""The contributions to transformers: their tests pass after the patch (before it: alone.py)."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import OFFLINE
from tests.upstream.host_copy import CHANGE, DESCRIPTION, UPSTREAM

CONTRIBUTIONS = sorted(one.parent for one in (UPSTREAM / "transformers").glob(f"*/{DESCRIPTION}"))
MADE_FOR = "5.24."  # the release that the patches are against


def failed(contribution: Path, packages: Path) -> tuple[int, int]:
    """How many of a contribution's tests fail and pass with the transformers in a folder."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(packages), "PYTHONPATH": str(packages), **OFFLINE}
    options = ("-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(contribution))
    command = [sys.executable, "-m", "pytest", *options, str(contribution / "tests")]
    done = subprocess.run(command, env=env, cwd=packages, capture_output=True, text=True)  # noqa: PLW1510
    counts = dict(re.findall(r"(\d+) (failed|passed)", done.stdout))
    found = {outcome: int(number) for number, outcome in counts.items()}
    assert found, done.stdout[-3000:] + done.stderr[-3000:]
    return found.get("failed", 0), found.get("passed", 0)


def copied(one: Path, folder: Path) -> None:
    """Lay the installed transformers into a folder: links, but for what a contribution changes."""
    if not importlib.metadata.version("transformers").startswith(MADE_FOR):
        pytest.skip(f"the patches are against transformers {MADE_FOR}0")
    installed = Path(__import__("transformers").__path__[0])
    changed = re.findall(r"^--- a/src/transformers/(\S+)", (one / CHANGE).read_text(), re.MULTILINE)
    for place, _, names in os.walk(installed):
        own = folder / "transformers" / Path(place).relative_to(installed)
        own.mkdir()
        for name in names:
            source = Path(place) / name
            if str(source.relative_to(installed)) in changed:
                (own / name).write_bytes(source.read_bytes())
            else:
                (own / name).symlink_to(source)


def patch(one: Path, folder: Path) -> None:
    """Make a contribution's change in a folder of `copied`."""
    git = ["git", "apply", "-p2", "--whitespace=error", str(one / CHANGE)]
    subprocess.run(git, cwd=folder, check=True, capture_output=True, text=True)


@pytest.mark.host
@pytest.mark.parametrize("one", CONTRIBUTIONS, ids=lambda one: one.name)
def test_tests_pass_after(one: Path, tmp_path: Path) -> None:
    copied(one, tmp_path)
    patch(one, tmp_path)
    bad, good = failed(one, tmp_path)
    assert (bad, good > 0) == (0, True)
