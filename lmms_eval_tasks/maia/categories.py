"""MAIA's twelve reasoning categories, with their names and their order (paper, 3.2)."""

from __future__ import annotations

# The category's name in the released files, without the suffix _A or _B -> its slug in the names of
# metrics, such as pair_acc_<slug>. The order is that of the columns in the paper's Tables 1, 2, 3
# and 5. A video has one of the two causal categories.
BY_RELEASED_NAME = {
    "CausaleEsplicita": "causal",
    "CausaleImplicita": "causal",
    "Controfattuale": "counterfactual",
    "OutofScope": "out_of_scope",
    "Pianificazione": "planning",
    "Sentiment": "sentiment",
    "Incertezza": "uncertainty",
    "ImplicitoParziale": "implicit_partial",
    "ImplicitoTot": "implicit_total",
    "SpazialeParziale": "spatial_partial",
    "SpazialeTotale": "spatial_total",
    "TemporaleDurata": "temporal_duration",
    "TemporaleParziale": "temporal_partial",
}
SLUGS = tuple(dict.fromkeys(BY_RELEASED_NAME.values()))
