"""The settings of the judge study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

_rated = "the judge study: whose answers are rated (lmms_eval_tasks/cvrr_es/README.md)"
CVRR_CANDIDATES: Setting[Sequence[Path]] = settings.declare(
    "CVRR_CANDIDATES", settings.paths, "PATH,...", _rated, ()
)
CVRR_RATINGS: Setting[Sequence[Path]] = settings.declare(
    "CVRR_RATINGS", settings.paths, "PATH,...", "the judge study: ratings given before", ()
)
CVRR_REFERENCE: Setting[Sequence[Path]] = settings.declare(
    "CVRR_REFERENCE", settings.paths, "PATH,...", "the judge study: the reference", ()
)
CVRR_SELECTION: Setting[str | None] = settings.declare(
    "CVRR_SELECTION", str, "RULE", "the judge study: which judges a mixture has"
)
CVRR_NAME: Setting[str | None] = settings.declare(
    "CVRR_NAME", str, "NAME", "the judge study: what the judging model is called"
)
