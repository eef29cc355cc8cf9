"""Settings that only HAVEN has."""

from __future__ import annotations

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

CLIPSCORE: Setting[str | None] = settings.declare(
    "CLIPSCORE", str, "MODEL", "CLIPScore's model (HAVEN); none if unset"
)
HAVEN: Setting[str | None] = settings.declare(
    "HAVEN", str, settings.CHOICES, "HAVEN's items and pictures (lmms_eval_tasks/haven/README.md)"
)
