"""The shape of the house: who imports whom, and how much stands in one room (README, Layout)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from lmms_eval_tasks import benchmarks
from tests.conftest import REPOSITORY

PACKAGE = "lmms_eval_tasks"
PLACES = {
    PACKAGE: REPOSITORY / PACKAGE,
    f"{PACKAGE}.utils": REPOSITORY / "utils",
    f"{PACKAGE}.judges": REPOSITORY / "judges",
    f"{PACKAGE}.leaderboards": REPOSITORY / "leaderboards",
}
# From the top to the ground; a module imports of its own floor and of those below.
FLOORS = (
    {"commands", "host"},
    {"runs", "sample", "models", *benchmarks.NAMES},
    {"report", "benchmark", "benchmarks", "measures", "readings", "arrivals", "running"},
    {"judges"},
    {"utils", "leaderboards"},
    {"console", "errors", "settings", ""},
)


# What builds the packaged sample is asked for wherever data are read.
SAMPLE = {f"{PACKAGE}.sample", f"{PACKAGE}.sample.render", f"{PACKAGE}.sample.second_code"}


def modules() -> dict[str, Path]:
    """Dotted name -> file, of all of the package."""
    found = {}
    for name, folder in PLACES.items():
        for file in folder.rglob("*.py"):
            parts = file.relative_to(folder).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found[".".join((name, *parts))] = file
    return found


def imported(file: Path, known: dict[str, Path]) -> Iterator[str]:
    """Modules of the package that a file imports when it runs, at its top or in a function."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    blocks = [one for one in ast.walk(tree) if isinstance(one, ast.If)]
    typed = [one for one in blocks if ast.unparse(one.test) == "TYPE_CHECKING"]
    left_out = {node for block in typed for node in ast.walk(block)}
    for node in (one for one in ast.walk(tree) if one not in left_out):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [one if one in known else str(node.module) for one in whole]
        else:
            continue
        yield from (name for name in names if name in known)


def room(module: str) -> str:
    """The first part of a module's name below the package."""
    return module.removeprefix(PACKAGE).removeprefix(".").partition(".")[0]


def floor(module: str) -> int:
    if module in SAMPLE:
        return len(FLOORS) - 2
    return next(place for place, rooms in enumerate(FLOORS) if room(module) in rooms)


@pytest.fixture(scope="module")
def graph() -> networkx.DiGraph:
    known = modules()
    made = networkx.DiGraph()
    for name, file in known.items():
        made.add_edges_from((name, other) for other in imported(file, known) if other != name)
    return made


def test_imports_go_down_without_circles(graph: networkx.DiGraph) -> None:
    """In circles packages do not count: every module of one imports it, and may be named in it."""
    assert sorted(f"{a} -> {b}" for a, b in graph.edges if floor(b) < floor(a)) == []
    packages = {name for name, file in modules().items() if file.name == "__init__.py"}
    own = graph.subgraph(graph.nodes - packages)
    assert [
        sorted(one) for one in networkx.strongly_connected_components(own) if len(one) > 1
    ] == []


def test_benchmarks_know_no_host_no_run_and_not_each_other(graph: networkx.DiGraph) -> None:
    others = {"host", "runs", "commands", *benchmarks.NAMES}
    edges = [(a, b) for a, b in graph.edges if room(a) in benchmarks.NAMES and room(a) != room(b)]
    assert sorted(f"{a} -> {b}" for a, b in edges if room(b) in others) == []


def files(folder: Path) -> list[Path]:
    """Python files that hold code."""
    return [file for file in folder.glob("*.py") if file.name != "__init__.py"]


def test_rooms_are_small() -> None:
    package = REPOSITORY / PACKAGE
    assert len(files(package)) <= 8, sorted(files(package))
    for name in benchmarks.NAMES:
        assert len(files(package / name)) <= 12, name
        assert len({file.parent for file in (package / name).glob("*/*.py")}) <= 1, name
    for folder in {file.parent for file in package.rglob("*.py")}:
        assert len(files(folder)) <= 15, folder


# What runs code that a file brings, or writes files where an archive says; ruff's S knows some.
UNSAFE = {
    *("pickle.load", "pickle.loads", "shelve.open", "marshal.loads", "joblib.load", "dill.load"),
    *(
        "np.load",
        "numpy.load",
        "yaml.unsafe_load",
        "yaml.full_load",
        "yaml.load_all",
        "eval",
        "exec",
    ),
    *("shutil.unpack_archive", "tarfile.open", "tarfile.TarFile", "os.system", "os.popen"),
}
UNPACKS = {"extract", "extractall"}  # of any archive


SAFE_LOADERS = ("yaml.SafeLoader", "getattr(yaml, 'CSafeLoader', yaml.SafeLoader)")


def test_no_file_of_others_is_run_or_unpacked() -> None:
    """Arrays and checkpoints without pickle, YAML by safe loaders; no archive is unpacked."""
    found, loaders = [], set()
    for file in modules().values():
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name, given = (
                ast.unparse(call.func),
                {k.arg: ast.unparse(k.value) for k in call.keywords},
            )
            bad = name in UNSAFE or name.rpartition(".")[2] in UNPACKS
            bad |= given.get("allow_pickle", "False") != "False" or given.get("shell") == "True"
            bad |= name == "torch.load" and given.get("weights_only") != "True"
            if name == "yaml.load":
                loaders |= {(file, ast.unparse(one)) for one in (*call.args[1:], *call.keywords)}
            if bad:
                found.append(f"{file}:{call.lineno}: {ast.unparse(call)[:80]}")
    assert found == []
    for file, loader in loaders:
        tree = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        kinds = [one for one in tree if isinstance(one, ast.ClassDef) and one.name == loader]
        (base,) = [ast.unparse(base) for kind in kinds for base in kind.bases] or [loader]
        assert base in SAFE_LOADERS, (file, loader)
    assert loaders
