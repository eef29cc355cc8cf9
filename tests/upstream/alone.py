"""Each contribution alone on a source that has no other: its tests fail before it and pass after.

    python -m tests.upstream.alone [SOURCE ...] [NAME ...]

SOURCE is a folder with lmms-eval's repository, tried beside the installed release. NAME is a
contribution's folder; without one all are tried. A test that fails before because it does not find
what it imports counts only if the contribution adds that module. Prints a row of the table in
upstream/README.md for each contribution; those to transformers are tried on the installed release
alone. Ends with 1 if a contribution does not fail before and pass after, and with 2 for an argument
that is neither. `make test` leaves it out: what it shows changes with the contributions and their
hosts only.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from tests import warm
from tests.conftest import OFFLINE
from tests.upstream import host_copy, test_transformers
from tests.upstream.test_contributions import HAVE_TESTS, outcomes

# A source may be older than what a contribution follows up.
FOLLOWS = {"odd_clips": "#1433"}


def changed_lines(contribution: Path) -> tuple[int, int]:
    """Return how many lines a contribution adds to and takes from its host, tests included."""
    patch = contribution / host_copy.CHANGE
    lines = patch.read_text("utf-8").splitlines() if patch.is_file() else []
    added = sum(re.match(r"\+(?!\+\+ )", line) is not None for line in lines)
    files = [file for file in contribution.rglob("*") if file.is_file()]
    own = (host_copy.DESCRIPTION, host_copy.CHANGE, host_copy.DOCS)
    new = [one for one in files if one.name not in own and "__pycache__" not in one.parts]
    added += sum(len(one.read_text("utf-8").splitlines()) for one in new)
    return added, sum(re.match(r"-(?!-- )", line) is not None for line in lines)


def on_host(contribution: Path, source: Path | None, server: warm.Server) -> str:
    """Return `fails, passes`, or what else a contribution does to a copy of a source."""
    with tempfile.TemporaryDirectory() as folder:
        host = host_copy.copy(Path(folder), host_copy.needed(contribution), source)
        for file in host_copy.files_of(contribution):
            if "test" in file.relative_to(contribution).parts[:1]:
                host.place(contribution, file)
        before = outcomes(host, server)
        try:
            host.lay(contribution)
        except subprocess.CalledProcessError as error:
            return f"does not apply: {error.stderr.strip()}"
        after = outcomes(host, server)
    names = {file.stem for file in contribution.glob("test/**/test_*.py")}
    modules = {
        ".".join(file.relative_to(contribution).parent.parts)
        for file in contribution.glob("lmms_eval/**/*.py")
    }
    red = {
        name: [
            one
            for one in before.get(name, ())
            if one == "failed" or any(f"'{module}" in one for module in modules)
        ]
        for name in names
    }
    fails = bool(names) and all(red.values())
    passes = all(after.get(name) == {"passed"} for name in names)
    return f"{'fails' if fails else 'passes'}, {'passes' if passes else 'fails'}"


def on_transformers(contribution: Path) -> str:
    """The same of a contribution to transformers, on the installed release."""
    with tempfile.TemporaryDirectory() as folder:
        test_transformers.copied(contribution, Path(folder))
        before, _ = test_transformers.failed(contribution, Path(folder))
        test_transformers.patch(contribution, Path(folder))
        after, passed = test_transformers.failed(contribution, Path(folder))
    return f"{'fails' if before else 'passes'}, {'passes' if passed and not after else 'fails'}"


def rows(
    sources: Sequence[Path | None], names: Collection[str], server: warm.Server
) -> Iterator[tuple[str, list[str]]]:
    """Yield each contribution's name with what it does on each source, and its lines."""
    for one in [one for one in HAVE_TESTS if not names or one.name in names]:
        shown = [on_host(one, source, server) for source in sources]
        yield one.name, [*shown, "+{} -{}".format(*changed_lines(one))]
    for one in [one for one in test_transformers.CONTRIBUTIONS if not names or one.name in names]:
        yield one.name, [on_transformers(one), "+{} -{}".format(*changed_lines(one))]


def main(*arguments: str) -> int:
    """Print the rows; return 1 if one is not as described."""
    known = {one.name for one in [*HAVE_TESTS, *test_transformers.CONTRIBUTIONS]}
    names = [one for one in arguments if one in known]
    folders = [Path(one) for one in arguments if one not in known]
    for one in folders:
        if not (one / "lmms_eval" / "__init__.py").is_file():
            print(f"{one}: no contribution, and no folder with the source of lmms-eval")
            return 2
    sources: list[Path | None] = [None, *folders]
    server = warm.Server({"PATH": "/usr/bin:/bin", **OFFLINE})
    bad = 0
    for name, cells in rows(sources, names, server):
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)
        wrong = [cell for cell in cells[:-1] if cell != "fails, passes"]
        bad += bool(wrong) and not (name in FOLLOWS and cells[0] == "fails, passes")
    server.close()
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
