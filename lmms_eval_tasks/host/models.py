"""Models of this package in lmms-eval: fake models, recorded replies, language models, vLLM.

Importing this module is light. The modules named here import lmms-eval's classes, and with them
torch. lmms-eval imports such a module only if a run asks for its model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmms_eval.models.registry_v2 import ModelManifest

_MODELS = "lmms_eval_tasks.models"
# Arguments of lmms-eval's ModelManifest. `lm_pairs` reads statements, not messages. It has only a
# simple class, so that --force_simple is not needed.
MANIFESTS: tuple[dict[str, str], ...] = (
    *(
        {
            "model_id": f"tasks_{name.lower()}",
            "simple_class_path": f"{_MODELS}.fake_models.{name}Simple",
            "chat_class_path": f"{_MODELS}.fake_models.{name}",
        }
        for name in ("Oracle", "Coin", "Scripted", "Witness", "Recorded")
    ),
    {"model_id": "lm_pairs", "simple_class_path": f"{_MODELS}.lm_pairs.LmPairs"},
    {"model_id": "tasks_vllm", "chat_class_path": f"{_MODELS}.vllm.VLLM"},
)


def manifests() -> list[ModelManifest]:
    """Return lmms-eval's `ModelManifest` of each of our models."""
    from lmms_eval.models.registry_v2 import ModelManifest

    return [ModelManifest(**manifest) for manifest in MANIFESTS]
