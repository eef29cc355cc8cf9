"""The table of classes against the installed host: whole, and true to its sources."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks.running import class_pages, host_version
from lmms_eval_tasks.running import class_table as classes

TABLE = classes.table()


@cache
def registered() -> dict[str, Any]:
    """Manifests of the host's models and ours; other packages may have put some there, too."""
    from lmms_eval.models import MODEL_REGISTRY_V2

    names = MODEL_REGISTRY_V2.list_canonical_model_ids()
    found = {name: MODEL_REGISTRY_V2.get_manifest(name) for name in names}
    ours = ("lmms_eval.", "lmms_eval_tasks.")
    return {
        name: manifest
        for name, manifest in found.items()
        if (manifest.chat_class_path or manifest.simple_class_path).startswith(ours)
    }


@cache
def source(file: str) -> str:
    """A file of the host or of ours, wherever it is installed."""
    package, _, rest = file.partition("/")
    folders = importlib.import_module(package).__path__
    (found,) = (path for folder in folders if (path := Path(folder, rest)).is_file())
    return found.read_text(encoding="utf-8")


def test_it_is_of_the_installed_host_and_of_all_its_models() -> None:
    assert TABLE.host == host_version()
    assert sorted(TABLE.models) == sorted(registered())
    for name, manifest in registered().items():
        entry = TABLE.models[name]
        assert (entry.simple is not None) == (manifest.simple_class_path is not None), name
        assert (entry.chat is not None) == (manifest.chat_class_path is not None), name
        assert sorted(entry.aliases) == sorted(manifest.aliases), name


def every_class() -> Iterator[tuple[str, str, classes.Class]]:
    for name, entry in TABLE.models.items():
        for interface, one in entry.classes():
            yield name, interface, one


def test_each_class_says_all_of_itself() -> None:
    """Its sound in both ways; its media, or why it takes none."""
    for name, interface, one in every_class():
        ways = {way for way in type(one).model_fields if getattr(one, way)} - {"media"}
        chat = {"wav", "muted_mp4_and_wav"}
        assert ways - {"mp4"} == chat if interface == "chat" else ways == {"path", "array", "mp4"}
        media = one.media
        needed = (media.max_new_tokens, media.until, media.failed, media.video or media.image)
        assert bool(media.none) != all(needed), name


def test_the_lines_that_it_rests_on_are_still_there() -> None:
    gone, lines = [], cache(lambda file: source(file).splitlines())
    for name, interface, one in every_class():
        cells = [
            cell for way in type(one).model_fields if way != "media" and (cell := getattr(one, way))
        ]
        for place in (*one.media.evidence, *cells, *(two for cell in cells for two in cell.when)):
            found = lines(place.file)[slice(place.line and place.line - 1, place.line)]
            if not any(place.code in line for line in found):
                gone.append(f"{name}, {interface}: {place.file}:{place.line} no {place.code!r}")
    assert not gone


def test_arguments_of_frames_are_the_classes() -> None:
    """A name that no class has would be swallowed by many, or end the run in others."""
    absent = []
    for name, interface, one in every_class():
        wanted = one.media.frames_argument
        if wanted and not one.media.broken:
            defined = frame_parameters(getattr(registered()[name], f"{interface}_class_path"))
            if wanted not in defined:
                absent.append((name, interface, wanted, sorted(defined)))
    assert not absent


def frame_parameters(path: str) -> set[str]:
    """Arguments of every __init__ in a class's module and in the host's that it takes from."""
    module = path.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(source(f"{module.replace('.', '/')}.py"))):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            found |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lmms_eval.models."):
            other = node.module or ""
            found |= set() if other == module else frame_parameters(f"{other}.any")
    return found


def test_docs_are_those_of_the_table() -> None:
    """`lmms-eval-tasks models > docs/models.md`."""
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert page.read_text(encoding="utf-8") == class_pages.markdown()
