"""Settings that only HAVEN has."""

from __future__ import annotations

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

CLIPSCORE: Setting[str | None] = settings.declare(
    "CLIPSCORE",
    str,
    "MODEL",
    "model for CLIPScore (HAVEN): a folder, or a name in the local Hugging Face cache; "
    "default: not computed",
)
HAVEN: Setting[str | None] = settings.declare(
    "HAVEN",
    str,
    settings.CHOICES,
    "choice of HAVEN's items and pictures (lmms_eval_tasks/haven/README.md)",
)
