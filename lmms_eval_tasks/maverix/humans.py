"""The paper's human accuracy by modality and agentic category (Table 7), to stand beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lmms_eval_tasks.maverix.labels import MODES, SPLITS

WHICH = ("worst", "best", "average")  # over participants

# Mode and which of the three -> agentic slug, or "overall" -> share in 0..1.
Humans = Mapping[tuple[str, str], Mapping[str, float]]

_SLUGS = {title: slug for slug, title in SPLITS["agentic"].items()} | {"Overall": "overall"}


def humans(rows: Iterable[tuple[str, str, Mapping[str, float]]]) -> Humans:
    """Table 7's rows by mode.

    Args:
        rows: mode (a, v, av), the category's title as printed, and WHICH -> percent.

    Raises:
        KeyError: a mode, category or column that Table 7 does not have.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    for mode, title, cells in rows:
        for which in WHICH:
            values = found.setdefault((MODES[mode].slug, which), {})
            values[_SLUGS[title]] = cells[which] / 100
    return found


def load() -> Humans:
    """Table 7 as the leaderboards have it."""
    from lmms_eval_tasks import leaderboards

    table = leaderboards.leaderboard("maverix").table(7)
    return humans(
        (row.group, row.name, {which: row.value(which) for which in WHICH}) for row in table.rows
    )
