"""Settings that only MovieRecapsQA has."""

from __future__ import annotations

from lmms_eval_tasks import settings
from lmms_eval_tasks.settings import Setting

# Judged metrics that the user can add; each needs further requests.
JUDGED_BASELINES = ("geval", "helmet")


def _chosen(text: str) -> tuple[str, ...]:
    names = {name.strip().lower() for name in text.split(",") if name.strip()} - {"none"}
    if names - set(JUDGED_BASELINES):
        raise ValueError(f"expected a comma list of {', '.join(JUDGED_BASELINES)}, or none")
    return tuple(name for name in JUDGED_BASELINES if name in names)


BARTSCORE: Setting[str | None] = settings.declare(
    "BARTSCORE",
    str,
    "MODEL",
    "model for BARTScore (MovieRecapsQA): a folder, or a name in the local Hugging Face "
    "cache; default: not computed",
)
_more = "MovieRecapsQA's judged baselines, each of which adds requests to the judge; default: none"
BASELINES: Setting[tuple[str, ...]] = settings.declare(
    "BASELINES", _chosen, "geval,helmet", _more, ()
)
_shown = "what MovieRecapsQA's judge is shown: `facts=all` or `aligned`, `dialogue=given` or `none`"
MOVIERECAPSQA: Setting[str | None] = settings.declare(
    "MOVIERECAPSQA", str, settings.CHOICES, _shown
)
