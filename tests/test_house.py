"""The shape of the house: who imports whom, and how much stands in one room (README, Layout)."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx
import pytest

from lmms_eval_tasks import registry
from tests.conftest import REPOSITORY

PACKAGE = "lmms_eval_tasks"
PLACES = {
    PACKAGE: REPOSITORY / PACKAGE,
    f"{PACKAGE}.utils": REPOSITORY / "utils",
    f"{PACKAGE}.judges": REPOSITORY / "judges",
    f"{PACKAGE}.leaderboards": REPOSITORY / "leaderboards",
}
# From the top to the ground: a room imports of its own floor, without circles, and of those below.
FLOORS = (
    {"commands", "host", "doctor", "adapters"},
    {"runs", "sample", "models", "command_options", *registry.NAMES},
    {"report"},
    {"benchmark", "tables", "media"},
    {"judges"},
    {"utils", "leaderboards", "context", "registry", "settings", "prompts", "errors", "notify", ""},
)


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


def floor(room: str) -> int:
    return next(place for place, rooms in enumerate(FLOORS) if room in rooms)


@pytest.fixture(scope="module")
def rooms() -> networkx.DiGraph:
    """Which room imports which, with the lines that do so; `__init__` modules are of theirs."""
    known, made = modules(), networkx.DiGraph()
    for name, file in known.items():
        for other in imported(file, known):
            if (edge := (room(name), room(other)))[0] != edge[1]:
                made.add_edge(*edge)
                made.edges[edge].setdefault("lines", []).append(f"{name} -> {other}")
    return made


def test_rooms_import_down_without_circles(rooms: networkx.DiGraph) -> None:
    """`python -m tests.test_house` prints them."""
    up = [edge for edge in rooms.edges if floor(edge[1]) < floor(edge[0])]
    assert [line for edge in up for line in rooms.edges[edge]["lines"]] == []
    circles = networkx.strongly_connected_components(rooms)
    assert [sorted(one) for one in circles if len(one) > 1] == []


def test_no_circles_of_files() -> None:
    """Beside those of a package and its own modules, which import it to reach each other."""
    known, made = modules(), networkx.DiGraph()
    for name, file in known.items():
        others = (other for other in imported(file, known) if other != name)
        made.add_edges_from((name, one) for one in others if not name.startswith(f"{one}."))
    circles = networkx.strongly_connected_components(made)
    assert [sorted(one) for one in circles if len(one) > 1] == []


def test_benchmarks_know_no_host_no_run_and_not_each_other(rooms: networkx.DiGraph) -> None:
    others = {"host", "runs", "commands", "doctor", *registry.NAMES}
    assert [edge for edge in rooms.edges if edge[0] in registry.NAMES and edge[1] in others] == []


def test_what_is_pure(rooms: networkx.DiGraph) -> None:
    """utils takes values as arguments; benchmark.py knows what judges, media and metrics give."""
    assert set(rooms["utils"]) == {"errors", "notify"}
    assert set(rooms["benchmark"]) <= {
        "judges",
        "utils",
        "tables",
        "media",
        "leaderboards",
        "settings",
        "errors",
    }


def test_no_module_keeps_the_state_of_a_run() -> None:
    """It is in context.py; signals alone are the process's (interrupts.py)."""
    keeping = [
        name
        for name, file in modules().items()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Global) and name != f"{PACKAGE}.utils.interrupts"
    ]
    assert keeping == []


def files(folder: Path) -> list[Path]:
    """Python files that hold code."""
    return [file for file in folder.glob("*.py") if file.name != "__init__.py"]


def test_rooms_are_small() -> None:
    package = REPOSITORY / PACKAGE
    assert len(files(package)) <= 8, sorted(files(package))
    for name in registry.NAMES:
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


def test_a_class_name_is_one_thing() -> None:
    """So that it can be searched for: in the whole package, aliases of types apart."""
    names = [
        node.name
        for file in modules().values()
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [name for name, number in Counter(names).items() if number > 1] == []


# The words that most often stand where a name of the field should: participles and pronouns.
FILLERS = {
    *("one", "it", "what", "there", "own", "left", "given", "taken", "told", "said", "heard"),
    *("seen", "shown", "known", "asked", "found", "made", "done", "read", "drawn", "held"),
    *("kept", "chosen", "wanted", "named", "sure", "beside", "handed", "placed", "sent"),
    *("received", "counted", "planned", "suited"),
}
# A key of a file, a side of a picture, or a name of somebody else's protocol.
FILLERS_THAT_STAY = {
    ("cvrr_es.items", "asked"),  # TypedDicts of logs
    ("haven.items", "asked"),
    ("movierecapsqa.items", "shown"),
    ("models.recipes", "asked"),  # the packaged data.yaml
    ("models.recipes", "told"),
    ("report.invalid", "known"),  # `token_limit` of a results file
    ("utils.results_file", "asked"),
    ("sample.scenes", "shown"),  # the samples' YAML files
    ("sample.scenes", "beside"),
    ("sample.render", "left"),  # left, top, right, bottom
    ("judges.providers.transport", "read"),  # httpcore's
}


def names_given(tree: ast.Module) -> Iterator[str]:
    """The names of a module's attributes, parameters, functions and all that has a type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [part for part in (arguments.vararg, arguments.kwarg) if part is not None]
            yield from (node.name, *(argument.arg for argument in every))


def test_names_say_what_they_hold() -> None:
    """Annotated names, attributes, parameters and functions; a lambda's may be short."""
    fillers = {
        (name.removeprefix(f"{PACKAGE}."), word)
        for name, file in modules().items()
        for word in names_given(ast.parse(file.read_text(encoding="utf-8")))
        if word in FILLERS
    }
    assert fillers == FILLERS_THAT_STAY


def test_functions_have_an_object() -> None:
    """`read_cues`, not one of sixteen `read`: a bare word is one of three modules at most."""
    places: dict[str, list[str]] = {}
    for name, file in modules().items():
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "_" not in node.name:
                places.setdefault(node.name, []).append(name)
    assert {word: names for word, names in places.items() if len(names) > 3} == {}


def test_signatures_say_types() -> None:
    """`Any` stands where nothing else can: at most 100 times in 2,600 functions (it was 909)."""
    found = 0
    for file in modules().values():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                every += [one for one in (node.args.vararg, node.args.kwarg) if one is not None]
                said = [*(one.annotation for one in every), node.returns]
                names = (one for own in said if own is not None for one in ast.walk(own))
                found += sum(isinstance(one, ast.Name) and one.id == "Any" for one in names)
    assert 0 < found <= 100


if __name__ == "__main__":
    drawn = rooms.__wrapped__()
    for story in FLOORS:
        for own in sorted(story):
            print(f"{own or PACKAGE:14} -> {', '.join(sorted(drawn[own])) if own in drawn else ''}")
        print()
