"""The settings of the judge study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

_rated = (
    "judge study: folders or saved samples with the answers to rate "
    "(lmms_eval_tasks/cvrr_es/README.md)"
)
CVRR_CANDIDATES: Setting[Sequence[Path]] = settings.declare(
    "CVRR_CANDIDATES", settings.paths, "PATH,...", _rated, ()
)
CVRR_RATINGS: Setting[Sequence[Path]] = settings.declare(
    "CVRR_RATINGS", settings.paths, "PATH,...", "judge study: files of ratings by other judges", ()
)
CVRR_REFERENCE: Setting[Sequence[Path]] = settings.declare(
    "CVRR_REFERENCE", settings.paths, "PATH,...", "judge study: files of reference ratings", ()
)
CVRR_SELECTION: Setting[str | None] = settings.declare(
    "CVRR_SELECTION",
    str,
    "RULE",
    "judge study: rule that chooses the judges of a mixture, such as `top=2`",
)
CVRR_NAME: Setting[str | None] = settings.declare(
    "CVRR_NAME", str, "NAME", "judge study: name of the judging model in ratings and tables"
)
