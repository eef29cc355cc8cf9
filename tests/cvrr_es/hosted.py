"""For tests of CVRR-ES's host runs: a playing endpoint, kappas of scikit-learn."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Sequence
from typing import Any

from lmms_eval_tasks.cvrr_es.metrics import slug
from tests.local_endpoint import last_user_text

# How judges write a rating, and what it is; by turns.
FORMS = (
    '{{"rating": {0}, "reason": "It is so."}}',
    '{{"rating": "{0}", "reason": "It is so."}}',
    '{{"rating": "[[{0}]]", "reason": "It is so."}}',
    '```json\n{{"rating": [[{0}]], "reason": "It is so."}}\n```',
    "{{'rating': '{0}', 'reason': 'The dog's owner isn't there.'}}",
    '{{{{"rating": {0}, "reason": "It is so."}}}}',
    "Rating: '{0}', Reason: 'It is so.'",
    '{{"rating": {0}}}',
    '{{"rating": {0}5, "reason": "Off the scale."}}',
)
NO_REASON, OFF_SCALE = 7, 8  # places in FORMS


def drawn(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16)


def rated(text: str) -> tuple[int, int]:
    """Form and rating of the endpoint's reply to a judge's request."""
    return drawn(text) % len(FORMS), drawn(text) // len(FORMS) % 5 + 1


def reply(request: dict[str, Any]) -> str:
    """By the text alone; as a judge of answers now and then nothing that can be read."""
    text = last_user_text(request)
    if "impartial judge" in text:
        form, rating = rated(text)
        return FORMS[form].format(rating)
    score = drawn(text) % 7
    if score == 6:
        return "hard to say"
    label = "correct" if score > 2 else "incorrect"
    return json.dumps({"pred": label, "score": score, "reason": "drawn"})


def sklearn_kappas(rated_items: Sequence[dict[str, Any]]) -> dict[str, float | None]:
    """A judge's kappas from its saved items, by metric: of cells, then the means over them."""
    import pandas as pd
    from sklearn.metrics import cohen_kappa_score

    def kappa(both: pd.DataFrame) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # 0 / 0 where both are constant
            sides = both["rating"].astype(int), both["reference_rating"].astype(int)
            return float(cohen_kappa_score(*sides, labels=range(1, 6), weights="quadratic"))

    names = ["dimension", "candidate"]
    rated = pd.DataFrame(rated_items).dropna(subset=["rating"])
    cells = rated.groupby(names)[["rating", "reference_rating"]].apply(kappa)
    dimensions, candidates = (cells.groupby(level=name).mean() for name in names)
    found = {f"kappa_{name}": value for name, value in dimensions.items()}
    found |= {f"kappa_of_{slug(name)}": value for name, value in candidates.items()}
    found |= {"kappa": dimensions.mean(), "kappa_pooled": kappa(rated)}
    return {name: None if math.isnan(value) else value for name, value in found.items()}
