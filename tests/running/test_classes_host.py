"""The table of classes against the installed host: whole, and true to its sources and classes."""

from __future__ import annotations

import ast
import importlib.util
import wave
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from lmms_eval_tasks.running import class_pages, host_version
from lmms_eval_tasks.running import class_table as classes
from lmms_eval_tasks.sample import tiny
from tests.utils.media.media_files import write_video

REGISTRY = "lmms_eval/models/__init__.py"
WAYS: tuple[Any, ...] = ("audio", "video_and_audio")
TONE = (np.sin(2 * np.pi * 440 * np.arange(8000) / 16000) * 20000).astype("<i2")
ARRAY = {"array": TONE / np.float32(32768), "sampling_rate": 16000}


@cache
def source(file: str) -> Path:
    """A file of the host or of ours, wherever it is installed; nothing is imported."""
    package, _, rest = file.partition("/")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0], rest)


@cache
def lines(file: str) -> list[str]:
    return source(file).read_text(encoding="utf-8").splitlines()


@cache
def tree(file: str) -> ast.Module:
    return ast.parse(source(file).read_text(encoding="utf-8"))


def module_file(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def cells() -> Iterator[tuple[str, str, str, classes.Evidence]]:
    """(model, interface, way, evidence) of every cell and variant."""
    for name, entry in classes.table().models.items():
        for interface in ("simple", "chat"):
            group = getattr(entry, interface)
            for way in {*type(group).model_fields} - {"media"} if group else ():
                if (cell := getattr(group, way)) is None:
                    continue
                for evidence in (cell, *cell.when):
                    yield name, interface, way, evidence


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


# --- its sources ------------------------------------------------------------------------------


def test_the_table_is_of_the_installed_host() -> None:
    assert classes.table().host == host_version()


def test_every_registered_model_is_in_the_table_and_none_else() -> None:
    table, host = classes.table().models, registered()
    assert sorted(table) == sorted(host)
    for name, manifest in host.items():
        entry = table[name]
        assert (entry.simple is not None) == (manifest.simple_class_path is not None), name
        assert (entry.chat is not None) == (manifest.chat_class_path is not None), name
        assert sorted(entry.aliases) == sorted(manifest.aliases), name


def test_the_lines_that_cells_rest_on_are_still_there() -> None:
    gone = [
        f"{name}, {interface}, {way}: {cell.file}:{cell.line} has no {cell.code!r}"
        for name, interface, way, cell in cells()
        if cell.line > len(lines(cell.file)) or cell.code not in lines(cell.file)[cell.line - 1]
    ]
    assert not gone


def media() -> Iterator[tuple[str, str, classes.Media | classes.Nothing]]:
    for name, entry in classes.table().models.items():
        for interface in ("simple", "chat"):
            if group := getattr(entry, interface):
                yield name, interface, group.media


def test_the_lines_that_media_rest_on_are_still_there() -> None:
    gone = [
        f"{name}, {interface}, {one.fact}: {one.file}:{one.line} has no {one.code!r}"
        for name, interface, found in media()
        for one in found.evidence
        if one.line > len(lines(one.file)) or one.code not in lines(one.file)[one.line - 1]
    ]
    assert not gone


def test_arguments_of_frames_are_the_classes() -> None:
    """A name that no class has would be swallowed by many, or end the run in others."""
    absent = []
    for name, interface, found in media():
        if isinstance(found, classes.Media) and found.frames_argument and not found.broken:
            path = getattr(registered()[name], f"{interface}_class_path").rpartition(".")[0]
            defined = frame_parameters(module_file(path))
            if found.frames_argument not in defined:
                absent.append((name, interface, found.frames_argument, sorted(defined)))
    assert not absent


def frame_parameters(file: str) -> set[str]:
    """Arguments of every __init__ of a module and of the modules of the host that it takes from."""
    found: set[str] = set()
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            found |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lmms_eval.models."):
            other = module_file(node.module or "")
            if source(other).is_file() and other != file:
                found |= frame_parameters(other)
    return found


def test_docs_are_those_of_the_table() -> None:
    """`lmms-eval-tasks models --markdown > docs/models.md`."""
    page = Path(__file__).parents[2] / "docs" / "models.md"
    assert page.read_text(encoding="utf-8") == class_pages.markdown()


def test_a_model_rests_on_the_registry_if_it_cannot_be_imported() -> None:
    """Four names of 0.7.3 lead to no class; a file of another case is no file on some systems."""
    broken = set()
    for name, manifest in registered().items():
        for interface in ("simple", "chat"):
            path = getattr(manifest, f"{interface}_class_path")
            if path is None:
                continue
            module, _, wanted = path.rpartition(".")
            file = source(module_file(module))
            there = file.name in [other.name for other in file.parent.iterdir()]
            body = tree(module_file(module)).body if there else []
            names = {node.name for node in body if isinstance(node, ast.ClassDef)}
            made = [node for node in body if isinstance(node, ast.Assign)]  # ours, of the chat ones
            names |= {
                one.id for node in made for one in ast.walk(node) if isinstance(one, ast.Name)
            }
            if wanted not in names:
                broken.add((name, interface))
    assert broken == {(name, way) for name, way, _, cell in cells() if cell.file == REGISTRY}
    assert {name for name, _ in broken} == {"bagel", "bagel_umm", "videoChatGPT", "whisper_tt"}
    assert {c.status for name, way, _, c in cells() if (name, way) in broken} == {"raises"}


# --- its classes that run here ----------------------------------------------------------------


def ask(model: Any, *given: Any) -> str:
    """One request with these media, as the host makes it for the class."""
    model.task_dict = {"task": {"test": [{}]}}
    kwargs = {"max_new_tokens": 2, "until": []}
    if model.is_simple:
        arguments: tuple[Any, ...] = ("Which?", kwargs, lambda doc: list(given), 0, "task", "test")
    else:
        content = [*given, {"type": "text", "text": "Which?"}]
        messages = [{"role": "user", "content": content}]
        arguments = ("Which?", lambda doc: messages, kwargs, 0, "task", "test")
    (reply,) = model.generate_until([SimpleNamespace(args=arguments, metadata={})])
    return str(getattr(reply, "text", reply))


def test_qwen2_5_vl_drops_sound_silently(tmp_path: Path) -> None:
    """The model's inputs are the same with the sound and without."""
    from lmms_eval.models import get_model

    folder = str(tiny.build("qwen2_5_vl", tmp_path / "tiny"))
    limits = {"min_pixels": 784, "max_pixels": 12544, "max_num_frames": 2}
    wav, mp4 = str(tmp_path / "a.wav"), str(write_video(tmp_path / "a.mp4", 8, audio=True))
    with wave.open(wav, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(TONE.tobytes())
    audio, video = {"type": "audio", "url": wav}, {"type": "video", "url": mp4}
    asked: dict[Any, tuple[Any, ...]] = {
        "simple": ((), (wav,), (ARRAY,), (mp4,)),
        "chat": ((), (audio,), (video,), (video, audio)),
    }
    for interface, requests in asked.items():
        found = [classes.delivery("qwen2_5_vl", interface, way) for way in WAYS]
        assert {one.status for one in found} == {"not delivered"}
        built: Any = get_model("qwen2_5_vl", interface == "simple")
        model = built(pretrained=folder, device="cpu", device_map="cpu", **limits)
        generate: Callable[..., Any] = model.model.generate
        seen: list[dict[str, list[Any]]] = []

        def spy(generate: Any = generate, seen: Any = seen, **inputs: Any) -> Any:
            seen.append({k: v.tolist() for k, v in inputs.items() if hasattr(v, "tolist")})
            return generate(**inputs)

        model.model.generate = spy
        for given in requests:
            ask(model, *given)
        assert seen[0] == seen[1]
        assert seen[2] == seen[0 if interface == "simple" else 3]
        assert not [name for name in seen[3] if "audio" in name or "feature" in name]
