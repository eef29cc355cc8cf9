"""Settings that only MAIA has."""

from __future__ import annotations

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

STILL_CLIP: Setting[bool] = settings.declare(
    "STILL_CLIP", bool, "", "MAIA's 1-frame and black settings as clips, not images"
)
MAIA: Setting[str | None] = settings.declare(
    "MAIA", str, settings.CHOICES, "`media=images`, not a clip; `order=balanced`: of the options"
)
