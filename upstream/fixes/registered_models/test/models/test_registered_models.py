"""Every registered model names a class that is there. Nothing is imported: most need packages of their own."""

import ast
import importlib.util
from pathlib import Path

import pytest

from lmms_eval.models import MODEL_REGISTRY_V2

PATHS = sorted(
    {(name, path) for name in MODEL_REGISTRY_V2.list_canonical_model_ids() for path in (MODEL_REGISTRY_V2.get_manifest(name).simple_class_path, MODEL_REGISTRY_V2.get_manifest(name).chat_class_path) if path and path.startswith("lmms_eval.")}
)


@pytest.mark.parametrize("name, path", PATHS)
def test_the_class_of_a_registered_model_exists(name, path):
    module, _, wanted = path.rpartition(".")
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"{name}: no module {module}"
    body = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    assert wanted in {node.name for node in ast.walk(body) if isinstance(node, ast.ClassDef)}, f"{name}: no class {wanted} in {module}"


@pytest.mark.parametrize("name", ["video_chatgpt", "videoChatGPT"])
def test_video_chatgpt_has_the_name_of_its_module_and_the_old_one(name):
    assert MODEL_REGISTRY_V2.resolve(name).class_path == "lmms_eval.models.simple.video_chatgpt.VideoChatGPT"
