"""Settings that only MAIA has."""

from __future__ import annotations

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

STILL_CLIP: Setting[bool] = settings.declare(
    "STILL_CLIP", bool, "", "pass MAIA's one-frame and black settings as clips, not as images"
)
MAIA: Setting[str | None] = settings.declare(
    "MAIA",
    str,
    settings.CHOICES,
    "MAIA: `media=images` passes frames as images, not as a clip; `order=balanced` "
    "balances the order of the options",
)
