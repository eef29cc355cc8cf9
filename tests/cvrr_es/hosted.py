"""For tests of CVRR-ES's host runs: a playing endpoint, kappas of scikit-learn."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable, Sequence
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
    cells: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for item in rated_items:
        own = cells.setdefault((item["dimension"], item["candidate"]), [])
        if item["rating"] is not None:
            own.append((item["rating"], item["reference_rating"]))

    def mean(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return sum(known) / len(known) if known else None

    of = {cell: sklearn_kappa(pairs) for cell, pairs in cells.items()}
    dimensions = {
        one: mean(kappa for cell, kappa in of.items() if cell[0] == one) for one, _ in cells
    }
    expected = {f"kappa_{one}": value for one, value in dimensions.items()}
    expected |= {
        f"kappa_of_{slug(one)}": mean(kappa for cell, kappa in of.items() if cell[1] == one)
        for _, one in cells
    }
    expected["kappa"] = mean(dimensions.values())
    expected["kappa_pooled"] = sklearn_kappa([pair for own in cells.values() for pair in own])
    return expected


def sklearn_kappa(pairs: list[tuple[int, int]]) -> float | None:
    from sklearn.metrics import cohen_kappa_score

    if not pairs:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 0 / 0 where both are constant
        value = cohen_kappa_score(
            *zip(*pairs, strict=True), labels=range(1, 6), weights="quadratic"
        )
    return None if math.isnan(value) else float(value)
