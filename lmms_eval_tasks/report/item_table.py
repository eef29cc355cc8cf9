"""The items of a report as data for its page: the columns of a table, and details of each item.

The page reads the columns when it opens. Details are in packed chunks, of which one is unpacked
when an item in it is opened.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmms_eval_tasks.benchmark import Item, Items, Task
from lmms_eval_tasks.report.compare import by_item, headline_metrics, rows_of
from lmms_eval_tasks.report.compared_runs import Side
from lmms_eval_tasks.utils.json_files import Json, JsonObject

CHUNK = 250  # items that are unpacked together
SHORT = 120  # characters of a reply in the table
# Fields of an item with their own place on the page: those of the question, and of an answer.
_ASKED = ("question", "options", "answer", "references", "reference", "facts")
_ANSWERED = ("status", "reply", "verdicts", "claims", "dimensions")
_NEVER = {"id", "data", "media", "setup"}


def packed(value: object) -> str:
    """Return a value as compressed JSON, as text that may stand in a page.

    Lone surrogates are escaped.
    """
    text = json.dumps(value, separators=(",", ":"), default=str)
    return base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode()


def make_table(
    tasks: Sequence[Task],
    sides: Sequence[Side],
    media: Mapping[tuple[str, str], int],
) -> tuple[JsonObject, list[str]]:
    """Return the table's columns, and the packed chunks of details, in the rows' order.

    Args:
        tasks: the tasks whose items are shown, in their order.
        sides: the sides; a row is an item of any of them.
        media: index of the preview of an item's media, by task and id; missing if unknown.
    """
    heads: list[JsonObject] = []
    columns: dict[str, list[Any]] = {
        name: [] for name in ("task", "id", "video", "pool", "split", "media")
    }
    of_sides: list[dict[str, list[Any]]] = [
        {"status": [], "value": [], "reply": [], "read_by": []} for _ in sides
    ]
    chunks: list[str] = []
    details: list[JsonObject] = []
    for place, task in enumerate(tasks):
        side_rows = rows_of(task, sides)
        named = [[{**item, "id": name} for name, item in items.items()] for items in side_rows]
        metric, values = _values(task, named)
        binary = {value for side_values in values for value in side_values.values()} <= {0, 1}
        heads.append({"name": task.name, "metric": metric, "binary": binary})
        for name in dict.fromkeys(name for items in side_rows for name in items):
            items = [rows.get(name) for rows in side_rows]
            first = next(item for item in items if item is not None)
            columns["task"].append(place)
            columns["id"].append(name)
            columns["video"].append(str(first.get(task.cluster_field) or ""))
            pool = task.pool(first)  # also for an item whose row is not the first run's
            columns["pool"].append(f"{pool} (other)" if pool and name != first["id"] else pool)
            columns["split"].append([str(first.get(split) or "") for split in task.splits])
            columns["media"].append(media.get((task.name, name)))
            for column, item, value in zip(of_sides, items, values, strict=True):
                column["status"].append(item["status"] if item else "")
                column["value"].append(value.get(name))
                column["reply"].append(_short(item["reply"]) if item else "")
                column["read_by"].append(str(item.get("read_by") or "") if item else "")
            prompts = (side.prompts.get((task.name, name), "") for side in sides)
            details.append(_detail(items, next(filter(None, prompts), "")))
            if len(details) == CHUNK:
                chunks.append(packed(details))
                details = []
    if details:
        chunks.append(packed(details))
    labels = [side.label for side in sides]
    return {"sides": labels, "tasks": heads, "chunk": CHUNK, **columns, "of": of_sides}, chunks


def _values(task: Task, items: Sequence[Items]) -> tuple[str, list[dict[str, float]]]:
    """Return the name of the task's first metric that is a mean of items, and its values."""
    for metric in headline_metrics(task):
        if any(found := [by_item(metric, own) for own in items]):
            rounded = [{name: round(value, 4) for name, value in own.items()} for own in found]
            return metric.name, rounded
    return "", [{} for _ in items]


def _short(reply: str) -> str:
    text = " ".join(reply.split())
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def _detail(items: Sequence[Item | None], prompt: str) -> JsonObject:
    there = [item for item in items if item is not None]
    alike = [
        name
        for name in there[0]
        if all(name in one and one[name] == there[0][name] for one in there)
    ]
    shared = {
        name: there[0][name] for name in alike if name not in _ANSWERED and name not in _NEVER
    }
    told = {name: shared.pop(name) for name in _ASKED if name in shared}
    if "reference" in told:
        told["references"] = [told.pop("reference")]
    return {
        "prompt": prompt,
        **told,
        "more": {name: one for name, one in shared.items() if one not in (None, "", [], {})},
        "sides": [item and _answer(item, shared.keys() | told.keys()) for item in items],
    }


def _answer(item: Item, shared: Iterable[str]) -> JsonObject:
    """Return a side's reply to an item, the fields that were read from it, and its verdicts."""
    apart = {*shared, *_ANSWERED, *_ASKED, *_NEVER}
    dimensions = item.get("dimensions") or {}
    claims = [
        {
            "text": text,
            "labels": {name: _at(one.get("labels"), n) for name, one in dimensions.items()},
        }
        for n, text in enumerate(item.get("claims") or ())
    ]
    verdicts = [
        {"name": name, **{key: one.get(key) for key in ("score", "status", "reason", "raw")}}
        for name, one in (item.get("verdicts") or {}).items()
    ]
    return {
        "status": item["status"],
        "reply": item["reply"],
        "media": item.get("media"),
        "read": {name: one for name, one in item.items() if name not in apart},
        "claims": claims,
        "scores": {name: one.get("score") for name, one in dimensions.items()},
        "verdicts": verdicts,
    }


def _at(values: Sequence[Json] | None, place: int) -> Json:
    return values[place] if values is not None and place < len(values) else None
