"""Ratings of known worth, made from the doc, for `--model tasks_scripted`.

`right` is the reference rating, or 3 without one; `wrong` is off by one or two, and more lenient
where the other judges' ratings are shown, so that the three rounds differ; `unreadable` is no
rating. For tests of metrics and of one process against two.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from lmms_eval_tasks.cvrr_es.labels import RATINGS
from lmms_eval_tasks.errors import TasksError
from lmms_eval_tasks.sample.players import UNREADABLE

Doc = Mapping[str, Any]

_LOW, _HIGH = min(RATINGS), max(RATINGS)


def item(doc: Doc) -> str:
    """What a reply's worth is drawn by: the same answer is drawn anew in every round.

    Raises:
        TasksError: a field is missing.
    """
    try:
        return f"{doc['round']}/{doc['id']}"
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None


def reply(doc: Doc, worth: str) -> str:
    """A rating in JSON, or a text that holds none.

    Args:
        doc: of a judge task (data.process_docs).
        worth: `right`, `wrong` or `unreadable`.

    Raises:
        TasksError: a field is missing.
    """
    if worth == "unreadable":
        return UNREADABLE
    try:
        known = doc["reference_rating"]
        right = 3 if known is None else round(known)
        rating = right if worth == "right" else _off(right, item(doc), bool(doc["others"]))
    except (KeyError, TypeError) as error:
        raise _lacking(error) from None
    return json.dumps({"rating": rating, "reason": f"played: {worth}"})


def _off(right: int, name: str, shown: bool) -> int:
    """Another rating than the right one."""
    drawn = int.from_bytes(hashlib.sha256(name.encode()).digest()[:2], "big") % 2
    step = 1 + drawn if shown or right < _HIGH - 1 else -1 - drawn
    moved = min(_HIGH, max(_LOW, right + step))
    return moved if moved != right else right - 1


def _lacking(error: Exception) -> TasksError:
    return TasksError(f"tasks_scripted needs docs of a CVRR judge task: {error!r}")
