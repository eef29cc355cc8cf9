"""MAIA's twelve reasoning categories: one truth for names and order (paper, 3.2)."""

from __future__ import annotations

from typing import NamedTuple


class Category(NamedTuple):
    """One reasoning category."""

    slug: str  # part of metric names: pair_acc_<slug>
    # Italian names in the released files, without their _A or _B suffix. A video has one of them.
    released: tuple[str, ...]


# In the column order of the paper's Tables 1, 2, 3 and 5.
CATEGORIES: tuple[Category, ...] = (
    Category("causal", ("CausaleEsplicita", "CausaleImplicita")),
    Category("counterfactual", ("Controfattuale",)),
    Category("out_of_scope", ("OutofScope",)),
    Category("planning", ("Pianificazione",)),
    Category("sentiment", ("Sentiment",)),
    Category("uncertainty", ("Incertezza",)),
    Category("implicit_partial", ("ImplicitoParziale",)),
    Category("implicit_total", ("ImplicitoTot",)),
    Category("spatial_partial", ("SpazialeParziale",)),
    Category("spatial_total", ("SpazialeTotale",)),
    Category("temporal_duration", ("TemporaleDurata",)),
    Category("temporal_partial", ("TemporaleParziale",)),
)

SLUGS: tuple[str, ...] = tuple(category.slug for category in CATEGORIES)
BY_RELEASED_NAME: dict[str, Category] = {
    name: category for category in CATEGORIES for name in category.released
}
