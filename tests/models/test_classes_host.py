"""The table of classes against the installed host: whole, and true to its sources."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lmms_eval_tasks.models import capability_pages
from lmms_eval_tasks.models import model_capabilities as classes
from lmms_eval_tasks.models.model_capabilities import host_version
from tests.checks import table

TABLE = classes.capability_table()


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


def test_arguments_of_frames_and_pixels_are_the_classes() -> None:
    """A name that no class has would be swallowed by many, or end the run in others."""
    absent = []
    for name, interface, one in every_class():
        media = one.media
        wanted: dict[str, Any] = {media.frames_argument or "": media.frames_default}
        wanted = {k: v for k, v in (wanted | media.pixel_arguments).items() if k}
        if media.broken or not wanted:
            continue
        defined = parameters(getattr(registered()[name], f"{interface}_class_path"))
        for argument, default in wanted.items():
            known = defined.get(argument, [])
            # Some frames' defaults are those of a number that is not named.
            if not known or (argument in media.pixel_arguments and default not in known):
                absent.append((name, interface, argument, default, known))
    assert not absent


def test_each_class_says_what_decides_on_the_size_of_a_picture() -> None:
    for name, interface, one in every_class():
        media = one.media
        assert bool(media.sizes()) == (not media.none and not media.broken), (name, interface)
        facts = [place.fact for place in media.evidence]
        assert facts.count("pixels") == bool(media.sizes()), (name, interface)


@table(
    "model, interface, said",
    [
        ("qwen2_5_vl", "chat", "min_pixels=200704, max_pixels=1605632"),
        ("tasks_vllm", "chat", "min_pixels, max_pixels (processor's default unless given)"),
        ("glm4v", "simple", "processor's default"),
    ],
)
def test_pixels_in_words(model: str, interface: Any, said: str) -> None:
    media = classes.media_of(model, interface)
    assert media is not None
    assert media.sizes() == said
    assert f"pixels: {said}" in capability_pages.line(model, interface)


def parameters(path: str) -> dict[str, list[Any]]:
    """Arguments of every __init__ in a class's module and in the host's that it takes from.

    With their defaults; None for one that has none.
    """
    module = path.rpartition(".")[0]
    tree = ast.parse(source(f"{module.replace('.', '/')}.py"))
    named = {
        node.targets[0].id: value(node.value, {})
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    found: dict[str, list[Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            plain, own = node.args, node.args.kwonlyargs
            missing = [None] * (len(plain.args) - len(plain.defaults))
            defaults = [*missing, *plain.defaults, *plain.kw_defaults]
            for one, default in zip((*plain.args, *own), defaults, strict=True):
                found.setdefault(one.arg, []).append(default and value(default, named))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lmms_eval.models."):
            other = node.module or ""
            if other != module:
                for argument, known in parameters(f"{other}.any").items():
                    found.setdefault(argument, []).extend(known)
    return found


def value(node: ast.expr, named: Mapping[str, Any]) -> Any:
    """The value of a constant expression, such as 256 * 28 * 28; its text if it is none."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return value(node.left, named) * value(node.right, named)
    if isinstance(node, ast.Constant):
        return node.value
    return named[node.id] if isinstance(node, ast.Name) and node.id in named else ast.unparse(node)


def test_docs_are_those_of_the_table() -> None:
    """`lmms-eval-tasks models --format md > docs/models.md`."""
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert page.read_text(encoding="utf-8") == capability_pages.markdown()
