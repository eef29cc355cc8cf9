"""Labels of claims, and which scores a list of them allows. Pure.

The paper publishes rules for the extremes of its 0-5 scores, not a formula: stated as bounds, they
tell whether a judge's score agrees with the judge's own labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

LOWEST, HIGHEST = 0, 5  # of a score
_CAP = 2  # of a score once one claim is contradictory, or beside the question

# Dimension -> the labels that a claim can have in it, best first.
LABELS: dict[str, tuple[str, ...]] = {
    "factuality": (
        "supported",
        "partially_supported",
        "unsupported",
        "contradictory",
        "not_checkable",
    ),
    "relevance": ("relevant", "partially_relevant", "irrelevant"),
    "coherence": ("consistent", "redundant", "contradictory"),
}
# Other words for them.
_ALIASES = {
    "relevance": {
        "partially": "partially_relevant",
        "not": "irrelevant",
        "not_relevant": "irrelevant",
    }
}
_GAP = re.compile(r"[\s_\u2010\u2011-]+")


def label(dimension: str, written: str) -> str:
    """The label of `dimension` that a judge wrote: case, spaces, hyphens and underscores are free.

    Raises:
        ValueError: it is none; the message does not repeat it.
    """
    found = _GAP.sub("_", written.strip().casefold())
    found = _ALIASES.get(dimension, {}).get(found, found)
    if found not in LABELS[dimension]:
        raise ValueError(f"a label that is none of {', '.join(LABELS[dimension])}")
    return found


def interval(dimension: str, labels: Sequence[str]) -> tuple[int, int]:
    """The lowest and the highest score, each 0 to 5, that the labels of an answer's claims allow.

    Factuality: no claim even partly supported is 0; any contradictory claim at most 2; all
    supported is 5. Relevance: all claims irrelevant is 0; any irrelevant claim at most 2.
    Coherence: any contradictory claim at most 2. Nothing else is published, so that all other
    labels leave the whole scale open.

    Args:
        dimension: a key of LABELS.
        labels: of each claim, at least one.

    Raises:
        ValueError: no labels (an answer without claims is not rated), or one of another dimension.
    """
    found = set(labels)
    if not found:
        raise ValueError("no labels: an answer without claims is not rated")
    if unknown := found.difference(LABELS[dimension]):
        raise ValueError(f"{min(unknown)!r} is no label of {dimension}")
    if dimension == "factuality":
        if not found & {"supported", "partially_supported"}:
            return LOWEST, LOWEST
        if found == {"supported"}:
            return HIGHEST, HIGHEST
    if dimension == "relevance" and found == {"irrelevant"}:
        return LOWEST, LOWEST
    capping = "irrelevant" if dimension == "relevance" else "contradictory"
    return LOWEST, _CAP if capping in found else HIGHEST
