"""Replies of the model under test to every item of every task on the packaged sample, recorded.

Made once, by rules, from the docs of the version that recorded them (`make`), and kept by task and
item in replies.json: whatever becomes of the docs, the model says the same. There are two models:
`main` fails now and then; `faulty` on most items, so that every task meets every status.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lmms_eval_tasks.sample import players
from tests.cvrr_es.hosted import FORMS
from tests.golden.judge import drawn

FILE = Path(__file__).with_name("replies.json")
MODELS = {"main": 0.06, "faulty": 0.6}  # -> share of the items with one of FAULTS
FAULTS = (
    "",
    "I'm sorry, but I can't help with that.",
    "<think>Let me look at the first scene once more",
    "[LMMS_EVAL_REQUEST_FAILED after 3 retries] connection reset",
    players.UNREADABLE,
    "A or B",
    None,  # a part of the reply is missing
)

Docs = Mapping[str, list[dict[str, Any]]]  # by task


def make(docs: Docs) -> None:
    """Write replies.json: texts once, and for each model and task their places by item."""
    texts: dict[str, int] = {}
    items: list[list[str]] = []
    tasks: dict[str, Any] = {}
    for task, own in docs.items():
        ids = [doc["id"] for doc in own]
        if ids not in items:
            items.append(ids)
        given = {model: _replies(task, own, share) for model, share in MODELS.items()}
        places = {m: [texts.setdefault(t, len(texts)) for t in found] for m, found in given.items()}
        tasks[task] = {"items": items.index(ids), **places}
    parts = [
        *(
            f'"{name}": [\n{_lines(map(_dump, values))}\n]'
            for name, values in (("texts", texts), ("items", items))
        ),
        '"tasks": {\n' + _lines(f"{_dump(t)}: {_dump(one)}" for t, one in tasks.items()) + "\n}",
    ]
    FILE.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def write(folder: Path) -> dict[str, Path]:
    """A file for `--model tasks_recorded` for each model."""
    saved = json.loads(FILE.read_text(encoding="utf-8"))
    files = {model: folder / f"replies-{model}.jsonl" for model in MODELS}
    for model, file in files.items():
        lines = [
            _dump({"task": task, "id": item, "reply": saved["texts"][place]})
            for task, own in saved["tasks"].items()
            for item, place in zip(saved["items"][own["items"]], own[model], strict=True)
        ]
        file.write_text("\n".join(lines), encoding="utf-8")
    return files


def _replies(task: str, docs: list[dict[str, Any]], share: float) -> list[str]:
    start = drawn(task)
    order = sorted(range(len(docs)), key=lambda place: drawn(task, docs[place]["id"]))
    # Rounded up or down by the task's name: tasks of two items have a fault now and then.
    count = min(len(docs), math.floor(share * len(docs) + start % 100 / 100))
    faults = {place: FAULTS[(start + n) % len(FAULTS)] for n, place in enumerate(order[:count])}
    found = []
    for place, doc in enumerate(docs):
        right = _dressed(task, doc, players.scripted(doc))
        fault = faults.get(place, right)
        found.append(_cut(right) if fault is None else fault)
    return found


def _dressed(task: str, doc: Mapping[str, Any], reply: str) -> str:
    """The same reply in one of the forms that models write."""
    number = drawn(task, doc["id"], "form")
    if task.startswith("cvrr_judge") and reply.startswith("{"):
        return FORMS[number % len(FORMS)].format(json.loads(reply)["rating"])
    if task == "maia_unimodal" and reply in ("A", "B") and number % 2:
        best, other = -1 - number % 100 / 100, -3.5
        one = (best, other) if reply == "A" else (other, best)
        scores = {"one": one, "two": (-3.0, best) if number % 9 == 0 else (-4.0, -4.25)}
        return players.lm_pairs_reply(scores)
    if task.startswith("haven") and number % 5 > 1:
        reply = _blurred(reply, number)
    forms = ["{}", "{}", "{}", "<think>It may be another one.</think>\n{}"]
    if len(reply) == 1:
        forms += ["The answer is {}.", "**{}**", "({})"]
    return forms[number % len(forms)].format(reply)


def _blurred(reply: str, number: int) -> str:
    """Two places of an order swapped, one number off, or one word another one."""
    between = " > " if " > " in reply else " "
    words = reply.split(between)
    if between == " > ":
        first, second = number // 7 % len(words), number // 100 % len(words)
        words[first], words[second] = words[second], words[first]
        return between.join(words)
    places = [place for place, word in enumerate(words) if word.strip(",[].:").isdigit()]
    if places and number % 2:
        place = places[number // 7 % len(places)]
        words[place] = re.sub(r"\d+", lambda found: str(int(found[0]) + 1), words[place])
    else:
        words[number // 7 % len(words)] = "somewhere"
    return between.join(words)


def _cut(reply: str) -> str:
    """Without its last line, or the last place of an order."""
    for between in ("\n", " > ", ". "):
        if between in reply:
            return reply.rpartition(between)[0]
    return reply[: len(reply) // 2]


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _lines(parts: Iterable[str]) -> str:
    return ",\n".join(parts)
