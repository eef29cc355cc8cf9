"""MAIA's twelve reasoning categories: one truth for names, order and titles (paper, 3.2)."""

from __future__ import annotations

from typing import NamedTuple


class Category(NamedTuple):
    """One reasoning category."""

    slug: str  # part of metric names: pair_acc_<slug>
    title: str  # column title, as in the paper's tables
    # Italian names in the released files, without their _A or _B suffix. A video has one of them.
    released: tuple[str, ...]


# In the column order of the paper's Tables 1, 2, 3 and 5.
CATEGORIES: tuple[Category, ...] = (
    Category("causal", "Causal", ("CausaleEsplicita", "CausaleImplicita")),
    Category("counterfactual", "Counterfactual", ("Controfattuale",)),
    Category("out_of_scope", "Out-of-Scope", ("OutofScope",)),
    Category("planning", "Planning", ("Pianificazione",)),
    Category("sentiment", "Sentiment", ("Sentiment",)),
    Category("uncertainty", "Uncertainty", ("Incertezza",)),
    Category("implicit_partial", "Implicit Partial", ("ImplicitoParziale",)),
    Category("implicit_total", "Implicit Total", ("ImplicitoTot",)),
    Category("spatial_partial", "Spatial Partial", ("SpazialeParziale",)),
    Category("spatial_total", "Spatial Total", ("SpazialeTotale",)),
    Category("temporal_duration", "Temporal Duration", ("TemporaleDurata",)),
    Category("temporal_partial", "Temporal Partial", ("TemporaleParziale",)),
)

SLUGS: tuple[str, ...] = tuple(category.slug for category in CATEGORIES)
BY_RELEASED_NAME: dict[str, Category] = {
    name: category for category in CATEGORIES for name in category.released
}
